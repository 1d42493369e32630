//! The Kafka wire protocol: one field table per API gives both directions of the codec, the documentation and the sample bytes.
//!
//! A broker cuts a frame from the socket (without its four length bytes), reads the header with [`RequestFrame::parse`], the body
//! with [`RequestFrame::decode`], and answers with [`encode_response`]. A client sends [`encode_request`] and reads
//! [`decode_response`]. Each API has a module with its structures, for example [`produce`]; sentinels such as -1 live in
//! these structures and nowhere else. Fields that a version does not carry are left out when writing and hold their default after reading;
//! unknown tagged fields are skipped.
//!
//! Record sets are never copied: what is read is a slice of the frame, and what is written stands as a slice of its own in the
//! [`Frame`]. No bytes make a reader panic, and no frame makes it take more than [`MEMORY_PER_BYTE`] times its length
//! (and [`MEMORY_FLOOR`]); structures do not contain themselves, so nesting is bounded by the tables.

#[macro_use]
mod macros;

pub mod api;
pub mod codec;
pub mod doc;
mod error;
mod frame;
mod message;
mod messages;
mod reader;
mod records;
pub mod seed;
pub mod table;
mod versions;
mod writer;

pub use api::{APIS, Api, ApiKey, Direction, Request, Response};
pub use error::{Problem, WireError};
pub use frame::Frame;
pub use message::{
    RequestFrame, RequestHeader, RequestRefusal, decode_response, encode_api_versions_fallback,
    encode_request, encode_response, peek_correlation_id,
};
pub use messages::{
    alter_configs, alter_partition_reassignments, api_versions, create_partitions, create_topics,
    delete_topics, describe_cluster, describe_configs, describe_log_dirs, describe_quorum,
    describe_topic_partitions, elect_leaders, fetch, incremental_alter_configs, init_producer_id,
    list_offsets, list_partition_reassignments, metadata, offset_for_leader_epoch, produce,
    unregister_broker, update_features,
};
pub use reader::{MEMORY_FLOOR, MEMORY_PER_BYTE, Reader};
pub use records::Records;
pub use versions::Versions;
pub use writer::{INLINE_RECORDS, Writer};
