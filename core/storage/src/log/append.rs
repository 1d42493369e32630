//! Appending: one positional write per call and segment, then memory only.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use minikafka_model::batch::{Batch, BatchHeader, Stored};
use minikafka_model::{LeaderEpoch, Offset, WallMs};

use super::{EpochCheckpoint, Log};
use crate::error::{At, DiskOp, LogError};
use crate::producer::snapshot_to_bytes;
use crate::segment::names::SegmentFile;
use crate::segment::tail::Tail;

/// Largest size of a segment: positions in the index are 31 bits.
const MOST_SEGMENT_BYTES: u64 = i32::MAX as u64;

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Offset of the first record.
    pub base_offset: Offset,
    /// Offset of the last record.
    pub last_offset: Offset,
    /// Bytes written.
    pub bytes: u64,
    /// Whether a new segment was begun: a sync up to its base is due (Kafka does it in the background).
    pub rolled: bool,
    /// Whether the epoch history changed: [`Log::epoch_checkpoint`] is to be written.
    pub epochs_changed: bool,
    /// Whether `flush.messages` calls for a sync.
    pub sync_due: bool,
}

impl Log {
    /// Appends batches that lie at or after the log end, in order; between them offsets may be missing (a follower of a compacted
    /// log). A leader hands over `Batch<Assigned>`, a follower `Batch<Replicated>`; all batches of a call go out in one vectored
    /// write per segment.
    ///
    /// A follower's empty log may be given a batch that begins before its end and reaches beyond it (the leader's log start lies in
    /// the middle of a batch): the log then begins anew with that batch.
    ///
    /// `Ok(None)` if there is no batch.
    ///
    /// # Errors
    /// [`LogError::OutOfSpace`]: the file was cut back, batches of the call that went into an earlier segment stay (see
    /// [`Log::end_offset`]). [`LogError::Io`]: the directory is to be taken offline. [`LogError::NotBehindEnd`] and
    /// [`LogError::BadBatch`]: nothing was written.
    pub fn append<S: Stored>(
        &mut self,
        batches: &[Batch<S>],
        now: WallMs,
    ) -> Result<Option<Appended>, LogError> {
        self.check_online()?;
        let Some(first) = batches.first() else { return Ok(None) };
        let base_offset = first.header().base_offset;
        if base_offset < self.end && self.is_empty() && first.header().last_offset() >= self.end {
            check(batches, base_offset)?;
            self.begin_anew(base_offset, now)?;
        } else {
            check(batches, self.end)?;
        }
        let mut outcome = Appended {
            base_offset,
            last_offset: base_offset,
            bytes: 0,
            rolled: false,
            epochs_changed: false,
            sync_due: false,
        };
        let mut rest = batches;
        while let Some(first) = rest.first() {
            if self.must_roll(first.header(), 0, now) {
                self.roll(first.header().base_offset, now)?;
                outcome.rolled = true;
            }
            let mut bytes = first.header().size as u64;
            let mut count = 1;
            while let Some(next) = rest.get(count)
                && !self.must_roll(next.header(), bytes, now)
            {
                bytes += next.header().size as u64;
                count += 1;
            }
            let (run, later) = rest.split_at(count);
            self.write(run, bytes)?;
            outcome.epochs_changed |= self.take_note(run)?;
            outcome.bytes += bytes;
            rest = later;
        }
        outcome.last_offset = Offset(self.end.0 - 1);
        outcome.sync_due = self.config.flush_messages.is_some_and(|most| self.unsynced_records >= most);
        Ok(Some(outcome))
    }

    /// Whether a batch must not go into the newest segment, into which `before` bytes go first (Kafka semantics 10.2).
    fn must_roll(&self, header: &BatchHeader, before: u64, now: WallMs) -> bool {
        let newest = self.newest();
        let size = newest.size() + before;
        if header.last_offset().since(newest.base) > i64::from(i32::MAX) {
            return true;
        }
        if size == 0 {
            return false;
        }
        let grown = size + header.size as u64;
        if grown > u64::from(self.config.segment_bytes) || grown > MOST_SEGMENT_BYTES {
            return true;
        }
        let age = match self.tail.first_timestamp {
            Some(first) if header.max_timestamp >= 0 => header.max_timestamp.saturating_sub(first),
            _ => now.0.saturating_sub(self.tail.created.0),
        };
        (newest.size() > 0 && age > self.config.segment_ms) || self.tail.is_full(newest, &self.config)
    }

    fn write<S: Stored>(&mut self, run: &[Batch<S>], bytes: u64) -> Result<(), LogError> {
        let newest = self.newest();
        let at = newest.size();
        let written = match run {
            [one] => newest.log.write_at(one.bytes(), at),
            several => {
                let mut parts: Vec<IoSlice<'_>> =
                    several.iter().map(|batch| IoSlice::new(batch.bytes())).collect();
                newest.log.write_vectored_at(&mut parts, at)
            }
        };
        let Err(source) = written else { return Ok(()) };
        let path = newest.path.clone();
        // What was written of it must not be found by a recovery. If even that fails the log is lost to this process.
        let cut = newest.log.set_len(at);
        if source.kind() == io::ErrorKind::StorageFull && cut.is_ok() {
            return Err(LogError::OutOfSpace { path, wanted: bytes });
        }
        self.fail();
        Err(LogError::Io { op: DiskOp::Write, path, source })
    }

