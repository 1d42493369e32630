//! What travels between the nodes of a simulated cluster.

use std::sync::Arc;

use minikafka_metadata::Image;
use minikafka_model::{BrokerEpoch, BrokerId, ErrorCode, IncarnationId, LeaderEpoch, Offset, TopicPartition};
use minikafka_replication::{
    FetchedAnswer, Heartbeat, HeartbeatAnswer, IsrAnswer, IsrProposal, LeaderBounds, SessionRequest, StreamId,
};

/// A party of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Node {
    /// A broker.
    Broker(BrokerId),
    /// The quorum of controllers.
    Controller,
    /// A producer or consumer.
    Client(u32),
}

/// A write of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write {
    /// Into which partition.
    pub(crate) partition: TopicPartition,
    /// Names the attempt.
    pub(crate) request: u64,
    /// The record's value.
    pub(crate) value: String,
    /// Sequence of an idempotent producer; without one the write asks for acks=1.
    pub(crate) sequence: Option<i32>,
}

/// One message.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    /// A follower opens its stream.
    OpenStream { stream: StreamId, broker_epoch: BrokerEpoch },
    /// A stream is gone, for either end.
    StreamClosed { stream: StreamId },
    /// A request on a stream.
    Fetch { stream: StreamId, request: SessionRequest },
    /// An answer on a stream, to the oldest request.
    Fetched { stream: StreamId, partitions: Vec<(TopicPartition, u64, FetchedAnswer)> },
    /// A follower out of range asks for its leader's bounds.
    AskBounds { partition: TopicPartition, leader_epoch: LeaderEpoch, generation: u64 },
    /// The bounds.
    Bounds { partition: TopicPartition, generation: u64, bounds: Result<LeaderBounds, ErrorCode> },
    /// A broker registers.
    Register { incarnation: IncarnationId, attempt: u64, previous_epoch: Option<BrokerEpoch> },
    /// The answer to a registration.
    Registered { incarnation: IncarnationId, attempt: u64, answer: Result<BrokerEpoch, ErrorCode> },
    /// A broker's heartbeat.
    Heartbeat { number: u64, heartbeat: Heartbeat },
    /// The answer to a heartbeat.
    HeartbeatAnswered { number: u64, answer: Result<HeartbeatAnswer, ErrorCode> },
    /// A leader proposes an ISR.
    AlterIsr { number: u64, broker_epoch: BrokerEpoch, partition: TopicPartition, proposal: IsrProposal },
    /// What became of it.
    IsrAltered { number: u64, partition: TopicPartition, proposal: IsrProposal, answer: IsrAnswer },
    /// Committed metadata.
    Metadata(Arc<Image>),
    /// A client asks who leads.
    WhoLeads { partition: TopicPartition },
    /// The leader by the broker's image.
    Leads { leader: Option<BrokerId> },
    /// A client writes.
    Produce(Write),
    /// The answer: the offset, or an error.
    Produced { request: u64, answer: Result<Offset, ErrorCode> },
    /// A consumer reads.
    Consume { partition: TopicPartition, request: u64, position: Offset },
    /// The records that it may see, or an error.
    Consumed { request: u64, answer: Result<Vec<Seen>, ErrorCode> },
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Its offset.
    pub(crate) offset: Offset,
    /// The leader epoch it was written in.
    pub(crate) epoch: LeaderEpoch,
    /// Its value.
    pub(crate) value: String,
}

impl Message {
    /// Whether it belongs to a stream: in order, and never lost or doubled without the stream being lost too.
    pub(crate) fn stream(&self) -> Option<StreamId> {
        match self {
            Message::OpenStream { stream, .. }
            | Message::StreamClosed { stream }
            | Message::Fetch { stream, .. }
            | Message::Fetched { stream, .. } => Some(*stream),
            _ => None,
        }
    }

    /// A number for the trace hash.
    pub(crate) fn kind(&self) -> u64 {
        match self {
            Message::OpenStream { .. } => 1,
            Message::StreamClosed { .. } => 2,
            Message::Fetch { .. } => 3,
            Message::Fetched { .. } => 4,
            Message::AskBounds { .. } => 5,
            Message::Bounds { .. } => 6,
            Message::Register { .. } => 7,
            Message::Registered { .. } => 8,
            Message::Heartbeat { .. } => 9,
            Message::HeartbeatAnswered { .. } => 10,
            Message::AlterIsr { .. } => 11,
            Message::IsrAltered { .. } => 12,
            Message::Metadata(_) => 13,
            Message::WhoLeads { .. } => 14,
            Message::Leads { .. } => 15,
            Message::Produce(_) => 16,
            Message::Produced { .. } => 17,
            Message::Consume { .. } => 18,
            Message::Consumed { .. } => 19,
        }
    }
}
