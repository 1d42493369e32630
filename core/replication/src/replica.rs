//! One replica of one partition. Every input is a method; what has to be done outside comes back as effects.

use std::collections::BTreeSet;

use minikafka_model::{BrokerId, LeaderEpoch, Mono, Now, Offset, PartitionEpoch, Ticket, TopicPartition};

use crate::follower::Follower;
use crate::leader::Leader;
use crate::log::{LogError, ReplicaLog};
use crate::{
    Ask, Bounds, Brokers, ConsumerAnswer, ConsumerAsk, Effect, EpochEndAnswer, Fetched, FollowerAnswer,
    FollowerAsk, IsrAnswer, IsrProposal, LeaderBounds, Next, NotServed, OffsetAnswer, OffsetSpec,
    PartitionFacts, Produce, ProduceDone, ProduceRefusal, Produced, Progress, ReplicaConfig, ReplicaEvent,
};

/// Whether a broker may be in an ISR, by the metadata (KIP-841).
pub(crate) fn eligible(brokers: &Brokers, broker: BrokerId) -> bool {
    brokers.get(&broker).is_some_and(|facts| facts.eligible)
}

/// One replica of one partition: leader, follower or offline.
///
/// The shell keeps it behind one lock, calls one method for each input, lets go, and performs the effects in their order. A
/// replica starts as a follower without a leader; [`Replica::metadata`] gives it its role.
#[derive(Debug)]
pub struct Replica {
    partition: TopicPartition,
    state: State,
}

#[derive(Debug)]
enum State {
    Online(Box<Online>),
    Offline { reason: String },
}

/// What both roles need to know.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) me: BrokerId,
    pub(crate) config: ReplicaConfig,
    pub(crate) brokers: Brokers,
    pub(crate) replicas: Vec<BrokerId>,
}

/// A replica whose log works.
#[derive(Debug)]
pub(crate) struct Online {
    pub(crate) context: Context,
    pub(crate) log: ReplicaLog,
    pub(crate) high_watermark: Offset,
    /// Consumer fetches that wait for the high watermark to pass their position.
    pub(crate) parked_consumers: BTreeSet<(Offset, Ticket)>,
    pub(crate) role: Role,
    /// The newest partition epoch that was applied.
    pub(crate) partition_epoch: Option<PartitionEpoch>,
    /// Follower: which ask is the present one.
    pub(crate) generation: u64,
    /// Follower: the epoch whose first batch is held, and the generation it was held in.
    pub(crate) held_epoch: Option<(u64, LeaderEpoch)>,
    /// Counts the writes of the epoch checkpoint.
    pub(crate) epochs_version: u64,
}

#[derive(Debug)]
pub(crate) enum Role {
    Leader(Box<Leader>),
    Follower(Box<Follower>),
}

/// What a replica is at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleName {
    /// It leads.
    Leader,
    /// It follows, or waits for a leader.
    Follower,
    /// Its log is not usable.
    Offline,
}

/// A replica's state for people: `/v1/state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// The role.
    pub role: RoleName,
    /// The marks of the log; none when offline.
    pub bounds: Option<Bounds>,
    /// The newest leader epoch applied.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The newest partition epoch applied.
    pub partition_epoch: Option<PartitionEpoch>,
    /// The leader.
    pub leader: Option<BrokerId>,
    /// On a leader: the committed ISR.
    pub isr: Vec<BrokerId>,
    /// On a leader: whether an ISR change is on its way.
    pub isr_change_in_flight: bool,
    /// On a leader: its followers.
    pub followers: Vec<(BrokerId, Progress)>,
    /// On a leader: writes that wait.
    pub waiting_writes: usize,
    /// On a follower: why it does not fetch.
    pub not_fetching: Option<String>,
    /// Why it is offline.
    pub offline_reason: Option<String>,
}

