//! What a Raft node is told at its start.

use std::collections::BTreeSet;
use std::time::Duration;

use minikafka_model::{ControllerId, DirectoryId};

/// A range from which a waiting time is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Shortest.
    pub min: Duration,
    /// Longest.
    pub max: Duration,
}

impl Span {
    /// From milliseconds.
    pub const fn millis(min: u64, max: u64) -> Span {
        Span { min: Duration::from_millis(min), max: Duration::from_millis(max) }
    }
}

/// Waiting times. The defaults are our own (ARCHITECTURE.md); Kafka's `controller.quorum.*` keys override them in the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// The leader speaks to every follower at least this often.
    pub heartbeat: Duration,
    /// A follower that heard nothing from its leader for a time drawn from here starts a pre-vote. Within the shorter
    /// bound it refuses to help anyone else to an election.
    pub patience: Span,
    /// An election that came to nothing is tried again after a time drawn from here.
    pub retry: Span,
    /// How soon a pre-vote starts when the leader's process closed its connection, when a voter without a leader meets
    /// another one, at the start, and after a split vote. Safe to be short, because a pre-vote disturbs nobody.
    pub hurry: Span,
    /// A leader that had no contact with a majority for this long steps down.
    pub check_quorum: Duration,
    /// A leadership transfer that has not happened by then is given up, and the leader takes proposals again.
    pub transfer: Duration,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            heartbeat: Duration::from_millis(100),
            patience: Span::millis(500, 1000),
            retry: Span::millis(500, 1000),
            hurry: Span::millis(50, 150),
            check_quorum: Duration::from_millis(1000),
            transfer: Duration::from_millis(1000),
        }
    }
}

/// Bounds of memory and of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Payload bytes in one append message (a single larger entry still travels, alone).
    pub append_bytes: usize,
    /// Append messages with entries on their way to one follower.
    pub in_flight: usize,
    /// Bytes of a snapshot in one message.
    pub snapshot_chunk_bytes: usize,
    /// Payload bytes proposed and not yet durable here or not yet committed; beyond it proposals are refused.
    pub uncommitted_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            append_bytes: 1 << 20,
            in_flight: 16,
            snapshot_chunk_bytes: 512 << 10,
            uncommitted_bytes: 64 << 20,
        }
    }
}

/// Everything a node is told at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaftConfig {
    /// This node.
    pub id: ControllerId,
    /// `directory.id` of this node's metadata directory: another id means that the directory was wiped.
    pub directory: DirectoryId,
    /// The configured voters (`controller.quorum.voters`), this node among them. They never change.
    pub voters: BTreeSet<ControllerId>,
    /// Waiting times.
    pub timers: Timers,
    /// Bounds.
    pub limits: Limits,
    /// Seed of this node's random waiting times. Must differ from node to node and from start to start.
    pub seed: u64,
}

/// Why a node cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The node does not find itself among the voters.
    #[error(
        "controller {id} is not in controller.quorum.voters ({voters:?}): add it there or correct node.id"
    )]
    NotAVoter {
        /// This node.
        id: ControllerId,
        /// The configured voters.
        voters: Vec<i32>,
    },
    /// The log was founded with other voters than configured.
    #[error(
        "controller.quorum.voters says {configured:?}, but this metadata log belongs to the voters {founded:?}: voters are \
         static, set the key back or start with an empty directory on all controllers"
    )]
    OtherVoters {
        /// Ids of `controller.quorum.voters`.
        configured: Vec<i32>,
        /// Ids in the log.
        founded: Vec<i32>,
    },
    /// The log could not be read at the start.
    #[error(transparent)]
    Log(#[from] crate::LogReadError),
}
