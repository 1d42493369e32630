//! How a leader changes its ISR: shrink (Kafka semantics 2.2), expand (2.3) and the controller's answer (2.7).

use std::collections::BTreeSet;

use minikafka_model::{BrokerId, Mono};

use crate::leader::Leader;
use crate::replica::{Context, Online, Role, eligible};
use crate::{Effect, Isr, IsrAnswer, IsrProposal, ReplicaEvent, SeededBug};

impl Leader {
    /// The proposal for the change on its way. Each member goes with the epoch of the process that was seen in sync.
    fn proposal(&self, context: &Context) -> IsrProposal {
        let epoch_of = |broker: BrokerId| {
            if broker == context.me {
                context.brokers.get(&broker).map(|facts| facts.epoch)
            } else {
                self.progress.get(&broker).and_then(|progress| progress.broker_epoch)
            }
        };
        IsrProposal {
            leader_epoch: self.epoch,
            partition_epoch: self.isr.partition_epoch(),
            isr: self.isr.proposed().into_iter().map(|broker| (broker, epoch_of(broker))).collect(),
        }
    }
}

impl Online {
    /// Every half lag time: members that fell behind are to leave. A member whose log end equals the leader's never leaves, and
    /// nothing is judged while a change is on its way.
    pub(crate) fn check_isr(&mut self, now: Mono, out: &mut Vec<Effect>) {
        let log_end = self.log.end();
        let Role::Leader(leader) = &mut self.role else { return };
        if now < leader.next_isr_check {
            return;
        }
        leader.next_isr_check = now.after(self.context.config.isr_check_interval());
        if leader.isr.in_flight() {
            return;
        }
        let limit = self.context.config.lag_time_max;
        let mut leaving = BTreeSet::new();
        for broker in leader.isr.committed().clone() {
            leader.refresh_caught_up(broker);
            if leader.progress.get(&broker).is_some_and(|progress| progress.out_of_sync(now, log_end, limit))
            {
                leaving.insert(broker);
            }
        }
        if leaving.is_empty() {
            return;
        }
        let from = leader.isr.committed().clone();
        leader.isr.shrink(leaving.clone());
        out.push(Effect::Emit(ReplicaEvent::IsrShrink {
            reason: "behind for longer than replica.lag.time.max.ms",
            from,
            to: leader.isr.proposed(),
            log_end,
            high_watermark: self.high_watermark,
            behind: leaving
                .into_iter()
                .map(|broker| (broker, leader.progress[&broker].acknowledged))
                .collect(),
        }));
        out.push(Effect::ProposeIsr(leader.proposal(&self.context)));
    }

    /// After a follower's word on its log end: all five conditions of Kafka semantics 2.3.
    pub(crate) fn maybe_expand(&mut self, broker: BrokerId, out: &mut Vec<Effect>) {
        let Role::Leader(leader) = &mut self.role else { return };
        let context = &self.context;
        if leader.isr.in_flight() || leader.isr.committed().contains(&broker) {
            return;
        }
        if !eligible(&context.brokers, broker) {
            return;
        }
        let Some(progress) = leader.progress.get(&broker) else { return };
        let registered = context.brokers.get(&broker).map(|facts| facts.epoch);
        if progress.broker_epoch != registered && !context.config.has(SeededBug::JoinWithoutBrokerEpoch) {
            return;
        }
        let Some(acknowledged) = progress.acknowledged else { return };
        let has_epoch_start =
            acknowledged >= leader.epoch_start || context.config.has(SeededBug::JoinWithoutEpochStart);
        if acknowledged < self.high_watermark || !has_epoch_start {
            return;
        }
        let from = leader.isr.committed().clone();
        leader.isr.grow(broker);
        out.push(Effect::Emit(ReplicaEvent::IsrExpand {
            from,
            to: leader.isr.proposed(),
            follower_log_end: acknowledged,
            high_watermark: self.high_watermark,
        }));
        out.push(Effect::ProposeIsr(leader.proposal(context)));
    }

    /// The controller's answer. One that belongs to a state already replaced is ignored.
    pub(crate) fn isr_answered(
        &mut self,
        now: Mono,
        asked: &IsrProposal,
        answer: IsrAnswer,
        out: &mut Vec<Effect>,
    ) {
        let Role::Leader(leader) = &mut self.role else { return };
        let wanted: BTreeSet<BrokerId> = asked.isr.keys().copied().collect();
        let current = leader.epoch == asked.leader_epoch
            && leader.isr.partition_epoch() == asked.partition_epoch
            && leader.isr.in_flight()
            && leader.isr.proposed() == wanted;
        if !current {
            return;
        }
        let refused = |reason| {
            Effect::Emit(ReplicaEvent::IsrRefused {
                reason,
                wanted: wanted.clone(),
                partition_epoch: asked.partition_epoch,
            })
        };
        match answer {
            IsrAnswer::Accepted { isr, leader_epoch, partition_epoch } => {
                // An equal partition epoch means that the ISR was already so (KAFKA-12751).
                let decided = leader_epoch == leader.epoch
                    && (partition_epoch > asked.partition_epoch
                        || (partition_epoch == asked.partition_epoch && isr == wanted));
                if !decided {
                    leader.isr.leave_to_metadata();
                    out.push(refused("answered for another state; newer metadata will tell"));
                    return;
                }
                leader.isr = Isr::committed_at(isr.clone(), partition_epoch);
                let below_min_isr = leader.below_min_isr(&self.context);
                out.push(Effect::Emit(ReplicaEvent::IsrCommitted { isr, partition_epoch, below_min_isr }));
                self.raise_high_watermark(now, out);
            }
            IsrAnswer::NotApplied => {
                leader.isr.revert();
                out.push(refused("not applied; back to the committed ISR, judged again as usual"));
                self.raise_high_watermark(now, out);
            }
            IsrAnswer::AwaitMetadata => {
                leader.isr.leave_to_metadata();
                out.push(refused("newer metadata will tell"));
            }
            IsrAnswer::TryAgain => {
                if leader.isr.sendable() {
                    out.push(Effect::ProposeIsr(leader.proposal(&self.context)));
                }
            }
        }
    }
}
