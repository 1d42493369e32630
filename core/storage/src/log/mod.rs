//! A partition's log (Kafka semantics 10): segments, epoch history, producer state; append, roll, truncation, retention, sync.

mod append;
mod epoch_file;
mod open;
mod read;
mod recovery;
mod removal;
mod retention;
mod swap;
mod sync;
mod time;
mod truncate;

pub use append::Appended;
pub use epoch_file::EpochCheckpoint;
pub use open::Opening;
pub use read::{LogReader, ReadLimit, ReadRecords};
pub use recovery::{RecoveryReport, TornTail};
pub use removal::Removal;
pub use retention::{DeletedSegment, DeletionReason, Retained};
pub use sync::{SyncPlan, SyncUpto, Synced};
pub use time::TimeHit;
pub use truncate::Truncated;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minikafka_model::{LeaderEpoch, Offset, WallMs};

use crate::config::LogConfig;
use crate::disk::Disk;
use crate::epoch_history::EpochHistory;
use crate::error::LogError;
use crate::producer::ProducerStates;
use crate::segment::Segment;
use crate::segment::tail::{PreparedSegment, SegmentPreparation, Tail};
use epoch_file::EpochFile;

/// The log of one replica.
///
/// It is used behind the lock of its replica. Nothing here syncs a file but [`SyncPlan::run`], [`EpochCheckpoint::run`],
/// [`Log::close`] and a truncation that removes whole segments or goes below the recovery point.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
    config: LogConfig,
    /// Never empty; the last one is written to.
    segments: Arc<Vec<Arc<Segment>>>,
    tail: Tail,
    prepared: Option<PreparedSegment>,
    start: Offset,
    end: Offset,
    recovery_point: Offset,
    epochs: EpochHistory,
    epoch_file: Arc<EpochFile>,
    producers: ProducerStates,
    /// Counts truncations, for readers that work without the lock.
    generation: Arc<AtomicU64>,
    /// Set by the first failed write or sync: nothing is done any more.
    failed: Arc<AtomicBool>,
    /// Counts changes of names in the folder, and those of them that are durable.
    names_changed: u64,
    names_durable: u64,
    unsynced_records: u64,
    /// Whether a note of a truncation below the checkpointed recovery point lies on the disk.
    truncation_noted: bool,
}

impl Log {
    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// First offset that may be read.
    pub fn start_offset(&self) -> Offset {
        self.start
    }

    /// Log end offset: of the next record.
    pub fn end_offset(&self) -> Offset {
        self.end
    }

    /// No record to read?
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Everything below was synced.
    pub fn recovery_point(&self) -> Offset {
        self.recovery_point
    }

    /// The epochs of the log.
    pub fn epochs(&self) -> &EpochHistory {
        &self.epochs
    }

    /// Newest epoch.
    pub fn last_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.last_epoch()
    }

    /// Where the records of an epoch end (Kafka semantics 4.1).
    pub fn end_offset_for(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        self.epochs.end_offset_for(epoch, self.end)
    }

    /// What is known of producers.
    pub fn producers(&self) -> &ProducerStates {
        &self.producers
    }

    /// Forgets producers that expired; how many. Kafka's interval is ten minutes.
    pub fn expire_producers(&mut self, now: WallMs) -> usize {
        self.producers.expire(now, self.config.producer_expiration_ms)
    }

    /// Its settings.
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// New settings, for what comes.
    pub fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    /// Base offset of the oldest segment on the disk.
    pub fn first_segment(&self) -> Offset {
        self.segments[0].base
    }

    /// Number of segments.
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// Bytes of all segments.
    pub fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size()).sum()
    }

    /// What must stand in the checkpoint of log start offsets: only a start above the first segment's base.
    pub fn start_to_checkpoint(&self) -> Option<Offset> {
        (self.start > self.first_segment()).then_some(self.start)
    }

    /// Whether the files of the next segment should be made by now, so that the roll finds them.
    pub fn needs_next_segment(&self) -> bool {
        self.prepared.is_none() && self.newest().size() >= u64::from(self.config.segment_bytes) / 2
    }

    /// The making of the next segment's files: run it without the lock, then [`Log::install_next`].
    pub fn next_segment(&self) -> SegmentPreparation {
        SegmentPreparation::new(&self.disk, &self.dir, &self.config)
    }

    /// Keeps prepared files for the next roll.
    pub fn install_next(&mut self, prepared: PreparedSegment) {
        self.prepared = Some(prepared);
    }

    /// Stops all further writing, after an error whose reach is the directory.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    fn check_online(&self) -> Result<(), LogError> {
        if self.failed.load(Ordering::Acquire) {
            return Err(LogError::Offline { dir: self.dir.to_path_buf() });
        }
        Ok(())
    }

    fn newest(&self) -> &Arc<Segment> {
        &self.segments[self.segments.len() - 1]
    }
}

#[cfg(test)]
mod tests;
