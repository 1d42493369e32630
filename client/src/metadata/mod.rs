//! What this client believes about the cluster: brokers, topics, leaders; and the task that keeps it fresh.

mod keeper;
mod view;

pub(crate) use keeper::Keeper;
pub use view::{Broker, ClusterView, PartitionView, TopicView};
pub(crate) use view::{LeaderHint, broker_from_wire, node};

#[cfg(test)]
pub(crate) use view::tests::view as test_view;
