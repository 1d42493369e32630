//! Ids and offsets of the follower door: the only place where bytes and sentinels of `minikafka.replica.v1` become typed values and back.

use bytes::Bytes;
use minikafka_model::{
    BrokerEpoch, BrokerId, ClusterId, DirectoryId, LeaderEpoch, Offset, PartitionIndex, TopicId,
    TopicPartition, Uuid,
};

use crate::replica::{Diverging, FetchPartition, Hello, PartitionData, PartitionKey};

/// A message between brokers that does not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// An id that is not sixteen bytes long.
    #[error("{field} has {len} bytes, an id has 16")]
    Id {
        /// The field.
        field: &'static str,
        /// Its length.
        len: usize,
    },
    /// A number below zero.
    #[error("{field} is {value}, which is below zero")]
    Negative {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// A field that must be there.
    #[error("{0} is missing")]
    Missing(&'static str),
}

fn uuid(bytes: &[u8], field: &'static str) -> Result<Uuid, Malformed> {
    let bytes = <[u8; 16]>::try_from(bytes).map_err(|_| Malformed::Id { field, len: bytes.len() })?;
    Ok(Uuid::from_bytes(bytes))
}

fn bytes_of(uuid: Uuid) -> Bytes {
    Bytes::copy_from_slice(&uuid.to_bytes())
}

fn offset(value: i64, field: &'static str) -> Result<Offset, Malformed> {
    if value < 0 { Err(Malformed::Negative { field, value }) } else { Ok(Offset(value)) }
}

fn key(topic: &[u8], partition: i32) -> Result<TopicPartition, Malformed> {
    if partition < 0 {
        return Err(Malformed::Negative { field: "partition", value: i64::from(partition) });
    }
    Ok(TopicPartition { topic: TopicId(uuid(topic, "topic_id")?), partition: PartitionIndex(partition) })
}

/// Who opens a stream between brokers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerBroker {
    /// The cluster it belongs to.
    pub cluster: ClusterId,
    /// Its id.
    pub broker: BrokerId,
    /// Its log directory.
    pub directory: DirectoryId,
    /// The epoch of its registration.
    pub broker_epoch: BrokerEpoch,
    /// The level of the contracts it speaks.
    pub protocol_level: u32,
    /// Which of its fetcher threads asks.
    pub fetcher: u32,
}

impl From<&PeerBroker> for Hello {
    fn from(peer: &PeerBroker) -> Hello {
        Hello {
            cluster_id: peer.cluster.0.clone(),
            broker_id: peer.broker.0,
            directory_id: bytes_of(peer.directory.0),
            protocol_level: peer.protocol_level,
            broker_epoch: peer.broker_epoch.0,
            fetcher_id: peer.fetcher,
        }
    }
}

impl TryFrom<&Hello> for PeerBroker {
    type Error = Malformed;

    fn try_from(hello: &Hello) -> Result<PeerBroker, Malformed> {
        Ok(PeerBroker {
            cluster: ClusterId(hello.cluster_id.clone()),
            broker: BrokerId(hello.broker_id),
            directory: DirectoryId(uuid(&hello.directory_id, "directory_id")?),
            broker_epoch: BrokerEpoch(hello.broker_epoch),
            protocol_level: hello.protocol_level,
            fetcher: hello.fetcher_id,
        })
    }
}

/// What a follower asks of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionAsk {
    /// The partition.
    pub partition: TopicPartition,
    /// The leader epoch the follower is in.
    pub leader_epoch: LeaderEpoch,
    /// Its log end: what it has written, and where to read from.
    pub position: Offset,
    /// The epoch of the last batch before that position; none if its log is empty.
    pub last_epoch: Option<LeaderEpoch>,
    /// Where its log starts.
    pub log_start: Offset,
    /// Answers to older generations are dropped.
    pub generation: u64,
}

