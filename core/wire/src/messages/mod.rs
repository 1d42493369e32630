//! The field tables, one file per API. They are the single source of both directions of the codec, of `docs/protocol.md` and of sample
//! bytes; a test compares them with the layouts of Kafka 4.4.

mod cluster;
mod data;
mod topics;

pub use cluster::{
    alter_configs, api_versions, describe_cluster, describe_configs, describe_log_dirs, describe_quorum,
    incremental_alter_configs, unregister_broker, update_features,
};
pub use data::{fetch, init_producer_id, list_offsets, offset_for_leader_epoch, produce};
pub use topics::{
    alter_partition_reassignments, create_partitions, create_topics, delete_topics,
    describe_topic_partitions, elect_leaders, list_partition_reassignments, metadata,
};
