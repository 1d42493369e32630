//! Finding records by their time (ListOffsets).

use minikafka_model::batch::{BatchHeader, Records};
use minikafka_model::{LeaderEpoch, Offset, WallMs};

use super::LogReader;
use crate::error::{At, Damage, DiskOp, LogError};
use crate::segment::Segment;
use crate::segment::walk::{Place, WalkError};

/// A record found by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeHit {
    /// Its timestamp.
    pub timestamp: WallMs,
    /// Its offset.
    pub offset: Offset,
    /// Epoch of its batch.
    pub leader_epoch: Option<LeaderEpoch>,
}

impl LogReader {
    /// The first record, by offset, whose timestamp is not below `time`.
    ///
    /// # Errors
    /// As [`LogReader::read`].
    pub fn lookup_time(&self, time: WallMs) -> Result<Option<TimeHit>, LogError> {
        self.fresh(self.find_time(time))
    }

    /// The first record, by offset, with the largest timestamp of the log (`-3` in ListOffsets).
    ///
    /// # Errors
    /// As [`LogReader::read`].
    pub fn max_timestamp(&self) -> Result<Option<TimeHit>, LogError> {
        self.fresh(self.find_largest())
    }

    fn find_time(&self, time: WallMs) -> Result<Option<TimeHit>, LogError> {
        for (at, segment) in self.segments.iter().enumerate() {
            let next = self.segments.get(at + 1).map_or(self.end, |next| next.base);
            if next <= self.start || segment.largest()?.is_none_or(|largest| largest.timestamp < time.0) {
                continue;
            }
            let from = match segment.before_time(time.0)? {
                Some(entry) => Offset(segment.base.0 + i64::from(entry.relative)).max(self.start),
                None => segment.base.max(self.start),
            };
            let found = self.search(segment, from, |timestamp| timestamp >= time.0)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn find_largest(&self) -> Result<Option<TimeHit>, LogError> {
        let mut best: Option<(i64, usize)> = None;
        for (at, segment) in self.segments.iter().enumerate() {
            let next = self.segments.get(at + 1).map_or(self.end, |next| next.base);
            if next > self.start
                && let Some(largest) = segment.largest()?
                && best.is_none_or(|(timestamp, _)| largest.timestamp > timestamp)
            {
                best = Some((largest.timestamp, at));
            }
        }
        let Some((timestamp, at)) = best else { return Ok(None) };
        let segment = &self.segments[at];
        let from = segment
            .largest()?
            .map_or(segment.base, |entry| Offset(segment.base.0 + i64::from(entry.relative)));
        self.search(segment, from.max(self.start), |record| record >= timestamp)
    }

    /// The first record of the segment from `from` on, not below the log start, whose timestamp is `wanted`. Batches are opened only
    /// if their largest timestamp is.
    fn search(
        &self,
        segment: &Segment,
        from: Offset,
        wanted: impl Fn(i64) -> bool,
    ) -> Result<Option<TimeHit>, LogError> {
        let Some((position, first)) = segment.locate(from)? else { return Ok(None) };
        let mut walk = segment.headers_from(Place { position, offset: first.base_offset });
        while let Some((position, header)) = walk.next().map_err(WalkError::unreadable)? {
            if header.base_offset >= self.end {
                break;
            }
            if wanted(header.max_timestamp)
                && let Some(hit) = self.search_batch(segment, position, &header, &wanted)?
            {
                return Ok(Some(hit));
            }
        }
        Ok(None)
    }

    fn search_batch(
        &self,
        segment: &Segment,
        position: u64,
        header: &BatchHeader,
        wanted: &impl Fn(i64) -> bool,
    ) -> Result<Option<TimeHit>, LogError> {
        let damaged = |why: String| {
            let path = segment.path.clone();
            LogError::Unreadable(Damage { path, position, offset: header.base_offset, why })
        };
        let bytes = segment.log.read_bytes_at(position, header.size).at(DiskOp::Read, &segment.path)?;
        for record in Records::of(&bytes).map_err(|error| damaged(error.to_string()))? {
            let record = record.map_err(|error| damaged(error.to_string()))?;
            if record.offset >= self.start && wanted(record.timestamp) {
                let (timestamp, offset) = (WallMs(record.timestamp), record.offset);
                return Ok(Some(TimeHit { timestamp, offset, leader_epoch: header.leader_epoch }));
            }
        }
        Ok(None)
    }
}
