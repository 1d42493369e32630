//! The write side of the newest segment: its files are made, filled, trimmed and sealed here.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use minikafka_model::batch::BatchHeader;
use minikafka_model::{Offset, WallMs};

use super::Segment;
use super::index::{
    Indexes, OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES, offsets_to_bytes, preallocated, times_to_bytes,
};
use super::names::SegmentFile;
use crate::config::LogConfig;
use crate::disk::{Disk, File, OpenMode};
use crate::error::{At, DiskOp, LogError};

/// Index entries that are collected before they are written: one write more per append would cost more than the loss of them, as
/// the indexes of the newest segment are rebuilt after a crash.
const INDEX_BACKLOG: usize = 128;
const PREPARED: &str = "prepared";

/// Files of a segment that has no base yet, made ahead of the roll that will need them.
#[derive(Debug)]
pub struct PreparedSegment {
    log: Arc<dyn File>,
    index: Arc<dyn File>,
    times: Arc<dyn File>,
}

/// Makes the files of the next segment. To be run without the lock of the log.
#[derive(Debug)]
pub struct SegmentPreparation {
    disk: Arc<dyn Disk>,
    dir: Arc<Path>,
    config: LogConfig,
}

fn prepared_path(dir: &Path, kind: SegmentFile) -> PathBuf {
    dir.join(format!("{PREPARED}.{}", kind.suffix()))
}

/// Whether a name is one of a prepared segment.
pub(crate) fn is_prepared(name: &str) -> bool {
    name.strip_prefix(PREPARED).is_some_and(|rest| rest.starts_with('.'))
}

impl SegmentPreparation {
    pub(crate) fn new(disk: &Arc<dyn Disk>, dir: &Arc<Path>, config: &LogConfig) -> SegmentPreparation {
        SegmentPreparation { disk: Arc::clone(disk), dir: Arc::clone(dir), config: config.clone() }
    }

    /// Makes the files, to be handed to [`Log::install_next`](crate::Log::install_next).
    ///
    /// # Errors
    /// The disk refuses.
    pub fn run(&self) -> Result<PreparedSegment, LogError> {
        make(&*self.disk, &self.config, |kind| prepared_path(&self.dir, kind))
    }
}

fn make(
    disk: &dyn Disk,
    config: &LogConfig,
    path: impl Fn(SegmentFile) -> PathBuf,
) -> Result<PreparedSegment, LogError> {
    let open = |kind, len| {
        let path = path(kind);
        let file = disk.open(&path, OpenMode::Create).at(DiskOp::Create, &path)?;
        if len > 0 {
            file.set_len(len).at(DiskOp::SetLen, &path)?;
        }
        Ok((file, path))
    };
    let (log, log_path) = open(SegmentFile::Log, 0)?;
    if config.preallocate {
        log.allocate(u64::from(config.segment_bytes)).at(DiskOp::Write, &log_path)?;
    }
    let bytes = config.segment_index_bytes;
    let (index, _) = open(SegmentFile::Index, preallocated(bytes, OFFSET_ENTRY_BYTES))?;
    let (times, _) = open(SegmentFile::TimeIndex, preallocated(bytes, TIME_ENTRY_BYTES))?;
    Ok(PreparedSegment { log, index, times })
}

/// The write side.
#[derive(Debug)]
pub(crate) struct Tail {
    index: Arc<dyn File>,
    times: Arc<dyn File>,
    index_written: usize,
    times_written: usize,
    since_entry: u64,
    pub(crate) first_timestamp: Option<i64>,
    pub(crate) created: WallMs,
}

impl Tail {
    /// Makes an empty segment, of prepared files if there are any.
    pub(crate) fn create(
        disk: &Arc<dyn Disk>,
        dir: &Arc<Path>,
        base: Offset,
        config: &LogConfig,
        prepared: Option<PreparedSegment>,
        now: WallMs,
    ) -> Result<(Segment, Tail), LogError> {
        let files = match prepared {
            None => make(&**disk, config, |kind| kind.path(dir, base))?,
            Some(prepared) => {
                for kind in [SegmentFile::Log, SegmentFile::Index, SegmentFile::TimeIndex] {
                    let path = kind.path(dir, base);
                    disk.rename(&prepared_path(dir, kind), &path).at(DiskOp::Rename, &path)?;
                }
                prepared
            }
        };
        let indexes = Some(Indexes::default());
        let segment = Segment::new(disk, dir, base, files.log, 0, config.index_interval_bytes, indexes);
        segment.indexes_synced.store(false, Ordering::Release);
        let tail = Tail {
            index: files.index,
            times: files.times,
            index_written: 0,
            times_written: 0,
            since_entry: 0,
            first_timestamp: None,
            created: now,
        };
        Ok((segment, tail))
    }

