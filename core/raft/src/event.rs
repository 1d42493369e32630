//! What is worth telling: kept in the node's event ring and written to its log by the shell.

use std::fmt;

use minikafka_model::{ControllerId, DirectoryId, MetadataOffset, Term};

use crate::VoteRefusal;

/// A turn in the life of the quorum, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RaftEvent {
    /// This node asks whether it could win an election.
    PreVoteStarted {
        /// The term it would lead.
        term: Term,
    },
    /// This node asks for votes.
    ElectionStarted {
        /// The term.
        term: Term,
        /// Whether the old leader asked for it.
        transfer: bool,
    },
    /// This node leads.
    Elected {
        /// The term.
        term: Term,
        /// Its voters.
        votes: Vec<ControllerId>,
    },
    /// This node leads no more.
    SteppedDown {
        /// The term it led.
        term: Term,
        /// Why.
        why: StepDown,
    },
    /// This node follows a leader.
    Following {
        /// The leader.
        leader: ControllerId,
        /// Its term.
        term: Term,
    },
    /// The leader went silent, or its process closed the connection.
    LeaderLost {
        /// The leader.
        leader: ControllerId,
        /// The term.
        term: Term,
        /// Closed by its process, as opposed to silent.
        closed: bool,
    },
    /// This node refused a vote.
    VoteRefused {
        /// To whom.
        candidate: ControllerId,
        /// Term asked for.
        term: Term,
        /// Whether it was a pre-vote.
        pre_vote: bool,
        /// Why.
        why: VoteRefusal,
    },
    /// Entries that never were committed were removed, because the leader has others.
    Truncated {
        /// Old end.
        from: MetadataOffset,
        /// New end.
        to: MetadataOffset,
        /// The leader.
        leader: ControllerId,
    },
    /// A voter set was committed.
    VotersCommitted {
        /// Its offset.
        offset: MetadataOffset,
        /// The voters.
        voters: crate::VoterSet,
    },
    /// The leader met a voter with a new directory and proposes to admit it.
    AdmittingVoter {
        /// The voter.
        voter: ControllerId,
        /// Its former directory.
        old: DirectoryId,
        /// Its new one.
        new: DirectoryId,
    },
    /// Leadership is being handed over.
    TransferStarted {
        /// To whom.
        to: ControllerId,
    },
    /// The transfer did not happen in time.
    TransferGivenUp {
        /// To whom.
        to: ControllerId,
    },
    /// A snapshot is being sent to a voter whose log ends before ours begins.
    SendingSnapshot {
        /// To whom.
        to: ControllerId,
        /// Its end.
        end: MetadataOffset,
        /// Its bytes.
        size: u64,
    },
    /// The state was replaced by a snapshot of the leader.
    InstalledSnapshot {
        /// Its end.
        end: MetadataOffset,
        /// Term of its last entry.
        last_term: Term,
    },
}

/// Why a leader stepped down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepDown {
    /// Somebody is at a newer term.
    NewerTerm {
        /// Who said so.
        peer: ControllerId,
        /// The term.
        term: Term,
    },
    /// No contact with a majority for the check-quorum time.
    NoMajority {
        /// Voters in contact, this node included.
        reachable: usize,
        /// Voters needed.
        needed: usize,
    },
}

impl RaftEvent {
    /// A short word that programs may compare.
    pub fn reason(&self) -> &'static str {
        match self {
            RaftEvent::PreVoteStarted { .. } => "pre-vote-started",
            RaftEvent::ElectionStarted { .. } => "election-started",
            RaftEvent::Elected { .. } => "elected",
            RaftEvent::SteppedDown { why: StepDown::NewerTerm { .. }, .. } => "newer-term",
            RaftEvent::SteppedDown { why: StepDown::NoMajority { .. }, .. } => "no-majority",
            RaftEvent::Following { .. } => "following",
            RaftEvent::LeaderLost { closed: true, .. } => "leader-closed",
            RaftEvent::LeaderLost { closed: false, .. } => "leader-silent",
            RaftEvent::VoteRefused { .. } => "vote-refused",
            RaftEvent::Truncated { .. } => "truncated",
            RaftEvent::VotersCommitted { .. } => "voters-committed",
            RaftEvent::AdmittingVoter { .. } => "admitting-voter",
            RaftEvent::TransferStarted { .. } => "transfer-started",
            RaftEvent::TransferGivenUp { .. } => "transfer-given-up",
            RaftEvent::SendingSnapshot { .. } => "sending-snapshot",
            RaftEvent::InstalledSnapshot { .. } => "installed-snapshot",
        }
    }
}

fn ids(list: &[ControllerId]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for RaftEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RaftEvent::PreVoteStarted { term } => {
                write!(f, "asks the voters about an election for term {term}")
            }
            RaftEvent::ElectionStarted { term, transfer: false } => {
                write!(f, "asks for votes in term {term}")
            }
            RaftEvent::ElectionStarted { term, transfer: true } => {
                write!(f, "asks for votes in term {term}, because the old leader hands over")
            }
            RaftEvent::Elected { term, votes } => {
                write!(f, "was elected leader of term {term} by the voters {}", ids(votes))
            }
            RaftEvent::SteppedDown { term, why: StepDown::NewerTerm { peer, term: newer } } => {
                write!(f, "stepped down as leader of term {term}: controller {peer} is at term {newer}")
            }
            RaftEvent::SteppedDown { term, why: StepDown::NoMajority { reachable, needed } } => write!(
                f,
                "stepped down as leader of term {term}: in contact with {reachable} voters (itself included), {needed} are needed"
            ),
            RaftEvent::Following { leader, term } => {
                write!(f, "follows controller {leader}, leader of term {term}")
            }
            RaftEvent::LeaderLost { leader, term, closed: true } => {
                write!(f, "leader {leader} of term {term} closed its connection")
            }
            RaftEvent::LeaderLost { leader, term, closed: false } => {
                write!(f, "leader {leader} of term {term} has gone silent")
            }
            RaftEvent::VoteRefused { candidate, term, pre_vote, why } => write!(
                f,
                "refused its {} to controller {candidate} for term {term}: {}",
                if *pre_vote { "pre-vote" } else { "vote" },
                why.word()
            ),
            RaftEvent::Truncated { from, to, leader } => write!(
                f,
                "truncated the uncommitted end of the metadata log from {from} to {to} to match leader {leader}"
            ),
            RaftEvent::VotersCommitted { offset, voters } => {
                write!(f, "the voter set at offset {offset} is committed: {voters}")
            }
            RaftEvent::AdmittingVoter { voter, old, new } => write!(
                f,
                "voter {voter} came back with the directory {new} instead of {old}: it neither votes nor counts until its new \
                 directory is committed"
            ),
            RaftEvent::TransferStarted { to } => write!(f, "hands leadership over to controller {to}"),
            RaftEvent::TransferGivenUp { to } => {
                write!(f, "controller {to} did not take leadership over in time; leads on")
            }
            RaftEvent::SendingSnapshot { to, end, size } => {
                write!(f, "sends controller {to} the snapshot that ends at {end} ({size} bytes)")
            }
            RaftEvent::InstalledSnapshot { end, last_term } => {
                write!(f, "installed the leader's snapshot that ends at {end} (term {last_term})")
            }
        }
    }
}
