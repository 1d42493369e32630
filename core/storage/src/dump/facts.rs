//! The facts as types that serialise to JSON under Kafka's names. Numbers are as stored, sentinels included: this is a codec's view.

use bytes::Bytes;
use minikafka_model::batch::{BatchHeader, Record, Records, TimestampType};
use serde::Serialize;

use crate::producer::SnapshotEntry;

/// Set if the base timestamp is the time at which a tombstone may go.
const DELETE_HORIZON_BIT: i16 = 0x40;

/// What stands in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Facts {
    /// `.log`.
    Log {
        /// From its name.
        starting_offset: i64,
        /// In the order of the file.
        batches: Vec<BatchFacts>,
        /// Bytes at the end that are no batch.
        invalid_bytes: u64,
    },
    /// `.index`.
    Index(IndexFacts<OffsetIndexEntry>),
    /// `.timeindex`.
    TimeIndex(IndexFacts<TimeIndexEntry>),
    /// `.txnindex`.
    TransactionIndex(IndexFacts<TransactionIndexEntry>),
    /// `.snapshot`.
    Snapshot {
        /// In the order of the file.
        producers: Vec<ProducerFacts>,
    },
    /// `leader-epoch-checkpoint`.
    LeaderEpochs {
        /// Rising.
        epochs: Vec<EpochFacts>,
    },
    /// One of the checkpoints with an offset per partition.
    Offsets {
        /// By name.
        entries: Vec<CheckpointEntry>,
    },
    /// `partition.metadata`.
    PartitionMetadata {
        /// Kafka's text form.
        topic_id: String,
    },
    /// `meta.properties`.
    MetaProperties {
        /// `cluster.id`.
        cluster_id: String,
        /// `node.id`.
        node_id: i32,
        /// `directory.id`.
        directory_id: String,
    },
    /// `.kafka_cleanshutdown`.
    CleanShutdown {
        /// Epoch of the broker's last life.
        broker_epoch: Option<i64>,
    },
}

/// The entries of an index in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexFacts<Entry> {
    /// In the order of the file, without the zeros of a preallocated one.
    pub entries: Vec<Entry>,
}

/// An entry of `.index`, the offset absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kafka's")]
pub struct OffsetIndexEntry {
    pub offset: i64,
    pub position: u32,
}

/// An entry of `.timeindex`, the offset absolute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kafka's")]
pub struct TimeIndexEntry {
    pub timestamp: i64,
    pub offset: i64,
}

/// An entry of `.txnindex`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kafka's")]
pub struct TransactionIndexEntry {
    pub version: i16,
    pub producer_id: i64,
    pub first_offset: i64,
    pub last_offset: i64,
    pub last_stable_offset: i64,
}

impl TransactionIndexEntry {
    pub(super) fn of(bytes: &[u8]) -> TransactionIndexEntry {
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().fold(0i64, |value, byte| (value << 8) | i64::from(*byte))
        };
        TransactionIndexEntry {
            version: number(0..2) as i16,
            producer_id: number(2..10),
            first_offset: number(10..18),
            last_offset: number(18..26),
            last_stable_offset: number(26..34),
        }
    }
}

/// A producer of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kafka's")]
pub struct ProducerFacts {
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub coordinator_epoch: i32,
    pub current_txn_first_offset: Option<i64>,
    pub last_timestamp: i64,
    pub first_sequence: i32,
    pub last_sequence: i32,
    pub last_offset: i64,
    pub offset_delta: i32,
    pub timestamp: i64,
}

impl ProducerFacts {
    pub(super) fn of(entry: &SnapshotEntry) -> ProducerFacts {
        let batch = entry.last_batch.as_ref();
        ProducerFacts {
            producer_id: entry.producer.0,
            producer_epoch: entry.epoch.0,
            coordinator_epoch: entry.coordinator_epoch.unwrap_or(-1),
            current_txn_first_offset: entry.transaction_start.map(|offset| offset.0),
            last_timestamp: entry.last_timestamp,
            first_sequence: batch.map_or(-1, |batch| batch.first_sequence().0),
            last_sequence: batch.map_or(-1, |batch| batch.last_sequence.0),
            last_offset: batch.map_or(-1, |batch| batch.last_offset.0),
            offset_delta: batch.map_or(0, |batch| batch.offset_delta),
            timestamp: batch.map_or(-1, |batch| batch.timestamp),
        }
    }
}

/// An entry of `leader-epoch-checkpoint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub struct EpochFacts {
    pub epoch: i32,
    pub start_offset: i64,
}

/// An entry of a checkpoint of offsets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names say it")]
pub struct CheckpointEntry {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
}

