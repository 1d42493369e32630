//! The one table from outcomes to Kafka's error codes. No wildcard arm: a new outcome does not compile until it has a code.

use minikafka_model::ErrorCode;
use minikafka_replication::{
    BatchRefusal, EpochEndAnswer, NotServed, OffsetAnswer, ProduceDone, ProduceRefusal,
};

use crate::controller_link::CallError;
use crate::service::{ReadAnswer, WriteOutcome};

/// Something that ends with one of Kafka's codes.
pub(crate) trait Coded {
    /// The code.
    fn code(&self) -> ErrorCode;
}

impl Coded for NotServed {
    fn code(&self) -> ErrorCode {
        match self {
            NotServed::NotLeader => ErrorCode::NotLeaderOrFollower,
            NotServed::FencedEpoch { .. } => ErrorCode::FencedLeaderEpoch,
            NotServed::UnknownEpoch { .. } => ErrorCode::UnknownLeaderEpoch,
            NotServed::Offline => ErrorCode::KafkaStorageError,
        }
    }
}

impl Coded for BatchRefusal {
    fn code(&self) -> ErrorCode {
        self.0
    }
}

impl Coded for ProduceRefusal {
    fn code(&self) -> ErrorCode {
        match self {
            ProduceRefusal::NotServed(refused) => Coded::code(refused),
            ProduceRefusal::NotEnoughReplicas(_) => ErrorCode::NotEnoughReplicas,
            ProduceRefusal::Batch(refusal) => refusal.code(),
            ProduceRefusal::LargerThanSegment { .. } => ErrorCode::RecordListTooLarge,
            ProduceRefusal::Producer { code, .. } => *code,
        }
    }
}

impl Coded for ProduceDone {
    fn code(&self) -> ErrorCode {
        match self {
            ProduceDone::Committed(_) => ErrorCode::None,
            ProduceDone::TimedOut(_) => ErrorCode::RequestTimedOut,
            ProduceDone::LeadershipLost(_) => ErrorCode::NotLeaderOrFollower,
            ProduceDone::TooFewAfterAppend(_) => ErrorCode::NotEnoughReplicasAfterAppend,
            ProduceDone::Offline(_) => ErrorCode::KafkaStorageError,
            ProduceDone::Deleted(_) => ErrorCode::UnknownTopicOrPartition,
        }
    }
}

impl Coded for WriteOutcome {
    fn code(&self) -> ErrorCode {
        match self {
            WriteOutcome::Written(_) => ErrorCode::None,
            WriteOutcome::Waited(done) => Coded::code(done),
            WriteOutcome::Refused(refusal) => refusal.code(),
            WriteOutcome::NotHosted => ErrorCode::NotLeaderOrFollower,
        }
    }
}

impl Coded for ReadAnswer {
    fn code(&self) -> ErrorCode {
        match self {
            ReadAnswer::Records { .. } | ReadAnswer::Diverging(..) => ErrorCode::None,
            ReadAnswer::OutOfRange => ErrorCode::OffsetOutOfRange,
            ReadAnswer::Refused(refused) => Coded::code(refused),
            ReadAnswer::NotHosted => ErrorCode::NotLeaderOrFollower,
        }
    }
}

impl Coded for OffsetAnswer {
    fn code(&self) -> ErrorCode {
        match self {
            OffsetAnswer::At { .. } | OffsetAnswer::NotFound => ErrorCode::None,
            OffsetAnswer::NotAvailable => ErrorCode::OffsetNotAvailable,
            OffsetAnswer::Refused(refused) => Coded::code(refused),
        }
    }
}

impl Coded for EpochEndAnswer {
    fn code(&self) -> ErrorCode {
        match self {
            EpochEndAnswer::Found(_) | EpochEndAnswer::Unknown => ErrorCode::None,
            EpochEndAnswer::Refused(refused) => Coded::code(refused),
        }
    }
}

impl Coded for CallError {
    fn code(&self) -> ErrorCode {
        match self {
            CallError::TimedOut { .. } => ErrorCode::RequestTimedOut,
            CallError::Stopping => ErrorCode::NotController,
        }
    }
}
