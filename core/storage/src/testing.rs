//! Batches for the tests of this crate.

use bytes::Bytes;
use minikafka_model::batch::{Batch, BatchBuilder, BatchHeader, CompressionType, ProducerStamp, Replicated};
use minikafka_model::{ProducerEpoch, ProducerId, Sequence};

/// Timestamp of the first record of a batch at offset 0; each offset adds one.
pub(crate) const EPOCH_MS: i64 = 1_700_000_000_000;

fn stamp((id, epoch, sequence): (i64, i16, i32)) -> ProducerStamp {
    ProducerStamp { id: ProducerId(id), epoch: ProducerEpoch(epoch), sequence: Sequence(sequence) }
}

/// The bytes of a batch in a log: `count` records with values of `value` bytes.
pub(crate) fn raw(
    base: i64,
    epoch: i32,
    count: i32,
    value: usize,
    producer: Option<(i64, i16, i32)>,
) -> Bytes {
    let mut builder = BatchBuilder::new();
    for record in 0..count {
        let value = vec![b'a' + (base + i64::from(record)).rem_euclid(26) as u8; value];
        builder.push(EPOCH_MS + base + i64::from(record), Some(b"k"), Some(&value), &[]);
    }
    let bytes = builder.build(CompressionType::None, producer.map(stamp)).expect("nothing to compress");
    let mut bytes = bytes.to_vec();
    bytes[0..8].copy_from_slice(&base.to_be_bytes());
    bytes[12..16].copy_from_slice(&epoch.to_be_bytes());
    Bytes::from(bytes)
}

/// A batch as a follower appends it.
pub(crate) fn batch(base: i64, epoch: i32, count: i32, value: usize) -> Batch<Replicated> {
    Batch::from_leader(raw(base, epoch, count, value, None)).expect("a whole batch")
}

/// The header of such a batch.
#[allow(dead_code, reason = "not every test that takes up this file needs it")]
pub(crate) fn header(base: i64, count: i32, producer: Option<(i64, i16, i32)>) -> BatchHeader {
    BatchHeader::parse(&raw(base, 0, count, 1, producer)).expect("a whole batch")
}
