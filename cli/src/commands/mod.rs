//! The commands that ask a cluster over the Kafka protocol.

mod api_versions;
mod cluster;
mod connect;
mod consume;
mod describe;
mod health;
mod log_dump;
mod produce;
mod template;
mod topic;

pub(crate) use api_versions::api_versions;
pub(crate) use cluster::info;
pub(crate) use consume::consume;
pub(crate) use health::health;
pub(crate) use log_dump::log_dump;
pub(crate) use produce::produce;
pub(crate) use topic::topic;
