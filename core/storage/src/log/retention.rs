//! Deleting old segments (Kafka semantics 10.5).

use std::sync::Arc;

use minikafka_model::{Offset, WallMs};

use super::removal::Removal;
use super::{EpochCheckpoint, Log};
use crate::error::{At, DiskOp, LogError};
use crate::segment::Segment;
use crate::segment::names::SegmentFile;

/// Why a segment went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionReason {
    /// `retention.ms`: its largest timestamp, or its last change where records carry none.
    Time {
        /// Which timestamp counted.
        largest: WallMs,
    },
    /// `retention.bytes`: the log was too large by so many bytes.
    Size {
        /// Too many.
        excess: u64,
    },
    /// Wholly below the log start.
    LogStart,
}

/// One segment that went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletedSegment {
    /// Its base offset.
    pub base: Offset,
    /// Its bytes.
    pub size: u64,
    /// Why.
    pub reason: DeletionReason,
}

/// What retention did.
#[derive(Debug, Default)]
pub struct Retained {
    /// The segments that went, oldest first.
    pub deleted: Vec<DeletedSegment>,
    /// Their files.
    pub removal: Removal,
    /// The epoch history to be written, if it changed.
    pub epochs: Option<EpochCheckpoint>,
}

impl Log {
    /// Renames the segments that retention lets go. Never one that reaches `high_watermark`; the newest one only if it is wholly
    /// expired and not empty, after a roll.
    ///
    /// # Errors
    /// The disk refuses; the directory is to be taken offline.
    pub fn retain(&mut self, now: WallMs, high_watermark: Offset) -> Result<Retained, LogError> {
        self.check_online()?;
        let due = self.due(now, high_watermark)?;
        if due.is_empty() {
            return Ok(Retained::default());
        }
        self.delete(due, now).inspect_err(|_| self.fail())
    }

    fn due(&self, now: WallMs, high_watermark: Offset) -> Result<Vec<DeletedSegment>, LogError> {
        let mut excess = match self.config.retention_bytes.filter(|_| self.config.delete) {
            Some(most) => self.size().saturating_sub(most),
            None => 0,
        };
        let mut due = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            let next = self.segments.get(at + 1).map(|next| next.base);
            let size = segment.size();
            if next.unwrap_or(self.end) > high_watermark || (next.is_none() && size == 0) {
                break;
            }
            let reason = if next.is_some_and(|next| next <= self.start) {
                Some(DeletionReason::LogStart)
            } else if let Some(largest) = self.expired(segment, now)? {
                Some(DeletionReason::Time { largest })
            } else if size > 0 && excess >= size {
                Some(DeletionReason::Size { excess })
            } else {
                None
            };
            let Some(reason) = reason else { break };
            excess = excess.saturating_sub(size);
            due.push(DeletedSegment { base: segment.base, size, reason });
        }
        Ok(due)
    }

    /// The timestamp by which a segment is too old.
    fn expired(&self, segment: &Segment, now: WallMs) -> Result<Option<WallMs>, LogError> {
        let Some(keep) = self.config.retention_ms.filter(|_| self.config.delete) else { return Ok(None) };
        let largest = match segment.largest()? {
            Some(entry) => Some(entry.time()),
            None => self.disk.modified(&segment.path).at(DiskOp::Read, &segment.path)?,
        };
        Ok(largest.filter(|largest| now.0.saturating_sub(largest.0) > keep))
    }

    fn delete(&mut self, due: Vec<DeletedSegment>, now: WallMs) -> Result<Retained, LogError> {
        if due.len() == self.segments.len() {
            self.roll(self.end, now)?;
        }
        let mut removal = Removal::default();
        for segment in &due {
            removal.take_segment(&*self.disk, &self.dir, segment.base)?;
        }
        Arc::make_mut(&mut self.segments).drain(..due.len());
        self.names_changed += 1;
        let first = self.first_segment();
        self.take_snapshots_below(first, &mut removal)?;
        let epochs = if first > self.start { self.advance_start(first)? } else { None };
        Ok(Retained { deleted: due, removal, epochs })
    }

    fn take_snapshots_below(&self, first: Offset, removal: &mut Removal) -> Result<(), LogError> {
        for entry in self.disk.list(&self.dir).at(DiskOp::List, &self.dir)? {
            if let Some((at, SegmentFile::Snapshot)) = SegmentFile::parse(&entry.name)
                && at < first
            {
                let path = self.dir.join(&entry.name);
                let to = crate::segment::names::deleted(&path);
                self.disk.rename(&path, &to).at(DiskOp::Rename, &path)?;
                removal.paths.push(to);
            }
        }
        Ok(())
    }
}
