//! Reads that are planned under the lock and carried out without it.

use minikafka_model::{Offset, WallMs};
use minikafka_storage::{LogError, LogReader, ReadRecords, TimeHit};

use crate::OffsetAnswer;

/// How much may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// Most bytes.
    pub max_bytes: usize,
    /// Read the first batch even if it alone is larger (KIP-74).
    pub at_least_one: bool,
}

/// A read of records: from where, up to where, how much, in the log of the moment it was planned.
#[derive(Debug)]
pub struct ReadPlan {
    pub(crate) reader: LogReader,
    pub(crate) from: Offset,
    pub(crate) upto: Offset,
    pub(crate) limit: ReadLimit,
}

impl ReadPlan {
    /// Reads. Nothing is read if the log was cut, or its start moved, since the plan was made: the asker looks again.
    ///
    /// # Errors
    /// The disk's, and damage.
    pub fn run(self) -> Result<ReadRecords, LogError> {
        let limit = minikafka_storage::ReadLimit {
            max_bytes: self.limit.max_bytes,
            upto: self.upto,
            at_least_one: self.limit.at_least_one,
        };
        match self.reader.read(self.from, limit) {
            Err(LogError::Truncated | LogError::OutOfRange { .. }) => Ok(ReadRecords::default()),
            read => read,
        }
    }
}

/// A lookup by time (ListOffsets), in the log of the moment it was planned.
#[derive(Debug, Clone)]
pub struct OffsetLookup {
    pub(crate) reader: LogReader,
    /// None: the record with the largest timestamp.
    pub(crate) at_or_after: Option<WallMs>,
    pub(crate) high_watermark: Offset,
    pub(crate) behind_epoch_start: bool,
}

impl OffsetLookup {
    /// Looks. What lies at or above the high watermark counts as not there, or as not known yet while the leader has not caught up
    /// with the start of its epoch.
    ///
    /// # Errors
    /// The disk's, and damage.
    pub fn run(self) -> Result<OffsetAnswer, LogError> {
        let found = match self.at_or_after {
            Some(time) => self.reader.lookup_time(time),
            None => self.reader.max_timestamp(),
        };
        let found: Option<TimeHit> = match found {
            Err(LogError::Truncated | LogError::OutOfRange { .. }) => None,
            found => found?,
        };
        Ok(match found {
            Some(hit) if hit.offset < self.high_watermark => OffsetAnswer::At {
                offset: hit.offset,
                timestamp: Some(hit.timestamp),
                leader_epoch: hit.leader_epoch,
            },
            _ if self.behind_epoch_start => OffsetAnswer::NotAvailable,
            _ => OffsetAnswer::NotFound,
        })
    }
}
