//! The controller's mind: registration, leases, topics, placement, elections, ISR changes, configuration.
//!
//! [`Control`] is the active controller's judgement and nothing else: a [`Command`] and a [`Moment`] go in, a [`Decision`] comes
//! out, namely the records of one metadata entry, the answer to whoever asked, and events that say what was decided and why. It works on a
//! speculative image: what is committed, plus what it has itself decided since. The desk around it writes the records into the
//! metadata log, and gives the answer only when they are committed; an answer without records waits for everything decided before
//! it (Kafka semantics 6.1).
//!
//! The rules are those of Kafka semantics 2.6, 2.8 and 6; messages that clients see are Kafka's.

mod alter_partition;
mod answer;
mod background;
mod command;
mod config;
mod config_change;
mod control;
mod create_partitions;
mod dice;
mod draft;
mod elect_leaders;
mod election;
mod event;
mod feature;
mod heartbeat;
mod isr_edit;
mod key_rules;
mod placement;
mod producer_ids;
mod reassignment;
mod registration;
mod seeded;
mod session;
mod topic_create;
mod topic_delete;
mod topic_name;

pub use answer::{
    AlteredPartition, Answer, Background, CreatedTopic, DeletedTopic, ElectedPartition, FeatureResult,
    HeartbeatReply, NewTopicFacts, OngoingReassignment, PartitionOutcome, ReassignedPartition, Refusal,
    ResourceResult, TopicResult,
};
pub use command::{
    AlterConfigs, AlterPartition, Assignment, BrokerIdentity, Command, ConfigOp, CreatePartitions,
    CreateTopics, DeleteTopics, ElectLeaders, FeatureUpdate, Heartbeat, IncrementalAlterConfigs, IsrMember,
    KeyedOps, KeyedValues, NamedResource, NewIsr, NewPartitions, NewTopic, PartitionName, ReassignPartitions,
    Reassignment, RegisterBroker, TopicSelector, UpdateFeatures, UpgradeType,
};
pub use config::{ConfigEntry, ConfigRefusal, ConfigRules, ControlConfig};
pub use control::{Control, Decision, Moment};
pub use dice::Dice;
pub use election::{Change, Elected, ElectionKind, ElectionRules, Wish, change_partition};
pub use event::ControlEvent;
pub use feature::{FEATURES, FeatureRange, METADATA_VERSION_LEVEL, bootstrap_records};
pub use key_rules::KeyRules;
pub use placement::{Candidate, PlacementError, place};
pub use producer_ids::PRODUCER_ID_BLOCK;
pub use seeded::{Faults, SeededBug};
pub use topic_create::MAX_PARTITIONS_PER_REQUEST;
pub use topic_name::{MAX_TOPIC_NAME, check_topic_name};
