//! Applies metadata to the replicas of this broker (Kafka semantics 6.11): deletes, then leaders, then followers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use minikafka_metadata::{
    ConfigResource, Delta, Image, LocalPlan, LocalReplica, PartitionState, Recovery, local_plan,
};
use minikafka_model::{TopicId, TopicPartition};
use minikafka_replication::{self as replication, BrokerFacts, Brokers, Effect, PartitionFacts, Replica};

use super::{ReplicaCell, Service, TopicSettings};

/// What the metadata says of a partition, as a replica takes it.
fn facts(state: &PartitionState) -> PartitionFacts {
    PartitionFacts {
        replicas: state.replicas.clone(),
        isr: state.isr_set(),
        leader: state.leader,
        leader_epoch: state.leader_epoch,
        partition_epoch: state.partition_epoch,
        recovery: match state.recovery {
            Recovery::Recovered => replication::Recovery::Recovered,
            Recovery::Recovering => replication::Recovery::Recovering,
        },
    }
}

/// What the metadata says of the brokers, as a leader takes it.
fn brokers(image: &Image) -> Brokers {
    let facts = |broker: &minikafka_metadata::BrokerRegistration| BrokerFacts {
        epoch: broker.epoch,
        eligible: broker.is_active(),
    };
    image.brokers().iter().map(|(id, broker)| (*id, facts(broker))).collect()
}

impl Service {
    /// The metadata is this from now on, for the doors too; the replicas of this broker are left alone, for it has not seen its own
    /// registration yet: what older metadata says of it is about an earlier life (KAFKA-10527).
    pub(crate) fn show(&self, image: &Image) {
        self.image.store(Arc::new(image.clone()));
    }

    /// The metadata is this from now on, and `delta` is what changed since the replicas were last told.
    pub(crate) fn apply(&self, image: &Image, delta: &Delta) {
        self.show(image);
        let plan = local_plan(image, delta, self.id);
        let brokers = brokers(image);
        self.delete(&plan.delete.keys().copied().collect::<Vec<_>>(), false);
        self.make_missing(image, &plan);
        self.take_roles(&plan.lead, &brokers);
        self.take_roles(&plan.follow, &brokers);
        self.reconfigure(image, &delta.configs);
        if !delta.brokers.is_empty() {
            let told: BTreeSet<TopicPartition> =
                plan.lead.keys().chain(plan.follow.keys()).copied().collect();
            let now = self.clock.mono();
            for cell in self.replicas.all().iter().filter(|cell| !told.contains(&cell.at)) {
                self.with_replica(cell, |replica, out| replica.brokers_changed(now, &brokers, out));
            }
        }
    }

    /// The first metadata that this process acts on: replicas found on the disk that are not this broker's any more are set aside.
    pub(crate) fn adopt(&self, image: &Image) {
        let mine =
            |at: TopicPartition| image.partition(at).is_some_and(|state| state.replicas.contains(&self.id));
        let strays: Vec<TopicPartition> =
            self.replicas.all().iter().map(|cell| cell.at).filter(|at| !mine(*at)).collect();
        self.delete(&strays, true);
        let nothing = Image::empty(image.cluster().clone());
        self.apply(image, &Delta::between(&nothing, image));
    }

    fn delete(&self, gone: &[TopicPartition], stray: bool) {
        if gone.is_empty() {
            return;
        }
        for cell in self.replicas.remove(gone) {
            let mut effects = Vec::new();
            let log = cell.take().remove(&mut effects);
            self.perform_all(vec![(Arc::clone(&cell), effects)]);
            self.ask_changes.put(cell.at);
            let delay = cell.settings().delete_delay();
            if let Err(error) = self.store.remove(&cell.topic, cell.at, log, stray, delay) {
                self.directory_failed(&format!("removing {}-{}: {error}", cell.topic, cell.at.partition));
            }
        }
    }

    /// Makes logs for replicas that this broker was given.
    fn make_missing(&self, image: &Image, plan: &LocalPlan) {
        let missing =
            plan.lead.iter().chain(&plan.follow).filter(|(at, _)| self.replicas.get(**at).is_none());
        let mut settings: BTreeMap<TopicId, Arc<TopicSettings>> = BTreeMap::new();
        let mut made = Vec::new();
        for (at, local) in missing {
            let settings = settings
                .entry(at.topic)
                .or_insert_with(|| Arc::new(TopicSettings::resolve(&self.settings, image, at.topic)));
            let replica = match self.store.create(&local.topic, *at, settings, self.clock.now()) {
                Ok(log) => Replica::new(*at, self.id, log, None, settings.replica(&self.settings)),
                Err(error) => {
                    self.directory_failed(&format!("{}-{}: {error}", local.topic, at.partition));
                    Replica::offline(*at, error.to_string())
                }
            };
            made.push(Arc::new(ReplicaCell::new(Arc::clone(&local.topic), replica, Arc::clone(settings))));
        }
        if !made.is_empty() {
            self.replicas.add(made);
        }
    }

    fn take_roles(&self, replicas: &BTreeMap<TopicPartition, LocalReplica>, brokers: &Brokers) {
        let now = self.clock.now();
        let mut all: Vec<(Arc<ReplicaCell>, Vec<Effect>)> = Vec::with_capacity(replicas.len());
        for (at, local) in replicas {
            let Some(cell) = self.replicas.get(*at) else { continue };
            let facts = facts(&local.state);
            let ((), effects) = self.input(&cell, |replica, out| replica.metadata(now, &facts, brokers, out));
            all.push((cell, effects));
        }
        self.perform_all(all);
    }

    fn reconfigure(&self, image: &Image, changed: &BTreeSet<ConfigResource>) {
        if changed.is_empty() {
            return;
        }
        let all = changed.iter().any(|resource| match resource {
            ConfigResource::ClusterDefault => true,
            ConfigResource::Broker(id) => *id == self.id,
            ConfigResource::Topic(_) => false,
        });
        let now = self.clock.mono();
        for cell in self.replicas.all() {
            if !all && !changed.contains(&ConfigResource::Topic(cell.at.topic)) {
                continue;
            }
            let settings = Arc::new(TopicSettings::resolve(&self.settings, image, cell.at.topic));
            cell.set_settings(Arc::clone(&settings));
            let config = settings.replica(&self.settings);
            self.with_replica(&cell, |replica, out| {
                self.store.reconfigure(replica, &settings, out);
                replica.reconfigure(now, config, out);
            });
        }
    }
}
