//! The controllers as one party: a quorum that commits a change after a delay, and that may be away for a while. Its rules are
//! those of Kafka semantics 6.2 to 6.5 without ELR.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{
    BrokerEpoch, BrokerId, ErrorCode, IncarnationId, LeaderEpoch, MetadataOffset, Mono, PartitionEpoch,
    TopicPartition,
};
use minikafka_replication::{
    BrokerFacts, Brokers, Heartbeat, HeartbeatAnswer, IsrAnswer, IsrProposal, PartitionFacts, Recovery,
};

use crate::message::{Image, Message, Node};
use crate::outbox::{Outbox, Timer};

/// `broker.session.timeout.ms` of a simulated cluster.
pub(crate) const SESSION: Duration = Duration::from_millis(1200);
const TICK: Duration = Duration::from_millis(150);

#[derive(Debug, Clone)]
struct Registration {
    incarnation: IncarnationId,
    epoch: BrokerEpoch,
    registered_at: MetadataOffset,
    fenced: bool,
    leaving: bool,
    contact: Mono,
}

/// The quorum of controllers.
#[derive(Debug)]
pub(crate) struct Controllers {
    offset: MetadataOffset,
    brokers: BTreeMap<BrokerId, Registration>,
    partitions: BTreeMap<TopicPartition, PartitionFacts>,
    published: Arc<Image>,
    /// No majority: nothing is answered, nobody is fenced.
    away: bool,
}

impl Controllers {
    /// A quorum that knows of partitions whose replicas are these brokers, in an order that differs from one to the next.
    pub(crate) fn new(brokers: &[BrokerId], partitions: &[TopicPartition]) -> Controllers {
        let facts = |n: usize| {
            let mut replicas = brokers.to_vec();
            replicas.rotate_left(n % brokers.len());
            PartitionFacts {
                isr: replicas.iter().copied().collect(),
                replicas,
                leader: None,
                leader_epoch: LeaderEpoch(0),
                partition_epoch: PartitionEpoch(0),
                recovery: Recovery::Recovered,
            }
        };
        let partitions: BTreeMap<_, _> =
            partitions.iter().enumerate().map(|(n, at)| (*at, facts(n))).collect();
        let published = Arc::new(Image {
            offset: MetadataOffset(0),
            partitions: partitions.clone(),
            brokers: Brokers::new(),
            fenced: BTreeMap::new(),
        });
        Controllers {
            offset: MetadataOffset(0),
            brokers: BTreeMap::new(),
            partitions,
            published,
            away: false,
        }
    }

    /// The committed metadata.
    pub(crate) fn image(&self) -> &Arc<Image> {
        &self.published
    }

    /// The majority goes, or comes back. Back again, every broker gets a full session.
    pub(crate) fn set_away(&mut self, away: bool, now: Mono) {
        self.away = away;
        if !away {
            self.brokers.values_mut().for_each(|broker| broker.contact = now);
        }
    }

    /// A timer.
    pub(crate) fn tick(&mut self, cx: &mut Outbox<'_>) {
        cx.after(TICK, Timer::Controller);
        if self.away {
            return;
        }
        let stale = |broker: &Registration| !broker.fenced && cx.now.since(broker.contact) > SESSION;
        let expired: Vec<BrokerId> =
            self.brokers.iter().filter(|(_, b)| stale(b)).map(|(id, _)| *id).collect();
        for id in expired {
            self.fence(id);
        }
        self.publish(cx);
    }