    /// Takes up writing to a segment whose indexes are given: its index files are written anew and preallocated.
    pub(crate) fn reopen(segment: &Segment, config: &LogConfig, now: WallMs) -> Result<Tail, LogError> {
        let open = |kind: SegmentFile, bytes: &[u8], entry| {
            let path = kind.path(&segment.dir, segment.base);
            let file = segment.disk.open(&path, OpenMode::Create).at(DiskOp::Create, &path)?;
            file.write_at(bytes, 0).at(DiskOp::Write, &path)?;
            let len = preallocated(config.segment_index_bytes, entry).max(bytes.len() as u64);
            file.set_len(len).at(DiskOp::SetLen, &path)?;
            Ok(file)
        };
        let (offsets, times) =
            segment.with_indexes(|indexes| (indexes.offsets.clone(), indexes.times.clone()))?;
        segment.indexes_synced.store(false, Ordering::Release);
        let first = segment.headers_from(segment.start()).next();
        let first_timestamp = match first.map_err(super::WalkError::unreadable)? {
            Some((_, header)) if header.max_timestamp >= 0 => Some(header.max_timestamp),
            _ => None,
        };
        Ok(Tail {
            index: open(SegmentFile::Index, &offsets_to_bytes(&offsets), OFFSET_ENTRY_BYTES)?,
            times: open(SegmentFile::TimeIndex, &times_to_bytes(&times), TIME_ENTRY_BYTES)?,
            index_written: offsets.len(),
            times_written: times.len(),
            since_entry: 0,
            first_timestamp,
            created: now,
        })
    }

    /// Takes note of batches that were just written at `position`.
    pub(crate) fn appended<'a>(
        &mut self,
        segment: &Segment,
        config: &LogConfig,
        mut position: u64,
        headers: impl Iterator<Item = &'a BatchHeader>,
    ) -> Result<(), LogError> {
        let backlog = segment.change_indexes(|indexes| {
            for header in headers {
                if self.first_timestamp.is_none() && header.max_timestamp >= 0 {
                    self.first_timestamp = Some(header.max_timestamp);
                }
                indexes.batch(
                    segment.base,
                    position,
                    header,
                    &mut self.since_entry,
                    config.index_interval_bytes,
                );
                position += header.size as u64;
            }
            indexes.offsets.len() - self.index_written
        });
        segment.set_size(position);
        if backlog >= INDEX_BACKLOG { self.write_backlog(segment) } else { Ok(()) }
    }

    fn write_backlog(&mut self, segment: &Segment) -> Result<(), LogError> {
        let (offsets, times) = segment.change_indexes(|indexes| {
            let offsets = offsets_to_bytes(&indexes.offsets[self.index_written..]);
            let times = times_to_bytes(&indexes.times[self.times_written..]);
            (offsets, times)
        });
        let path = |kind: SegmentFile| kind.path(&segment.dir, segment.base);
        if !offsets.is_empty() {
            let at = (self.index_written * OFFSET_ENTRY_BYTES) as u64;
            self.index.write_at(&offsets, at).at(DiskOp::Write, &path(SegmentFile::Index))?;
            self.index_written += offsets.len() / OFFSET_ENTRY_BYTES;
        }
        if !times.is_empty() {
            let at = (self.times_written * TIME_ENTRY_BYTES) as u64;
            self.times.write_at(&times, at).at(DiskOp::Write, &path(SegmentFile::TimeIndex))?;
            self.times_written += times.len() / TIME_ENTRY_BYTES;
        }
        Ok(())
    }

    /// Whether one of the index files could not take another entry.
    pub(crate) fn is_full(&self, segment: &Segment, config: &LogConfig) -> bool {
        let bytes = u64::from(config.segment_index_bytes);
        let (offsets, times) = segment.change_indexes(|indexes| (indexes.offsets.len(), indexes.times.len()));
        offsets as u64 >= bytes / OFFSET_ENTRY_BYTES as u64
            || times as u64 + 1 >= bytes / TIME_ENTRY_BYTES as u64
    }

    /// Writes the last entries and trims the index files: for a roll or an orderly end.
    pub(crate) fn seal(&mut self, segment: &Segment) -> Result<(), LogError> {
        segment.change_indexes(Indexes::close_times);
        self.write_backlog(segment)?;
        let trim = |file: &dyn File, kind: SegmentFile, bytes: usize| {
            file.set_len(bytes as u64).at(DiskOp::SetLen, &kind.path(&segment.dir, segment.base))
        };
        trim(&*self.index, SegmentFile::Index, self.index_written * OFFSET_ENTRY_BYTES)?;
        trim(&*self.times, SegmentFile::TimeIndex, self.times_written * TIME_ENTRY_BYTES)
    }
}
