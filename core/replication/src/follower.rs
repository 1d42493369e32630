//! The following side of a replica (Kafka semantics 4.5, 4.6, 5.5): what it asks, what it does with the answer.

use std::collections::VecDeque;

use bytes::Bytes;
use minikafka_model::batch::{Batch, BatchHeader, Replicated, split_batches};
use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, Mono, Now, Offset};

use minikafka_storage::{LogError, Reach};

use crate::replica::{Online, Role};
use crate::{Divergence, Effect, PartitionFacts, ReplicaEvent, SeededBug};

/// What a follower asks its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Whom.
    pub leader: BrokerId,
    /// The leader epoch it follows.
    pub leader_epoch: LeaderEpoch,
    /// Its log end: where to read from, and what it has.
    pub position: Offset,
    /// The epoch of its last batch.
    pub last_epoch: Option<LeaderEpoch>,
    /// Its log start.
    pub log_start: Offset,
    /// Answers of another generation are not applied. Raised by every truncation, error, epoch change and reconnect.
    pub generation: u64,
}

/// An answer to a follower's ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The generation of the ask.
    pub generation: u64,
    /// The answer.
    pub answer: FetchedAnswer,
}

/// What the leader said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchedAnswer {
    /// Whole batches in their order (perhaps none), and the leader's marks.
    Data {
        /// The batches, in pieces of one or more.
        records: Vec<Bytes>,
        /// The leader's high watermark.
        high_watermark: Offset,
        /// The leader's log start.
        log_start: Offset,
    },
    /// The logs part.
    Diverging(Divergence),
    /// An error.
    Error(ErrorCode),
}

/// A leader's log start and log end, read at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaderBounds {
    /// The log start offset.
    pub log_start: Offset,
    /// The log end offset.
    pub log_end: Offset,
}

/// What a fetcher does with a partition next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Ask this.
    Ask(Ask),
    /// Ask this, but not before the moment.
    AskAt(Ask, Mono),
    /// Nothing until [`Replica::epochs_written`](crate::Replica::epochs_written) says more.
    Held,
    /// Ask the leader for its bounds (ListOffsets) and bring them to [`Replica::leader_bounds`](crate::Replica::leader_bounds).
    AskBounds {
        /// Whom.
        leader: BrokerId,
        /// The leader epoch.
        leader_epoch: LeaderEpoch,
        /// Goes back with the answer.
        generation: u64,
    },
    /// Leave the partition alone until [`Effect::AskChanged`].
    Stop,
    /// The answer was late or belongs to somebody else: nothing changes.
    Ignore,
}

/// The following side of a replica, for one leader epoch.
#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) leader: Option<BrokerId>,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) state: Fetching,
}

#[derive(Debug)]
pub(crate) enum Fetching {
    /// There is an ask to be answered.
    Asking,
    /// Batches of a new epoch wait until the epoch's start is on disk.
    Held(Received),
    /// Out of range: the leader's bounds are wanted.
    AskingBounds,
    /// Waits for newer metadata.
    Failed { reason: &'static str },
}

/// What is left to append of an answer, and the leader's marks.
#[derive(Debug)]
pub(crate) struct Received {
    batches: VecDeque<Batch<Replicated>>,
    high_watermark: Offset,
    log_start: Offset,
}

impl Follower {
    /// Before any metadata was applied.
    pub(crate) fn unassigned() -> Follower {
        Follower { leader: None, epoch: LeaderEpoch::ZERO, state: Fetching::Asking }
    }

    /// Why it does not fetch, if it does not.
    pub(crate) fn not_fetching(&self) -> Option<String> {
        match (&self.state, self.leader) {
            (_, None) => Some("there is no leader".to_owned()),
            (Fetching::Failed { reason }, _) => Some((*reason).to_owned()),
            (Fetching::Asking | Fetching::Held(_) | Fetching::AskingBounds, Some(_)) => None,
        }
    }
}

impl Online {
    /// Follows in a new leader epoch, from the own log end. The log is cut only where the leader shows that it parts
    /// (KIP-101), never at the own high watermark.
    pub(crate) fn become_follower(
        &mut self,
        now: Now,
        facts: &PartitionFacts,
        out: &mut Vec<Effect>,
    ) -> Result<(), LogError> {
        self.drop_held();
        if self.context.config.has(SeededBug::TruncateToHighWatermark) {
            self.cut(self.high_watermark, now.wall, out)?;
        }
        self.generation += 1;
        let (leader, leader_epoch) = (facts.leader, facts.leader_epoch);
        self.role =
            Role::Follower(Box::new(Follower { leader, epoch: leader_epoch, state: Fetching::Asking }));
        out.push(Effect::Emit(ReplicaEvent::Following {
            leader,
            leader_epoch,
            log_end: self.log.end_offset(),
        }));
        Ok(())
    }