    /// A message of a broker.
    pub(crate) fn handle(&mut self, from: BrokerId, message: Message, cx: &mut Outbox<'_>) {
        if self.away {
            return;
        }
        match message {
            Message::Register { incarnation, attempt } => {
                let answer = self.register(from, incarnation, cx.now);
                cx.send(Node::Broker(from), Message::Registered { incarnation, attempt, answer });
            }
            Message::Heartbeat { number, heartbeat } => {
                let answer = self.heartbeat(from, &heartbeat, cx.now);
                cx.send(Node::Broker(from), Message::HeartbeatAnswered { number, answer });
                if heartbeat.metadata_offset < Some(self.offset) {
                    cx.send(Node::Broker(from), Message::Metadata(self.published.clone()));
                }
            }
            Message::AlterIsr { number, broker_epoch, partition, proposal } => {
                let answer = self.alter_isr(from, broker_epoch, partition, &proposal);
                cx.send(Node::Broker(from), Message::IsrAltered { number, partition, proposal, answer });
            }
            other => unreachable!("{other:?} is not for controllers"),
        }
        self.publish(cx);
    }

    /// Sends what was committed to every broker.
    fn publish(&mut self, cx: &mut Outbox<'_>) {
        if self.offset == self.published.offset {
            return;
        }
        self.check();
        self.published = Arc::new(Image {
            offset: self.offset,
            partitions: self.partitions.clone(),
            brokers: self
                .brokers
                .iter()
                .map(|(id, b)| (*id, BrokerFacts { epoch: b.epoch, eligible: !b.fenced && !b.leaving }))
                .collect(),
            fenced: self.brokers.iter().map(|(id, b)| (*id, b.fenced)).collect(),
        });
        for id in self.brokers.keys() {
            cx.send(Node::Broker(*id), Message::Metadata(self.published.clone()));
        }
    }

    /// M2: the leader is in the ISR, the ISR within the replicas.
    fn check(&self) {
        for (at, facts) in &self.partitions {
            assert!(
                facts.leader.is_none_or(|leader| facts.isr.contains(&leader)),
                "{at}: the leader is not in the ISR"
            );
            assert!(!facts.isr.is_empty(), "{at}: the ISR is empty");
            assert!(facts.isr.iter().all(|id| facts.replicas.contains(id)), "{at}: the ISR has strangers");
        }
    }

    fn register(
        &mut self,
        id: BrokerId,
        incarnation: IncarnationId,
        now: Mono,
    ) -> Result<BrokerEpoch, ErrorCode> {
        if let Some(known) = self.brokers.get_mut(&id) {
            if known.incarnation == incarnation {
                known.contact = now;
                return Ok(known.epoch);
            }
            if now.since(known.contact) <= SESSION {
                return Err(ErrorCode::DuplicateBrokerRegistration);
            }
        }
        // Whoever registers anew is fenced, and in no ISR.
        self.remove_from_isrs(id);
        self.offset = self.offset.next();
        let epoch = BrokerEpoch(self.offset.0);
        self.brokers.insert(
            id,
            Registration {
                incarnation,
                epoch,
                registered_at: self.offset,
                fenced: true,
                leaving: false,
                contact: now,
            },
        );
        Ok(epoch)
    }

    fn heartbeat(
        &mut self,
        id: BrokerId,
        heartbeat: &Heartbeat,
        now: Mono,
    ) -> Result<HeartbeatAnswer, ErrorCode> {
        let Some(broker) = self.brokers.get_mut(&id) else { return Err(ErrorCode::BrokerIdNotRegistered) };
        if broker.epoch != heartbeat.broker_epoch {
            return Err(ErrorCode::StaleBrokerEpoch);
        }
        broker.contact = now;
        let caught_up = heartbeat.metadata_offset >= Some(broker.registered_at);
        let fenced = broker.fenced;
        if heartbeat.want_shut_down {
            if !fenced && !broker.leaving {
                broker.leaving = true;
                self.offset = self.offset.next();
                self.remove_from_isrs(id);
            }
            let leads = self.partitions.values().any(|facts| facts.leader == Some(id));
            if !leads && heartbeat.metadata_offset >= Some(self.offset) {
                self.fence(id);
                return Ok(HeartbeatAnswer { caught_up, fenced: true, should_shut_down: true });
            }
        } else if fenced && !heartbeat.want_fence && caught_up {
            broker.fenced = false;
            self.offset = self.offset.next();
            self.elect_leaderless();
        } else if !fenced && heartbeat.want_fence {
            self.fence(id);
        }
        let fenced = self.brokers[&id].fenced;
        Ok(HeartbeatAnswer { caught_up, fenced, should_shut_down: false })
    }

