//! What stands in a file of a log directory, as plain facts: for `log dump` and for tests. The names of the fields are those of
//! Kafka's dump tool (Kafka semantics 12.6).

mod facts;

pub use facts::{
    BatchFacts, CheckpointEntry, ControlFacts, EpochFacts, Facts, IndexFacts, OffsetIndexEntry,
    ProducerFacts, RecordFacts, TimeIndexEntry, TransactionIndexEntry,
};

use std::path::{Path, PathBuf};

use bytes::Bytes;
use minikafka_model::Offset;
use minikafka_model::batch::{BatchHeader, HEADER_BYTES};

use crate::checkpoint::{
    CLEAN_SHUTDOWN_FILE, CleanShutdown, LEADER_EPOCH_CHECKPOINT, LOG_START_CHECKPOINT, META_PROPERTIES,
    MetaProperties, PARTITION_METADATA, RECOVERY_POINT_CHECKPOINT, REPLICATION_CHECKPOINT, epochs_from_text,
    offsets_from_text, partition_metadata_from_text, read_small, read_text,
};
use crate::directory::is_kafka_metadata;
use crate::disk::{Disk, OpenMode, read_full};
use crate::error::{At, DiskOp, LogError};
use crate::producer::{SnapshotError, snapshot_from_bytes};
use crate::segment::index::{offsets_from_bytes, times_from_bytes};
use crate::segment::names::SegmentFile;

/// Bytes of an entry of `.txnindex`.
const TRANSACTION_ENTRY_BYTES: usize = 34;

/// A file cannot be dumped.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It lies in the metadata log of Apache Kafka.
    #[error("{} belongs to the metadata log of Apache Kafka, whose records are not known here", path.display())]
    KafkaMetadataLog {
        /// The file.
        path: PathBuf,
    },
    /// Its name says nothing.
    #[error(
        "{}: not a known file; .log, .index, .timeindex, .txnindex, .snapshot, the checkpoints, partition.metadata, \
         meta.properties and .kafka_cleanshutdown are",
        path.display()
    )]
    UnknownFile {
        /// The file.
        path: PathBuf,
    },
    /// There is no such file.
    #[error("{}: no such file", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// Its content is not what its name says.
    #[error("{}: {why}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// A producer snapshot that is not one.
    #[error("{}: {error}", path.display())]
    Snapshot {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        error: SnapshotError,
    },
    /// The disk's error, or a text file's.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Says what stands in a file, by its name. With `records` the records of every batch too.
///
/// # Errors
/// See [`DumpError`]. Damaged batches are facts, not errors.
pub fn dump_file(disk: &dyn Disk, path: &Path, records: bool) -> Result<Facts, DumpError> {
    refuse_kafka_metadata(disk, path)?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match SegmentFile::parse(name) {
        Some((base, SegmentFile::Log)) => {
            let mut batches = Vec::new();
            let invalid_bytes = dump_log(disk, path, records, |batch| batches.push(batch))?;
            Ok(Facts::Log { starting_offset: base.0, batches, invalid_bytes })
        }
        Some((base, kind)) => dump_side_file(disk, path, base, kind),
        None => dump_text(disk, path, name),
    }
}

fn refuse_kafka_metadata(disk: &dyn Disk, path: &Path) -> Result<(), DumpError> {
    let foreign = match path.parent() {
        Some(folder) => is_kafka_metadata(disk, folder)?,
        None => false,
    };
    if foreign { Err(DumpError::KafkaMetadataLog { path: path.to_owned() }) } else { Ok(()) }
}

/// Goes through the batches of a `.log` file, handing over each with its facts, and returns the number of bytes at the end that are
/// no batch. A batch with a wrong checksum is told as such and passed over by its length.
///
/// # Errors
/// The disk refuses, or the file is missing.
pub fn dump_log(
    disk: &dyn Disk,
    path: &Path,
    records: bool,
    mut each: impl FnMut(BatchFacts),
) -> Result<u64, DumpError> {
    refuse_kafka_metadata(disk, path)?;
    let file = match disk.open(path, OpenMode::Read) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(DumpError::Missing { path: path.to_owned() });
        }
        opened => opened.at(DiskOp::Open, path)?,
    };
    let size = file.size().at(DiskOp::Read, path)?;
    let mut position = 0;
    loop {
        let left = size - position;
        let mut head = [0; HEADER_BYTES];
        if left < HEADER_BYTES as u64 {
            return Ok(left);
        }
        read_full(&*file, &mut head, position).at(DiskOp::Read, path)?;
        let Ok(header) = BatchHeader::parse_prefix(&head) else { return Ok(left) };
        if header.size as u64 > left {
            return Ok(left);
        }
        let bytes = file.read_bytes_at(position, header.size).at(DiskOp::Read, path)?;
        if bytes.len() < header.size {
            return Ok(left);
        }
        each(BatchFacts::of(position, &header, &bytes, records));
        position += header.size as u64;
    }
}

