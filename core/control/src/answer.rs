//! What the active controller answers.

use minikafka_metadata::Recovery;
use minikafka_model::{
    BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, PartitionEpoch, PartitionIndex, ProducerId, TopicId,
    TopicPartition,
};

use crate::command::{NamedResource, PartitionName};
use crate::config::ConfigEntry;

/// Kafka's error with its message, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The code.
    pub code: ErrorCode,
    /// The text; none where Kafka has none.
    pub message: Option<String>,
}

impl Refusal {
    /// With a message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal { code, message: Some(message.into()) }
    }

    /// Without one.
    pub fn bare(code: ErrorCode) -> Refusal {
        Refusal { code, message: None }
    }
}

/// The answer to a command. It is given when the decision's records are committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The command as a whole was refused; nothing was decided.
    Refused(Refusal),
    /// To a registration: the broker epoch.
    Registered(BrokerEpoch),
    /// To a heartbeat.
    Heartbeat(HeartbeatReply),
    /// To ISR proposals, in their order.
    AlteredPartitions(Vec<AlteredPartition>),
    /// To the wish for producer ids: the first id and how many.
    ProducerIds {
        /// The first.
        first: ProducerId,
        /// How many.
        count: u32,
    },
    /// To topic creation: one for each name asked for.
    CreatedTopics(Vec<CreatedTopic>),
    /// To topic deletion.
    DeletedTopics(Vec<DeletedTopic>),
    /// To the wish for more partitions.
    CreatedPartitions(Vec<TopicResult>),
    /// To elections.
    Elected(Vec<ElectedPartition>),
    /// To reassignments.
    Reassigned(Vec<ReassignedPartition>),
    /// The reassignments under way.
    Reassignments(Vec<OngoingReassignment>),
    /// To changes of configuration.
    AlteredConfigs(Vec<ResourceResult>),
    /// A broker was removed.
    Unregistered,
    /// To feature updates: all succeeded, or the whole was [`Answer::Refused`].
    UpdatedFeatures(Vec<FeatureResult>),
    /// The controller acted by itself.
    Background(Background),
}

/// What the controller did by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Wrote the feature levels of a new cluster.
    NewCluster,
    /// Fenced a broker whose session had ended.
    Fenced(BrokerId),
    /// Looked for leaders of leaderless partitions where unclean elections are allowed.
    UncleanElections,
    /// Moved leaderships back to preferred leaders.
    PreferredElections,
}

/// To a heartbeat (Kafka semantics 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatReply {
    /// The broker has applied its own registration.
    pub caught_up: bool,
    /// It is fenced.
    pub fenced: bool,
    /// It may end.
    pub should_shut_down: bool,
}

/// The state of a partition after an accepted proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionOutcome {
    /// The leader.
    pub leader: Option<BrokerId>,
    /// The leader epoch.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch.
    pub partition_epoch: PartitionEpoch,
    /// The ISR.
    pub isr: Vec<BrokerId>,
    /// Whether the leader is recovering.
    pub recovery: Recovery,
}

/// To one proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlteredPartition {
    /// The partition.
    pub at: TopicPartition,
    /// Its state, or why the proposal was not taken. `NEW_LEADER_ELECTED` means that it was taken and completed a reassignment that moved the
    /// leadership.
    pub outcome: Result<PartitionOutcome, ErrorCode>,
}

/// A topic as created, or as it would have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its name.
    pub name: String,
    /// What came of it.
    pub outcome: Result<NewTopicFacts, Refusal>,
}

/// What the answer says of a created topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTopicFacts {
    /// Its id.
    pub id: TopicId,
    /// Its number of partitions.
    pub partitions: i32,
    /// Its replication factor.
    pub replication_factor: i32,
    /// Its effective configuration.
    pub configs: Vec<ConfigEntry>,
}

/// A topic as deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedTopic {
    /// Its name, where known.
    pub name: Option<String>,
    /// Its id, where known.
    pub id: Option<TopicId>,
    /// What came of it.
    pub outcome: Result<(), Refusal>,
}

/// A result for one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicResult {
    /// Its name.
    pub name: String,
    /// What came of it.
    pub outcome: Result<(), Refusal>,
}

/// A result of an election.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectedPartition {
    /// The partition.
    pub at: PartitionName,
    /// What came of it.
    pub outcome: Result<(), Refusal>,
}

/// A result of a reassignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReassignedPartition {
    /// The partition.
    pub at: PartitionName,
    /// What came of it.
    pub outcome: Result<(), Refusal>,
}

/// A reassignment under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OngoingReassignment {
    /// The topic's name.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// All replicas at the moment.
    pub replicas: Vec<BrokerId>,
    /// Those being added.
    pub adding: Vec<BrokerId>,
    /// Those being removed.
    pub removing: Vec<BrokerId>,
}

/// A result of a change of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceResult {
    /// The resource.
    pub resource: NamedResource,
    /// What came of it.
    pub outcome: Result<(), Refusal>,
}

/// A result of a feature update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureResult {
    /// The feature.
    pub name: String,
    /// Its level now.
    pub level: u16,
}
