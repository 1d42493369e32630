//! Serving a follower's fetch (Kafka semantics 2.1, 4.2, 4.4): fencing, divergence, progress, then records or waiting.

use minikafka_model::{BrokerEpoch, BrokerId, LeaderEpoch, Mono, Offset};

use crate::log::{LogError, ReadLimit, ReadPlan};
use crate::replica::{Online, Role};
use crate::{Bounds, Divergence, Effect, NotServed, ReplicaEvent, SeededBug, StreamId};

/// What a follower's stream asks of one partition. [`LeaderSession`](crate::LeaderSession) makes these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FollowerAsk {
    /// Who asks.
    pub broker: BrokerId,
    /// The epoch of the process that asks.
    pub broker_epoch: BrokerEpoch,
    /// Over which stream.
    pub stream: StreamId,
    /// The leader epoch it follows.
    pub leader_epoch: LeaderEpoch,
    /// Read from here.
    pub position: Offset,
    /// Epoch of the batch before `position`; none while the log is empty.
    pub last_epoch: Option<LeaderEpoch>,
    /// Its log end: what it has written. News of it come with a request, not with a wake-up.
    pub acknowledged: Option<Offset>,
    /// Its log start.
    pub log_start: Offset,
    /// The high watermark and log start that this stream was last told.
    pub told: Option<(Offset, Offset)>,
    /// How much may be read. Zero bytes: only take note of the progress.
    pub limit: ReadLimit,
}

/// What a leader says to a follower's fetch.
#[derive(Debug)]
pub enum FollowerAnswer {
    /// Records are there: run the plan without the lock.
    Read {
        /// The read.
        plan: ReadPlan,
        /// The marks at this moment.
        bounds: Bounds,
    },
    /// There are records, and the limit was zero.
    Later,
    /// No records, but the high watermark or the log start moved.
    News {
        /// The marks.
        bounds: Bounds,
    },
    /// Nothing new: [`Effect::WakeStream`] will come.
    Parked,
    /// The logs part: the follower truncates and asks again.
    Diverging(Divergence),
    /// OFFSET_OUT_OF_RANGE (1).
    OutOfRange,
    /// Not served.
    Refused(NotServed),
}

impl Online {
    /// One partition of a follower's fetch.
    pub(crate) fn follower_fetch(
        &mut self,
        now: Mono,
        ask: &FollowerAsk,
        out: &mut Vec<Effect>,
    ) -> Result<FollowerAnswer, LogError> {
        if let Err(refused) = self.fence_follower(ask, out) {
            return Ok(FollowerAnswer::Refused(refused));
        }
        match self.place(ask.position, ask.last_epoch) {
            Place::Within => {}
            Place::Diverging(divergence) => {
                if self.context.config.has(SeededBug::DivergingCounts) {
                    self.note_progress(now, ask, out);
                }
                return Ok(FollowerAnswer::Diverging(divergence));
            }
            Place::OutOfRange => return Ok(FollowerAnswer::OutOfRange),
        }
        self.note_progress(now, ask, out);
        let bounds = self.bounds();
        let Role::Leader(leader) = &mut self.role else { unreachable!("fenced above") };
        if ask.position < bounds.log_end {
            if ask.limit.max_bytes == 0 && !ask.limit.at_least_one {
                return Ok(FollowerAnswer::Later);
            }
            let plan = self.log.plan_read(ask.position, bounds.log_end, ask.limit);
            return Ok(FollowerAnswer::Read { plan, bounds });
        }
        if ask.told != Some((bounds.high_watermark, bounds.log_start)) {
            return Ok(FollowerAnswer::News { bounds });
        }
        leader.parked_streams.insert(ask.broker, ask.stream);
        Ok(FollowerAnswer::Parked)
    }

    /// Epoch first, then leadership, then membership, then the life of the process (Kafka semantics 4.2 and 2.1).
    fn fence_follower(&mut self, ask: &FollowerAsk, out: &mut Vec<Effect>) -> Result<(), NotServed> {
        let fencing = |reason, our_epoch| {
            Effect::Emit(ReplicaEvent::Fencing {
                reason,
                broker: ask.broker,
                their_epoch: ask.leader_epoch,
                our_epoch,
                broker_epoch: ask.broker_epoch,
            })
        };
        let ours = self.leader_epoch();
        if !self.context.config.has(SeededBug::FetchNotFenced)
            && let Err(refused) = self.fence(Some(ask.leader_epoch))
        {
            out.push(fencing("leader epochs differ", ours));
            return Err(refused);
        }
        let Role::Leader(leader) = &self.role else { return Err(NotServed::NotLeader) };
        let Some(progress) = leader.progress.get(&ask.broker) else {
            // It may know of an assignment that we have not heard of (KAFKA-13837).
            return Err(NotServed::UnknownEpoch { ours });
        };
        let registered = self.context.brokers.get(&ask.broker).map(|facts| facts.epoch);
        let earlier_life =
            registered.max(progress.broker_epoch).is_some_and(|epoch| ask.broker_epoch < epoch);
        if earlier_life && !self.context.config.has(SeededBug::JoinWithoutBrokerEpoch) {
            out.push(fencing("a process of an earlier life asks", ours));
            return Err(NotServed::NotLeader);
        }
        Ok(())
    }

    /// Takes note of what the follower has, which is verified to be a prefix of this log.
    fn note_progress(&mut self, now: Mono, ask: &FollowerAsk, out: &mut Vec<Effect>) {
        let log_end = self.log.end();
        let Role::Leader(leader) = &mut self.role else { return };
        leader.samples.take(now, log_end, self.context.config.lag_time_max);
        let Some(acknowledged) = ask.acknowledged else { return };
        let Some(progress) = leader.progress.get_mut(&ask.broker) else { return };
        if progress.broker_epoch != Some(ask.broker_epoch) {
            // Another life of the broker: nothing that the old one had counts.
            progress.acknowledged = None;
            if progress.broker_epoch.is_some() {
                progress.caught_up = None;
            }
        }
        progress.broker_epoch = Some(ask.broker_epoch);
        progress.asked = Some(now);
        progress.log_start = Some(ask.log_start);
        // Within one life and one leader epoch a verified log only grows; a late request of an old stream cannot take it back.
        let before = progress.acknowledged;
        progress.acknowledged = before.max(Some(acknowledged));
        let moved = progress.acknowledged != before;
        leader.refresh_caught_up(ask.broker);
        if moved {
            self.raise_high_watermark(now, out);
        }
        self.maybe_expand(ask.broker, out);
    }

    /// Where a reader that holds everything below `position`, ending in `last_epoch`, stands against this log.
    pub(crate) fn place(&self, position: Offset, last_epoch: Option<LeaderEpoch>) -> Place {
        if let Some(last_epoch) = last_epoch {
            let Some(found) = self.log.end_offset_for(last_epoch) else { return Place::OutOfRange };
            if position < self.log.start() {
                return Place::OutOfRange;
            }
            if found.epoch < last_epoch || found.end_offset < position {
                return Place::Diverging(found);
            }
        }
        if position < self.log.start() || position > self.log.end() {
            Place::OutOfRange
        } else {
            Place::Within
        }
    }
}

/// Where a reader stands against a log (Kafka semantics 4.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Within,
    Diverging(Divergence),
    OutOfRange,
}
