//! What goes into a Raft node and what comes out.

use bytes::Bytes;
use minikafka_model::{ControllerId, MetadataOffset, Term, Ticket};

use crate::{Entry, HardState, Message, RaftEvent, RoleName, SnapshotInfo};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// Time passed (the time is an argument of `step`).
    Tick,
    /// A voter said something.
    Message {
        /// Who.
        from: ControllerId,
        /// What.
        message: Message,
    },
    /// Entries to be appended, one per payload, in order. Answered at once by `Proposed` or `Refused`.
    Propose {
        /// Names the caller.
        ticket: Ticket,
        /// One entry each.
        payloads: Vec<Bytes>,
    },
    /// Everything before `end` is durable in the log.
    Persisted {
        /// The log's end when the sync began.
        end: MetadataOffset,
        /// Term of the last entry before `end`: a report from before a truncation is recognised by it.
        last_term: Term,
    },
    /// The connection from this voter was closed by its process (or its machine said it is gone). A silence is not a close.
    PeerClosed(ControllerId),
    /// A connection with this voter came to be.
    PeerOpened(ControllerId),
    /// Hand leadership over: to this voter, or to the one that holds most.
    TransferLeadership {
        /// To whom.
        to: Option<ControllerId>,
    },
    /// The log now starts here, because a snapshot at or after it is durable.
    Trimmed {
        /// The new first offset.
        start: MetadataOffset,
    },
    /// The snapshot of an `InstallSnapshot` effect is durable, the log is empty and starts at its end.
    SnapshotInstalled(SnapshotInfo),
    /// The snapshot of an `InstallSnapshot` effect did not pass its checks and was thrown away.
    SnapshotRejected(SnapshotInfo),
}

/// Something to do, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make this durable (file written, synced, renamed) before anything behind it is done.
    SaveVote(HardState),
    /// Remove all entries from `to` on.
    Truncate {
        /// The new end.
        to: MetadataOffset,
    },
    /// Write these at the end of the log. They need not be durable yet.
    Append(Vec<Entry>),
    /// Make the log durable soon (once for many of these) and report `Persisted`.
    Sync,
    /// Say this to a voter. May be lost.
    Send {
        /// To whom.
        to: ControllerId,
        /// What.
        message: Message,
    },
    /// Everything before `end` is committed and may be applied.
    Committed {
        /// Exclusive.
        end: MetadataOffset,
    },
    /// Role, term or known leader changed.
    RoleChanged {
        /// The role now.
        role: RoleName,
        /// The term now.
        term: Term,
        /// Who leads, if known.
        leader: Option<ControllerId>,
    },
    /// A proposal was appended as the entries `first..end` of `term`. Whether they commit shows later: they did when
    /// `Committed` reaches `end` while this node still leads `term`; after a step down the outcome is unknown.
    Proposed {
        /// Whose.
        ticket: Ticket,
        /// First entry.
        first: MetadataOffset,
        /// Exclusive end.
        end: MetadataOffset,
        /// The leader's term.
        term: Term,
    },
    /// A proposal was not appended: it certainly has no effect.
    Refused {
        /// Whose.
        ticket: Ticket,
        /// Why.
        why: RefusedProposal,
    },
    /// Write these bytes of a snapshot that is being received; `position` 0 begins anew.
    WriteSnapshot {
        /// Which.
        info: SnapshotInfo,
        /// Where.
        position: u64,
        /// The bytes.
        chunk: Bytes,
    },
    /// All bytes of the snapshot were written: check it, make it durable, replace the log and the state by it, and report
    /// `SnapshotInstalled` or `SnapshotRejected`.
    InstallSnapshot(SnapshotInfo),
    /// Something worth telling.
    Event(RaftEvent),
    /// A rule that must hold does not. The node takes no part any more; the process should end.
    Halt(Broken),
}

/// Why a proposal was not appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedProposal {
    /// Another node leads, or nobody.
    NotLeader {
        /// Who leads, if known.
        leader: Option<ControllerId>,
    },
    /// Leadership is being handed over.
    Transferring {
        /// To whom.
        to: ControllerId,
    },
    /// Too much is proposed and not yet committed.
    Busy,
}

/// A rule that was found broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A leader wants an entry removed that is committed.
    #[error("leader {leader} of term {term} contradicts the committed entry {offset}")]
    CommittedConflict {
        /// Who.
        leader: ControllerId,
        /// Its term.
        term: Term,
        /// Which entry.
        offset: MetadataOffset,
    },
    /// Two leaders in one term.
    #[error("controller {other} acts as leader of term {term}, which this node leads")]
    TwoLeaders {
        /// The other one.
        other: ControllerId,
        /// The term.
        term: Term,
    },
    /// The leader names more committed than its own log holds.
    #[error("controller {peer} holds {end} committed entries, more than the log of the leader")]
    LostCommitted {
        /// Who knows of them.
        peer: ControllerId,
        /// What it knows.
        end: MetadataOffset,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] crate::LogReadError),
}
