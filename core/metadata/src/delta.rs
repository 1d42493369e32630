//! What changed between two images.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use minikafka_model::{BrokerId, TopicId, TopicPartition};

use crate::broker::BrokerRegistration;
use crate::image::{Image, TopicImage};
use crate::partition::PartitionState;
use crate::record::ConfigResource;

/// One partition before and after. A partition that went with its topic is in [`Delta::topics_deleted`] instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionDelta {
    /// None for a new partition.
    pub before: Option<Arc<PartitionState>>,
    /// The state now.
    pub after: Arc<PartitionState>,
}

impl PartitionDelta {
    /// The leader epoch rose, or the partition is new.
    pub fn leader_epoch_rose(&self) -> bool {
        self.before.as_ref().is_none_or(|before| before.leader_epoch < self.after.leader_epoch)
    }
}

/// One broker before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerDelta {
    /// None for a broker that was not registered.
    pub before: Option<Arc<BrokerRegistration>>,
    /// None for a broker that is not registered any more.
    pub after: Option<Arc<BrokerRegistration>>,
}

/// What one or more entries changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta {
    /// Topics that exist now and did not before.
    pub topics_created: BTreeSet<TopicId>,
    /// Topics that are gone, as they were.
    pub topics_deleted: BTreeMap<TopicId, Arc<TopicImage>>,
    /// Partitions that changed or are new.
    pub partitions: BTreeMap<TopicPartition, PartitionDelta>,
    /// Brokers that changed, came or went.
    pub brokers: BTreeMap<BrokerId, BrokerDelta>,
    /// Resources whose dynamic configuration may have changed.
    pub configs: BTreeSet<ConfigResource>,
    /// Features whose level was set.
    pub features: BTreeSet<String>,
}

impl Delta {
    /// Nothing changed that anybody acts on.
    pub fn is_empty(&self) -> bool {
        *self == Delta::default()
    }

    pub(crate) fn broker(
        &mut self,
        id: BrokerId,
        before: Option<Arc<BrokerRegistration>>,
        after: Option<Arc<BrokerRegistration>>,
    ) {
        self.brokers
            .entry(id)
            .and_modify(|known| known.after.clone_from(&after))
            .or_insert(BrokerDelta { before, after });
    }

    pub(crate) fn partition(
        &mut self,
        at: TopicPartition,
        before: Option<Arc<PartitionState>>,
        after: Arc<PartitionState>,
    ) {
        self.partitions
            .entry(at)
            .and_modify(|known| known.after = Arc::clone(&after))
            .or_insert(PartitionDelta { before, after });
    }

    /// What is kept of a deleted topic is how it was at the start of this delta.
    pub(crate) fn topic_deleted(&mut self, mut topic: Arc<TopicImage>) {
        let id = topic.id;
        for (at, change) in self.partitions.extract_if(.., |at, _| at.topic == id) {
            let partitions = &mut Arc::make_mut(&mut topic).partitions;
            match change.before {
                Some(before) => partitions.insert(at.partition, before),
                None => partitions.remove(&at.partition),
            };
        }
        self.configs.remove(&ConfigResource::Topic(id));
        if !self.topics_created.remove(&id) {
            self.topics_deleted.insert(id, topic);
        }
    }

    /// Adds what later entries changed, so that this delta leads from its own start to their end.
    pub fn merge(&mut self, later: Delta) {
        for (at, change) in later.partitions {
            self.partition(at, change.before, change.after);
        }
        for (id, change) in later.brokers {
            self.broker(id, change.before, change.after);
        }
        self.topics_created.extend(later.topics_created);
        self.configs.extend(later.configs);
        self.features.extend(later.features);
        for topic in later.topics_deleted.into_values() {
            self.topic_deleted(topic);
        }
    }

    /// What leads from one image to another: for a node that was given a snapshot.
    pub fn between(old: &Image, new: &Image) -> Delta {
        let mut delta = Delta::default();
        for (id, topic) in old.topics() {
            if new.topic(*id).is_none() {
                delta.topics_deleted.insert(*id, Arc::clone(topic));
            }
        }
        for (id, topic) in new.topics() {
            let before = old.topic(*id);
            if before.is_none() {
                delta.topics_created.insert(*id);
            }
            for (index, after) in &topic.partitions {
                let at = TopicPartition { topic: *id, partition: *index };
                let before = old.partition(at).cloned();
                if before.as_ref() != Some(after) {
                    delta.partition(at, before, Arc::clone(after));
                }
            }
        }
        let ids: BTreeSet<BrokerId> = old.brokers().keys().chain(new.brokers().keys()).copied().collect();
        for id in ids {
            let (before, after) = (old.broker(id), new.broker(id));
            if before != after {
                delta.broker(id, before.cloned(), after.cloned());
            }
        }
        let resources: BTreeSet<ConfigResource> =
            old.configs.keys().chain(new.configs.keys()).copied().collect();
        let gone = |resource: &ConfigResource| matches!(resource, ConfigResource::Topic(id) if new.topic(*id).is_none());
        delta.configs =
            resources.into_iter().filter(|r| !gone(r) && old.configs(*r) != new.configs(*r)).collect();
        let names: BTreeSet<&String> = old.features.keys().chain(new.features.keys()).collect();
        delta.features =
            names.into_iter().filter(|name| old.feature(name) != new.feature(name)).cloned().collect();
        delta
    }
}
