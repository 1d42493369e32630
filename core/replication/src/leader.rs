//! What only a leader has: its ISR, its followers' progress, its waiting writes.

use std::collections::{BTreeMap, BTreeSet};

use minikafka_model::{BrokerId, LeaderEpoch, Mono, Offset, PartitionEpoch};

use crate::acks::Waiters;
use crate::progress::{CaughtUpSamples, Progress};
use crate::replica::{Context, Online, Role};
use crate::{Effect, Isr, PartitionFacts, ProduceDone, ReplicaEvent, SeededBug, StreamId};

/// The leading side of a replica, for one leader epoch.
#[derive(Debug)]
pub(crate) struct Leader {
    pub(crate) epoch: LeaderEpoch,
    /// The log end when the epoch began: nothing below it is this leader's own.
    pub(crate) epoch_start: Offset,
    /// Writes are taken once the start of the epoch is on disk.
    pub(crate) admitted: bool,
    pub(crate) isr: Isr,
    pub(crate) progress: BTreeMap<BrokerId, Progress>,
    pub(crate) samples: CaughtUpSamples,
    pub(crate) waiters: Waiters,
    /// Followers whose streams wait for news of this partition: one stream for each follower.
    pub(crate) parked_streams: BTreeMap<BrokerId, StreamId>,
    pub(crate) next_isr_check: Mono,
    /// The ISR about which a refusal (error 19) was last told, so that a retrying producer does not flood the events.
    pub(crate) refusal_told: Option<PartitionEpoch>,
}

impl Leader {
    fn new(now: Mono, context: &Context, facts: &PartitionFacts, epoch_start: Offset) -> Leader {
        let followers = facts.replicas.iter().filter(|broker| **broker != context.me);
        Leader {
            epoch: facts.leader_epoch,
            epoch_start,
            admitted: false,
            isr: Isr::committed_at(facts.isr.clone(), facts.partition_epoch),
            progress: followers
                .map(|broker| (*broker, Progress::at_epoch_start(facts.isr.contains(broker), now)))
                .collect(),
            samples: CaughtUpSamples::default(),
            waiters: Waiters::default(),
            parked_streams: BTreeMap::new(),
            next_isr_check: now.after(context.config.isr_check_interval()),
            refusal_told: None,
        }
    }

    /// The effective minimum (Kafka semantics 1.3).
    pub(crate) fn needed(&self, context: &Context) -> usize {
        context.config.min_insync_replicas.min(context.replicas.len())
    }

    /// Whether the committed ISR is smaller than the effective minimum.
    pub(crate) fn below_min_isr(&self, context: &Context) -> bool {
        self.isr.committed().len() < self.needed(context)
    }

    /// Brings up to date when the follower last had everything, from its acknowledged log end and the samples.
    pub(crate) fn refresh_caught_up(&mut self, broker: BrokerId) {
        let Some(progress) = self.progress.get_mut(&broker) else { return };
        if let Some(acknowledged) = progress.acknowledged {
            progress.caught_up = progress.caught_up.max(self.samples.covered_by(acknowledged));
        }
    }

    /// Follows the assignment: progress of replicas that went is dropped, new ones start unknown.
    fn set_replicas(&mut self, me: BrokerId, replicas: &[BrokerId]) {
        let wanted: BTreeSet<BrokerId> = replicas.iter().copied().filter(|broker| *broker != me).collect();
        self.progress.retain(|broker, _| wanted.contains(broker));
        for broker in wanted {
            self.progress.entry(broker).or_default();
        }
    }

    /// Wakes every follower's stream that waits for news.
    pub(crate) fn wake_streams(&mut self, out: &mut Vec<Effect>) {
        let parked = std::mem::take(&mut self.parked_streams);
        out.extend(parked.into_values().map(|stream| Effect::WakeStream { stream }));
    }
}

impl Online {
    /// Takes the lead in a new leader epoch. The epoch starts at the log end, before any record exists (KAFKA-7415).
    pub(crate) fn become_leader(&mut self, now: Mono, facts: &PartitionFacts, out: &mut Vec<Effect>) {
        let epoch_start = self.log.end();
        if !self.context.config.has(SeededBug::EpochNotAssigned) {
            self.log.assign_epoch(facts.leader_epoch, epoch_start);
        }
        let leader = Leader::new(now, &self.context, facts, epoch_start);
        let before = std::mem::replace(&mut self.role, Role::Leader(Box::new(leader)));
        if self.context.config.has(SeededBug::ProgressKept)
            && let (Role::Leader(old), Role::Leader(new)) = (before, &mut self.role)
        {
            new.progress = old.progress;
        }
        out.push(Effect::Emit(ReplicaEvent::Election {
            leader_epoch: facts.leader_epoch,
            partition_epoch: facts.partition_epoch,
            epoch_start,
            high_watermark: self.high_watermark,
            isr: facts.isr.clone(),
        }));
        out.push(self.write_epochs(facts.leader_epoch, None));
        self.raise_high_watermark(now, out);
    }

    /// Newer metadata in the same leader epoch: whatever change was on its way is decided by it.
    pub(crate) fn leader_facts(&mut self, now: Mono, facts: &PartitionFacts, out: &mut Vec<Effect>) {
        let Role::Leader(leader) = &mut self.role else { return };
        leader.set_replicas(self.context.me, &facts.replicas);
        if facts.partition_epoch > leader.isr.partition_epoch() {
            let was_in_flight = leader.isr.in_flight();
            let changed = *leader.isr.committed() != facts.isr;
            leader.isr = Isr::committed_at(facts.isr.clone(), facts.partition_epoch);
            if was_in_flight {
                out.push(Effect::WithdrawIsr);
            }
            if changed {
                let below_min_isr = leader.below_min_isr(&self.context);
                out.push(Effect::Emit(ReplicaEvent::IsrCommitted {
                    isr: facts.isr.clone(),
                    partition_epoch: facts.partition_epoch,
                    below_min_isr,
                }));
            }
        }
        self.raise_high_watermark(now, out);
    }

    /// Ends whatever waits on a leader: writes hear `done`, streams and consumers look again.
    pub(crate) fn leave_lead(&mut self, out: &mut Vec<Effect>, done: fn(crate::Written) -> ProduceDone) {
        if let Role::Leader(leader) = &mut self.role {
            let ack = self.context.config.has(SeededBug::AckOnLeadershipLoss);
            for (ticket, waiter) in leader.waiters.drain() {
                let done = if ack { ProduceDone::Committed } else { done };
                out.push(Effect::Produced { ticket, done: done(waiter.written) });
            }
            leader.wake_streams(out);
            if leader.isr.in_flight() {
                out.push(Effect::WithdrawIsr);
            }
        }
        self.wake_consumers(out);
    }
}
