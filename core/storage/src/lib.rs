//! The log on disk: segments, indexes, epoch history, checkpoints, producer state, recovery.
//!
//! Formats and names are Kafka's (`docs/formats.md`). [`Log`] is one partition's log, [`LogReader`] a published view of it,
//! [`LogDirectory`] a directory of them; [`Disk`] is all they need of the machine, [`SimDisk`] fulfils it in memory.

mod checkpoint;
mod config;
mod directory;
mod disk;
pub mod dump;
mod epoch_history;
mod error;
mod log;
mod producer;
mod segment;
mod sim_disk;
#[cfg(test)]
mod testing;

pub use checkpoint::{
    CLEAN_SHUTDOWN_FILE, CheckpointName, CleanShutdown, FileWrite, LEADER_EPOCH_CHECKPOINT,
    LOG_START_CHECKPOINT, META_PROPERTIES, MetaProperties, PARTITION_METADATA, RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
};
pub use config::LogConfig;
pub use directory::{
    Checkpoint, Contents, DirectoryError, KAFKA_METADATA_TOPIC, LogDirectory, PartitionFolder,
    is_kafka_metadata,
};
pub use disk::{DirEntry, Disk, EntryKind, File, OpenMode, read_full};
pub use epoch_history::{EpochEntry, EpochHistory};
pub use error::{Damage, DiskOp, LogError, Reach};
pub use log::{
    Appended, DeletedSegment, DeletionReason, EpochCheckpoint, Log, LogReader, Opening, ReadLimit,
    ReadRecords, RecoveryReport, Removal, Retained, SyncPlan, SyncUpto, Synced, TimeHit, TornTail, Truncated,
};
pub use producer::{
    ProducerBatch, ProducerEntry, ProducerRefusal, ProducerStates, ProducerVerdict, SNAPSHOT_VERSION,
    SnapshotEntry, SnapshotError, WINDOW, snapshot_from_bytes, snapshot_to_bytes,
};
pub use segment::tail::{PreparedSegment, SegmentPreparation};
pub use sim_disk::{SimDisk, SimFault, SimOp, Unsynced};
