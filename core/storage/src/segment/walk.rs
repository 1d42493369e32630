//! Going through the batches of a segment file: quickly by their headers, or slowly with their checksums.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use minikafka_model::Offset;
use minikafka_model::batch::{BatchHeader, HEADER_BYTES};

use crate::disk::{File, read_full};
use crate::error::{At, Damage, DiskOp, LogError};

/// Bytes read at once while going by headers.
const HEADER_WINDOW: usize = 4096;
/// Bytes read at once while going by whole batches.
const SCAN_WINDOW: usize = 256 << 10;

/// Why a walk ended.
#[derive(Debug)]
pub(crate) enum WalkError {
    /// Bytes that are no batch of this segment.
    Invalid(Damage),
    /// The disk refused.
    Disk(LogError),
}

impl From<LogError> for WalkError {
    fn from(error: LogError) -> WalkError {
        WalkError::Disk(error)
    }
}

impl WalkError {
    /// For readers, to whom both are errors.
    pub(crate) fn unreadable(self) -> LogError {
        match self {
            WalkError::Invalid(damage) => LogError::Unreadable(damage),
            WalkError::Disk(error) => error,
        }
    }
}

/// The place of a walk: where the next batch begins, and the least offset it may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) position: u64,
    pub(crate) offset: Offset,
}

/// What a header must fulfil to stand at a place of a segment.
fn judge(header: &BatchHeader, base: Offset, place: Place, left: u64) -> Result<(), String> {
    if header.size as u64 > left {
        return Err(format!("a batch of {} bytes is cut short to {left}", header.size));
    }
    if header.last_offset_delta < 0 || header.count < 0 {
        return Err("a batch has a negative count".to_owned());
    }
    if header.base_offset < place.offset {
        return Err(format!("a batch of offset {} follows", header.base_offset));
    }
    let relative =
        header.base_offset.0.saturating_sub(base.0).saturating_add(i64::from(header.last_offset_delta));
    if relative > i64::from(i32::MAX) {
        return Err(format!("a batch of offset {} is too far from the base", header.base_offset));
    }
    Ok(())
}

/// The batches of a segment by their headers.
pub(crate) struct HeaderWalk<'a> {
    file: &'a dyn File,
    path: &'a Path,
    base: Offset,
    size: u64,
    place: Place,
    window: Vec<u8>,
    window_at: u64,
}

impl<'a> HeaderWalk<'a> {
    pub(crate) fn new(
        file: &'a dyn File,
        path: &'a Path,
        base: Offset,
        size: u64,
        place: Place,
    ) -> HeaderWalk<'a> {
        HeaderWalk { file, path, base, size, place, window: Vec::new(), window_at: 0 }
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    fn damage(&self, why: String) -> WalkError {
        let Place { position, offset } = self.place;
        WalkError::Invalid(Damage { path: self.path.to_owned(), position, offset, why })
    }

    /// Position and header of the next batch; `None` at the end of the segment.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, BatchHeader)>, WalkError> {
        let position = self.place.position;
        let left = self.size.saturating_sub(position);
        if left == 0 {
            return Ok(None);
        }
        if left < HEADER_BYTES as u64 {
            return Err(self.damage(format!("{left} bytes are left, too few for a batch")));
        }
        let inside = position >= self.window_at
            && position + HEADER_BYTES as u64 <= self.window_at + self.window.len() as u64;
        if !inside {
            self.window.resize(HEADER_WINDOW.min(left as usize), 0);
            let read = read_full(self.file, &mut self.window, position).at(DiskOp::Read, self.path)?;
            self.window.truncate(read);
            self.window_at = position;
            if read < HEADER_BYTES {
                return Err(self.damage("the file ends".to_owned()));
            }
        }
        let start = (position - self.window_at) as usize;
        let header = BatchHeader::parse_prefix(&self.window[start..])
            .map_err(|error| self.damage(error.to_string()))?;
        judge(&header, self.base, self.place, left).map_err(|why| self.damage(why))?;
        self.place = Place { position: position + header.size as u64, offset: header.next_offset() };
        Ok(Some((position, header)))
    }
}

/// The batches of a segment with all their bytes, checksums verified.
pub(crate) struct BatchScan<'a> {
    file: &'a dyn File,
    path: PathBuf,
    base: Offset,
    size: u64,
    place: Place,
    window: Bytes,
}

impl<'a> BatchScan<'a> {
    pub(crate) fn new(
        file: &'a dyn File,
        path: &Path,
        base: Offset,
        size: u64,
        place: Place,
    ) -> BatchScan<'a> {
        BatchScan { file, path: path.to_owned(), base, size, place, window: Bytes::new() }
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    fn damage(&self, why: String) -> WalkError {
        let Place { position, offset } = self.place;
        WalkError::Invalid(Damage { path: self.path.clone(), position, offset, why })
    }

    fn fill(&mut self, wanted: usize) -> Result<(), WalkError> {
        if self.window.len() >= wanted {
            return Ok(());
        }
        let left = self.size - self.place.position;
        let len = wanted.max(SCAN_WINDOW).min(usize::try_from(left).unwrap_or(usize::MAX));
        self.window = self.file.read_bytes_at(self.place.position, len).at(DiskOp::Read, &self.path)?;
        if self.window.len() < wanted { Err(self.damage("the file ends".to_owned())) } else { Ok(()) }
    }

    /// Position, header and bytes of the next batch; `None` at the end of the segment.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, BatchHeader, Bytes)>, WalkError> {
        let position = self.place.position;
        let left = self.size.saturating_sub(position);
        if left == 0 {
            return Ok(None);
        }
        if left < HEADER_BYTES as u64 {
            return Err(self.damage(format!("{left} bytes are left, too few for a batch")));
        }
        self.fill(HEADER_BYTES)?;
        let header =
            BatchHeader::parse_prefix(&self.window).map_err(|error| self.damage(error.to_string()))?;
        judge(&header, self.base, self.place, left).map_err(|why| self.damage(why))?;
        self.fill(header.size)?;
        let bytes = self.window.split_to(header.size);
        header.verify(&bytes).map_err(|error| self.damage(error.to_string()))?;
        self.place = Place { position: position + header.size as u64, offset: header.next_offset() };
        Ok(Some((position, header, bytes)))
    }

    /// Whether a whole batch follows the one that could not be read, judging by the length it announces. That is not what a torn
    /// write looks like.
    pub(crate) fn a_batch_follows(&self) -> bool {
        let mut head = [0; HEADER_BYTES];
        let place = self.place;
        let Ok(HEADER_BYTES) = read_full(self.file, &mut head, place.position) else { return false };
        let Ok(Some(size)) = BatchHeader::size_of(&head) else { return false };
        let next = Place { position: place.position + size as u64, offset: place.offset };
        if next.position >= self.size {
            return false;
        }
        matches!(BatchScan::new(self.file, &self.path, self.base, self.size, next).next(), Ok(Some(_)))
    }
}
