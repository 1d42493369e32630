//! How requests end: one closed enum for each operation. The doors turn them into Kafka error codes and gRPC statuses.

use std::fmt;

use bytes::Bytes;
use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, Offset, WallMs};

use crate::BatchRefusal;

/// Why a request with a leader epoch, or one that only a leader may serve, is not served here (Kafka semantics 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotServed {
    /// NOT_LEADER_OR_FOLLOWER (6).
    NotLeader,
    /// FENCED_LEADER_EPOCH (74): the request's epoch is older than ours.
    FencedEpoch {
        /// Ours.
        ours: LeaderEpoch,
    },
    /// UNKNOWN_LEADER_EPOCH (75): the request's epoch is newer than ours, or the asker is a replica that we do not know of yet.
    UnknownEpoch {
        /// Ours.
        ours: LeaderEpoch,
    },
    /// KAFKA_STORAGE_ERROR (56): the log directory is offline.
    Offline,
}

impl NotServed {
    /// The error code.
    pub const fn code(self) -> ErrorCode {
        match self {
            NotServed::NotLeader => ErrorCode::NotLeaderOrFollower,
            NotServed::FencedEpoch { .. } => ErrorCode::FencedLeaderEpoch,
            NotServed::UnknownEpoch { .. } => ErrorCode::UnknownLeaderEpoch,
            NotServed::Offline => ErrorCode::KafkaStorageError,
        }
    }
}

/// How long a producer waits (`acks`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acks {
    /// 0: there is no answer at all.
    None,
    /// 1: when the leader has it.
    Leader,
    /// -1: when every in-sync replica has it.
    All,
}

/// Where an accepted batch lies in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Offset of its first record.
    pub base_offset: Offset,
    /// Offset of its last record.
    pub last_offset: Offset,
    /// The stamp given to it, with `message.timestamp.type=LogAppendTime`.
    pub log_append_time: Option<WallMs>,
    /// The log start offset at that moment.
    pub log_start_offset: Offset,
    /// It was there already: the same producer, epoch and sequences (Kafka semantics 9.3). Nothing was written.
    pub duplicate: bool,
}

/// What a produce does at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Produced {
    /// Done: answer now.
    Done(Written),
    /// In the log, and waiting for the high watermark: [`Effect::Produced`](crate::Effect::Produced) comes with the ticket.
    Waiting(Written),
    /// Nothing was written.
    Refused(ProduceRefusal),
}

/// Why a batch was not appended (Kafka semantics 1.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProduceRefusal {
    /// Not the leader (6), or offline (56).
    NotServed(NotServed),
    /// NOT_ENOUGH_REPLICAS (19).
    NotEnoughReplicas(TooFewReplicas),
    /// The batch itself (87, 10, 2, 32, ...), found before the lock was taken.
    Batch(BatchRefusal),
    /// RECORD_LIST_TOO_LARGE (18): larger than a segment may be.
    LargerThanSegment {
        /// Its bytes.
        size: usize,
        /// `segment.bytes`.
        limit: usize,
    },
    /// The producer's state: INVALID_PRODUCER_EPOCH (47), OUT_OF_ORDER_SEQUENCE_NUMBER (45).
    Producer {
        /// The code.
        code: ErrorCode,
        /// Log start offset for the answer.
        log_start_offset: Offset,
    },
}

/// The members and numbers behind error 19.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooFewReplicas {
    /// The committed ISR.
    pub isr: Vec<BrokerId>,
    /// The effective `min.insync.replicas`.
    pub needed: usize,
    /// `min.insync.replicas` as configured.
    pub configured: usize,
}

impl fmt::Display for TooFewReplicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members: Vec<String> = self.isr.iter().map(ToString::to_string).collect();
        write!(
            f,
            "The in-sync replicas are [{}], {} in number; {} are needed (min.insync.replicas is {}).",
            members.join(", "),
            self.isr.len(),
            self.needed,
            self.configured
        )
    }
}

/// What became of a write that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProduceDone {
    /// Every in-sync replica has it.
    Committed(Written),
    /// REQUEST_TIMED_OUT (7): it stays in the log and may still be committed.
    TimedOut(Written),
    /// NOT_LEADER_OR_FOLLOWER (6): leadership was lost or the leader epoch changed.
    LeadershipLost(Written),
    /// NOT_ENOUGH_REPLICAS_AFTER_APPEND (20): the high watermark has passed it, and the ISR is now too small.
    TooFewAfterAppend(Written),
    /// KAFKA_STORAGE_ERROR (56): the log failed.
    Offline(Written),
    /// UNKNOWN_TOPIC_OR_PARTITION (3): the partition was deleted.
    Deleted(Written),
}

impl ProduceDone {
    /// The error code.
    pub const fn code(&self) -> ErrorCode {
        match self {
            ProduceDone::Committed(_) => ErrorCode::None,
            ProduceDone::TimedOut(_) => ErrorCode::RequestTimedOut,
            ProduceDone::LeadershipLost(_) => ErrorCode::NotLeaderOrFollower,
            ProduceDone::TooFewAfterAppend(_) => ErrorCode::NotEnoughReplicasAfterAppend,
            ProduceDone::Offline(_) => ErrorCode::KafkaStorageError,
            ProduceDone::Deleted(_) => ErrorCode::UnknownTopicOrPartition,
        }
    }

    /// Where the batch was put.
    pub const fn written(&self) -> Written {
        match self {
            ProduceDone::Committed(written)
            | ProduceDone::TimedOut(written)
            | ProduceDone::LeadershipLost(written)
            | ProduceDone::TooFewAfterAppend(written)
            | ProduceDone::Offline(written)
            | ProduceDone::Deleted(written) => *written,
        }
    }
}

/// Where two logs part (Kafka semantics 4.4): the largest epoch known here that is not above the one asked for, and where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Divergence {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// Its end offset, exclusive.
    pub end_offset: Offset,
}

/// The bounds of a log at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The log start offset.
    pub log_start: Offset,
    /// The high watermark; the last stable offset is the same (there are no transactions yet).
    pub high_watermark: Offset,
    /// The log end offset.
    pub log_end: Offset,
}

/// Record bytes, as slices that are written out one after the other.
pub type Records = Vec<Bytes>;