    /// A new ask in a new generation: whatever was under way is forgotten. None while there is nobody to ask.
    pub(crate) fn ask_anew(&mut self) -> Option<Ask> {
        let Role::Follower(follower) = &self.role else { return None };
        let leader = follower.leader?;
        if matches!(follower.state, Fetching::Failed { .. }) {
            return None;
        }
        self.drop_held();
        let Role::Follower(follower) = &mut self.role else { return None };
        follower.state = Fetching::Asking;
        self.generation += 1;
        Some(self.ask_of(leader))
    }

    /// The ask as things stand, in the same generation.
    fn ask_of(&self, leader: BrokerId) -> Ask {
        Ask {
            leader,
            leader_epoch: self.leader_epoch(),
            position: self.log.end_offset(),
            last_epoch: self.log.last_epoch(),
            log_start: self.log.start_offset(),
            generation: self.generation,
        }
    }

    fn next_ask(&self) -> Next {
        match &self.role {
            Role::Follower(follower) => {
                follower.leader.map_or(Next::Stop, |leader| Next::Ask(self.ask_of(leader)))
            }
            Role::Leader(_) => Next::Stop,
        }
    }

    /// Leaves the partition alone for `replica.fetch.backoff.ms`.
    pub(crate) fn back_off(&mut self, now: Mono) -> Next {
        match self.ask_anew() {
            Some(ask) => Next::AskAt(ask, now.after(self.context.config.fetch_backoff)),
            None => Next::Stop,
        }
    }

    /// The leader's answer. It is applied only if it answers the present ask: the generation stands for offset and epoch,
    /// and it is compared under the same lock as whatever follows (KAFKA-13207, KAFKA-18991).
    pub(crate) fn fetched(
        &mut self,
        now: Now,
        fetched: Fetched,
        out: &mut Vec<Effect>,
    ) -> Result<Next, LogError> {
        let Role::Follower(follower) = &self.role else { return Ok(Next::Ignore) };
        let current =
            fetched.generation == self.generation || self.context.config.has(SeededBug::StaleAnswerApplied);
        if !current || !matches!(follower.state, Fetching::Asking) || follower.leader.is_none() {
            return Ok(Next::Ignore);
        }
        match fetched.answer {
            FetchedAnswer::Data { records, high_watermark, log_start } => {
                let (batches, bad) = self.usable(records, out);
                let next = self.append(now, Received { batches, high_watermark, log_start }, out)?;
                Ok(if bad { self.back_off(now.mono) } else { next })
            }
            FetchedAnswer::Diverging(divergence) => self.truncate_to_common(now, divergence, out),
            FetchedAnswer::Error(code) => Ok(self.fetch_error(now.mono, code, out)),
        }
    }

    /// Checks what came: whole batches with a right CRC, dense, with epochs that rise and do not exceed the leader's
    /// (KAFKA-18723). What follows the first bad one is dropped.
    fn usable(&self, records: Vec<Bytes>, out: &mut Vec<Effect>) -> (VecDeque<Batch<Replicated>>, bool) {
        let mut usable = VecDeque::new();
        let mut expected = self.log.end_offset();
        let mut epoch = self.log.last_epoch();
        for bytes in records.into_iter().flat_map(split_batches) {
            let batch = match bytes.and_then(Batch::from_leader) {
                Ok(batch) => batch,
                Err(error) => {
                    out.push(Effect::Emit(ReplicaEvent::BadReplicaData {
                        reason: error.to_string(),
                        at: expected,
                    }));
                    return (usable, true);
                }
            };
            // A log that starts anew may start within a batch; that one is taken whole.
            let may_overlap = usable.is_empty() && self.log.is_empty();
            if let Some(reason) = self.unfit(batch.header(), expected, epoch, may_overlap) {
                out.push(Effect::Emit(ReplicaEvent::BadReplicaData { reason, at: expected }));
                return (usable, true);
            }
            expected = batch.header().next_offset();
            epoch = batch.header().leader_epoch;
            usable.push_back(batch);
        }
        (usable, false)
    }

    /// Why a batch does not fit behind what is there, if it does not.
    fn unfit(
        &self,
        header: &BatchHeader,
        expected: Offset,
        newest: Option<LeaderEpoch>,
        may_overlap: bool,
    ) -> Option<String> {
        let base = header.base_offset;
        let overlaps = may_overlap && base < expected && header.last_offset() >= expected;
        if base != expected && !overlaps {
            return Some(format!("the batch starts at {base}, not at the log end"));
        }
        match header.leader_epoch {
            None => Some("it has no leader epoch".to_owned()),
            Some(epoch) if Some(epoch) < newest || epoch > self.leader_epoch() => {
                Some(format!("its leader epoch is {epoch}"))
            }
            Some(_) => None,
        }
    }

