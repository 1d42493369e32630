//! The controller process: raft thread, metadata log, the desk of the active controller, the feed to brokers.

mod metadata_log;
mod peers;
mod raft_codec;
mod vote_file;

pub use metadata_log::{MetadataLog, MetadataLogError, read_entries};
pub use vote_file::{VOTE_FILE, VoteFile};
