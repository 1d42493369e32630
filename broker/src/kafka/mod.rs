//! The door for Kafka clients: listeners, connections, dispatch and one handler file per API.

mod answer;
mod cluster_view;
mod connection;
mod dispatch;
mod error_map;
mod fetch_sessions;
mod frame_reader;
mod handlers;
mod listener;
mod payload;
mod preface;

pub(crate) use dispatch::Dispatch;
pub(crate) use error_map::Coded;
pub(crate) use fetch_sessions::FetchSessions;
pub(crate) use listener::{BindError, BoundListener, Door, accept_all};
pub(crate) use preface::Rewound;
