//! The following side of a replica (Kafka semantics 4.5, 4.6, 5.5): what it asks, what it does with the answer.

use std::collections::VecDeque;

use bytes::Bytes;
use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, Mono, Now, Offset};

use crate::log::{LogError, ReplicatedBatch};
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
        /// The batches.
        batches: Vec<Bytes>,
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
    batches: VecDeque<ReplicatedBatch>,
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
        facts: &PartitionFacts,
        out: &mut Vec<Effect>,
    ) -> Result<(), LogError> {
        if self.context.config.has(SeededBug::TruncateToHighWatermark) {
            self.log.truncate_to(self.high_watermark)?;
        }
        self.generation += 1;
        let (leader, leader_epoch) = (facts.leader, facts.leader_epoch);
        self.role =
            Role::Follower(Box::new(Follower { leader, epoch: leader_epoch, state: Fetching::Asking }));
        out.push(Effect::Emit(ReplicaEvent::Following { leader, leader_epoch, log_end: self.log.end() }));
        Ok(())
    }

    /// A new ask in a new generation: whatever was under way is forgotten. None while there is nobody to ask.
    pub(crate) fn ask_anew(&mut self) -> Option<Ask> {
        let Role::Follower(follower) = &mut self.role else { return None };
        let leader = follower.leader?;
        if matches!(follower.state, Fetching::Failed { .. }) {
            return None;
        }
        follower.state = Fetching::Asking;
        self.generation += 1;
        Some(self.ask_of(leader))
    }

    /// The ask as things stand, in the same generation.
    fn ask_of(&self, leader: BrokerId) -> Ask {
        Ask {
            leader,
            leader_epoch: self.leader_epoch(),
            position: self.log.end(),
            last_epoch: self.log.last_epoch(),
            log_start: self.log.start(),
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
            FetchedAnswer::Data { batches, high_watermark, log_start } => {
                let (batches, bad) = self.usable(batches, out);
                let next = self.append(now, Received { batches, high_watermark, log_start }, None, out)?;
                Ok(if bad { self.back_off(now.mono) } else { next })
            }
            FetchedAnswer::Diverging(divergence) => self.truncate_to_common(now.mono, divergence, out),
            FetchedAnswer::Error(code) => Ok(self.fetch_error(now.mono, code, out)),
        }
    }

    /// Checks what came: whole batches with a right CRC, dense, with epochs that rise and do not exceed the leader's
    /// (KAFKA-18723). What follows the first bad one is dropped.
    fn usable(&self, batches: Vec<Bytes>, out: &mut Vec<Effect>) -> (VecDeque<ReplicatedBatch>, bool) {
        let mut usable = VecDeque::new();
        let mut expected = self.log.end();
        let mut epoch = self.log.last_epoch();
        for bytes in batches {
            let batch = match ReplicatedBatch::check(bytes) {
                Ok(batch) => batch,
                Err(error) => return self.unusable(usable, error, expected, out),
            };
            // A log that starts anew may start within a batch; that one is taken whole.
            let starts_anew = usable.is_empty() && self.log.is_empty() && batch.last_offset() >= expected;
            if batch.base_offset() != expected && !(starts_anew && batch.base_offset() < expected) {
                let reason = format!("the batch starts at {}, not at the log end", batch.base_offset());
                return self.unusable(usable, reason, expected, out);
            }
            if Some(batch.leader_epoch()) < epoch || batch.leader_epoch() > self.leader_epoch() {
                let reason = format!("its leader epoch is {}", batch.leader_epoch());
                return self.unusable(usable, reason, expected, out);
            }
            expected = batch.last_offset().next();
            epoch = Some(batch.leader_epoch());
            usable.push_back(batch);
        }
        (usable, false)
    }

    #[expect(clippy::unused_self, reason = "reads as a step of `usable`")]
    fn unusable(
        &self,
        usable: VecDeque<ReplicatedBatch>,
        reason: String,
        at: Offset,
        out: &mut Vec<Effect>,
    ) -> (VecDeque<ReplicatedBatch>, bool) {
        out.push(Effect::Emit(ReplicaEvent::BadReplicaData { reason, at }));
        (usable, true)
    }

    /// Appends up to the first batch of an epoch that is not on disk yet, and holds the rest until it is.
    fn append(
        &mut self,
        now: Now,
        mut received: Received,
        on_disk: Option<LeaderEpoch>,
        out: &mut Vec<Effect>,
    ) -> Result<Next, LogError> {
        let known = self.log.last_epoch().max(on_disk);
        let ready = received.batches.iter().take_while(|batch| Some(batch.leader_epoch()) <= known).count();
        let ready: Vec<ReplicatedBatch> = received.batches.drain(..ready).collect();
        if !ready.is_empty() {
            self.log.append_replicated(ready, now)?;
        }
        self.adopt_marks(received.high_watermark, received.log_start, out)?;
        let Some(first) = received.batches.front() else { return Ok(self.next_ask()) };
        let entry = (first.leader_epoch(), self.log.end());
        let leader_epoch = self.leader_epoch();
        out.push(self.write_epochs(leader_epoch, Some(entry)));
        if let Role::Follower(follower) = &mut self.role {
            follower.state = Fetching::Held(received);
        }
        self.held_epoch = Some((self.generation, entry.0));
        Ok(Next::Held)
    }

    /// The high watermark rises to the leader's, as far as the own log goes; the log start follows the leader's (3.3, 5.5).
    fn adopt_marks(
        &mut self,
        high_watermark: Offset,
        log_start: Offset,
        out: &mut Vec<Effect>,
    ) -> Result<(), LogError> {
        self.high_watermark = self.high_watermark.max(high_watermark.min(self.log.end()));
        let log_start = log_start.min(self.high_watermark);
        if log_start > self.log.start() {
            self.log.advance_start(log_start)?;
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
        let Some((generation, epoch)) = self.held_epoch else { return Ok(Next::Ignore) };
        if follower.epoch != leader_epoch || generation != self.generation {
            return Ok(Next::Ignore);
        }
        let Fetching::Held(received) = std::mem::replace(&mut follower.state, Fetching::Asking) else {
            return Ok(Next::Ignore);
        };
        self.held_epoch = None;
        let next = self.append(now, received, Some(epoch), out)?;
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