impl From<&PartitionAsk> for FetchPartition {
    fn from(ask: &PartitionAsk) -> FetchPartition {
        FetchPartition {
            topic_id: bytes_of(ask.partition.topic.0),
            partition: ask.partition.partition.0,
            current_leader_epoch: ask.leader_epoch.0,
            fetch_offset: ask.position.0,
            last_fetched_epoch: ask.last_epoch.map(|epoch| epoch.0),
            acknowledged: ask.position.0,
            log_start_offset: ask.log_start.0,
            generation: ask.generation,
        }
    }
}

impl TryFrom<&FetchPartition> for PartitionAsk {
    type Error = Malformed;

    fn try_from(ask: &FetchPartition) -> Result<PartitionAsk, Malformed> {
        Ok(PartitionAsk {
            partition: key(&ask.topic_id, ask.partition)?,
            leader_epoch: LeaderEpoch(ask.current_leader_epoch),
            position: offset(ask.fetch_offset, "fetch_offset")?,
            last_epoch: ask.last_fetched_epoch.map(LeaderEpoch),
            log_start: offset(ask.log_start_offset, "log_start_offset")?,
            generation: ask.generation,
        })
    }
}

impl From<TopicPartition> for PartitionKey {
    fn from(partition: TopicPartition) -> PartitionKey {
        PartitionKey { topic_id: bytes_of(partition.topic.0), partition: partition.partition.0 }
    }
}

impl TryFrom<&PartitionKey> for TopicPartition {
    type Error = Malformed;

    fn try_from(named: &PartitionKey) -> Result<TopicPartition, Malformed> {
        key(&named.topic_id, named.partition)
    }
}

impl PartitionData {
    /// The partition it is about.
    ///
    /// # Errors
    /// An id that is none.
    pub fn key(&self) -> Result<TopicPartition, Malformed> {
        key(&self.topic_id, self.partition)
    }

    /// An answer about this partition with nothing in it yet.
    pub fn about(partition: TopicPartition, generation: u64) -> PartitionData {
        PartitionData {
            topic_id: bytes_of(partition.topic.0),
            partition: partition.partition.0,
            generation,
            ..PartitionData::default()
        }
    }

    /// Where the logs part, if they do: the largest epoch of the leader that is not above the one asked with, and its end.
    ///
    /// # Errors
    /// No epoch, or an end below zero.
    pub fn divergence(&self) -> Result<Option<(LeaderEpoch, Offset)>, Malformed> {
        match &self.diverging {
            None => Ok(None),
            Some(Diverging { epoch, end_offset }) => {
                let epoch = epoch.map(LeaderEpoch).ok_or(Malformed::Missing("diverging.epoch"))?;
                Ok(Some((epoch, offset(*end_offset, "diverging.end_offset")?)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree_and_nonsense_is_named() {
        let partition = TopicPartition { topic: TopicId(Uuid(77)), partition: PartitionIndex(3) };
        let ask = PartitionAsk {
            partition,
            leader_epoch: LeaderEpoch(4),
            position: Offset(100),
            last_epoch: None,
            log_start: Offset(2),
            generation: 9,
        };
        let mut message = FetchPartition::from(&ask);
        assert_eq!(PartitionAsk::try_from(&message), Ok(ask));
        message.fetch_offset = -1;
        assert_eq!(
            PartitionAsk::try_from(&message),
            Err(Malformed::Negative { field: "fetch_offset", value: -1 })
        );
        message.topic_id = Bytes::from_static(b"short");
        assert_eq!(PartitionAsk::try_from(&message), Err(Malformed::Id { field: "topic_id", len: 5 }));
        assert_eq!(TopicPartition::try_from(&PartitionKey::from(partition)), Ok(partition));
        let peer = PeerBroker {
            cluster: ClusterId("c".to_owned()),
            broker: BrokerId(2),
            directory: DirectoryId(Uuid(5)),
            broker_epoch: BrokerEpoch(8),
            protocol_level: 1,
            fetcher: 0,
        };
        assert_eq!(PeerBroker::try_from(&Hello::from(&peer)), Ok(peer));
    }
}
