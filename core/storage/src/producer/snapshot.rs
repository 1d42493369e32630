//! `<offset>.snapshot`: version i16, CRC-32C u32 of what follows it, count i32, then 46 bytes per producer; all big endian (Kafka
//! semantics 9.4).

use minikafka_model::{Offset, ProducerEpoch, ProducerId, Sequence};

use super::ProducerBatch;

/// The version written, and the only one read.
pub const SNAPSHOT_VERSION: i16 = 1;
const HEAD_BYTES: usize = 10;
const CRC_FROM: usize = 6;
const ENTRY_BYTES: usize = 46;

/// One producer in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// Its id.
    pub producer: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
    /// Its newest batch; none if only markers are known of it.
    pub last_batch: Option<ProducerBatch>,
    /// Timestamp of its newest batch or marker.
    pub last_timestamp: i64,
    /// Epoch of the coordinator that wrote its last marker.
    pub coordinator_epoch: Option<i32>,
    /// First offset of its open transaction.
    pub transaction_start: Option<Offset>,
}

/// A snapshot that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Another version.
    #[error("version {0} of a producer snapshot is not known; {SNAPSHOT_VERSION} is")]
    Version(i16),
    /// Size and count do not fit.
    #[error("a producer snapshot of {size} bytes cannot hold {count} producers")]
    Size {
        /// Bytes there.
        size: usize,
        /// As announced.
        count: i32,
    },
    /// Fewer bytes than the fields before the entries.
    #[error("a producer snapshot of {0} bytes is cut short")]
    CutShort(usize),
    /// The checksum does not fit the bytes.
    #[error("a producer snapshot is damaged: CRC-32C {stored:08x} is stored, {computed:08x} computed")]
    Crc {
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// Reads a snapshot.
///
/// # Errors
/// It is not one, or damaged.
pub fn snapshot_from_bytes(bytes: &[u8]) -> Result<Vec<SnapshotEntry>, SnapshotError> {
    if bytes.len() < HEAD_BYTES {
        return Err(SnapshotError::CutShort(bytes.len()));
    }
    let version = i16::from_be_bytes(take(bytes, 0));
    if version != SNAPSHOT_VERSION {
        return Err(SnapshotError::Version(version));
    }
    let (stored, computed) = (u32::from_be_bytes(take(bytes, 2)), crc32c::crc32c(&bytes[CRC_FROM..]));
    if stored != computed {
        return Err(SnapshotError::Crc { stored, computed });
    }
    let count = i32::from_be_bytes(take(bytes, 6));
    let entries = &bytes[HEAD_BYTES..];
    if i64::from(count) * ENTRY_BYTES as i64 != entries.len() as i64 {
        return Err(SnapshotError::Size { size: bytes.len(), count });
    }
    Ok(entries.chunks_exact(ENTRY_BYTES).map(entry_from_bytes).collect())
}

fn entry_from_bytes(bytes: &[u8]) -> SnapshotEntry {
    let last_offset = i64::from_be_bytes(take(bytes, 14));
    let last_timestamp = i64::from_be_bytes(take(bytes, 26));
    let coordinator_epoch = i32::from_be_bytes(take(bytes, 34));
    let transaction_start = i64::from_be_bytes(take(bytes, 38));
    SnapshotEntry {
        producer: ProducerId(i64::from_be_bytes(take(bytes, 0))),
        epoch: ProducerEpoch(i16::from_be_bytes(take(bytes, 8))),
        last_batch: (last_offset >= 0).then(|| ProducerBatch {
            last_sequence: Sequence(i32::from_be_bytes(take(bytes, 10))),
            last_offset: Offset(last_offset),
            offset_delta: i32::from_be_bytes(take(bytes, 22)),
            timestamp: last_timestamp,
        }),
        last_timestamp,
        coordinator_epoch: (coordinator_epoch >= 0).then_some(coordinator_epoch),
        transaction_start: (transaction_start >= 0).then_some(Offset(transaction_start)),
    }
}

/// The bytes of a snapshot.
pub fn snapshot_to_bytes(entries: &[SnapshotEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + entries.len() * ENTRY_BYTES);
    bytes.extend(SNAPSHOT_VERSION.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend((entries.len() as i32).to_be_bytes());
    for entry in entries {
        let batch = entry.last_batch.as_ref();
        bytes.extend(entry.producer.0.to_be_bytes());
        bytes.extend(entry.epoch.0.to_be_bytes());
        bytes.extend(batch.map_or(-1, |batch| batch.last_sequence.0).to_be_bytes());
        bytes.extend(batch.map_or(-1, |batch| batch.last_offset.0).to_be_bytes());
        bytes.extend(batch.map_or(0, |batch| batch.offset_delta).to_be_bytes());
        bytes.extend(entry.last_timestamp.to_be_bytes());
        bytes.extend(entry.coordinator_epoch.unwrap_or(-1).to_be_bytes());
        bytes.extend(entry.transaction_start.map_or(-1, |offset| offset.0).to_be_bytes());
    }
    let crc = crc32c::crc32c(&bytes[CRC_FROM..]);
    bytes[2..6].copy_from_slice(&crc.to_be_bytes());
    bytes
}
