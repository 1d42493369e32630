//! What a start finds in a folder, and what it does about it (Kafka semantics 10.4).

use std::path::PathBuf;
use std::sync::Arc;

use minikafka_model::{LeaderEpoch, Offset, WallMs};

use super::read::each_header;
use super::removal::{Removal, remove};
use super::{Log, epoch_file};
use crate::checkpoint::{epochs_from_text, read_small, read_text};
use crate::disk::Disk;
use crate::epoch_history::EpochHistory;
use crate::error::{At, DiskOp, LogError};
use crate::producer::{ProducerStates, snapshot_from_bytes};
use crate::segment::Segment;
use crate::segment::index::Indexes;
use crate::segment::names::SegmentFile;
use crate::segment::walk::{BatchScan, Place, WalkError};

/// The end of a log that was cut off because it holds no whole batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TornTail {
    /// The file.
    pub path: PathBuf,
    /// Where it was cut.
    pub position: u64,
    /// The log end offset since.
    pub offset: Offset,
    /// Bytes cut off that file.
    pub bytes: u64,
    /// What did not fit there.
    pub why: String,
    /// A whole batch follows the bad one: not what a crash leaves behind, but Kafka's rule above the recovery point is the same.
    pub batches_follow: bool,
    /// Later segments that were dropped with it, with their bytes.
    pub later_segments: Vec<(Offset, u64)>,
}

/// What the opening of a log found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Whether the folder was trusted.
    pub clean: bool,
    /// First offset that may be read.
    pub log_start: Option<Offset>,
    /// Log end offset.
    pub log_end: Option<Offset>,
    /// The checkpointed high watermark, clamped into the log.
    pub high_watermark: Option<Offset>,
    /// Segments whose batches were all verified.
    pub scanned_segments: usize,
    /// Bytes of these.
    pub scanned_bytes: u64,
    /// A cut, if one was needed.
    pub torn: Option<TornTail>,
    /// Bytes of a time before a truncation that were found below a later segment and cut off.
    pub stale_bytes: u64,
    /// Why the epoch history was rebuilt from the batches, if it was.
    pub epochs_rebuilt: Option<String>,
    /// Producer snapshots that could not be used.
    pub bad_snapshots: usize,
    /// The log ended below its start and began anew there.
    pub began_anew: Option<Offset>,
    /// Files to be removed by the janitor.
    pub removal: Removal,
}

/// What one segment's scan gives.
pub(super) struct Scanned {
    pub(super) end: Place,
    pub(super) indexes: Indexes,
    /// Each change of the epoch.
    pub(super) epochs: Vec<(LeaderEpoch, Offset)>,
    pub(super) torn: Option<TornTail>,
    /// Bytes at the end whose offsets the next segment holds.
    pub(super) stale: u64,
}

/// Verifies all batches of a segment up to the base of the next one. What does not hold at or above `recovery_point` is told as torn,
/// below as an error.
///
/// Batches whose offsets the next segment holds are of a time before a truncation: the cut was not durable, the segment that was begun
/// there was.
pub(super) fn scan(
    segment: &Segment,
    interval: u32,
    from: Offset,
    next: Option<Offset>,
    recovery_point: Offset,
) -> Result<Scanned, LogError> {
    let start = Place { position: 0, offset: segment.base.max(from) };
    let mut scan = BatchScan::new(&*segment.log, &segment.path, segment.base, segment.size(), start);
    let mut indexes = Indexes::default();
    let mut epochs: Vec<(LeaderEpoch, Offset)> = Vec::new();
    let mut since = 0;
    let mut torn = None;
    let mut end = scan.place();
    loop {
        match scan.next() {
            Ok(Some((_, header, _))) if next.is_some_and(|next| header.last_offset() >= next) => break,
            Ok(Some((position, header, _))) => {
                end = scan.place();
                indexes.batch(segment.base, position, &header, &mut since, interval);
                if let Some(epoch) = header.leader_epoch
                    && epochs.last().is_none_or(|(last, _)| *last != epoch)
                {
                    epochs.push((epoch, header.base_offset));
                }
            }
            Ok(None) => break,
            Err(WalkError::Disk(error)) => return Err(error),
            Err(WalkError::Invalid(damage)) if damage.offset < recovery_point => {
                return Err(LogError::Damaged { recovery_point, damage });
            }
            Err(WalkError::Invalid(damage)) => {
                torn = Some(TornTail {
                    path: damage.path,
                    position: damage.position,
                    offset: damage.offset,
                    bytes: segment.size() - damage.position,
                    why: damage.why,
                    batches_follow: scan.a_batch_follows(),
                    later_segments: Vec::new(),
                });
                break;
            }
        }
    }
    indexes.close_times();
    let stale = if torn.is_none() { segment.size() - end.position } else { 0 };
    Ok(Scanned { end, indexes, epochs, torn, stale })
}