fn dump_side_file(disk: &dyn Disk, path: &Path, base: Offset, kind: SegmentFile) -> Result<Facts, DumpError> {
    let bytes = read_small(disk, path)?.ok_or_else(|| DumpError::Missing { path: path.to_owned() })?;
    let bad = |why: &str| DumpError::Bad { path: path.to_owned(), why: why.to_owned() };
    match kind {
        SegmentFile::Index => {
            let entries = offsets_from_bytes(&bytes).map_err(bad)?;
            let offset = |relative| base.0.saturating_add(i64::from(relative));
            let entry = |entry: &crate::segment::index::OffsetEntry| OffsetIndexEntry {
                offset: offset(entry.relative),
                position: entry.position,
            };
            Ok(Facts::Index(IndexFacts { entries: entries.iter().map(entry).collect() }))
        }
        SegmentFile::TimeIndex => {
            let entries = times_from_bytes(&bytes).map_err(bad)?;
            let entry = |entry: &crate::segment::index::TimeEntry| TimeIndexEntry {
                timestamp: entry.timestamp,
                offset: base.0.saturating_add(i64::from(entry.relative)),
            };
            Ok(Facts::TimeIndex(IndexFacts { entries: entries.iter().map(entry).collect() }))
        }
        SegmentFile::TransactionIndex => {
            if !bytes.len().is_multiple_of(TRANSACTION_ENTRY_BYTES) {
                return Err(bad("its size is no multiple of 34"));
            }
            let entries =
                bytes.chunks_exact(TRANSACTION_ENTRY_BYTES).map(TransactionIndexEntry::of).collect();
            Ok(Facts::TransactionIndex(IndexFacts { entries }))
        }
        SegmentFile::Snapshot => {
            let entries = snapshot_from_bytes(&bytes)
                .map_err(|error| DumpError::Snapshot { path: path.to_owned(), error })?;
            Ok(Facts::Snapshot { producers: entries.iter().map(ProducerFacts::of).collect() })
        }
        SegmentFile::Log => Err(DumpError::UnknownFile { path: path.to_owned() }),
    }
}

fn dump_text(disk: &dyn Disk, path: &Path, name: &str) -> Result<Facts, DumpError> {
    let text = || read_text(disk, path)?.ok_or_else(|| DumpError::Missing { path: path.to_owned() });
    match name {
        LEADER_EPOCH_CHECKPOINT => {
            let history = epochs_from_text(path, &text()?)?;
            let entry =
                |entry: &crate::EpochEntry| EpochFacts { epoch: entry.epoch.0, start_offset: entry.start.0 };
            Ok(Facts::LeaderEpochs { epochs: history.entries().iter().map(entry).collect() })
        }
        REPLICATION_CHECKPOINT | RECOVERY_POINT_CHECKPOINT | LOG_START_CHECKPOINT => {
            let entry = |((topic, partition), offset): (crate::CheckpointName, Offset)| CheckpointEntry {
                topic,
                partition: partition.0,
                offset: offset.0,
            };
            Ok(Facts::Offsets {
                entries: offsets_from_text(path, &text()?)?.into_iter().map(entry).collect(),
            })
        }
        PARTITION_METADATA => Ok(Facts::PartitionMetadata {
            topic_id: partition_metadata_from_text(path, &text()?)?.to_string(),
        }),
        META_PROPERTIES => {
            let meta = MetaProperties::from_text(path, &text()?)?;
            Ok(Facts::MetaProperties {
                cluster_id: meta.cluster.0,
                node_id: meta.node,
                directory_id: meta.directory.to_string(),
            })
        }
        CLEAN_SHUTDOWN_FILE => {
            let mark = CleanShutdown::from_text(path, &text()?)?;
            Ok(Facts::CleanShutdown { broker_epoch: mark.broker_epoch.map(|epoch| epoch.0) })
        }
        _ => Err(DumpError::UnknownFile { path: path.to_owned() }),
    }
}

/// For tests and tools that have a batch in hand.
impl BatchFacts {
    /// The facts of a batch that begins at `position` of its file.
    pub fn of(position: u64, header: &BatchHeader, batch: &Bytes, records: bool) -> BatchFacts {
        facts::batch_facts(position, header, batch, records)
    }
}
