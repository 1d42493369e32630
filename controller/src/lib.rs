//! The controller process: raft thread, metadata log, the desk of the active controller, the feed to brokers.

#![allow(dead_code, reason = "the raft thread that drives log and transport comes next")]

mod metadata_log;
mod peers;
mod raft_codec;
mod vote_file;
