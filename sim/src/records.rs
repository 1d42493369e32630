//! Record batches of the simulation: one record a batch, whose value is a word.

use bytes::Bytes;
use minikafka_model::batch::{
    Batch, BatchBuilder, BatchHeader, BatchRefusal, CheckRules, Checked, CompressionType, ProducerStamp,
    Records, split_batches,
};
use minikafka_model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, WallMs};
use minikafka_storage::{Log, ReadLimit};

use crate::message::Seen;

/// A batch with one record as a client sends it, checked; `producer` is the id and the sequence of an idempotent producer.
pub(crate) fn batch(
    value: &str,
    producer: Option<(i64, i32)>,
    now: WallMs,
) -> Result<Batch<Checked>, BatchRefusal> {
    let mut builder = BatchBuilder::new();
    builder.push(now.0, None, Some(value.as_bytes()), &[]);
    let stamp = producer.map(|(id, sequence)| ProducerStamp {
        id: ProducerId(id),
        epoch: ProducerEpoch(0),
        sequence: Sequence(sequence),
    });
    let bytes = builder.finish(CompressionType::None, stamp).expect("nothing to compress");
    Batch::from_client(bytes)?.check(&CheckRules::default(), now)
}

/// The records of stored batches.
pub(crate) fn seen(records: &Bytes) -> Vec<Seen> {
    let mut all = Vec::new();
    for bytes in split_batches(records.clone()) {
        let bytes = bytes.expect("whole batches");
        let epoch = BatchHeader::parse(&bytes).expect("a header").leader_epoch.unwrap_or(LeaderEpoch(-1));
        for record in Records::of(&bytes).expect("records") {
            let record = record.expect("a record");
            let value = String::from_utf8_lossy(&record.value.unwrap_or_default()).into_owned();
            all.push(Seen { offset: record.offset, epoch, value });
        }
    }
    all
}

/// Every record of a log from one offset up to another.
pub(crate) fn records(log: &Log, from: Offset, upto: Offset) -> Vec<Seen> {
    let reader = log.reader();
    let (mut at, mut all) = (from.max(reader.start_offset()), Vec::new());
    while at < upto {
        let limit = ReadLimit { max_bytes: 1 << 20, upto, at_least_one: true };
        let read = reader.read(at, limit).expect("readable");
        let Some(end) = read.end else { break };
        all.extend(seen(&read.records).into_iter().filter(|record| record.offset >= at));
        at = end;
    }
    all
}