impl Replica {
    /// A replica over its opened log. `checkpointed` is its high watermark from `replication-offset-checkpoint`, moved into
    /// the log's bounds; without one it starts at the log start.
    pub fn new(
        partition: TopicPartition,
        me: BrokerId,
        log: ReplicaLog,
        checkpointed: Option<Offset>,
        config: ReplicaConfig,
    ) -> Replica {
        let high_watermark = checkpointed.unwrap_or(log.start()).clamp(log.start(), log.end());
        let online = Online {
            context: Context { me, config, brokers: Brokers::new(), replicas: Vec::new() },
            log,
            high_watermark,
            parked_consumers: BTreeSet::new(),
            role: Role::Follower(Box::new(Follower::unassigned())),
            partition_epoch: None,
            generation: 0,
            held_epoch: None,
            epochs_version: 0,
        };
        Replica { partition, state: State::Online(Box::new(online)) }
    }

    /// A replica whose log could not be opened.
    pub fn offline(partition: TopicPartition, reason: String) -> Replica {
        Replica { partition, state: State::Offline { reason } }
    }

    /// The partition.
    pub fn partition(&self) -> TopicPartition {
        self.partition
    }

    fn online(&self) -> Option<&Online> {
        match &self.state {
            State::Online(online) => Some(online),
            State::Offline { .. } => None,
        }
    }

    /// Runs one input on a working replica. A log error takes it offline, and answers whoever waits on it.
    fn run<T>(
        &mut self,
        out: &mut Vec<Effect>,
        input: impl FnOnce(&mut Online, &mut Vec<Effect>) -> Result<T, LogError>,
    ) -> Option<T> {
        let State::Online(online) = &mut self.state else { return None };
        match input(online, out) {
            Ok(answer) => {
                online.check_order_of_marks();
                Some(answer)
            }
            Err(error) => {
                self.fail(error.to_string(), out);
                None
            }
        }
    }

    /// Takes the replica offline: its log, or its log directory, failed. Nothing is ever appended again (KAFKA-10778).
    pub fn fail(&mut self, reason: String, out: &mut Vec<Effect>) {
        if let State::Online(online) = &mut self.state {
            online.leave_lead(out, ProduceDone::Offline);
            out.push(Effect::Emit(ReplicaEvent::Offline { reason: reason.clone() }));
            out.push(Effect::LogFailed { error: reason.clone() });
            self.state = State::Offline { reason };
        }
    }

    /// The partition is deleted here, or no longer assigned: whoever waits is answered. The log comes back, to be removed.
    pub fn remove(mut self, out: &mut Vec<Effect>) -> Option<ReplicaLog> {
        if let State::Online(online) = &mut self.state {
            online.leave_lead(out, ProduceDone::Deleted);
        }
        match self.state {
            State::Online(online) => Some(online.log),
            State::Offline { .. } => None,
        }
    }

    /// What the committed metadata says now: role changes, ISR changes, the brokers. Anything older than what was applied
    /// already is ignored. A new leader epoch starts the role anew, also with the same leader (KAFKA-7164).
    pub fn metadata(&mut self, now: Now, facts: &PartitionFacts, brokers: &Brokers, out: &mut Vec<Effect>) {
        let _ = self.run(out, |online, out| online.metadata(now, facts, brokers, out));
    }

    /// The brokers' registrations changed: fenced, unfenced, in controlled shutdown, a new epoch.
    pub fn brokers_changed(&mut self, now: Mono, brokers: &Brokers, out: &mut Vec<Effect>) {
        let _ = self.run(out, |online, out| {
            online.context.brokers.clone_from(brokers);
            online.raise_high_watermark(now, out);
            Ok(())
        });
    }

    /// New settings.
    pub fn reconfigure(&mut self, now: Mono, config: ReplicaConfig, out: &mut Vec<Effect>) {
        let _ = self.run(out, |online, out| {
            online.context.config = config;
            online.raise_high_watermark(now, out);
            Ok(())
        });
    }

    /// Appends a client's batch.
    pub fn produce(&mut self, now: Now, produce: Produce, out: &mut Vec<Effect>) -> Produced {
        self.run(out, |online, out| online.produce(now, produce, out))
            .unwrap_or(Produced::Refused(ProduceRefusal::NotServed(NotServed::Offline)))
    }

