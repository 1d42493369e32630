//! One segment: a file of batches and its two indexes. The part that readers share; the write side of the newest segment is
//! [`tail::Tail`].

pub(crate) mod index;
pub(crate) mod names;
pub(crate) mod tail;
pub(crate) mod walk;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use minikafka_model::Offset;
use minikafka_model::batch::BatchHeader;

use crate::checkpoint::read_small;
use crate::disk::{Disk, File, OpenMode};
use crate::error::{At, DiskOp, LogError};
use index::{Indexes, TimeEntry, offsets_from_bytes, offsets_to_bytes, times_from_bytes, times_to_bytes};
use names::SegmentFile;
use walk::{HeaderWalk, Place, WalkError};

/// A segment as readers and the log share it.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: Arc<Path>,
    pub(crate) base: Offset,
    pub(crate) log: Arc<dyn File>,
    pub(crate) path: PathBuf,
    interval: u32,
    /// Bytes of whole batches; grows after each append.
    size: AtomicU64,
    /// Counts cuts, and those of them that are durable.
    pub(crate) cuts: AtomicU64,
    pub(crate) cuts_synced: AtomicU64,
    /// Whether the index files are known to be durable. Those of the newest segment never are.
    pub(crate) indexes_synced: AtomicBool,
    /// Whether the largest timestamp was compared with the batches behind the last time entry.
    largest_known: AtomicBool,
    /// `None` until first needed.
    indexes: RwLock<Option<Indexes>>,
}

