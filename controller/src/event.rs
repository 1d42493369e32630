//! What a controller keeps in its ring.

use std::fmt;

use minikafka_control::ControlEvent;
use minikafka_model::Term;
use minikafka_raft::RaftEvent;
use serde::Serialize;

/// A turn in the life of a controller.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum ControllerEvent {
    /// A decision of the active controller.
    Control(ControlEvent),
    /// Of the quorum.
    Quorum {
        /// A word.
        kind: &'static str,
        /// The sentence.
        reason: String,
    },
}

impl ControllerEvent {
    pub(crate) fn active(term: Term) -> ControllerEvent {
        let reason = format!("this controller is active in term {term}");
        ControllerEvent::Quorum { kind: "controller_active", reason }
    }

    pub(crate) fn of_raft(event: &RaftEvent) -> ControllerEvent {
        let kind = match event {
            RaftEvent::PreVoteStarted { .. } => "quorum_pre_vote",
            RaftEvent::ElectionStarted { .. } => "quorum_election_started",
            RaftEvent::Elected { .. } => "quorum_elected",
            RaftEvent::SteppedDown { .. } => "quorum_stepped_down",
            RaftEvent::Following { .. } => "quorum_following",
            RaftEvent::LeaderLost { .. } => "quorum_leader_lost",
            RaftEvent::VoteRefused { .. } => "quorum_vote_refused",
            RaftEvent::Truncated { .. } => "quorum_truncation",
            RaftEvent::VotersCommitted { .. } | RaftEvent::AdmittingVoter { .. } => "quorum_voters",
            RaftEvent::TransferStarted { .. } | RaftEvent::TransferGivenUp { .. } => "quorum_transfer",
            RaftEvent::SendingSnapshot { .. } | RaftEvent::InstalledSnapshot { .. } => "quorum_snapshot",
        };
        ControllerEvent::Quorum { kind, reason: event.to_string() }
    }
}

impl fmt::Display for ControllerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerEvent::Control(event) => event.fmt(f),
            ControllerEvent::Quorum { reason, .. } => f.write_str(reason),
        }
    }
}
