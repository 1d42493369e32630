//! What must never happen to an image. Each of these stops the process: the log or the program is broken.

use minikafka_model::{
    BrokerEpoch, BrokerId, LeaderEpoch, MetadataOffset, PartitionEpoch, PartitionIndex, Term, TopicId,
    TopicPartition,
};

/// A rule about one partition that a record breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The replica list is empty.
    #[error("no replicas")]
    NoReplicas,
    /// A broker holds two replicas.
    #[error("a broker stands twice in the replica list")]
    ReplicaTwice,
    /// One directory for each replica.
    #[error("directories and replicas differ in number")]
    DirectoriesDoNotMatchReplicas,
    /// A broker stands twice in the ISR.
    #[error("a broker stands twice in the ISR")]
    IsrMemberTwice,
    /// A broker stands twice in the ELR.
    #[error("a broker stands twice in the ELR")]
    ElrMemberTwice,
    /// ISR members are replicas.
    #[error("the ISR has a member that is not a replica")]
    IsrOutsideReplicas,
    /// ELR members are replicas.
    #[error("the ELR has a member that is not a replica")]
    ElrOutsideReplicas,
    /// ISR and ELR share nobody.
    #[error("a broker is in the ISR and in the ELR")]
    ElrInsideIsr,
    /// The leader is in the ISR.
    #[error("the leader is not in the ISR")]
    LeaderOutsideIsr,
    /// While recovering the leader is alone.
    #[error("the leader is recovering, but the ISR has more than one member")]
    RecoveringWithFollowersInIsr,
    /// Adding and removing are disjoint parts of the replica list.
    #[error("the reassignment names brokers outside the replica list, or one twice")]
    ReassignmentOutsideReplicas,
    /// The leader is registered and unfenced.
    #[error("the leader {0} is not registered or is fenced")]
    LeaderNotAlive(BrokerId),
    /// No fenced broker is in an ISR.
    #[error("the ISR has the member {0}, which is fenced or not registered")]
    FencedInIsr(BrokerId),
    /// The partition epoch rises by one with every change.
    #[error("partition epoch {after} does not follow {before}")]
    PartitionEpochNotNext {
        /// Before the change.
        before: PartitionEpoch,
        /// In the record.
        after: PartitionEpoch,
    },
    /// The leader epoch stays or rises by one, and rises with every change of leader.
    #[error("leader epoch {after} does not follow {before}")]
    LeaderEpochDoesNotFollow {
        /// Before the change.
        before: LeaderEpoch,
        /// In the record.
        after: LeaderEpoch,
    },
}

/// Why an entry does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Entries apply in the order of their offsets.
    #[error("metadata entry {offset} was given after {applied} had been applied")]
    OutOfOrder {
        /// Of the entry.
        offset: MetadataOffset,
        /// Last applied.
        applied: MetadataOffset,
    },
    /// Terms never fall along the log.
    #[error("metadata entry {offset} has term {term}, after an entry of term {applied}")]
    TermFell {
        /// Of the entry.
        offset: MetadataOffset,
        /// Of the entry.
        term: Term,
        /// Of the last entry applied.
        applied: Term,
    },
    /// A record about a broker that is not registered.
    #[error("metadata entry {offset}: {record} names broker {broker}, which is not registered")]
    UnknownBroker {
        /// Of the entry.
        offset: MetadataOffset,
        /// The record's type.
        record: &'static str,
        /// The broker.
        broker: BrokerId,
    },
    /// A record about a registration that is over, or one that would turn back time.
    #[error(
        "metadata entry {offset}: {record} for broker {broker} has epoch {epoch}, the registration has {known}"
    )]
    BrokerEpoch {
        /// Of the entry.
        offset: MetadataOffset,
        /// The record's type.
        record: &'static str,
        /// The broker.
        broker: BrokerId,
        /// In the record.
        epoch: BrokerEpoch,
        /// In the image.
        known: BrokerEpoch,
    },
    /// A topic's id or name is taken.
    #[error("metadata entry {offset}: topic {id} '{name}' exists already, by id or by name")]
    TopicExists {
        /// Of the entry.
        offset: MetadataOffset,
        /// Its id.
        id: TopicId,
        /// Its name.
        name: String,
    },
    /// A record about a topic that does not exist.
    #[error("metadata entry {offset}: {record} names topic {id}, which does not exist")]
    UnknownTopic {
        /// Of the entry.
        offset: MetadataOffset,
        /// The record's type.
        record: &'static str,
        /// The topic.
        id: TopicId,
    },
    /// A change of a partition that does not exist.
    #[error("metadata entry {offset}: partition {at} does not exist")]
    UnknownPartition {
        /// Of the entry.
        offset: MetadataOffset,
        /// The partition.
        at: TopicPartition,
    },
    /// Partitions are numbered from 0 without a gap.
    #[error("metadata entry {offset}: partition {at} is not the next one, {expected}")]
    PartitionOutOfTurn {
        /// Of the entry.
        offset: MetadataOffset,
        /// The partition.
        at: TopicPartition,
        /// The next index of this topic.
        expected: PartitionIndex,
    },
    /// A rule about one partition is broken.
    #[error("metadata entry {offset}: partition {at}: {violation}")]
    Partition {
        /// Of the entry.
        offset: MetadataOffset,
        /// The partition.
        at: TopicPartition,
        /// The rule.
        violation: Violation,
    },
    /// Producer ids are never handed out twice.
    #[error("metadata entry {offset}: the next producer id falls from {from} to {to}")]
    ProducerIdsFell {
        /// Of the entry.
        offset: MetadataOffset,
        /// Before.
        from: i64,
        /// In the record.
        to: i64,
    },
}
