//! Brokers in process, over real sockets: framing, pipelining, bounds, writing and reading, replication, failover.

mod client;
mod cluster;
mod controller;
mod doors;
mod replication;
