//! Connections to brokers: one actor each, requests pipelined, answers matched in order.

mod actor;
mod pool;
mod socket;
mod versions;

pub(crate) use actor::{Begun, Connection};
pub(crate) use pool::{Lane, Pool};
pub use versions::OfferedVersions;
