//! The records of the metadata log. Type numbers and names are Kafka's; the payload is our own.

use minikafka_model::{
    BrokerEpoch, BrokerId, DirectoryId, IncarnationId, PartitionIndex, ProducerId, TopicId, TopicPartition,
};
use serde::{Deserialize, Serialize};

use crate::broker::Listener;
use crate::partition::{PartitionChange, PartitionState};

/// Feature: the version of the metadata format.
pub const METADATA_VERSION: &str = "metadata.version";
/// Feature: eligible leader replicas (KIP-966); level 0 is off, 1 is on.
pub const ELIGIBLE_LEADER_REPLICAS: &str = "eligible.leader.replicas.version";

/// What a dynamic configuration belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConfigResource {
    /// All brokers that have no value of their own (Kafka: the broker resource with an empty name).
    ClusterDefault,
    /// One broker.
    Broker(BrokerId),
    /// One topic.
    Topic(TopicId),
}

/// A broker registers, or amends its registration under the same incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisterBroker {
    /// The broker.
    pub broker: BrokerId,
    /// The epoch of this registration.
    pub epoch: BrokerEpoch,
    /// Drawn by the process at its start.
    pub incarnation: IncarnationId,
    /// Where it is reached.
    pub listeners: Vec<Listener>,
    /// Its rack.
    pub rack: Option<String>,
    /// Its log directories.
    pub log_dirs: Vec<DirectoryId>,
    /// Whether it is fenced after this.
    pub fenced: bool,
    /// Whether it is in controlled shutdown after this.
    pub in_controlled_shutdown: bool,
}

/// A registered broker changes its state. A field that is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerChange {
    /// The broker.
    pub broker: BrokerId,
    /// The epoch of the registration that is meant.
    pub epoch: BrokerEpoch,
    /// Fenced or unfenced.
    pub fenced: Option<bool>,
    /// Controlled shutdown begins or is over.
    pub in_controlled_shutdown: Option<bool>,
    /// The log directories that are online now.
    pub log_dirs: Option<Vec<DirectoryId>>,
}

/// One fact of the metadata log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// A broker registers.
    RegisterBroker(RegisterBroker),
    /// A broker is fenced or unfenced, begins its controlled shutdown, or loses a log directory.
    BrokerChange(BrokerChange),
    /// A broker is removed.
    UnregisterBroker {
        /// The broker.
        broker: BrokerId,
        /// The epoch of the registration that goes.
        epoch: BrokerEpoch,
    },
    /// A topic comes to be; its partitions follow.
    Topic {
        /// Its id.
        id: TopicId,
        /// Its name.
        name: String,
    },
    /// A partition comes to be.
    Partition {
        /// Which.
        at: TopicPartition,
        /// Its state.
        state: PartitionState,
    },
    /// A partition changes.
    PartitionChange(PartitionChange),
    /// A topic is deleted, with its partitions and its configuration.
    RemoveTopic {
        /// Its id.
        id: TopicId,
    },
    /// A dynamic configuration value is set, or removed where `value` is absent.
    Config {
        /// What it belongs to.
        resource: ConfigResource,
        /// The key.
        key: String,
        /// The value.
        value: Option<String>,
    },
    /// A feature has this level from now on.
    FeatureLevel {
        /// Its name.
        name: String,
        /// The level; 0 is off.
        level: u16,
    },
    /// Producer ids below `next` have been handed out.
    ProducerIds {
        /// The broker that got the block.
        broker: BrokerId,
        /// Its epoch.
        epoch: BrokerEpoch,
        /// The first id of the next block.
        next: ProducerId,
    },
    /// Nothing; shows that the log moves.
    NoOp,
    /// The ELR and the last known leader of one topic, or of all, are forgotten (min.insync.replicas was changed).
    ClearElr {
        /// Which topic; all where absent.
        topic: Option<TopicId>,
    },
}

impl Record {
    /// The number that stands for the type in the log (Kafka's).
    pub const fn type_number(&self) -> u16 {
        match self {
            Record::RegisterBroker(_) => 0,
            Record::UnregisterBroker { .. } => 1,
            Record::Topic { .. } => 2,
            Record::Partition { .. } => 3,
            Record::Config { .. } => 4,
            Record::PartitionChange(_) => 5,
            Record::RemoveTopic { .. } => 9,
            Record::FeatureLevel { .. } => 12,
            Record::ProducerIds { .. } => 15,
            Record::BrokerChange(_) => 17,
            Record::NoOp => 20,
            Record::ClearElr { .. } => 28,
        }
    }

    /// Kafka's name of the type.
    pub const fn type_name(&self) -> &'static str {
        match type_name_of(self.type_number()) {
            Some(name) => name,
            None => "unknown",
        }
    }

    /// The topic this record is about, if it is about one.
    pub const fn topic(&self) -> Option<TopicId> {
        match self {
            Record::Topic { id, .. } | Record::RemoveTopic { id } => Some(*id),
            Record::Partition { at, .. } | Record::PartitionChange(PartitionChange { at, .. }) => {
                Some(at.topic)
            }
            Record::Config { resource: ConfigResource::Topic(id), .. } => Some(*id),
            Record::ClearElr { topic } => *topic,
            Record::RegisterBroker(_)
            | Record::BrokerChange(_)
            | Record::UnregisterBroker { .. }
            | Record::Config { .. }
            | Record::FeatureLevel { .. }
            | Record::ProducerIds { .. }
            | Record::NoOp => None,
        }
    }

    /// The partition this record is about, if it is about one.
    pub const fn partition(&self) -> Option<PartitionIndex> {
        match self {
            Record::Partition { at, .. } | Record::PartitionChange(PartitionChange { at, .. }) => {
                Some(at.partition)
            }
            _ => None,
        }
    }
}

/// Kafka's name of a record type, including those that this program does not keep.
pub(crate) const fn type_name_of(number: u16) -> Option<&'static str> {
    Some(match number {
        0 => "RegisterBrokerRecord",
        1 => "UnregisterBrokerRecord",
        2 => "TopicRecord",
        3 => "PartitionRecord",
        4 => "ConfigRecord",
        5 => "PartitionChangeRecord",
        7 => "FenceBrokerRecord",
        8 => "UnfenceBrokerRecord",
        9 => "RemoveTopicRecord",
        10 => "DelegationTokenRecord",
        11 => "UserScramCredentialRecord",
        12 => "FeatureLevelRecord",
        14 => "ClientQuotaRecord",
        15 => "ProducerIdsRecord",
        17 => "BrokerRegistrationChangeRecord",
        18 => "AccessControlEntryRecord",
        19 => "RemoveAccessControlEntryRecord",
        20 => "NoOpRecord",
        21 => "ZkMigrationStateRecord",
        22 => "RemoveUserScramCredentialRecord",
        23 => "BeginTransactionRecord",
        24 => "EndTransactionRecord",
        25 => "AbortTransactionRecord",
        26 => "RemoveDelegationTokenRecord",
        27 => "RegisterControllerRecord",
        28 => "ClearElrRecord",
        _ => return None,
    })
}