    fn fence(&mut self, id: BrokerId) {
        if let Some(broker) = self.brokers.get_mut(&id)
            && !broker.fenced
        {
            broker.fenced = true;
            self.offset = self.offset.next();
            self.remove_from_isrs(id);
        }
    }

    fn active(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| !broker.fenced && !broker.leaving)
    }

    /// Takes a broker out of every ISR. Without ELR the last member stays, and the partition has no leader.
    fn remove_from_isrs(&mut self, id: BrokerId) {
        let all: Vec<TopicPartition> = self.partitions.keys().copied().collect();
        for at in all {
            let mut isr = self.partitions[&at].isr.clone();
            if isr.remove(&id) && !isr.is_empty() {
                self.partitions.get_mut(&at).expect("known").isr = isr;
                self.changed(at);
            } else if self.partitions[&at].leader == Some(id) {
                self.changed(at);
            }
        }
    }

    fn elect_leaderless(&mut self) {
        let all: Vec<TopicPartition> = self.partitions.keys().copied().collect();
        for at in all {
            if self.partitions[&at].leader.is_none() {
                self.changed(at);
            }
        }
    }

    /// A change of a partition: its epoch rises, and its leader stays if it can, or is the first of the ISR in replica order.
    fn changed(&mut self, at: TopicPartition) {
        let facts = &self.partitions[&at];
        let able = |id: &BrokerId| facts.isr.contains(id) && self.active(*id);
        let leader = facts.leader.filter(able).or_else(|| facts.replicas.iter().copied().find(able));
        let facts = self.partitions.get_mut(&at).expect("known");
        if leader != facts.leader {
            facts.leader = leader;
            facts.leader_epoch = facts.leader_epoch.next();
        }
        facts.partition_epoch = facts.partition_epoch.next();
        self.offset = self.offset.next();
    }

    /// AlterPartition, the checks in the order of Kafka semantics 2.6.
    fn alter_isr(
        &mut self,
        from: BrokerId,
        epoch: BrokerEpoch,
        at: TopicPartition,
        asked: &IsrProposal,
    ) -> IsrAnswer {
        if self.brokers.get(&from).is_none_or(|broker| broker.epoch != epoch) {
            return IsrAnswer::TryAgain;
        }
        let Some(facts) = self.partitions.get(&at) else { return IsrAnswer::AwaitMetadata };
        if asked.leader_epoch > facts.leader_epoch || asked.partition_epoch > facts.partition_epoch {
            return IsrAnswer::TryAgain;
        }
        let isr: BTreeSet<BrokerId> = asked.isr.keys().copied().collect();
        if asked.leader_epoch < facts.leader_epoch
            || facts.leader != Some(from)
            || asked.partition_epoch < facts.partition_epoch
            || !isr.iter().all(|id| facts.replicas.contains(id))
            || !isr.contains(&from)
        {
            return IsrAnswer::AwaitMetadata;
        }
        let eligible = |(id, epoch): (&BrokerId, &Option<BrokerEpoch>)| {
            self.active(*id) && epoch.is_none_or(|epoch| self.brokers[id].epoch == epoch)
        };
        if !asked.isr.iter().all(eligible) {
            return IsrAnswer::NotApplied;
        }
        if facts.isr != isr {
            self.partitions.get_mut(&at).expect("known").isr = isr;
            self.changed(at);
        }
        let facts = &self.partitions[&at];
        IsrAnswer::Accepted {
            isr: facts.isr.clone(),
            leader_epoch: facts.leader_epoch,
            partition_epoch: facts.partition_epoch,
        }
    }
}
