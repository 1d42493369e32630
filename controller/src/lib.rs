//! The controller process: raft thread, metadata log, the desk of the active controller, the feed to brokers.

mod cluster_codec;
mod cluster_door;
mod core;
mod event;
mod metadata_log;
mod peers;
mod raft_codec;
mod start;
mod surface;
mod vote_file;

pub use crate::core::DeskError;
pub use event::ControllerEvent;
pub use metadata_log::{MetadataLog, MetadataLogError, read_entries};
pub use start::{Controller, ControllerHandle, run};
pub use vote_file::{VOTE_FILE, VoteFile};
