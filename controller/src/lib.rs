//! The controller process: raft thread, metadata log, the desk of the active controller, the feed to brokers.

#![allow(dead_code, reason = "the raft thread that drives the transport comes next")]

mod peers;
mod raft_codec;
