//! The door for followers: gRPC on the inter-broker listener.

mod chunks;
mod door;
mod stream;

pub(crate) use door::{CONNECTION_WINDOW, CONNECTIONS, ReplicaDoor, STREAM_WINDOW, serve_grpc};
