//! What the active controller is asked.

use std::collections::BTreeMap;

use minikafka_metadata::{ConfigResource, Listener};
use minikafka_model::{
    BrokerEpoch, BrokerId, ClusterId, DirectoryId, IncarnationId, LeaderEpoch, MetadataOffset,
    PartitionEpoch, PartitionIndex, TopicId, TopicPartition,
};

use crate::election::ElectionKind;

/// A question or an order to the active controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A broker process registers (Kafka semantics 6.2).
    RegisterBroker(RegisterBroker),
    /// A broker is alive, and says what it wants (6.3).
    Heartbeat(Heartbeat),
    /// A leader proposes ISRs (2.6).
    AlterPartition(AlterPartition),
    /// A broker wants a block of producer ids (9.1).
    AllocateProducerIds(BrokerIdentity),
    /// Topics are created (6.8). Auto-creation comes the same way.
    CreateTopics(CreateTopics),
    /// Topics are deleted.
    DeleteTopics(DeleteTopics),
    /// Topics get more partitions.
    CreatePartitions(CreatePartitions),
    /// Leaders are elected anew (6.7).
    ElectLeaders(ElectLeaders),
    /// Replicas move (6.8).
    ReassignPartitions(ReassignPartitions),
    /// Which reassignments are under way. No partitions named: all.
    ListReassignments(Option<Vec<PartitionName>>),
    /// Dynamic configuration is changed key by key.
    IncrementalAlterConfigs(IncrementalAlterConfigs),
    /// Dynamic configuration is replaced.
    AlterConfigs(AlterConfigs),
    /// A broker is removed for good.
    UnregisterBroker(BrokerId),
    /// Feature levels are changed.
    UpdateFeatures(UpdateFeatures),
}

/// Who a broker says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerIdentity {
    /// Its id.
    pub broker: BrokerId,
    /// The epoch of its registration.
    pub epoch: BrokerEpoch,
}

/// A registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterBroker {
    /// The broker.
    pub broker: BrokerId,
    /// The cluster it believes to be part of.
    pub cluster: ClusterId,
    /// Drawn at the start of its process.
    pub incarnation: IncarnationId,
    /// Where it is reached.
    pub listeners: Vec<Listener>,
    /// Its rack.
    pub rack: Option<String>,
    /// Its log directories.
    pub log_dirs: Vec<DirectoryId>,
    /// The epoch noted at its last clean shutdown; none after an unclean one.
    pub previous_epoch: Option<BrokerEpoch>,
}

/// A heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Who.
    pub from: BrokerIdentity,
    /// How far it has applied the metadata.
    pub metadata_offset: Option<MetadataOffset>,
    /// It is not ready to serve.
    pub want_fence: bool,
    /// It wants to end.
    pub want_shut_down: bool,
    /// Log directories that have failed.
    pub offline_log_dirs: Vec<DirectoryId>,
}

/// A member of a proposed ISR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsrMember {
    /// The broker.
    pub broker: BrokerId,
    /// Its epoch as the leader knows it; none is not checked.
    pub epoch: Option<BrokerEpoch>,
}

/// One partition of an ISR proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIsr {
    /// The partition.
    pub at: TopicPartition,
    /// The leader epoch it was built on.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch it was built on.
    pub partition_epoch: PartitionEpoch,
    /// The members wanted.
    pub isr: Vec<IsrMember>,
    /// The leader has not recovered from its unclean election yet.
    pub recovering: bool,
}

/// ISR proposals of one leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterPartition {
    /// The leader.
    pub from: BrokerIdentity,
    /// What it proposes.
    pub items: Vec<NewIsr>,
}

/// The replicas of one partition as given by a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The partition.
    pub partition: PartitionIndex,
    /// The brokers in order.
    pub brokers: Vec<BrokerId>,
}

/// A topic to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// Number of partitions; none takes `num.partitions`. A value that makes no sense is refused with Kafka's words.
    pub partitions: Option<i32>,
    /// Replication factor; none takes `default.replication.factor`.
    pub replication_factor: Option<i32>,
    /// The replicas, where the user gives them.
    pub assignments: Vec<Assignment>,
    /// Configuration, in the order given. A value that is absent is refused with Kafka's words.
    pub configs: KeyedValues,
}

