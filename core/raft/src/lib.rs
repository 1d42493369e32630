//! A sans-io Raft for the metadata log: static voters, pre-vote, check-quorum, leadership transfer, snapshots.
//!
//! [`Raft`] is driven in a loop by its owner:
//!
//! 1. call [`Raft::step`] with the time, a read-only view of the log ([`RaftLog`]) and one [`Input`];
//! 2. perform the returned [`Effect`]s **in order**, each finished before the next is begun: a `SaveVote` is durable
//!    before a message behind it leaves, an `Append` is written (not yet synced) before the next `step`;
//! 3. after one or more `Sync` effects, make the log durable once and report [`Input::Persisted`];
//! 4. call `step` with [`Input::Tick`] no later than [`Raft::deadline`].
//!
//! Positions follow Kafka's words: an *end* is exclusive, entry 0 is the first one, and "committed end" is what Kafka calls
//! the high watermark of the metadata log. The rules for voters whose directory was wiped, and for the very first start,
//! stand in `membership.rs`.

mod config;
mod entry;
mod event;
mod follow;
mod lead;
mod log;
mod membership;
mod message;
mod progress;
mod raft;
mod random;
mod snapshot;
mod status;
mod step;
mod view;
mod vote;

pub use config::{ConfigError, Limits, RaftConfig, Span, Timers};
pub use entry::{Entry, HardState, Payload, PayloadError, VoterSet, VotersAt};
pub use event::{RaftEvent, StepDown};
pub use log::{LogReadError, RaftLog, SnapshotInfo};
pub use message::{
    AppendRequest, AppendResponse, Conflict, LogEnd, Message, SnapshotRequest, SnapshotResponse, VoteRefusal,
    VoteRequest, VoteResponse,
};
pub use raft::Raft;
pub use status::{RoleName, Status, VoterStatus, Waiting};
pub use step::{Broken, Effect, Input, RefusedProposal};
