//! Messages about nodes, configs and the cluster as a whole.

pub mod alter_configs;
pub mod api_versions;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_log_dirs;
pub mod describe_quorum;
pub mod incremental_alter_configs;
pub mod unregister_broker;
pub mod update_features;
