//! The two sparse indexes of a segment (Kafka semantics 10.3), and the rule by which they are filled.

use minikafka_model::batch::BatchHeader;
use minikafka_model::{Offset, WallMs};

/// Bytes of an entry of `.index`.
pub(crate) const OFFSET_ENTRY_BYTES: usize = 8;
/// Bytes of an entry of `.timeindex`.
pub(crate) const TIME_ENTRY_BYTES: usize = 12;

/// An entry of `.index`: the batch at `position` ends with the offset `base + relative`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OffsetEntry {
    /// Last offset of the batch, less the base of the segment.
    pub(crate) relative: u32,
    /// Where the batch begins in the file.
    pub(crate) position: u32,
}

/// An entry of `.timeindex`: up to the batch that ends with `base + relative`, `timestamp` is the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeEntry {
    /// Milliseconds.
    pub(crate) timestamp: i64,
    /// Last offset of the batch that holds it, less the base of the segment.
    pub(crate) relative: u32,
}

impl TimeEntry {
    /// The timestamp.
    pub(crate) fn time(&self) -> WallMs {
        WallMs(self.timestamp)
    }
}

/// Most bytes of whole entries that a preallocated index file has.
pub(crate) fn preallocated(bytes: u32, entry: usize) -> u64 {
    u64::from(bytes) / entry as u64 * entry as u64
}

/// Both indexes of a segment in memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Indexes {
    pub(crate) offsets: Vec<OffsetEntry>,
    pub(crate) times: Vec<TimeEntry>,
    /// The largest timestamp of the segment; may not have an entry yet.
    pub(crate) largest: Option<TimeEntry>,
}

impl Indexes {
    /// Adds what a batch at `position` calls for. `since` counts the bytes since the last entry, without this batch.
    pub(crate) fn batch(
        &mut self,
        base: Offset,
        position: u64,
        header: &BatchHeader,
        since: &mut u64,
        interval: u32,
    ) {
        let relative = header.last_offset().since(base) as u32;
        if header.max_timestamp >= 0
            && self.largest.is_none_or(|known| header.max_timestamp > known.timestamp)
        {
            self.largest = Some(TimeEntry { timestamp: header.max_timestamp, relative });
        }
        if *since > u64::from(interval) {
            self.offsets.push(OffsetEntry { relative, position: position as u32 });
            self.close_times();
            *since = 0;
        }
        *since += header.size as u64;
    }

    /// Gives the largest timestamp an entry, if it has none.
    pub(crate) fn close_times(&mut self) {
        if let Some(largest) = self.largest
            && self.times.last().is_none_or(|last| largest.timestamp > last.timestamp)
        {
            self.times.push(largest);
        }
    }

    /// The greatest entry not above the offset.
    pub(crate) fn before(&self, relative: u32) -> Option<OffsetEntry> {
        let after = self.offsets.partition_point(|entry| entry.relative <= relative);
        after.checked_sub(1).map(|at| self.offsets[at])
    }

    /// The greatest entry not above the timestamp.
    pub(crate) fn before_time(&self, timestamp: i64) -> Option<TimeEntry> {
        let after = self.times.partition_point(|entry| entry.timestamp <= timestamp);
        after.checked_sub(1).map(|at| self.times[at])
    }

    /// The segment now ends before `relative` and `position`.
    pub(crate) fn truncate(&mut self, relative: u32, position: u64) {
        self.offsets.retain(|entry| entry.relative < relative && u64::from(entry.position) < position);
        self.times.retain(|entry| entry.relative < relative);
        self.largest = self.times.last().copied();
    }
}

/// Bytes of offset entries.
pub(crate) fn offsets_to_bytes(entries: &[OffsetEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * OFFSET_ENTRY_BYTES);
    for entry in entries {
        bytes.extend(entry.relative.to_be_bytes());
        bytes.extend(entry.position.to_be_bytes());
    }
    bytes
}

/// Bytes of time entries.
pub(crate) fn times_to_bytes(entries: &[TimeEntry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(entries.len() * TIME_ENTRY_BYTES);
    for entry in entries {
        bytes.extend(entry.timestamp.to_be_bytes());
        bytes.extend(entry.relative.to_be_bytes());
    }
    bytes
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Offset entries of a file; the zeros of a preallocated file are left out.
///
/// # Errors
/// What does not fit.
pub(crate) fn offsets_from_bytes(bytes: &[u8]) -> Result<Vec<OffsetEntry>, &'static str> {
    if !bytes.len().is_multiple_of(OFFSET_ENTRY_BYTES) {
        return Err("its size is no multiple of 8");
    }
    let mut entries: Vec<OffsetEntry> = Vec::new();
    for chunk in bytes.chunks_exact(OFFSET_ENTRY_BYTES) {
        let entry = OffsetEntry { relative: u32_at(chunk, 0), position: u32_at(chunk, 4) };
        if entry.relative == 0 && entry.position == 0 {
            break;
        }
        if entries
            .last()
            .is_some_and(|last| entry.relative <= last.relative || entry.position <= last.position)
        {
            return Err("its entries do not rise");
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Time entries of a file; the zeros of a preallocated file are left out.
///
/// # Errors
/// What does not fit.
pub(crate) fn times_from_bytes(bytes: &[u8]) -> Result<Vec<TimeEntry>, &'static str> {
    if !bytes.len().is_multiple_of(TIME_ENTRY_BYTES) {
        return Err("its size is no multiple of 12");
    }
    let mut entries: Vec<TimeEntry> = Vec::new();
    for chunk in bytes.chunks_exact(TIME_ENTRY_BYTES) {
        let timestamp = (i64::from(u32_at(chunk, 0)) << 32) | i64::from(u32_at(chunk, 4));
        let entry = TimeEntry { timestamp, relative: u32_at(chunk, 8) };
        if entry.timestamp == 0 && entry.relative == 0 {
            break;
        }
        if entries
            .last()
            .is_some_and(|last| entry.timestamp <= last.timestamp || entry.relative <= last.relative)
        {
            return Err("its entries do not rise");
        }
        entries.push(entry);
    }
    Ok(entries)
}