/// The history in the file; why it cannot be used, if it cannot.
pub(super) fn read_epochs(
    disk: &dyn Disk,
    dir: &std::path::Path,
) -> Result<Result<EpochHistory, String>, LogError> {
    let path = epoch_file::epoch_path(dir);
    let text = match read_text(disk, &path) {
        Ok(Some(text)) => text,
        Ok(None) => return Ok(Err("the file is missing".to_owned())),
        Err(error @ LogError::Malformed { .. }) => return Ok(Err(error.to_string())),
        Err(error) => return Err(error),
    };
    match epochs_from_text(&path, &text) {
        Ok(history) => Ok(Ok(history)),
        Err(error @ LogError::Malformed { .. }) => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}

impl Log {
    /// The history that the batches tell.
    pub(super) fn epochs_of_batches(segments: &[Arc<Segment>]) -> Result<EpochHistory, LogError> {
        let mut history = EpochHistory::default();
        each_header(segments, Offset::ZERO, |_, _, header| {
            if let Some(epoch) = header.leader_epoch {
                history.assign(epoch, header.base_offset);
            }
            Ok(true)
        })?;
        Ok(history)
    }

    /// A history that begins behind the log start (or is empty) was cut at a log start that was lost in a crash: the epochs of the
    /// batches before are put in front. Whether anything changed.
    pub(super) fn fill_history(&mut self) -> Result<bool, LogError> {
        let first = self.epochs.entries().first().map_or(self.end, |first| first.start);
        if first <= self.start {
            return Ok(false);
        }
        let mut history = EpochHistory::default();
        each_header(&self.segments, self.start, |_, _, header| {
            if let Some(epoch) = header.leader_epoch
                && header.base_offset < first
            {
                history.assign(epoch, header.base_offset.max(self.start));
            }
            Ok(header.base_offset < first)
        })?;
        for entry in self.epochs.entries() {
            history.assign(entry.epoch, entry.start);
        }
        let changed = history != self.epochs;
        self.epochs = history;
        Ok(changed)
    }

    /// Producer state as of the log end: the newest usable snapshot, and the batches since. Snapshots behind the log end are removed.
    /// Returns how many were unusable.
    pub(super) fn rebuild_producers(&mut self, now: WallMs) -> Result<usize, LogError> {
        let mut snapshots = Vec::new();
        for entry in self.disk.list(&self.dir).at(DiskOp::List, &self.dir)? {
            match SegmentFile::parse(&entry.name) {
                Some((offset, SegmentFile::Snapshot)) if offset > self.end => {
                    remove(&*self.disk, &self.dir.join(&entry.name))?;
                }
                Some((offset, SegmentFile::Snapshot)) => snapshots.push(offset),
                _ => {}
            }
        }
        let mut unusable = 0;
        let mut from = Offset::ZERO;
        self.producers.clear();
        while let Some(offset) = snapshots.pop() {
            let path = SegmentFile::Snapshot.path(&self.dir, offset);
            let bytes = read_small(&*self.disk, &path)?.unwrap_or_default();
            match snapshot_from_bytes(&bytes) {
                Ok(entries) => {
                    self.producers = ProducerStates::from_snapshot(entries);
                    self.producers.expire(now, self.config.producer_expiration_ms);
                    from = offset;
                    break;
                }
                Err(_) => {
                    remove(&*self.disk, &path)?;
                    unusable += 1;
                }
            }
        }
        if from < self.end {
            let producers = &mut self.producers;
            each_header(&self.segments, from, |segment, position, header| {
                let bytes = if header.is_control() {
                    segment.log.read_bytes_at(position, header.size).at(DiskOp::Read, &segment.path)?
                } else {
                    bytes::Bytes::new()
                };
                producers.appended(header, &bytes);
                Ok(true)
            })?;
        }
        Ok(unusable)
    }
}