    /// Brings memory up to what was just written. Whether the epoch history changed.
    fn take_note<S: Stored>(&mut self, run: &[Batch<S>]) -> Result<bool, LogError> {
        let newest = Arc::clone(self.newest());
        let mut epochs_changed = false;
        for batch in run {
            let header = batch.header();
            if let Some(epoch) = header.leader_epoch {
                epochs_changed |= self.epochs.assign(epoch, header.base_offset);
            }
            self.producers.appended(header, batch.bytes());
            self.end = header.next_offset();
            self.unsynced_records += header.count.max(0) as u64;
        }
        if epochs_changed {
            self.epoch_file.changed();
        }
        let headers = run.iter().map(Batch::header);
        let noted = self.tail.appended(&newest, &self.config, newest.size(), headers);
        noted.inspect_err(|_| self.fail())?;
        Ok(epochs_changed)
    }

    /// Begins a new segment for a batch with that base offset. What is done with the old one: the index files are completed and
    /// trimmed, a producer snapshot is written; the syncs are left to [`Log::sync_plan`].
    pub(super) fn roll(&mut self, next: Offset, now: WallMs) -> Result<(), LogError> {
        self.try_roll(next.max(self.end), now).inspect_err(|_| self.fail())
    }

    fn try_roll(&mut self, base: Offset, now: WallMs) -> Result<(), LogError> {
        let old = Arc::clone(self.newest());
        self.tail.seal(&old)?;
        let prepared = self.prepared.take();
        let (segment, tail) = Tail::create(&self.disk, &self.dir, base, &self.config, prepared, now)?;
        if old.size() == 0 {
            // An empty segment whose base is too far away: it is replaced, not kept.
            Arc::make_mut(&mut self.segments).pop();
            for kind in [SegmentFile::Log, SegmentFile::Index, SegmentFile::TimeIndex] {
                let path = kind.path(&self.dir, old.base);
                self.disk.remove_file(&path).at(DiskOp::Remove, &path)?;
            }
        }
        self.tail = tail;
        Arc::make_mut(&mut self.segments).push(Arc::new(segment));
        self.names_changed += 1;
        self.write_snapshot(base)
    }

    /// Writes the producer snapshot of the log end, named by `offset`, and removes those that are neither of a segment nor the
    /// newest.
    pub(super) fn write_snapshot(&mut self, offset: Offset) -> Result<(), LogError> {
        let path = SegmentFile::Snapshot.path(&self.dir, offset);
        let bytes = snapshot_to_bytes(&self.producers.to_snapshot());
        let file = self.disk.open(&path, crate::OpenMode::Create).at(DiskOp::Create, &path)?;
        file.write_at(&bytes, 0).at(DiskOp::Write, &path)?;
        self.names_changed += 1;
        for entry in self.disk.list(&self.dir).at(DiskOp::List, &self.dir)? {
            if let Some((at, SegmentFile::Snapshot)) = SegmentFile::parse(&entry.name)
                && at < offset
                && !self.segments.iter().any(|segment| segment.base == at)
            {
                let path = self.dir.join(&entry.name);
                self.disk.remove_file(&path).at(DiskOp::Remove, &path)?;
            }
        }
        Ok(())
    }

    /// Records the start of an epoch in memory: a new leader at its log end before any record exists, a follower before the first
    /// batch of a new epoch. Returns the checkpoint to be written (without the lock) before records of the epoch are appended;
    /// `None` if nothing changed.
    pub fn assign_epoch(&mut self, epoch: LeaderEpoch, start: Offset) -> Option<EpochCheckpoint> {
        if !self.epochs.assign(epoch, start) {
            return None;
        }
        self.epoch_file.changed();
        Some(self.epoch_checkpoint())
    }
}

fn check<S: Stored>(batches: &[Batch<S>], end: Offset) -> Result<(), LogError> {
    let mut end = end;
    for batch in batches {
        let header = batch.header();
        let base = header.base_offset;
        if base < end {
            return Err(LogError::NotBehindEnd { base, end });
        }
        if header.last_offset_delta < 0
            || base.0.checked_add(i64::from(header.last_offset_delta) + 1).is_none()
        {
            return Err(LogError::BadBatch { base, why: "its offsets cannot be right" });
        }
        if header.size as u64 > MOST_SEGMENT_BYTES || header.size != batch.bytes().len() {
            return Err(LogError::BadBatch { base, why: "its size cannot be right" });
        }
        end = header.next_offset();
    }
    Ok(())
}

impl Log {
    /// A reader of this moment's log, for use without the lock.
    pub fn reader(&self) -> super::LogReader {
        super::LogReader {
            segments: Arc::clone(&self.segments),
            start: self.start,
            end: self.end,
            generation: self.generation.load(Ordering::Acquire),
            current: Arc::clone(&self.generation),
        }
    }
}
