//! Syncing, and the orderly end. A failed sync is final: it is never retried.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minikafka_model::Offset;

use super::{EpochCheckpoint, Log};
use crate::disk::{Disk, OpenMode};
use crate::error::{At, DiskOp, LogError};
use crate::segment::Segment;
use crate::segment::names::SegmentFile;

/// How far to sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncUpto {
    /// To the base of the newest segment: what a roll calls for.
    Sealed,
    /// To the log end.
    End,
}

/// Syncs to be done without the lock of the log; hand the outcome to [`Log::synced`].
#[derive(Debug)]
pub struct SyncPlan {
    disk: Arc<dyn Disk>,
    failed: Arc<AtomicBool>,
    /// Each with the number of its cuts.
    segments: Vec<(Arc<Segment>, u64)>,
    /// Index files and snapshots of sealed segments.
    paths: Vec<PathBuf>,
    sealed: Vec<Arc<Segment>>,
    epochs: Option<EpochCheckpoint>,
    dir: Option<PathBuf>,
    names: u64,
    upto: Offset,
    records: u64,
    generation: u64,
}

/// What a [`SyncPlan`] made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "hand it to Log::synced"]
pub struct Synced {
    upto: Offset,
    records: u64,
    names: u64,
    generation: u64,
}

impl Synced {
    /// Everything below is durable, if the log was not truncated since.
    pub fn upto(&self) -> Offset {
        self.upto
    }
}

impl SyncPlan {
    /// Does it.
    ///
    /// # Errors
    /// The disk refuses. The log takes no more appends then, and the directory is to be taken offline: what a failed sync was about
    /// may be gone from memory, and the next sync would report success.
    pub fn run(&self) -> Result<Synced, LogError> {
        self.sync().inspect_err(|_| self.failed.store(true, Ordering::Release))
    }

    fn sync(&self) -> Result<Synced, LogError> {
        for (segment, cuts) in &self.segments {
            segment.log.sync().at(DiskOp::Sync, &segment.path)?;
            segment.cuts_synced.fetch_max(*cuts, Ordering::AcqRel);
        }
        for path in &self.paths {
            match self.disk.open(path, OpenMode::ReadWrite) {
                Ok(file) => file.sync().at(DiskOp::Sync, path)?,
                // Retention was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(LogError::Io { op: DiskOp::Open, path: path.clone(), source }),
            }
        }
        // The history must not be behind what is durable: a recovery does not look below the recovery point.
        if let Some(epochs) = &self.epochs {
            epochs.run()?;
        }
        if let Some(dir) = &self.dir {
            self.disk.sync_dir(dir).at(DiskOp::SyncDir, dir)?;
        }
        for segment in &self.sealed {
            segment.indexes_synced.store(true, Ordering::Release);
        }
        Ok(Synced { upto: self.upto, records: self.records, names: self.names, generation: self.generation })
    }
}

impl Log {
    /// What a sync up to there takes; `None` if everything is durable already.
    pub fn sync_plan(&self, upto: SyncUpto) -> Option<SyncPlan> {
        let newest = self.newest().base;
        let upto = match upto {
            SyncUpto::Sealed => newest,
            SyncUpto::End => self.end,
        };
        let ends_after =
            |at: usize, offset: Offset| self.segments.get(at + 1).is_none_or(|next| next.base > offset);
        let due = |at: usize| {
            let segment = &self.segments[at];
            let unsynced = ends_after(at, self.recovery_point) && segment.base < upto;
            // A cut must be durable before the recovery point passes it, or what was cut off comes back below.
            (unsynced || segment.cut_pending())
                .then(|| (Arc::clone(segment), segment.cuts.load(Ordering::Acquire)))
        };
        let segments: Vec<(Arc<Segment>, u64)> = (0..self.segments.len()).filter_map(due).collect();
        let stale = |segment: &&Arc<Segment>| {
            segment.base < newest && !segment.indexes_synced.load(Ordering::Acquire)
        };
        let sealed: Vec<Arc<Segment>> = self.segments.iter().filter(stale).map(Arc::clone).collect();
        if upto <= self.recovery_point && sealed.is_empty() {
            return None;
        }
        let mut paths: Vec<PathBuf> = Vec::new();
        for segment in &sealed {
            paths.extend(
                [SegmentFile::Index, SegmentFile::TimeIndex].map(|kind| kind.path(&self.dir, segment.base)),
            );
        }
        if !sealed.is_empty() {
            paths.push(SegmentFile::Snapshot.path(&self.dir, newest));
        }
        Some(SyncPlan {
            disk: Arc::clone(&self.disk),
            failed: Arc::clone(&self.failed),
            segments,
            paths,
            sealed,
            epochs: (!self.epoch_checkpoint_is_current()).then(|| self.epoch_checkpoint()),
            dir: (self.names_changed > self.names_durable).then(|| self.dir.to_path_buf()),
            names: self.names_changed,
            upto: upto.max(self.recovery_point),
            records: if upto == self.end { self.unsynced_records } else { 0 },
            generation: self.generation.load(Ordering::Acquire),
        })
    }

    /// Takes note of a sync. One that was planned before a truncation counts for nothing.
    pub fn synced(&mut self, synced: Synced) {
        self.names_durable = self.names_durable.max(synced.names);
        if synced.generation != self.generation.load(Ordering::Acquire) {
            return;
        }
        self.recovery_point = self.recovery_point.max(synced.upto.min(self.end));
        self.unsynced_records = self.unsynced_records.saturating_sub(synced.records);
    }

    /// Syncs up to the log end in place: for a log whose owner waits for it anyway (the metadata log).
    ///
    /// # Errors
    /// As [`SyncPlan::run`].
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.check_online()?;
        if let Some(plan) = self.sync_plan(SyncUpto::End) {
            let synced = plan.run()?;
            self.synced(synced);
        }
        Ok(())
    }

    /// The orderly end: index files completed and trimmed, producer snapshot of the log end, epoch history, all synced. Returns the
    /// recovery point to be checkpointed, which is the log end.
    ///
    /// # Errors
    /// The disk refuses: the directory must not be marked as cleanly stopped.
    pub fn close(mut self) -> Result<Offset, LogError> {
        self.check_online()?;
        let newest = Arc::clone(self.newest());
        self.tail.seal(&newest)?;
        if self.end > self.start {
            self.write_snapshot(self.end)?;
        }
        let indexes =
            [SegmentFile::Index, SegmentFile::TimeIndex].map(|kind| kind.path(&self.dir, newest.base));
        let snapshot = SegmentFile::Snapshot.path(&self.dir, self.end);
        let mut plan = self.sync_plan(SyncUpto::End).unwrap_or_else(|| SyncPlan {
            disk: Arc::clone(&self.disk),
            failed: Arc::clone(&self.failed),
            segments: Vec::new(),
            paths: Vec::new(),
            sealed: Vec::new(),
            epochs: (!self.epoch_checkpoint_is_current()).then(|| self.epoch_checkpoint()),
            dir: None,
            names: self.names_changed,
            upto: self.end,
            records: 0,
            generation: self.generation.load(Ordering::Acquire),
        });
        plan.paths.extend(indexes.into_iter().chain([snapshot]));
        plan.dir = Some(self.dir.to_path_buf());
        // A note of a truncation stays until the recovery point is known to be checkpointed: the next clean start drops it.
        plan.run().map(|synced| synced.upto)
    }
}
