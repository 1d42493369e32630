//! The cluster as a client on one listener may see it: addresses, leaders, names.

use minikafka_metadata::{BrokerRegistration, Image, Listener, TopicImage};
use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, PartitionIndex, TopicId, TopicPartition, Uuid};
use std::sync::Arc;

use super::fetch_sessions::TopicKey;

/// The metadata as seen by one client.
pub(crate) struct ClusterView<'a> {
    pub(crate) image: &'a Image,
    /// The listener the client came in by: it is told the addresses on that one.
    pub(crate) listener: &'a str,
}

impl<'a> ClusterView<'a> {
    /// Brokers that serve, with their address on the client's listener, in the order of their ids.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (&'a BrokerRegistration, &'a Listener)> {
        let listener = self.listener;
        self.image
            .brokers()
            .values()
            .filter(|broker| !broker.fenced)
            .filter_map(move |broker| Some((&**broker, broker.listener(listener)?)))
    }

    /// The address of a broker on the client's listener, fenced or not.
    pub(crate) fn endpoint(&self, id: BrokerId) -> Option<(&'a BrokerRegistration, &'a Listener)> {
        let broker = self.image.broker(id)?;
        Some((broker, broker.listener(self.listener)?))
    }

    /// The node that is told as controller: always the same while the same brokers live (Kafka names a random one).
    pub(crate) fn controller(&self) -> Option<BrokerId> {
        self.alive().map(|(broker, _)| broker.id).next()
    }

    /// Whether a replica on this broker cannot serve this client.
    pub(crate) fn offline(&self, id: BrokerId) -> bool {
        self.endpoint(id).is_none_or(|(broker, _)| broker.fenced)
    }

    /// A topic as a request names it.
    pub(crate) fn topic(&self, key: &TopicKey) -> Result<&'a Arc<TopicImage>, ErrorCode> {
        match key {
            TopicKey::Name(name) => self.image.topic_by_name(name).ok_or(ErrorCode::UnknownTopicOrPartition),
            TopicKey::Id(id) => self.image.topic(TopicId(*id)).ok_or(ErrorCode::UnknownTopicId),
        }
    }

    /// A partition as a request names it.
    pub(crate) fn partition(&self, key: &TopicKey, index: i32) -> Result<TopicPartition, ErrorCode> {
        let topic = self.topic(key)?;
        let partition = PartitionIndex(index);
        match topic.partitions.contains_key(&partition) {
            true => Ok(TopicPartition { topic: topic.id, partition }),
            false => Err(ErrorCode::UnknownTopicOrPartition),
        }
    }

    /// Who leads a partition, for answers that send the client elsewhere (KIP-951).
    pub(crate) fn leader(&self, at: TopicPartition) -> Option<(BrokerId, LeaderEpoch)> {
        let state = self.image.partition(at)?;
        Some((state.leader?, state.leader_epoch))
    }
}

/// The topic of a request element: by name, or by id where the version has ids.
pub(crate) fn topic_key(by_id: bool, name: &str, id: Uuid) -> TopicKey {
    if by_id { TopicKey::Id(id) } else { TopicKey::Name(name.into()) }
}

/// Whether a name is legal for a topic, or what is wrong with it in Kafka's words.
pub(crate) fn check_topic_name(name: &str) -> Result<(), String> {
    const LONGEST: usize = 249;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let wrong = match name {
        "" => "the empty string is not allowed".to_owned(),
        "." | ".." => format!("'{name}' is not allowed"),
        _ if name.len() > LONGEST => {
            format!("the length of '{name}' is longer than the max allowed length {LONGEST}")
        }
        _ if !name.chars().all(legal) => {
            format!(
                "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
            )
        }
        _ => return Ok(()),
    };
    Err(format!("Topic name is invalid: {wrong}"))
}

/// Topics that Kafka itself writes: clients may not produce to them.
pub(crate) fn is_internal(name: &str) -> bool {
    matches!(name, "__consumer_offsets" | "__transaction_state" | "__share_group_state")
}
