//! Cutting the log at its end, moving its start, beginning it anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use minikafka_model::{Offset, WallMs};

use super::removal::{Removal, remove};
use super::{EpochCheckpoint, Log};
use crate::checkpoint::{FileWrite, entries, malformed, numbered, read_text};
use crate::disk::{Disk, OpenMode};
use crate::error::{At, DiskOp, LogError};
use crate::segment::Segment;
use crate::segment::names::SegmentFile;
use crate::segment::tail::Tail;

/// What a truncation did.
#[derive(Debug)]
pub struct Truncated {
    /// The log end before.
    pub from: Offset,
    /// The log end now: the offset asked for, or the base of the batch that held it.
    pub end: Offset,
    /// Bytes cut off.
    pub bytes: u64,
    /// Files of segments that were dropped as a whole.
    pub removal: Removal,
    /// The epoch history, to be written without the lock, if it changed (Kafka does it in the background).
    pub epochs: Option<EpochCheckpoint>,
}

/// Name of our own note that the log was cut below its checkpointed recovery point: the version 0, the number 1, and the offset, as
/// lines. It exists from before the cut until [`Log::recovery_point_saved`]. Without it a process that dies in between would find
/// the log shorter than it claims to be durable, which else means loss.
pub(super) const TRUNCATION_NOTE: &str = "minikafka-truncation-checkpoint";

fn note_path(dir: &Path) -> PathBuf {
    dir.join(TRUNCATION_NOTE)
}

/// The offset of the note, if there is one.
pub(super) fn read_truncation_note(disk: &dyn Disk, dir: &Path) -> Result<Option<Offset>, LogError> {
    let path = note_path(dir);
    let Some(text) = read_text(disk, &path)? else { return Ok(None) };
    let offsets = entries(&path, &text, |line, fields| match fields {
        [offset] => numbered(&path, line, offset, "offset").map(Offset),
        _ => Err(malformed(&path, line, "an entry is an offset")),
    })?;
    offsets.first().copied().map(Some).ok_or_else(|| malformed(&path, 2, "an offset is wanted"))
}

impl Log {
    /// Cuts the log so that it ends at `to`, or at the base of the batch that holds `to`. Nothing happens at or behind the log end;
    /// below the oldest segment the log begins anew at `to`. The recovery point falls with the log end.
    ///
    /// # Errors
    /// The disk refuses; the directory is to be taken offline.
    pub fn truncate_to(&mut self, to: Offset, now: WallMs) -> Result<Truncated, LogError> {
        self.check_online()?;
        let nothing =
            Truncated { from: self.end, end: self.end, bytes: 0, removal: Removal::default(), epochs: None };
        if to >= self.end {
            return Ok(nothing);
        }
        if to < self.first_segment() {
            return self.truncate_fully_at(to, now);
        }
        self.cut(to, now).inspect_err(|_| self.fail())
    }

    fn cut(&mut self, to: Offset, now: WallMs) -> Result<Truncated, LogError> {
        let (from, size) = (self.end, self.size());
        let keep = self.segments.partition_point(|segment| segment.base <= to);
        let segment = Arc::clone(&self.segments[keep - 1]);
        let position = segment.locate(to)?.map_or(segment.size(), |(position, _)| position);
        let end = segment.offset_at(position)?;
        self.note_truncation(end)?;
        self.generation.fetch_add(1, Ordering::AcqRel);
        let removal = self.drop_segments(keep)?;
        cut_segment(&segment, position, end)?;
        self.tail = Tail::reopen(&segment, &self.config, now)?;
        self.start = self.start.min(end);
        self.end = end;
        self.recovery_point = self.recovery_point.min(end);
        self.cut_transaction_index(segment.base, end)?;
        self.rebuild_producers(now)?;
        let changed = self.epochs.truncate_end(end);
        if changed {
            self.epoch_file.changed();
        }
        let epochs = changed.then(|| self.epoch_checkpoint());
        Ok(Truncated { from, end, bytes: size - self.size(), removal, epochs })
    }

    /// Drops everything and begins anew at `at`: a follower whose position the leader does not have.
    ///
    /// # Errors
    /// The disk refuses; the directory is to be taken offline.
    pub fn truncate_fully_at(&mut self, at: Offset, now: WallMs) -> Result<Truncated, LogError> {
        self.check_online()?;
        self.drop_all(at, now).inspect_err(|_| self.fail())
    }

    fn drop_all(&mut self, at: Offset, now: WallMs) -> Result<Truncated, LogError> {
        let (from, bytes) = (self.end, self.size());
        // Until the new segment exists the folder may be found empty: a log from 0 on.
        self.note_truncation(Offset::ZERO)?;
        self.generation.fetch_add(1, Ordering::AcqRel);
        let removal = self.drop_segments(0)?;
        let (segment, tail) =
            Tail::create(&self.disk, &self.dir, at, &self.config, self.prepared.take(), now)?;
        self.segments = Arc::new(vec![Arc::new(segment)]);
        self.tail = tail;
        self.names_changed += 1;
        (self.start, self.end) = (at, at);
        self.recovery_point = self.recovery_point.min(at);
        self.rebuild_producers(now)?;
        let changed = self.epochs.clear();
        if changed {
            self.epoch_file.changed();
        }
        let epochs = changed.then(|| self.epoch_checkpoint());
        Ok(Truncated { from, end: at, bytes, removal, epochs })
    }

