//! What a Raft node says about itself: for `/v1/state`, DescribeQuorum and texts.

use std::fmt;

use minikafka_model::{ControllerId, DirectoryId, MetadataOffset, Mono, Term};

/// The role of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoleName {
    /// Follows, or waits for, a leader.
    Follower,
    /// Asks whether it could win an election (Kafka: prospective).
    PreCandidate,
    /// Asks for votes.
    Candidate,
    /// Leads.
    Leader,
}

impl RoleName {
    /// Lower-case word.
    pub const fn word(self) -> &'static str {
        match self {
            RoleName::Follower => "follower",
            RoleName::PreCandidate => "prospective",
            RoleName::Candidate => "candidate",
            RoleName::Leader => "leader",
        }
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The whole picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// This node.
    pub id: ControllerId,
    /// Its role.
    pub role: RoleName,
    /// Its term.
    pub term: Term,
    /// Who leads, if known.
    pub leader: Option<ControllerId>,
    /// What is known to be committed (exclusive): Kafka's high watermark of the metadata log.
    pub committed: MetadataOffset,
    /// First offset of the log.
    pub log_start: MetadataOffset,
    /// Log end offset.
    pub log_end: MetadataOffset,
    /// What of the log is durable.
    pub durable: MetadataOffset,
    /// One for each voter. The numbers are known only to the leader (and everyone's own to itself).
    pub voters: Vec<VoterStatus>,
    /// Why there is no leader yet, or why this node takes no part.
    pub waiting: Option<Waiting>,
    /// To whom leadership is being handed over.
    pub transferring_to: Option<ControllerId>,
}

/// A voter as the leader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoterStatus {
    /// Who.
    pub id: ControllerId,
    /// Its directory, where known.
    pub directory: Option<DirectoryId>,
    /// Its durable log end, where known (DescribeQuorum's log end offset).
    pub match_end: Option<MetadataOffset>,
    /// When it last answered: the time the answered message was sent.
    pub last_contact: Option<Mono>,
    /// The last time it was known to hold all of the leader's log.
    pub last_caught_up: Option<Mono>,
    /// Whether its acknowledgements and votes count (its directory is the committed one).
    pub counts: bool,
    /// Whether it is being sent a snapshot.
    pub snapshot: bool,
}

/// What a node without a leader waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// The very first start needs every voter once, with an empty log.
    FirstStart {
        /// Not heard from yet, or without an empty log.
        missing: Vec<ControllerId>,
    },
    /// This node's directory is not the one the quorum knows: it waits until the leader has admitted it.
    Admission {
        /// The directory the quorum knows.
        known: DirectoryId,
        /// The directory of this node.
        own: DirectoryId,
    },
    /// More voters are needed for a majority.
    Majority {
        /// Not heard from since the last election attempt, or refusing.
        missing: Vec<ControllerId>,
    },
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names =
            |list: &[ControllerId]| list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Waiting::FirstStart { missing } => {
                write!(f, "the first start needs every voter once; waiting for {}", names(missing))
            }
            Waiting::Admission { known, own } => write!(
                f,
                "the directory of this voter is {own}, the quorum knows {known}: waiting until the leader has admitted the new one"
            ),
            Waiting::Majority { missing } => {
                write!(f, "no leader; waiting for a majority, not heard from {}", names(missing))
            }
        }
    }
}
