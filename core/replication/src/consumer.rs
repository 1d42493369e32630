//! What consumers ask: records below the high watermark, offsets, ends of epochs.

use minikafka_model::{LeaderEpoch, Offset, Ticket, WallMs};

use crate::log::{LogError, ReadLimit, ReadPlan};
use crate::replica::{Online, Role};
use crate::serve::Place;
use crate::{Bounds, Divergence, NotServed, SeededBug};

/// A consumer's fetch of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsumerAsk {
    /// The leader epoch it knows; absent means no check.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Read from here.
    pub position: Offset,
    /// Epoch of the record before `position` (Fetch v12 and later), checked against the epoch history.
    pub last_epoch: Option<LeaderEpoch>,
    /// Whether a follower may serve it: Fetch v11 and later (the oracle: with no selector configured).
    pub follower_may_serve: bool,
    /// How much may be read.
    pub limit: ReadLimit,
}

/// The answer to a consumer's fetch.
#[derive(Debug)]
pub enum ConsumerAnswer {
    /// Records lie between the position and the high watermark: run the plan without the lock.
    Read {
        /// The read.
        plan: ReadPlan,
        /// The marks at this moment.
        bounds: Bounds,
    },
    /// Nothing to read yet; [`Replica::park`](crate::Replica::park) waits for it.
    Empty {
        /// The marks at this moment.
        bounds: Bounds,
    },
    /// The reader holds records that this log does not.
    Diverging(Divergence, Bounds),
    /// OFFSET_OUT_OF_RANGE (1).
    OutOfRange(Bounds),
    /// Not served.
    Refused(NotServed),
}

/// What ListOffsets asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetSpec {
    /// -2 and -4: the log start offset.
    Earliest,
    /// -1: the high watermark (there are no open transactions, so for either isolation level).
    Latest,
    /// -3: the record with the largest timestamp.
    MaxTimestamp,
    /// The first record with a timestamp not below this one.
    AtOrAfter(WallMs),
}

/// The answer to ListOffsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetAnswer {
    /// Found.
    At {
        /// The offset.
        offset: Offset,
        /// The record's timestamp, for the lookups by time.
        timestamp: Option<WallMs>,
        /// The leader epoch that goes with it.
        leader_epoch: Option<LeaderEpoch>,
    },
    /// No record that consumers may see matches.
    NotFound,
    /// OFFSET_NOT_AVAILABLE (78): this leader's high watermark has not reached the start of its epoch, so the answer might go
    /// back behind what its predecessor gave (KIP-207).
    NotAvailable,
    /// Not served.
    Refused(NotServed),
}

/// The answer to OffsetForLeaderEpoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpochEndAnswer {
    /// The largest epoch not above the one asked for, and its end offset (the log end for the newest one, not the high watermark).
    Found(Divergence),
    /// Undefined: nothing is known of the epoch.
    Unknown,
    /// Not served.
    Refused(NotServed),
}

impl Online {
    /// What a consumer may read, on a leader or, where it may, on a follower.
    pub(crate) fn consumer_fetch(&self, ask: &ConsumerAsk) -> ConsumerAnswer {
        if let Err(refused) = self.fence(ask.leader_epoch) {
            return ConsumerAnswer::Refused(refused);
        }
        if !matches!(self.role, Role::Leader(_)) && !ask.follower_may_serve {
            return ConsumerAnswer::Refused(NotServed::NotLeader);
        }
        let bounds = self.bounds();
        match self.place(ask.position, ask.last_epoch) {
            Place::Within => {}
            Place::Diverging(divergence) => return ConsumerAnswer::Diverging(divergence, bounds),
            Place::OutOfRange => return ConsumerAnswer::OutOfRange(bounds),
        }
        let upto = if self.context.config.has(SeededBug::ReadAboveHighWatermark) {
            bounds.log_end
        } else {
            bounds.high_watermark
        };
        if ask.position < upto {
            let plan = self.log.plan_read(ask.position, upto, ask.limit);
            ConsumerAnswer::Read { plan, bounds }
        } else {
            ConsumerAnswer::Empty { bounds }
        }
    }

    /// Leaves the caller to be woken when the high watermark passes `position`. False: it already has, look again.
    pub(crate) fn park(&mut self, ticket: Ticket, position: Offset) -> bool {
        if position < self.high_watermark {
            return false;
        }
        self.parked_consumers.insert((position, ticket));
        true
    }

    pub(crate) fn list_offsets(
        &self,
        leader_epoch: Option<LeaderEpoch>,
        spec: OffsetSpec,
    ) -> Result<OffsetAnswer, LogError> {
        if let Err(refused) = self.fence(leader_epoch) {
            return Ok(OffsetAnswer::Refused(refused));
        }
        let Role::Leader(leader) = &self.role else { return Ok(OffsetAnswer::Refused(NotServed::NotLeader)) };
        let behind_epoch_start = self.high_watermark < leader.epoch_start;
        let found = match spec {
            OffsetSpec::Earliest => {
                let offset = self.log.start();
                let leader_epoch = self.log.epoch_at(offset);
                return Ok(OffsetAnswer::At { offset, timestamp: None, leader_epoch });
            }
            OffsetSpec::Latest => {
                return Ok(if behind_epoch_start {
                    OffsetAnswer::NotAvailable
                } else {
                    let leader_epoch = Some(leader.epoch);
                    OffsetAnswer::At { offset: self.high_watermark, timestamp: None, leader_epoch }
                });
            }
            OffsetSpec::MaxTimestamp => self.log.max_timestamp()?,
            OffsetSpec::AtOrAfter(time) => self.log.lookup_time(time)?,
        };
        Ok(match found {
            Some((timestamp, offset)) if offset < self.high_watermark => OffsetAnswer::At {
                offset,
                timestamp: Some(timestamp),
                leader_epoch: self.log.epoch_at(offset),
            },
            _ if behind_epoch_start => OffsetAnswer::NotAvailable,
            _ => OffsetAnswer::NotFound,
        })
    }

    pub(crate) fn end_of_epoch(
        &self,
        leader_epoch: Option<LeaderEpoch>,
        epoch: LeaderEpoch,
    ) -> EpochEndAnswer {
        if let Err(refused) = self.fence(leader_epoch) {
            return EpochEndAnswer::Refused(refused);
        }
        if !matches!(self.role, Role::Leader(_)) {
            return EpochEndAnswer::Refused(NotServed::NotLeader);
        }
        self.log.end_offset_for(epoch).map_or(EpochEndAnswer::Unknown, EpochEndAnswer::Found)
    }
}
