//! What a replica wants done. The shell performs effects in their order, after it has let go of the replica's lock.

use std::collections::{BTreeMap, BTreeSet};

use minikafka_model::{BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, Offset, PartitionEpoch, Ticket};

use crate::{ProduceDone, ReplicaEvent};

/// Names a follower's stream to this broker. The shell hands them out and never uses one twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// Something to do for a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Answer a write that waited.
    Produced {
        /// The caller.
        ticket: Ticket,
        /// What became of it.
        done: ProduceDone,
    },
    /// A parked consumer fetch should look again. It is no longer parked here.
    WakeFetch {
        /// The caller.
        ticket: Ticket,
    },
    /// This partition has news for a follower's stream: mark it ready in the stream's [`LeaderSession`](crate::LeaderSession).
    WakeStream {
        /// The stream.
        stream: StreamId,
    },
    /// Ask the controller to change the ISR, and bring the answer to [`Replica::isr_answered`](crate::Replica::isr_answered).
    ProposeIsr(IsrProposal),
    /// Forget a proposal that has not been sent yet.
    WithdrawIsr,
    /// Write `leader-epoch-checkpoint` durably (outside the lock), then call
    /// [`Replica::epochs_written`](crate::Replica::epochs_written) with the leader epoch.
    WriteEpochs {
        /// The leader epoch of the replica that asked.
        leader_epoch: LeaderEpoch,
        /// Rises with each of these effects: a writer skips one that is older than what it has written.
        version: u64,
        /// The whole content, ascending: epochs and their start offsets.
        entries: Vec<(LeaderEpoch, Offset)>,
    },
    /// What this follower wants to ask has changed, outside of an answer to it: take
    /// [`Replica::ask`](crate::Replica::ask) into the fetcher's session, or leave the partition out if there is none.
    AskChanged,
    /// Keep and tell this event.
    Emit(ReplicaEvent),
    /// The log failed. The replica is offline; its log directory must go offline with every replica in it.
    LogFailed {
        /// What the storage said.
        error: String,
    },
}

/// An ISR change for the controller (AlterPartition, Kafka semantics 2.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsrProposal {
    /// The proposer's leader epoch.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch that the change builds on (compare and set).
    pub partition_epoch: PartitionEpoch,
    /// The ISR wanted, each member with the epoch of the process that was seen to be in sync; `None` skips the check.
    pub isr: BTreeMap<BrokerId, Option<BrokerEpoch>>,
}

/// The controller's answer to a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IsrAnswer {
    /// Accepted and committed (or nothing had to change).
    Accepted {
        /// The committed ISR.
        isr: BTreeSet<BrokerId>,
        /// The leader epoch that goes with it.
        leader_epoch: LeaderEpoch,
        /// The partition epoch that goes with it.
        partition_epoch: PartitionEpoch,
    },
    /// INELIGIBLE_REPLICA or OPERATION_NOT_ATTEMPTED: proof that nothing was changed. Back to the committed ISR.
    NotApplied,
    /// Only newer metadata can tell (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION,
    /// INVALID_REQUEST, NEW_LEADER_ELECTED): stay in the undecided state, send nothing.
    AwaitMetadata,
    /// Anything else, a time-out or a lost connection included: the same change is sent again.
    TryAgain,
}

impl IsrAnswer {
    /// What an error of the controller means for the proposal (Kafka semantics 2.7).
    pub const fn of_code(code: ErrorCode) -> IsrAnswer {
        match code {
            ErrorCode::OperationNotAttempted | ErrorCode::IneligibleReplica => IsrAnswer::NotApplied,
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::InvalidUpdateVersion
            | ErrorCode::InvalidRequest
            | ErrorCode::NewLeaderElected => IsrAnswer::AwaitMetadata,
            _ => IsrAnswer::TryAgain,
        }
    }
}