/// Topics to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateTopics {
    /// The topics.
    pub topics: Vec<NewTopic>,
    /// Only say what would happen.
    pub validate_only: bool,
}

/// A topic by name or by id; a request that gives both or neither is refused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TopicSelector {
    /// By name.
    pub name: Option<String>,
    /// By id.
    pub id: Option<TopicId>,
}

/// Topics to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteTopics {
    /// The topics.
    pub topics: Vec<TopicSelector>,
}

/// One topic that gets more partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPartitions {
    /// The topic's name.
    pub topic: String,
    /// How many partitions it has afterwards.
    pub count: i32,
    /// The replicas of the new ones, where the user gives them.
    pub assignments: Option<Vec<Vec<BrokerId>>>,
}

/// Topics that get more partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePartitions {
    /// The topics.
    pub topics: Vec<NewPartitions>,
    /// Only say what would happen.
    pub validate_only: bool,
}

/// A partition as users name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionName {
    /// The topic's name.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
}

/// Elections asked for by a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectLeaders {
    /// Preferred or unclean.
    pub kind: ElectionKind,
    /// Which partitions; none means all.
    pub partitions: Option<Vec<PartitionName>>,
}

/// One partition to move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reassignment {
    /// Which.
    pub at: PartitionName,
    /// The replicas wanted; none cancels what is under way.
    pub replicas: Option<Vec<BrokerId>>,
}

/// Partitions to move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReassignPartitions {
    /// The partitions.
    pub partitions: Vec<Reassignment>,
    /// Whether the number of replicas may change.
    pub allow_replication_factor_change: bool,
}

/// What happens to one configuration key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigOp {
    /// Set to this value; an absent value is refused.
    Set(Option<String>),
    /// Back to what is below.
    Delete,
    /// Added to a list.
    Append(Option<String>),
    /// Taken out of a list.
    Subtract(Option<String>),
}

/// What happens to each key named.
pub type KeyedOps = Vec<(String, ConfigOp)>;
/// The value of each key named; an absent value is refused.
pub type KeyedValues = Vec<(String, Option<String>)>;

/// Changes key by key. A resource is changed as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncrementalAlterConfigs {
    /// The changes of each resource, by the topic's name or the broker.
    pub resources: Vec<(NamedResource, KeyedOps)>,
    /// Only say what would happen.
    pub validate_only: bool,
}

/// Replacement of all keys of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterConfigs {
    /// The new configuration of each resource.
    pub resources: Vec<(NamedResource, KeyedValues)>,
    /// Only say what would happen.
    pub validate_only: bool,
}

/// What a user's configuration change belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedResource {
    /// A topic by name.
    Topic(String),
    /// One broker.
    Broker(BrokerId),
    /// All brokers.
    ClusterDefault,
}

impl NamedResource {
    /// The resource in records; a topic is looked up with `topic`.
    pub(crate) fn resolve(&self, topic: impl Fn(&str) -> Option<TopicId>) -> Option<ConfigResource> {
        match self {
            NamedResource::Topic(name) => topic(name).map(ConfigResource::Topic),
            NamedResource::Broker(id) => Some(ConfigResource::Broker(*id)),
            NamedResource::ClusterDefault => Some(ConfigResource::ClusterDefault),
        }
    }
}

/// How a feature level may move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpgradeType {
    /// Up only.
    Upgrade,
    /// Down without loss.
    SafeDowngrade,
    /// Down, losing what the lower level cannot hold.
    UnsafeDowngrade,
}

/// One feature to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureUpdate {
    /// Its name.
    pub name: String,
    /// The level wanted.
    pub level: i16,
    /// Which way it may go.
    pub kind: UpgradeType,
}

/// Features to change: all or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdateFeatures {
    /// The features.
    pub updates: Vec<FeatureUpdate>,
    /// Only say what would happen.
    pub validate_only: bool,
}

/// The overrides of one resource, by key.
pub(crate) type Overrides = BTreeMap<String, String>;