    /// The caller behind this ticket is gone: it is not answered any more, whatever it waited for.
    pub fn forget(&mut self, ticket: Ticket) {
        if let State::Online(online) = &mut self.state {
            if let Role::Leader(leader) = &mut online.role {
                leader.waiters.remove(ticket);
            }
            online.parked_consumers.retain(|(_, parked)| *parked != ticket);
        }
    }

    /// One partition of a follower's fetch, on the leader.
    pub fn follower_fetch(&mut self, now: Mono, ask: &FollowerAsk, out: &mut Vec<Effect>) -> FollowerAnswer {
        self.run(out, |online, out| online.follower_fetch(now, ask, out))
            .unwrap_or(FollowerAnswer::Refused(NotServed::Offline))
    }

    /// One partition of a consumer's fetch.
    pub fn consumer_fetch(&self, ask: &ConsumerAsk) -> ConsumerAnswer {
        self.online().map_or(ConsumerAnswer::Refused(NotServed::Offline), |online| online.consumer_fetch(ask))
    }

    /// Leaves a consumer's fetch to be woken by [`Effect::WakeFetch`] when the high watermark passes `position`, or the role
    /// changes. False if that is so already: look again at once.
    pub fn park(&mut self, ticket: Ticket, position: Offset) -> bool {
        match &mut self.state {
            State::Online(online) => online.park(ticket, position),
            State::Offline { .. } => false,
        }
    }

    /// ListOffsets for one partition.
    pub fn list_offsets(
        &mut self,
        leader_epoch: Option<LeaderEpoch>,
        spec: OffsetSpec,
        out: &mut Vec<Effect>,
    ) -> OffsetAnswer {
        self.run(out, |online, _| online.list_offsets(leader_epoch, spec))
            .unwrap_or(OffsetAnswer::Refused(NotServed::Offline))
    }

    /// OffsetForLeaderEpoch for one partition.
    pub fn end_of_epoch(&self, leader_epoch: Option<LeaderEpoch>, epoch: LeaderEpoch) -> EpochEndAnswer {
        self.online().map_or(EpochEndAnswer::Refused(NotServed::Offline), |online| {
            online.end_of_epoch(leader_epoch, epoch)
        })
    }

    /// Log start and log end for a follower that is out of range, in one answer.
    pub fn bounds_for_follower(&self, leader_epoch: LeaderEpoch) -> Result<LeaderBounds, NotServed> {
        let online = self.online().ok_or(NotServed::Offline)?;
        online.fence(Some(leader_epoch))?;
        match online.role {
            Role::Leader(_) => Ok(LeaderBounds { log_start: online.log.start(), log_end: online.log.end() }),
            Role::Follower(_) => Err(NotServed::NotLeader),
        }
    }

    /// The controller answered a proposal.
    pub fn isr_answered(&mut self, now: Mono, asked: &IsrProposal, answer: IsrAnswer, out: &mut Vec<Effect>) {
        let _ = self.run(out, |online, out| {
            online.isr_answered(now, asked, answer, out);
            Ok(())
        });
    }

    /// Time passes: expired writes, members that fell behind. Call it at [`Replica::next_wake`].
    pub fn tick(&mut self, now: Mono, out: &mut Vec<Effect>) {
        let _ = self.run(out, |online, out| {
            online.expire_writes(now, out);
            online.check_isr(now, out);
            Ok(())
        });
    }

    /// When [`Replica::tick`] has something to do.
    pub fn next_wake(&self) -> Option<Mono> {
        match &self.online()?.role {
            Role::Leader(leader) => Some(
                leader
                    .waiters
                    .next_deadline()
                    .map_or(leader.next_isr_check, |at| at.min(leader.next_isr_check)),
            ),
            Role::Follower(_) => None,
        }
    }

