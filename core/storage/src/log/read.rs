//! Reading, with or without the lock of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use minikafka_model::batch::BatchHeader;
use minikafka_model::{LeaderEpoch, Offset};

use crate::error::{At, Damage, DiskOp, LogError};
use crate::segment::Segment;
use crate::segment::walk::{HeaderWalk, Place, WalkError};

/// How much to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// Most bytes.
    pub max_bytes: usize,
    /// Only batches wholly below this offset: a high watermark, or the log end.
    pub upto: Offset,
    /// Return the first batch even if it alone has more than `max_bytes`.
    pub at_least_one: bool,
}

/// What was read: whole batches of one segment, one behind the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadRecords {
    /// The batches; the first one may begin before the offset asked for.
    pub records: Bytes,
    /// Offset after the last record; none if nothing was read.
    pub end: Option<Offset>,
    /// Epoch of the last batch.
    pub last_epoch: Option<LeaderEpoch>,
}

/// A log as it was at one moment, to be read without its lock. Cheap to clone; holds the files open.
#[derive(Debug, Clone)]
pub struct LogReader {
    pub(super) segments: Arc<Vec<Arc<Segment>>>,
    pub(super) start: Offset,
    pub(super) end: Offset,
    pub(super) generation: u64,
    pub(super) current: Arc<AtomicU64>,
}

impl LogReader {
    /// First offset that may be read.
    pub fn start_offset(&self) -> Offset {
        self.start
    }

    /// Log end offset.
    pub fn end_offset(&self) -> Offset {
        self.end
    }

    /// Whether the log was truncated since: what is read now may be of another history.
    pub fn is_stale(&self) -> bool {
        self.current.load(Ordering::Acquire) != self.generation
    }

    /// Reads batches from the one that holds `from`, or the first after it. Of one segment at a time; nothing at the log end.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`], [`LogError::Unreadable`], the disk's, and [`LogError::Truncated`] if the log was truncated meanwhile.
    pub fn read(&self, from: Offset, limit: ReadLimit) -> Result<ReadRecords, LogError> {
        if from < self.start || from > self.end {
            return Err(LogError::OutOfRange { asked: from, start: self.start, end: self.end });
        }
        let upto = limit.upto.min(self.end);
        if from >= upto {
            return Ok(ReadRecords::default());
        }
        let limit = ReadLimit { upto, ..limit };
        self.fresh(self.read_segments(from, limit))
    }

    /// An answer that was found in a log that was truncated meanwhile is none.
    pub(super) fn fresh<T>(&self, outcome: Result<T, LogError>) -> Result<T, LogError> {
        if self.is_stale() { Err(LogError::Truncated) } else { outcome }
    }

    fn read_segments(&self, from: Offset, limit: ReadLimit) -> Result<ReadRecords, LogError> {
        let after = self.segments.partition_point(|segment| segment.base <= from);
        for segment in &self.segments[after.saturating_sub(1)..] {
            if segment.base >= limit.upto {
                break;
            }
            if let Some((position, header)) = segment.locate(from)? {
                return read_segment(segment, position, &header, limit);
            }
        }
        Ok(ReadRecords::default())
    }
}

fn read_segment(
    segment: &Segment,
    position: u64,
    first: &BatchHeader,
    limit: ReadLimit,
) -> Result<ReadRecords, LogError> {
    if first.last_offset() >= limit.upto || (first.size > limit.max_bytes && !limit.at_least_one) {
        return Ok(ReadRecords::default());
    }
    let left = usize::try_from(segment.size() - position).unwrap_or(usize::MAX);
    let wanted = left.min(limit.max_bytes.max(first.size));
    let mut records = segment.log.read_bytes_at(position, wanted).at(DiskOp::Read, &segment.path)?;
    let (mut end, mut last_epoch) = (None, None);
    let mut at = 0;
    let mut expected = first.base_offset;
    while at < records.len() {
        let header = match BatchHeader::parse(&records[at..]) {
            Ok(header) => header,
            // The limit cut it.
            Err(_) if at > 0 && records.len() < left && cut_by_limit(&records[at..]) => break,
            Err(error) => return Err(damaged(segment, position + at as u64, expected, &error.to_string())),
        };
        if header.base_offset < expected || header.last_offset_delta < 0 {
            return Err(damaged(segment, position + at as u64, expected, "its offset is too low"));
        }
        if header.last_offset() >= limit.upto {
            break;
        }
        at += header.size;
        expected = header.next_offset();
        (end, last_epoch) = (Some(expected), header.leader_epoch);
    }
    records.truncate(at);
    Ok(ReadRecords { records, end, last_epoch })
}

/// Whether what is left looks like the beginning of a batch.
fn cut_by_limit(rest: &[u8]) -> bool {
    match BatchHeader::parse_prefix(rest) {
        Ok(header) => header.size > rest.len(),
        Err(_) => rest.len() < minikafka_model::batch::HEADER_BYTES,
    }
}

fn damaged(segment: &Segment, position: u64, offset: Offset, why: &str) -> LogError {
    LogError::Unreadable(Damage { path: segment.path.clone(), position, offset, why: why.to_owned() })
}

/// The headers of all batches of a log from an offset on, until `each` says no.
pub(super) fn each_header(
    segments: &[Arc<Segment>],
    from: Offset,
    mut each: impl FnMut(&Arc<Segment>, u64, &BatchHeader) -> Result<bool, LogError>,
) -> Result<(), LogError> {
    let after = segments.partition_point(|segment| segment.base <= from);
    for segment in &segments[after.saturating_sub(1)..] {
        let place = match segment.locate(from)? {
            Some((position, header)) => Place { position, offset: header.base_offset },
            None => continue,
        };
        let mut walk: HeaderWalk<'_> = segment.headers_from(place);
        while let Some((position, header)) = walk.next().map_err(WalkError::unreadable)? {
            if !each(segment, position, &header)? {
                return Ok(());
            }
        }
    }
    Ok(())
}
