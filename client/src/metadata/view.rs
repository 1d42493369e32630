//! One picture of the cluster, as a broker's Metadata answer drew it.

use std::collections::BTreeMap;

use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, PartitionIndex, TopicId, Uuid};
use minikafka_wire::metadata::{MetadataBroker, MetadataPartition, MetadataResponse, MetadataTopic};

use crate::config::Address;

/// A broker that is not fenced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broker {
    /// Its id.
    pub id: BrokerId,
    /// Where clients reach it.
    pub address: Address,
    /// Its rack, if it has one.
    pub rack: Option<String>,
}

/// One partition, as far as known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionView {
    /// Its index.
    pub index: PartitionIndex,
    /// Its leader, if it has one.
    pub leader: Option<BrokerId>,
    /// The leader's epoch (from Metadata version 7).
    pub leader_epoch: Option<LeaderEpoch>,
    /// Its replicas in order of preference.
    pub replicas: Vec<BrokerId>,
    /// Its in-sync replicas.
    pub isr: Vec<BrokerId>,
    /// Replicas that cannot serve.
    pub offline: Vec<BrokerId>,
}

/// One topic, as far as known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicView {
    /// Its name.
    pub name: String,
    /// Its id (from Metadata version 10).
    pub id: Option<TopicId>,
    /// Why the broker tells nothing about it.
    pub error: Option<ErrorCode>,
    /// Whether Kafka itself uses it.
    pub is_internal: bool,
    /// Its partitions by index.
    pub partitions: BTreeMap<PartitionIndex, PartitionView>,
}

/// The cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// Its id.
    pub cluster_id: Option<String>,
    /// The broker that takes admin requests.
    pub controller: Option<BrokerId>,
    /// Brokers that are not fenced.
    pub brokers: BTreeMap<BrokerId, Broker>,
    /// The topics that were asked for.
    pub topics: BTreeMap<String, TopicView>,
}

/// A leader named in the answer to a write or a read (KIP-951).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaderHint {
    pub(crate) topic: String,
    pub(crate) partition: PartitionIndex,
    pub(crate) leader: BrokerId,
    pub(crate) epoch: LeaderEpoch,
    /// Its address, if the answer names it.
    pub(crate) broker: Option<Broker>,
}

/// A node id on the wire, where -1 is none.
pub(crate) fn node(id: i32) -> Option<BrokerId> {
    (id >= 0).then_some(BrokerId(id))
}

/// A broker as several answers name it; `None` for a port that is none.
pub(crate) fn broker_from_wire(id: i32, host: &str, port: i32, rack: Option<&str>) -> Option<Broker> {
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    let address = Address { host: host.to_owned(), port };
    Some(Broker { id: node(id)?, address, rack: rack.map(str::to_owned) })
}

impl PartitionView {
    fn from_wire(found: &MetadataPartition) -> PartitionView {
        let ids = |ids: &[i32]| ids.iter().copied().map(BrokerId).collect();
        PartitionView {
            index: PartitionIndex(found.partition_index),
            leader: node(found.leader_id),
            leader_epoch: (found.leader_epoch >= 0).then_some(LeaderEpoch(found.leader_epoch)),
            replicas: ids(&found.replica_nodes),
            isr: ids(&found.isr_nodes),
            offline: ids(&found.offline_replicas),
        }
    }
}

impl TopicView {
    fn from_wire(found: &MetadataTopic) -> Option<TopicView> {
        let partitions = found.partitions.iter().map(|partition| {
            let view = PartitionView::from_wire(partition);
            (view.index, view)
        });
        Some(TopicView {
            name: found.name.clone()?,
            id: (found.topic_id != Uuid::ZERO).then_some(TopicId(found.topic_id)),
            error: ErrorCode::from_code(found.error_code).filter(|code| *code != ErrorCode::None),
            is_internal: found.is_internal,
            partitions: partitions.collect(),
        })
    }
}

impl ClusterView {
    pub(crate) fn from_wire(answer: &MetadataResponse) -> ClusterView {
        let broker = |b: &MetadataBroker| broker_from_wire(b.node_id, &b.host, b.port, b.rack.as_deref());
        ClusterView {
            cluster_id: answer.cluster_id.clone(),
            controller: node(answer.controller_id),
            brokers: answer.brokers.iter().filter_map(broker).map(|b| (b.id, b)).collect(),
            topics: answer
                .topics
                .iter()
                .filter_map(TopicView::from_wire)
                .map(|topic| (topic.name.clone(), topic))
                .collect(),
        }
    }

    /// A topic that is known and has no error.
    pub fn topic(&self, name: &str) -> Option<&TopicView> {
        self.topics.get(name).filter(|topic| topic.error.is_none() && !topic.partitions.is_empty())
    }

