//! The words of minikafka: ids, offsets, epochs, time, error codes, record batches and typed configuration.

pub mod batch;
pub mod config;
mod error_code;
mod ids;
mod time;

pub use error_code::ErrorCode;
pub use ids::{
    BrokerEpoch, BrokerId, ClusterId, ControllerId, DirectoryId, IncarnationId, LeaderEpoch, MetadataOffset,
    Offset, ParseUuidError, PartitionEpoch, PartitionIndex, ProducerEpoch, ProducerId, Sequence, Term,
    Ticket, TopicId, TopicPartition, Uuid,
};
pub use time::{Mono, Now, WallMs};
