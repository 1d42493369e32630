//! Record batches of the simulation: one record a batch, whose value is a word.

use bytes::Bytes;
use minikafka_model::{LeaderEpoch, Offset};
use minikafka_replication::ClientBatch;

use crate::message::Seen;

/// A batch with one record; `producer` is the id and the sequence of an idempotent producer.
pub(crate) fn batch(value: &str, producer: Option<(i64, i32)>) -> ClientBatch {
    let mut bytes = vec![0; 61];
    bytes[16] = 2;
    let (id, epoch, sequence) = producer.map_or((-1, -1, -1), |(id, sequence)| (id, 0, sequence));
    bytes[43..51].copy_from_slice(&i64::to_be_bytes(id));
    bytes[51..53].copy_from_slice(&i16::to_be_bytes(epoch));
    bytes[53..57].copy_from_slice(&i32::to_be_bytes(sequence));
    bytes[57..61].copy_from_slice(&1_i32.to_be_bytes());
    bytes.extend_from_slice(value.as_bytes());
    ClientBatch { bytes }
}

/// The record of a stored batch.
pub(crate) fn seen(bytes: &Bytes) -> Seen {
    let number = |at: usize| i64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    Seen {
        offset: Offset(number(0)),
        epoch: LeaderEpoch((number(12) >> 32) as i32),
        value: String::from_utf8_lossy(&bytes[61..]).into_owned(),
    }
}