impl Segment {
    pub(crate) fn new(
        disk: &Arc<dyn Disk>,
        dir: &Arc<Path>,
        base: Offset,
        log: Arc<dyn File>,
        size: u64,
        interval: u32,
        indexes: Option<Indexes>,
    ) -> Segment {
        Segment {
            disk: Arc::clone(disk),
            dir: Arc::clone(dir),
            base,
            log,
            path: SegmentFile::Log.path(dir, base),
            interval,
            size: AtomicU64::new(size),
            cuts: AtomicU64::new(0),
            cuts_synced: AtomicU64::new(0),
            indexes_synced: AtomicBool::new(true),
            largest_known: AtomicBool::new(size == 0),
            indexes: RwLock::new(indexes),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    pub(crate) fn set_size(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// Whether a cut of the file is not durable yet.
    pub(crate) fn cut_pending(&self) -> bool {
        self.cuts_synced.load(Ordering::Acquire) < self.cuts.load(Ordering::Acquire)
    }

    pub(crate) fn start(&self) -> Place {
        Place { position: 0, offset: self.base }
    }

    pub(crate) fn headers_from(&self, place: Place) -> HeaderWalk<'_> {
        HeaderWalk::new(&*self.log, &self.path, self.base, self.size(), place)
    }

    /// Changes the indexes, which must have been loaded: of the newest segment they always are.
    pub(crate) fn change_indexes<T>(&self, change: impl FnOnce(&mut Indexes) -> T) -> T {
        let mut guard = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        change(guard.get_or_insert_default())
    }

    /// Looks at the indexes, loading them from their files first if need be. Files that are missing, damaged or do not agree with the
    /// batches are written anew.
    pub(crate) fn with_indexes<T>(&self, look: impl FnOnce(&Indexes) -> T) -> Result<T, LogError> {
        if let Some(indexes) = &*self.indexes.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(look(indexes));
        }
        let mut guard = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        if guard.is_none() {
            *guard = Some(match self.load()? {
                Some(indexes) => indexes,
                None => self.rebuild(true)?,
            });
        }
        Ok(look(guard.get_or_insert_default()))
    }

    /// The indexes as their files have them; `None` if they cannot be used.
    pub(crate) fn load(&self) -> Result<Option<Indexes>, LogError> {
        let read = |kind: SegmentFile| read_small(&*self.disk, &kind.path(&self.dir, self.base));
        let (Some(offsets), Some(times)) = (read(SegmentFile::Index)?, read(SegmentFile::TimeIndex)?) else {
            return Ok(None);
        };
        let (Ok(offsets), Ok(times)) = (offsets_from_bytes(&offsets), times_from_bytes(&times)) else {
            return Ok(None);
        };
        if times.is_empty() && self.size() > 0 {
            return Ok(None);
        }
        let indexes = Indexes { largest: times.last().copied(), offsets, times };
        if indexes.offsets.last().is_some_and(|last| u64::from(last.position) >= self.size()) {
            return Ok(None);
        }
        match indexes.largest {
            Some(largest) if !self.agrees(&indexes, largest)? => Ok(None),
            _ => Ok(Some(indexes)),
        }
    }

    /// Whether the batch that a time entry names carries its timestamp.
    fn agrees(&self, indexes: &Indexes, entry: TimeEntry) -> Result<bool, LogError> {
        match self.locate_with(indexes, Offset(self.base.0 + i64::from(entry.relative))) {
            Ok(Some((_, header))) => Ok(header.max_timestamp == entry.timestamp
                && header.last_offset().since(self.base) == i64::from(entry.relative)),
            Ok(None) | Err(WalkError::Invalid(_)) => Ok(false),
            Err(WalkError::Disk(error)) => Err(error),
        }
    }

    /// Indexes from the batches themselves; on request their files are replaced.
    pub(crate) fn rebuild(&self, write: bool) -> Result<Indexes, LogError> {
        let mut indexes = Indexes::default();
        let mut since = 0;
        let mut walk = self.headers_from(self.start());
        while let Some((position, header)) = walk.next().map_err(WalkError::unreadable)? {
            indexes.batch(self.base, position, &header, &mut since, self.interval);
        }
        indexes.close_times();
        if write {
            self.write_indexes(&indexes)?;
        }
        Ok(indexes)
    }

    /// Replaces the index files by whole entries without a preallocated rest.
    pub(crate) fn write_indexes(&self, indexes: &Indexes) -> Result<(), LogError> {
        self.indexes_synced.store(false, Ordering::Release);
        let files = [
            (SegmentFile::Index, offsets_to_bytes(&indexes.offsets)),
            (SegmentFile::TimeIndex, times_to_bytes(&indexes.times)),
        ];
        for (kind, bytes) in files {
            let path = kind.path(&self.dir, self.base);
            let file = self.disk.open(&path, OpenMode::Create).at(DiskOp::Create, &path)?;
            file.write_at(&bytes, 0).at(DiskOp::Write, &path)?;
        }
        Ok(())
    }

    /// Forgets what was loaded and takes `indexes` instead.
    pub(crate) fn set_indexes(&self, indexes: Indexes) {
        *self.indexes.write().unwrap_or_else(PoisonError::into_inner) = Some(indexes);
    }

    fn locate_with(
        &self,
        indexes: &Indexes,
        offset: Offset,
    ) -> Result<Option<(u64, BatchHeader)>, WalkError> {
        let relative = offset.since(self.base).clamp(0, i64::from(i32::MAX)) as u32;
        let mut place = self.start();
        if let Some(entry) = indexes.before(relative) {
            // The least offset is not known there; the walk checks the batches that follow.
            place = Place { position: u64::from(entry.position), offset: self.base };
            let mut first = self.headers_from(place);
            let fits = match first.next() {
                Ok(Some((_, header))) => header.last_offset().since(self.base) == i64::from(entry.relative),
                Ok(None) => false,
                Err(WalkError::Invalid(_)) => false,
                Err(error) => return Err(error),
            };
            if !fits {
                return Err(WalkError::Invalid(crate::Damage {
                    path: SegmentFile::Index.path(&self.dir, self.base),
                    position: place.position,
                    offset,
                    why: "an index entry names no batch".to_owned(),
                }));
            }
        }
        let mut walk = self.headers_from(place);
        while let Some((position, header)) = walk.next()? {
            if header.last_offset() >= offset {
                return Ok(Some((position, header)));
            }
        }
        Ok(None)
    }

    /// The first batch whose last offset is not below `offset`, with its position; `None` if the segment ends before. An index that
    /// misleads is rebuilt first.
    pub(crate) fn locate(&self, offset: Offset) -> Result<Option<(u64, BatchHeader)>, LogError> {
        match self.with_indexes(|indexes| self.locate_with(indexes, offset))? {
            Ok(found) => Ok(found),
            Err(WalkError::Disk(error)) => Err(error),
            Err(WalkError::Invalid(_)) => {
                let indexes = self.rebuild(false)?;
                let found = self.locate_with(&indexes, offset).map_err(WalkError::unreadable);
                self.set_indexes(indexes);
                found
            }
        }
    }

    /// The offset after the last batch before `position`, where a batch begins or the segment ends; the base of the segment if there
    /// is none.
    pub(crate) fn offset_at(&self, position: u64) -> Result<Offset, LogError> {
        self.place_at(position).map(|place| place.offset).map_err(WalkError::unreadable)
    }

    /// Walks from the last index entry before `position` up to it.
    pub(crate) fn place_at(&self, position: u64) -> Result<Place, WalkError> {
        let from = self.with_indexes(|indexes| {
            let after = indexes.offsets.partition_point(|entry| u64::from(entry.position) < position);
            after.checked_sub(1).map(|at| indexes.offsets[at])
        })?;
        let mut place = self.start();
        if let Some(entry) = from {
            place.position = u64::from(entry.position);
        }
        let mut walk = self.headers_from(place);
        while walk.place().position < position && walk.next()?.is_some() {}
        Ok(walk.place())
    }

    /// The largest timestamp.
    pub(crate) fn largest(&self) -> Result<Option<TimeEntry>, LogError> {
        if !self.largest_known.load(Ordering::Acquire) {
            self.find_largest()?;
        }
        self.with_indexes(|indexes| indexes.largest)
    }

    /// Looks for a larger timestamp than that of the last time entry behind it: there is one in the newest segment, and where a file
    /// lost its last entries.
    pub(crate) fn find_largest(&self) -> Result<(), LogError> {
        let known = self.with_indexes(|indexes| indexes.times.last().copied())?;
        let place = match known {
            None => self.start(),
            Some(entry) => match self.locate(Offset(self.base.0 + i64::from(entry.relative)))? {
                Some((position, header)) => Place { position, offset: header.base_offset },
                None => self.start(),
            },
        };
        let mut largest = known;
        let mut walk = self.headers_from(place);
        while let Some((_, header)) = walk.next().map_err(WalkError::unreadable)? {
            if header.max_timestamp >= 0 && largest.is_none_or(|known| header.max_timestamp > known.timestamp)
            {
                let relative = header.last_offset().since(self.base) as u32;
                largest = Some(TimeEntry { timestamp: header.max_timestamp, relative });
            }
        }
        self.change_indexes(|indexes| indexes.largest = largest);
        self.largest_known.store(true, Ordering::Release);
        Ok(())
    }

    /// The greatest time entry not above `timestamp`, checked against its batch.
    pub(crate) fn before_time(&self, timestamp: i64) -> Result<Option<TimeEntry>, LogError> {
        let good = self.with_indexes(|indexes| match indexes.before_time(timestamp) {
            Some(entry) => self.agrees(indexes, entry).map(|agrees| agrees.then_some(Some(entry))),
            None => Ok(Some(None)),
        })??;
        match good {
            Some(entry) => Ok(entry),
            None => {
                let indexes = self.rebuild(false)?;
                let entry = indexes.before_time(timestamp);
                self.set_indexes(indexes);
                Ok(entry)
            }
        }
    }
}