/// A batch of `.log`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kafka's")]
pub struct BatchFacts {
    pub base_offset: i64,
    pub last_offset: i64,
    pub count: i32,
    pub base_sequence: i32,
    pub last_sequence: i32,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub partition_leader_epoch: i32,
    pub is_transactional: bool,
    pub is_control: bool,
    pub delete_horizon_ms: Option<i64>,
    pub position: u64,
    /// `CreateTime` or `LogAppendTime`.
    pub timestamp_type: &'static str,
    /// The largest of its records.
    pub timestamp: i64,
    pub size: usize,
    pub magic: i8,
    pub compresscodec: String,
    pub crc: u32,
    pub isvalid: bool,
    /// If they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<Vec<RecordFacts>>,
    /// Why not all records could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_error: Option<String>,
}

/// A record of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kafka's")]
pub struct RecordFacts {
    pub offset: i64,
    pub timestamp: i64,
    /// -1 for null.
    pub key_size: i64,
    /// -1 for null.
    pub value_size: i64,
    pub sequence: i32,
    pub header_keys: Vec<String>,
    /// What is not UTF-8 is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlFacts>,
}

/// A transaction marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the names are Kafka's")]
pub struct ControlFacts {
    /// `COMMIT` or `ABORT`.
    pub end_txn_marker: &'static str,
    pub coordinator_epoch: i32,
}

pub(super) fn batch_facts(position: u64, header: &BatchHeader, batch: &Bytes, records: bool) -> BatchFacts {
    let sequence =
        |base: i32, delta: i32| if base < 0 { -1 } else { minikafka_model::Sequence(base).plus(delta).0 };
    let codec = match header.compression() {
        Ok(codec) => codec.to_string(),
        Err(number) => format!("unknown({number})"),
    };
    let isvalid = header.verify(batch).is_ok();
    let (records, records_error) = if records { records_of(header, batch) } else { (None, None) };
    BatchFacts {
        base_offset: header.base_offset.0,
        last_offset: header.last_offset().0,
        count: header.count,
        base_sequence: header.base_sequence.0,
        last_sequence: sequence(header.base_sequence.0, header.last_offset_delta),
        producer_id: header.producer_id.map_or(-1, |id| id.0),
        producer_epoch: header.producer_epoch.0,
        partition_leader_epoch: header.leader_epoch.map_or(-1, |epoch| epoch.0),
        is_transactional: header.is_transactional(),
        is_control: header.is_control(),
        delete_horizon_ms: (header.attributes & DELETE_HORIZON_BIT != 0).then_some(header.base_timestamp),
        position,
        timestamp_type: match header.timestamp_type() {
            TimestampType::CreateTime => "CreateTime",
            TimestampType::LogAppendTime => "LogAppendTime",
        },
        timestamp: header.max_timestamp,
        size: header.size,
        magic: 2,
        compresscodec: codec,
        crc: header.crc,
        isvalid,
        records,
        records_error,
    }
}

fn records_of(header: &BatchHeader, batch: &Bytes) -> (Option<Vec<RecordFacts>>, Option<String>) {
    let mut facts = Vec::new();
    let records = match Records::of(batch) {
        Ok(records) => records,
        Err(error) => return (Some(facts), Some(error.to_string())),
    };
    for record in records {
        match record {
            Ok(record) => facts.push(record_facts(header, &record)),
            Err(error) => return (Some(facts), Some(error.to_string())),
        }
    }
    (Some(facts), None)
}

fn record_facts(header: &BatchHeader, record: &Record) -> RecordFacts {
    let text =
        |bytes: &Option<Bytes>| bytes.as_ref().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let size = |bytes: &Option<Bytes>| bytes.as_ref().map_or(-1, |bytes| bytes.len() as i64);
    let control = header.is_control().then(|| control_facts(record)).flatten();
    let delta = record.offset.since(header.base_offset) as i32;
    RecordFacts {
        offset: record.offset.0,
        timestamp: record.timestamp,
        key_size: size(&record.key),
        value_size: size(&record.value),
        sequence: if header.base_sequence.0 < 0 { -1 } else { header.base_sequence.plus(delta).0 },
        header_keys: record
            .headers
            .iter()
            .map(|header| String::from_utf8_lossy(&header.key).into_owned())
            .collect(),
        key: text(&record.key).filter(|_| !header.is_control()),
        payload: text(&record.value).filter(|_| !header.is_control()),
        control,
    }
}

fn control_facts(record: &Record) -> Option<ControlFacts> {
    let kind = i16::from_be_bytes(record.key.as_ref()?.get(2..4)?.try_into().ok()?);
    let coordinator_epoch = i32::from_be_bytes(record.value.as_ref()?.get(2..6)?.try_into().ok()?);
    let end_txn_marker = match kind {
        0 => "ABORT",
        1 => "COMMIT",
        _ => return None,
    };
    Some(ControlFacts { end_txn_marker, coordinator_epoch })
}
