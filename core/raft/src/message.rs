//! Messages between voters. Each travels with the sender's id; the transport may lose, delay, repeat and reorder them.

use bytes::Bytes;
use minikafka_model::{DirectoryId, MetadataOffset, Mono, Term};

use crate::{Entry, SnapshotInfo};

/// The end of a log, as votes compare it: terms first, then length (Kafka semantics 8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogEnd {
    /// Term of the last entry; `Term(0)` while the log is empty.
    pub last_term: Term,
    /// Offset after the last entry.
    pub end: MetadataOffset,
}

impl LogEnd {
    /// Whether nothing was ever written.
    pub fn is_empty(self) -> bool {
        self.end == MetadataOffset::ZERO
    }
}

/// Anything one voter says to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Asks for a vote, or whether one would be given.
    VoteRequest(VoteRequest),
    /// Answers it.
    VoteResponse(VoteResponse),
    /// The leader's entries, or none as heartbeat.
    AppendRequest(AppendRequest),
    /// What the follower holds.
    AppendResponse(AppendResponse),
    /// A piece of a snapshot.
    SnapshotRequest(SnapshotRequest),
    /// How far the follower is with it.
    SnapshotResponse(SnapshotResponse),
    /// The leader asks the receiver to campaign at once (leadership transfer).
    TimeoutNow {
        /// The leader's term.
        term: Term,
    },
}

impl Message {
    /// The term it speaks of.
    pub fn term(&self) -> Term {
        match self {
            Message::VoteRequest(m) => m.term,
            Message::VoteResponse(m) => m.term,
            Message::AppendRequest(m) => m.term,
            Message::AppendResponse(m) => m.term,
            Message::SnapshotRequest(m) => m.term,
            Message::SnapshotResponse(m) => m.term,
            Message::TimeoutNow { term } => *term,
        }
    }
}

/// Asks for a vote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoteRequest {
    /// The term the candidate would lead.
    pub term: Term,
    /// Only asks: changes nothing at the receiver (KIP-996).
    pub pre_vote: bool,
    /// The candidate's log.
    pub log: LogEnd,
    /// The candidate's directory.
    pub directory: DirectoryId,
    /// The directory that the candidate's log trusts the *receiver* to have; `None` while the candidate's log is empty.
    pub expected: Option<DirectoryId>,
    /// The old leader asked for this election: a voter may forsake it.
    pub transfer: bool,
}

/// Answers a [`VoteRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoteResponse {
    /// Granted: the term asked for. Refused: the answering voter's own term.
    pub term: Term,
    /// Whether it answers a pre-vote.
    pub pre_vote: bool,
    /// `None` is a grant.
    pub refusal: Option<VoteRefusal>,
    /// The answering voter's directory.
    pub directory: DirectoryId,
    /// Whether the answering voter's log is empty.
    pub log_is_empty: bool,
    /// What the answering voter knows to be committed.
    pub committed: MetadataOffset,
}

/// Why a vote was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum VoteRefusal {
    /// The request is of an old term.
    OldTerm,
    /// The voter hears from a leader.
    HasLeader,
    /// The candidate's log ends before the voter's.
    LogBehind,
    /// The voter gave its vote of this term to another.
    AlreadyVoted,
    /// The voter's directory is new to the quorum (wiped): it takes part again once the leader has committed it.
    NotAdmitted,
}

impl VoteRefusal {
    /// Every reason with its word on the wire.
    pub const ALL: [(VoteRefusal, &'static str); 5] = [
        (VoteRefusal::OldTerm, "old-term"),
        (VoteRefusal::HasLeader, "has-leader"),
        (VoteRefusal::LogBehind, "log-behind"),
        (VoteRefusal::AlreadyVoted, "already-voted"),
        (VoteRefusal::NotAdmitted, "not-admitted"),
    ];

    /// Its word on the wire and in texts.
    pub fn word(self) -> &'static str {
        match self {
            VoteRefusal::OldTerm => "old-term",
            VoteRefusal::HasLeader => "has-leader",
            VoteRefusal::LogBehind => "log-behind",
            VoteRefusal::AlreadyVoted => "already-voted",
            VoteRefusal::NotAdmitted => "not-admitted",
        }
    }

    /// Back from its word.
    pub fn from_word(word: &str) -> Option<VoteRefusal> {
        VoteRefusal::ALL.iter().find(|(_, w)| *w == word).map(|(refusal, _)| *refusal)
    }
}

/// The leader's entries from `start` on; without entries a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendRequest {
    /// The leader's term.
    pub term: Term,
    /// Where the entries begin.
    pub start: MetadataOffset,
    /// Term of the entry just before `start`; `Term(0)` if there is none.
    pub start_term: Term,
    /// The entries.
    pub entries: Vec<Entry>,
    /// What the leader knows to be committed (exclusive end).
    pub committed: MetadataOffset,
    /// Rises with every message of this leader; the answer repeats it.
    pub sequence: u64,
    /// The leader's clock when it was sent; the answer repeats it.
    pub sent_at: Mono,
}

/// What the follower holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendResponse {
    /// The follower's term; above the leader's it ends the leader.
    pub term: Term,
    /// Up to here the follower's log equals the leader's and is durable.
    pub durable: MetadataOffset,
    /// Up to here the follower's log equals the leader's.
    pub received: MetadataOffset,
    /// Present if the request did not fit the follower's log.
    pub conflict: Option<Conflict>,
    /// The follower's directory.
    pub directory: DirectoryId,
    /// From the request.
    pub sequence: u64,
    /// From the request.
    pub sent_at: Mono,
}

/// Where the follower's log differs from what the leader assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// Term of the follower's entry before the request's start; `None` if its log ends earlier.
    pub term: Option<Term>,
    /// First offset of that term in the follower's log; without a term, the end of its log.
    pub offset: MetadataOffset,
}

/// A piece of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotRequest {
    /// The leader's term.
    pub term: Term,
    /// Which snapshot.
    pub info: SnapshotInfo,
    /// Where this piece begins.
    pub position: u64,
    /// The piece.
    pub chunk: Bytes,
    /// As in [`AppendRequest`].
    pub sequence: u64,
    /// As in [`AppendRequest`].
    pub sent_at: Mono,
}

/// How far the follower is with a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotResponse {
    /// The follower's term.
    pub term: Term,
    /// Which snapshot.
    pub end: MetadataOffset,
    /// The next byte wanted.
    pub next_position: u64,
    /// It is installed, and durable.
    pub done: bool,
    /// The follower's directory.
    pub directory: DirectoryId,
    /// From the request.
    pub sequence: u64,
    /// From the request.
    pub sent_at: Mono,
}
