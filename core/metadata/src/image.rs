//! The whole metadata at one position of the log. Cloning shares everything; a change copies only the maps it touches.

use std::collections::BTreeMap;
use std::sync::Arc;

use minikafka_model::{
    BrokerId, ClusterId, MetadataOffset, PartitionIndex, ProducerId, Term, TopicId, TopicPartition,
};

use crate::broker::BrokerRegistration;
use crate::error::Violation;
use crate::partition::PartitionState;
use crate::record::{ConfigResource, ELIGIBLE_LEADER_REPLICAS};

/// Where an entry stands in the metadata log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Its offset (Raft's index).
    pub offset: MetadataOffset,
    /// The term of the controller that decided it.
    pub term: Term,
}

/// A topic with its partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicImage {
    /// Its id.
    pub id: TopicId,
    /// Its name.
    pub name: Arc<str>,
    /// Its partitions; numbered from 0 without a gap.
    pub partitions: BTreeMap<PartitionIndex, Arc<PartitionState>>,
}

/// The cluster's metadata. Equal logs give equal images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub(crate) cluster: ClusterId,
    pub(crate) position: Option<Position>,
    pub(crate) features: Arc<BTreeMap<String, u16>>,
    pub(crate) brokers: Arc<BTreeMap<BrokerId, Arc<BrokerRegistration>>>,
    pub(crate) topics: Arc<BTreeMap<TopicId, Arc<TopicImage>>>,
    pub(crate) names: Arc<BTreeMap<Arc<str>, TopicId>>,
    pub(crate) configs: Arc<BTreeMap<ConfigResource, Arc<BTreeMap<String, String>>>>,
    pub(crate) next_producer_id: ProducerId,
}

impl Image {
    /// A cluster of which nothing is known but its id.
    pub fn empty(cluster: ClusterId) -> Image {
        Image {
            cluster,
            position: None,
            features: Arc::default(),
            brokers: Arc::default(),
            topics: Arc::default(),
            names: Arc::default(),
            configs: Arc::default(),
            next_producer_id: ProducerId(0),
        }
    }

    /// The cluster's id.
    pub fn cluster(&self) -> &ClusterId {
        &self.cluster
    }

    /// Where the last entry applied stands; none before the first.
    pub fn position(&self) -> Option<Position> {
        self.position
    }

    /// The offset of the last entry applied; none before the first.
    pub fn offset(&self) -> Option<MetadataOffset> {
        self.position.map(|at| at.offset)
    }

    /// Takes note of an entry that holds no metadata (Raft's own), so that the position moves on.
    pub fn advance(&mut self, to: Position) {
        if self.position < Some(to) {
            self.position = Some(to);
        }
    }

    /// The level of a feature; 0 where it was never set.
    pub fn feature(&self, name: &str) -> u16 {
        self.features.get(name).copied().unwrap_or(0)
    }

    /// All features that were set, by name.
    pub fn features(&self) -> &BTreeMap<String, u16> {
        &self.features
    }

    /// Whether eligible leader replicas (KIP-966) are kept.
    pub fn elr_enabled(&self) -> bool {
        self.feature(ELIGIBLE_LEADER_REPLICAS) >= 1
    }

    /// All registered brokers, fenced ones included.
    pub fn brokers(&self) -> &BTreeMap<BrokerId, Arc<BrokerRegistration>> {
        &self.brokers
    }

    /// One broker's registration.
    pub fn broker(&self, id: BrokerId) -> Option<&Arc<BrokerRegistration>> {
        self.brokers.get(&id)
    }

    /// Whether the broker is registered, unfenced and not in controlled shutdown.
    pub fn is_active(&self, id: BrokerId) -> bool {
        self.brokers.get(&id).is_some_and(|broker| broker.is_active())
    }

    /// All topics by id.
    pub fn topics(&self) -> &BTreeMap<TopicId, Arc<TopicImage>> {
        &self.topics
    }

    /// All topics in the order of their names.
    pub fn topics_by_name(&self) -> impl Iterator<Item = &Arc<TopicImage>> {
        self.names.values().filter_map(|id| self.topics.get(id))
    }

    /// A topic by its id.
    pub fn topic(&self, id: TopicId) -> Option<&Arc<TopicImage>> {
        self.topics.get(&id)
    }

    /// A topic by its name.
    pub fn topic_by_name(&self, name: &str) -> Option<&Arc<TopicImage>> {
        self.names.get(name).and_then(|id| self.topics.get(id))
    }

    /// The id of the topic of this name.
    pub fn topic_id(&self, name: &str) -> Option<TopicId> {
        self.names.get(name).copied()
    }

    /// The name of the topic of this id.
    pub fn topic_name(&self, id: TopicId) -> Option<&Arc<str>> {
        self.topics.get(&id).map(|topic| &topic.name)
    }

    /// One partition.
    pub fn partition(&self, at: TopicPartition) -> Option<&Arc<PartitionState>> {
        self.topics.get(&at.topic)?.partitions.get(&at.partition)
    }

    /// Every partition, in the order of topic id and index.
    pub fn partitions(&self) -> impl Iterator<Item = (TopicPartition, &Arc<PartitionState>)> {
        self.topics.values().flat_map(|topic| {
            topic
                .partitions
                .iter()
                .map(|(index, state)| (TopicPartition { topic: topic.id, partition: *index }, state))
        })
    }

    /// The dynamic configuration of a resource, if it has any.
    pub fn configs(&self, resource: ConfigResource) -> Option<&Arc<BTreeMap<String, String>>> {
        self.configs.get(&resource)
    }

    /// One dynamic configuration value.
    pub fn config(&self, resource: ConfigResource, key: &str) -> Option<&str> {
        self.configs.get(&resource)?.get(key).map(String::as_str)
    }

    /// The first producer id that has not been handed out to a broker.
    pub fn next_producer_id(&self) -> ProducerId {
        self.next_producer_id
    }

    /// What must hold of the whole image (docs/invariants.md, M2): each partition by itself, no leader that is fenced or gone, and
    /// no broker in an ISR that is fenced or gone. The exception is Kafka's: without ELR the last ISR member of a leaderless
    /// partition stays listed. `apply` checks what an entry changes; this checks all, for tests and simulations.
    ///
    /// # Errors
    /// The first partition that breaks a rule.
    pub fn check(&self) -> Result<(), (TopicPartition, Violation)> {
        for (at, state) in self.partitions() {
            state.check().map_err(|violation| (at, violation))?;
            self.check_alive(state).map_err(|violation| (at, violation))?;
            let last_one = state.leader.is_none() && state.isr.len() == 1 && !self.elr_enabled();
            let gone = state.isr.iter().find(|id| self.broker(**id).is_none_or(|broker| broker.fenced));
            if let (false, Some(id)) = (last_one, gone) {
                return Err((at, Violation::FencedInIsr(*id)));
            }
        }
        Ok(())
    }

    pub(crate) fn check_alive(&self, state: &PartitionState) -> Result<(), Violation> {
        match state.leader {
            Some(leader) if self.broker(leader).is_none_or(|broker| broker.fenced) => {
                Err(Violation::LeaderNotAlive(leader))
            }
            _ => Ok(()),
        }
    }
}