    /// Appends up to the first batch of an epoch that is not in the history, and holds the rest until that is on disk.
    fn append(&mut self, now: Now, mut received: Received, out: &mut Vec<Effect>) -> Result<Next, LogError> {
        let known = self.log.last_epoch();
        let ready = received.batches.iter().take_while(|batch| batch.header().leader_epoch <= known).count();
        let ready: Vec<Batch<Replicated>> = received.batches.drain(..ready).collect();
        match self.log.append(&ready, now.wall) {
            Ok(appended) => self.after_append(appended, out),
            Err(error) if error.reach() == Reach::Call => {
                let (reason, at) = (error.to_string(), self.log.end_offset());
                out.push(Effect::Emit(ReplicaEvent::BadReplicaData { reason, at }));
                return Ok(self.back_off(now.mono));
            }
            Err(error) => return Err(error),
        }
        self.adopt_marks(received.high_watermark, received.log_start, out)?;
        let Some(epoch) = received.batches.front().and_then(|batch| batch.header().leader_epoch) else {
            return Ok(self.next_ask());
        };
        // Whatever changed is in the checkpoint of this effect.
        let _ = self.log.assign_epoch(epoch, self.log.end_offset());
        out.push(self.write_epochs());
        if let Role::Follower(follower) = &mut self.role {
            follower.state = Fetching::Held(received);
        }
        Ok(Next::Held)
    }

    /// What was held is forgotten, and the start of its epoch with it.
    fn drop_held(&mut self) {
        if let Role::Follower(follower) = &mut self.role
            && matches!(follower.state, Fetching::Held(_))
        {
            follower.state = Fetching::Asking;
            self.log.drop_empty_epochs();
        }
    }

    /// The high watermark rises to the leader's, as far as the own log goes; the log start follows the leader's (3.3, 5.5).
    fn adopt_marks(
        &mut self,
        high_watermark: Offset,
        log_start: Offset,
        out: &mut Vec<Effect>,
    ) -> Result<(), LogError> {
        self.high_watermark = self.high_watermark.max(high_watermark.min(self.log.end_offset()));
        let log_start = log_start.min(self.high_watermark);
        if log_start > self.log.start_offset() {
            out.extend(self.log.advance_start(log_start)?.map(Effect::SaveEpochs));
        }
        self.check_order_of_marks();
        self.wake_consumers_below_high_watermark(out);
        Ok(())
    }

    /// The epoch's start is on disk: what was held is appended, if nothing has changed meanwhile.
    pub(crate) fn append_held(
        &mut self,
        now: Now,
        leader_epoch: LeaderEpoch,
        out: &mut Vec<Effect>,
    ) -> Result<Next, LogError> {
        let Role::Follower(follower) = &mut self.role else { return Ok(Next::Ignore) };
        if follower.epoch != leader_epoch || !matches!(follower.state, Fetching::Held(_)) {
            return Ok(Next::Ignore);
        }
        let Fetching::Held(received) = std::mem::replace(&mut follower.state, Fetching::Asking) else {
            return Ok(Next::Ignore);
        };
        let next = self.append(now, received, out)?;
        // A leader that runs ahead may have sent more meanwhile, which was not taken: asked for anew.
        Ok(if matches!(next, Next::Ask(_)) { self.ask_anew().map_or(Next::Stop, Next::Ask) } else { next })
    }

    /// The reaction table of Kafka semantics 4.6.
    fn fetch_error(&mut self, now: Mono, code: ErrorCode, out: &mut Vec<Effect>) -> Next {
        let Role::Follower(follower) = &mut self.role else { return Next::Ignore };
        let (Some(leader), leader_epoch) = (follower.leader, follower.epoch) else { return Next::Stop };
        match code {
            ErrorCode::OffsetOutOfRange => {
                follower.state = Fetching::AskingBounds;
                self.generation += 1;
                Next::AskBounds { leader, leader_epoch, generation: self.generation }
            }
            ErrorCode::FencedLeaderEpoch => {
                let reason = "fenced in the present leader epoch: waits for newer metadata";
                follower.state = Fetching::Failed { reason };
                self.generation += 1;
                out.push(Effect::Emit(ReplicaEvent::fetch_error(code, reason, Some(leader), leader_epoch)));
                Next::Stop
            }
            _ => {
                let reason = "asked again after replica.fetch.backoff.ms";
                out.push(Effect::Emit(ReplicaEvent::fetch_error(code, reason, Some(leader), leader_epoch)));
                self.back_off(now)
            }
        }
    }
}