    /// An empty log begins anew with a batch that starts before its end.
    pub(super) fn begin_anew(&mut self, base: Offset, now: WallMs) -> Result<(), LogError> {
        let truncated = self.truncate_fully_at(base, now)?;
        truncated.removal.run(&*self.disk).inspect_err(|_| self.fail())
    }

    /// Moves the log start up; segments below go with the next [`Log::retain`]. The caller has made sure that `to` is not above the
    /// high watermark. Returns the epoch history to be written, if it changed.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`]: `to` is behind the log end.
    pub fn advance_start(&mut self, to: Offset) -> Result<Option<EpochCheckpoint>, LogError> {
        if to > self.end {
            return Err(LogError::OutOfRange { asked: to, start: self.start, end: self.end });
        }
        if to <= self.start {
            return Ok(None);
        }
        self.start = to;
        if !self.epochs.truncate_start(to) {
            return Ok(None);
        }
        self.epoch_file.changed();
        Ok(Some(self.epoch_checkpoint()))
    }

    /// Renames the files of all segments from the `keep`th on, the newest first, and makes that durable: what is cut afterwards must
    /// not be found with later segments behind it.
    fn drop_segments(&mut self, keep: usize) -> Result<Removal, LogError> {
        let mut removal = Removal::default();
        if keep == self.segments.len() {
            return Ok(removal);
        }
        for segment in self.segments[keep..].iter().rev() {
            removal.take_segment(&*self.disk, &self.dir, segment.base)?;
        }
        Arc::make_mut(&mut self.segments).truncate(keep);
        self.disk.sync_dir(&self.dir).at(DiskOp::SyncDir, &self.dir)?;
        Ok(removal)
    }

    /// Leaves the note, if the cut goes below the recovery point.
    fn note_truncation(&mut self, end: Offset) -> Result<(), LogError> {
        if end >= self.recovery_point && !self.truncation_noted {
            return Ok(());
        }
        let known = if self.truncation_noted { read_truncation_note(&*self.disk, &self.dir)? } else { None };
        if known.is_some_and(|known| known <= end) {
            return Ok(());
        }
        self.truncation_noted = true;
        FileWrite { path: note_path(&self.dir), bytes: format!("0\n1\n{end}\n").into_bytes() }
            .run(&*self.disk)
    }

    /// Tells the log that a recovery point not above `offset` stands in the checkpoint by now.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn recovery_point_saved(&mut self, offset: Offset) -> Result<(), LogError> {
        if self.truncation_noted && offset <= self.recovery_point {
            self.drop_truncation_note()
        } else {
            Ok(())
        }
    }

    pub(super) fn drop_truncation_note(&mut self) -> Result<(), LogError> {
        if self.truncation_noted {
            remove(&*self.disk, &note_path(&self.dir))?;
            self.truncation_noted = false;
        }
        Ok(())
    }

    /// Drops the entries of transactions whose marker was cut off. The file is Kafka's; we do not add to it yet.
    fn cut_transaction_index(&self, base: Offset, end: Offset) -> Result<(), LogError> {
        /// Version i16, producer, first and last offset, last stable offset.
        const ENTRY: usize = 34;
        let path = SegmentFile::TransactionIndex.path(&self.dir, base);
        let Some(mut bytes) = crate::checkpoint::read_small(&*self.disk, &path)? else { return Ok(()) };
        let last =
            |entry: &[u8]| entry[18..26].iter().fold(0i64, |value, byte| (value << 8) | i64::from(*byte));
        let keep = bytes.chunks_exact(ENTRY).take_while(|entry| last(entry) < end.0).count() * ENTRY;
        if keep < bytes.len() {
            bytes.truncate(keep);
            let file = self.disk.open(&path, OpenMode::ReadWrite).at(DiskOp::Open, &path)?;
            file.set_len(keep as u64).at(DiskOp::SetLen, &path)?;
        }
        Ok(())
    }
}

/// Cuts the file and the indexes of a segment.
pub(super) fn cut_segment(segment: &Segment, position: u64, end: Offset) -> Result<(), LogError> {
    segment.with_indexes(|_| ())?;
    segment.cuts.fetch_add(1, Ordering::AcqRel);
    segment.log.set_len(position).at(DiskOp::SetLen, &segment.path)?;
    segment.set_size(position);
    let relative = end.since(segment.base).clamp(0, i64::from(u32::MAX)) as u32;
    segment.change_indexes(|indexes| indexes.truncate(relative, position));
    segment.find_largest()
}