    /// A partition that is known.
    pub fn partition(&self, topic: &str, partition: PartitionIndex) -> Option<&PartitionView> {
        self.topic(topic)?.partitions.get(&partition)
    }

    /// The leader of a partition, if it is known and alive.
    pub fn leader(&self, topic: &str, partition: PartitionIndex) -> Option<&Broker> {
        self.brokers.get(&self.partition(topic, partition)?.leader?)
    }

    /// Takes a newer picture over an older one. What a slow broker says about a partition does not undo a newer leader epoch of the
    /// same topic, and topics that were not asked for this time stay.
    #[must_use]
    pub(crate) fn updated_by(&self, mut newer: ClusterView) -> ClusterView {
        for (name, old) in &self.topics {
            match newer.topics.get_mut(name) {
                None => {
                    newer.topics.insert(name.clone(), old.clone());
                }
                Some(topic) if topic.id == old.id => {
                    for (index, partition) in &mut topic.partitions {
                        if let Some(before) = old.partitions.get(index)
                            && before.leader_epoch > partition.leader_epoch
                        {
                            partition.clone_from(before);
                        }
                    }
                }
                Some(_) => {}
            }
        }
        newer
    }

    /// Takes leaders named in an answer, where they are newer than what is known. `None` if nothing is.
    pub(crate) fn hinted(&self, hints: &[LeaderHint]) -> Option<ClusterView> {
        let mut view: Option<ClusterView> = None;
        for hint in hints {
            let known = self.partition(&hint.topic, hint.partition);
            if known.is_none_or(|partition| partition.leader_epoch >= Some(hint.epoch)) {
                continue;
            }
            let view = view.get_or_insert_with(|| self.clone());
            if let Some(broker) = &hint.broker {
                view.brokers.insert(broker.id, broker.clone());
            }
            let partition =
                view.topics.get_mut(&hint.topic).and_then(|topic| topic.partitions.get_mut(&hint.partition));
            if let Some(partition) = partition {
                partition.leader = Some(hint.leader);
                partition.leader_epoch = Some(hint.epoch);
            }
        }
        view
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One topic `t` with a partition per leader given; a leader's epoch beside it.
    pub(crate) fn view(leaders: &[(i32, i32)]) -> ClusterView {
        let partitions = leaders.iter().enumerate().map(|(index, (leader, epoch))| MetadataPartition {
            partition_index: i32::try_from(index).expect("few"),
            leader_id: *leader,
            leader_epoch: *epoch,
            replica_nodes: vec![1, 2, 3],
            isr_nodes: vec![1, 2, 3],
            ..MetadataPartition::default()
        });
        let broker =
            |id: i32| MetadataBroker { node_id: id, host: "h".to_owned(), port: 9090 + id, rack: None };
        ClusterView::from_wire(&MetadataResponse {
            brokers: (1..=3).map(broker).collect(),
            topics: vec![MetadataTopic {
                name: Some("t".to_owned()),
                topic_id: Uuid(7),
                partitions: partitions.collect(),
                ..MetadataTopic::default()
            }],
            ..MetadataResponse::default()
        })
    }

    fn leader(view: &ClusterView) -> Option<i32> {
        view.leader("t", PartitionIndex(0)).map(|broker| broker.id.0)
    }

    #[test]
    fn an_older_epoch_does_not_undo_a_newer_one() {
        let known = view(&[(2, 5)]);
        assert_eq!(leader(&known.updated_by(view(&[(1, 4)]))), Some(2));
        assert_eq!(leader(&known.updated_by(view(&[(3, 6)]))), Some(3));
    }

    #[test]
    fn a_topic_made_anew_begins_at_any_epoch() {
        let known = view(&[(2, 5)]);
        let mut anew = view(&[(1, 0)]);
        anew.topics.get_mut("t").expect("there").id = Some(TopicId(Uuid(8)));
        assert_eq!(leader(&known.updated_by(anew)), Some(1));
    }

    #[test]
    fn a_hint_counts_only_if_it_is_newer() {
        let known = view(&[(2, 5)]);
        let hint = |leader: i32, epoch: i32| LeaderHint {
            topic: "t".to_owned(),
            partition: PartitionIndex(0),
            leader: BrokerId(leader),
            epoch: LeaderEpoch(epoch),
            broker: broker_from_wire(leader, "new", 1, None),
        };
        assert_eq!(known.hinted(&[hint(3, 5)]), None);
        let moved = known.hinted(&[hint(3, 6)]).expect("newer");
        assert_eq!(moved.leader("t", PartitionIndex(0)).map(|b| b.address.host.as_str()), Some("new"));
    }

    #[test]
    fn a_partition_without_a_leader_has_none() {
        assert_eq!(leader(&view(&[(-1, 5)])), None);
    }
}
