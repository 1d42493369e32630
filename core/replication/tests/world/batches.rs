//! Record batches for scripts: one record a batch, whose value is a word.

use bytes::Bytes;
use minikafka_model::WallMs;
use minikafka_model::batch::{
    Batch, BatchBuilder, BatchHeader, CheckRules, Checked, CompressionType, ProducerStamp, Records,
    split_batches,
};

/// A batch with one record, checked.
pub(super) fn batch(value: &str, from: Option<ProducerStamp>, timestamp: i64) -> Batch<Checked> {
    let mut builder = BatchBuilder::new();
    builder.push(timestamp, None, Some(value.as_bytes()), &[]);
    let bytes = builder.finish(CompressionType::None, from).expect("nothing to compress");
    let received = Batch::from_client(bytes).expect("one batch");
    received.check(&CheckRules::default(), WallMs(timestamp)).expect("a good batch")
}

/// Offset, epoch and value of each stored batch.
pub(super) fn told(records: &Bytes) -> Vec<String> {
    split_batches(records.clone())
        .map(|bytes| {
            let bytes = bytes.expect("whole batches");
            let header = BatchHeader::parse(&bytes).expect("a header");
            let record = Records::of(&bytes).expect("records").next().expect("one").expect("a record");
            let value = String::from_utf8_lossy(&record.value.unwrap_or_default()).into_owned();
            format!("{}:{value}/{}", record.offset, header.leader_epoch.map_or(-1, |epoch| epoch.0))
        })
        .collect()
}