    /// What this follower asks its leader from now on, in a new generation: answers to earlier asks are ignored. None while
    /// there is nobody to ask. The fetcher takes it when a partition is added to its session and when its stream is opened anew.
    pub fn ask(&mut self) -> Option<Ask> {
        match &mut self.state {
            State::Online(online) => online.ask_anew(),
            State::Offline { .. } => None,
        }
    }

    /// The leader's answer for this partition.
    pub fn fetched(&mut self, now: Now, fetched: Fetched, out: &mut Vec<Effect>) -> Next {
        self.run(out, |online, out| online.fetched(now, fetched, out)).unwrap_or(Next::Stop)
    }

    /// The leader's bounds, asked for after [`Next::AskBounds`].
    pub fn leader_bounds(
        &mut self,
        now: Now,
        generation: u64,
        bounds: Result<LeaderBounds, minikafka_model::ErrorCode>,
        out: &mut Vec<Effect>,
    ) -> Next {
        self.run(out, |online, out| online.leader_bounds(now, generation, bounds, out)).unwrap_or(Next::Stop)
    }

    /// The epoch checkpoint is on disk, as [`Effect::WriteEpochs`] asked: a leader takes writes from now on, a follower appends
    /// what it held. The answer is for the follower's fetcher.
    pub fn epochs_written(&mut self, now: Now, leader_epoch: LeaderEpoch, out: &mut Vec<Effect>) -> Next {
        self.run(out, |online, out| online.epochs_written(now, leader_epoch, out)).unwrap_or(Next::Stop)
    }

    /// The log start offset moves up to at most the high watermark (DeleteRecords, retention).
    pub fn advance_log_start(&mut self, to: Offset, out: &mut Vec<Effect>) -> Option<Offset> {
        self.run(out, |online, out| {
            online.log.advance_start(to.min(online.high_watermark))?;
            if let Role::Leader(leader) = &mut online.role {
                leader.wake_streams(out);
            }
            Ok(online.log.start())
        })
    }

    /// The log, for flushing, checkpoints, retention and rolling; none when offline.
    pub fn log(&self) -> Option<&ReplicaLog> {
        self.online().map(|online| &online.log)
    }

    /// Work on the log that moves none of its marks but the log start: rolling, retention, flushing. An error takes the replica
    /// offline.
    pub fn with_log<T>(
        &mut self,
        out: &mut Vec<Effect>,
        work: impl FnOnce(&mut ReplicaLog, Offset) -> Result<T, LogError>,
    ) -> Option<T> {
        self.run(out, |online, _| work(&mut online.log, online.high_watermark))
    }

    /// The marks of the log; none when offline.
    pub fn bounds(&self) -> Option<Bounds> {
        self.online().map(Online::bounds)
    }

    /// Whether this replica leads and takes writes.
    pub fn leads(&self) -> bool {
        self.online().is_some_and(|online| matches!(&online.role, Role::Leader(leader) if leader.admitted))
    }

    /// The leader and leader epoch as applied here, for `CurrentLeader` in answers (KIP-951).
    pub fn leader(&self) -> Option<(BrokerId, LeaderEpoch)> {
        let online = self.online()?;
        match &online.role {
            Role::Leader(leader) => Some((online.context.me, leader.epoch)),
            Role::Follower(follower) => follower.leader.map(|leader| (leader, follower.epoch)),
        }
    }

    /// The state for people.
    pub fn status(&self) -> ReplicaStatus {
        let mut status = ReplicaStatus {
            role: RoleName::Offline,
            bounds: self.bounds(),
            leader_epoch: None,
            partition_epoch: None,
            leader: self.leader().map(|(leader, _)| leader),
            isr: Vec::new(),
            isr_change_in_flight: false,
            followers: Vec::new(),
            waiting_writes: 0,
            not_fetching: None,
            offline_reason: None,
        };
        match &self.state {
            State::Offline { reason } => status.offline_reason = Some(reason.clone()),
            State::Online(online) => {
                status.partition_epoch = online.partition_epoch;
                match &online.role {
                    Role::Leader(leader) => {
                        status.role = RoleName::Leader;
                        status.leader_epoch = Some(leader.epoch);
                        status.partition_epoch = Some(leader.isr.partition_epoch());
                        status.isr = leader.isr.committed().iter().copied().collect();
                        status.isr_change_in_flight = leader.isr.in_flight();
                        status.followers = leader.followers();
                        status.waiting_writes = leader.waiters.len();
                    }
                    Role::Follower(follower) => {
                        status.role = RoleName::Follower;
                        status.leader_epoch = online.partition_epoch.map(|_| follower.epoch);
                        status.not_fetching = follower.not_fetching();
                    }
                }
            }
        }
        status
    }
}

