//! gRPC contracts between nodes and the only conversions to and from them.
//!
//! Three packages: [`raft`] between controllers, [`cluster`] between brokers and controllers, [`replica`] between brokers.

mod convert_replica;

pub use convert_replica::{Malformed, PartitionAsk, PeerBroker};

/// `minikafka.raft.v1`: the Raft of the metadata log, controller to controller.
#[allow(missing_docs, unused_qualifications, clippy::all)]
pub mod raft {
    tonic::include_proto!("minikafka.raft.v1");
}

/// `minikafka.cluster.v1`: registration, heartbeats, ISR changes, admin commands and the metadata feed.
#[allow(missing_docs, unused_qualifications, clippy::all)]
pub mod cluster {
    tonic::include_proto!("minikafka.cluster.v1");
}

/// `minikafka.replica.v1`: follower fetch.
#[allow(missing_docs, unused_qualifications, clippy::all)]
pub mod replica {
    tonic::include_proto!("minikafka.replica.v1");
}

/// Level of the contracts, exchanged in every handshake. A peer of another level is refused by name.
pub const PROTOCOL_LEVEL: u32 = 1;
