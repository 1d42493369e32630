//! Record batches for scripts: one record a batch, whose value is a word.

use bytes::Bytes;
use minikafka_model::{ProducerEpoch, ProducerId, Sequence};
use minikafka_replication::ClientBatch;

/// Who wrote a batch, for the producer state.
#[derive(Debug, Clone, Copy)]
pub(super) struct From {
    pub(super) id: ProducerId,
    pub(super) epoch: ProducerEpoch,
    pub(super) first: Sequence,
}

/// A batch with one record.
pub(super) fn batch(value: &str, from: Option<From>, timestamp: i64) -> ClientBatch {
    let mut bytes = vec![0; 61];
    bytes[16] = 2;
    bytes[27..35].copy_from_slice(&timestamp.to_be_bytes());
    bytes[35..43].copy_from_slice(&timestamp.to_be_bytes());
    let (id, epoch, first) = from.map_or((-1, -1, -1), |from| (from.id.0, from.epoch.0, from.first.0));
    bytes[43..51].copy_from_slice(&i64::to_be_bytes(id));
    bytes[51..53].copy_from_slice(&i16::to_be_bytes(epoch));
    bytes[53..57].copy_from_slice(&i32::to_be_bytes(first));
    bytes[57..61].copy_from_slice(&1_i32.to_be_bytes());
    bytes.extend_from_slice(value.as_bytes());
    ClientBatch { bytes }
}

/// Offset, epoch and value of a stored batch.
pub(super) fn told(bytes: &Bytes) -> String {
    let offset = i64::from_be_bytes(bytes[0..8].try_into().expect("eight bytes"));
    let epoch = i32::from_be_bytes(bytes[12..16].try_into().expect("four bytes"));
    format!("{offset}:{}/{epoch}", String::from_utf8_lossy(&bytes[61..]))
}