impl Online {
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { log_start: self.log.start(), high_watermark: self.high_watermark, log_end: self.log.end() }
    }

    pub(crate) fn leader_epoch(&self) -> LeaderEpoch {
        match &self.role {
            Role::Leader(leader) => leader.epoch,
            Role::Follower(follower) => follower.epoch,
        }
    }

    /// The effect that writes the epoch checkpoint, with an entry that is not in the history yet.
    pub(crate) fn write_epochs(
        &mut self,
        leader_epoch: LeaderEpoch,
        more: Option<(LeaderEpoch, Offset)>,
    ) -> Effect {
        self.epochs_version += 1;
        let mut entries = self.log.epoch_entries();
        entries.extend(more);
        Effect::WriteEpochs { leader_epoch, version: self.epochs_version, entries }
    }

    /// The epoch check of every request that carries one (Kafka semantics 4.2).
    pub(crate) fn fence(&self, theirs: Option<LeaderEpoch>) -> Result<(), NotServed> {
        let ours = self.leader_epoch();
        match theirs {
            None => Ok(()),
            Some(theirs) if theirs == ours => Ok(()),
            Some(theirs) if theirs < ours => Err(NotServed::FencedEpoch { ours }),
            Some(_) => Err(NotServed::UnknownEpoch { ours }),
        }
    }

    fn metadata(
        &mut self,
        now: Now,
        facts: &PartitionFacts,
        brokers: &Brokers,
        out: &mut Vec<Effect>,
    ) -> Result<(), LogError> {
        self.context.brokers.clone_from(brokers);
        if self.partition_epoch.is_some_and(|applied| facts.partition_epoch < applied) {
            return Ok(());
        }
        let new_epoch = self.partition_epoch.is_none() || facts.leader_epoch > self.leader_epoch();
        self.partition_epoch = Some(facts.partition_epoch);
        self.context.replicas.clone_from(&facts.replicas);
        let lead = facts.leader == Some(self.context.me);
        if !new_epoch {
            if lead && matches!(self.role, Role::Leader(_)) {
                self.leader_facts(now.mono, facts, out);
            }
            return Ok(());
        }
        self.leave_lead(out, ProduceDone::LeadershipLost);
        if lead {
            self.generation += 1;
            self.become_leader(now.mono, facts, out);
        } else {
            self.become_follower(facts, out)?;
        }
        out.push(Effect::AskChanged);
        Ok(())
    }

    fn epochs_written(
        &mut self,
        now: Now,
        leader_epoch: LeaderEpoch,
        out: &mut Vec<Effect>,
    ) -> Result<Next, LogError> {
        match &mut self.role {
            Role::Leader(leader) => {
                if leader.epoch == leader_epoch {
                    leader.admitted = true;
                }
                Ok(Next::Ignore)
            }
            Role::Follower(_) => self.append_held(now, leader_epoch, out),
        }
    }
}

impl Leader {
    fn followers(&self) -> Vec<(BrokerId, Progress)> {
        let with_samples = |(broker, progress): (&BrokerId, &Progress)| {
            let mut progress = *progress;
            if let Some(acknowledged) = progress.acknowledged {
                progress.caught_up = progress.caught_up.max(self.samples.covered_by(acknowledged));
            }
            (*broker, progress)
        };
        self.progress.iter().map(with_samples).collect()
    }
}
