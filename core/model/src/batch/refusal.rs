//! Why a client's batch is refused: one closed list, with Kafka's code and words for each.

use std::fmt;

use crate::{ErrorCode, Offset, Sequence};

use super::DecompressError;
use super::records::RecordError;

/// A client's batch is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchRefusal {
    /// Not exactly one whole batch.
    #[error("{bytes} bytes are not exactly one record batch (the first takes {first})")]
    NotOneBatch {
        /// Bytes sent.
        bytes: usize,
        /// Bytes of the first batch in it; 0 where not even that is whole.
        first: usize,
    },
    /// A message format that Kafka has dropped.
    #[error("message format {magic} is no longer taken; only 2 is")]
    OldFormat {
        /// 0 or 1.
        magic: i8,
    },
    /// A format that never was.
    #[error("Invalid magic found in record: {magic}")]
    UnknownFormat {
        /// The byte.
        magic: i8,
    },
    /// A client's batch begins at offset 0.
    #[error("the batch was sent with base offset {sent}; clients send 0")]
    BaseOffset {
        /// As sent.
        sent: Offset,
    },
    /// Larger than `max.message.bytes`.
    #[error("the batch takes {size} bytes{}, more than max.message.bytes={limit}", if *recompressed { " after it was compressed anew" } else { "" })]
    TooLarge {
        /// Its size, header included.
        size: usize,
        /// The limit.
        limit: usize,
        /// Only with the topic's own codec.
        recompressed: bool,
    },
    /// The CRC-32C does not fit the bytes.
    #[error("the checksum of the batch does not fit its bytes")]
    BadChecksum,
    /// A codec number without a codec.
    #[error("the batch is compressed by the unknown codec {number}")]
    UnknownCodec {
        /// 5 to 7.
        number: u8,
    },
    /// The payload does not decompress, or to too much.
    #[error(transparent)]
    Undecompressable(DecompressError),
    /// A record is malformed.
    #[error(transparent)]
    Unreadable(RecordError),
    /// The header's count and offsets do not agree, or there is no record.
    #[error("the batch announces {announced} records and takes {offsets} offsets")]
    Count {
        /// Records announced.
        announced: i32,
        /// Offsets by the last offset delta.
        offsets: i64,
    },
    /// More or fewer records than announced.
    #[error(transparent)]
    CountOfRecords(RecordError),
    /// Control records are the brokers' own.
    #[error("clients do not write control records")]
    ControlRecords,
    /// An idempotent producer's sequence begins at 0.
    #[error("an idempotent producer sent the sequence {sequence}")]
    NegativeSequence {
        /// As sent.
        sequence: Sequence,
    },
    /// Offsets within the batch are not 0, 1, 2, ...
    #[error("record {index} of the batch has the offset {found} within it")]
    InnerOffset {
        /// Its place, from 0.
        index: i32,
        /// Its offset, less the base offset.
        found: i64,
    },
    /// Some records break the topic's rules.
    #[error("{} records of the batch are refused", .0.total)]
    Records(FaultyRecords),
    /// The topic's codec could not compress the records.
    #[error("the records could not be compressed anew: {0}")]
    NotCompressed(String),
}

/// The records of a batch that break their topic's rules.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FaultyRecords {
    /// The first of them, by their place in the batch.
    pub first: Vec<(i32, RecordFault)>,
    /// How many there are.
    pub total: usize,
    bad_timestamp: bool,
}

/// Faulty records that an answer names: an answer must not grow to many times its request.
const MOST_NAMED: usize = 1000;

impl FaultyRecords {
    pub(super) fn note(&mut self, index: i32, fault: RecordFault) {
        self.bad_timestamp |= fault != RecordFault::NoKey;
        self.total += 1;
        if self.first.len() < MOST_NAMED {
            self.first.push((index, fault));
        }
    }
}

/// What is wrong with one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// No key, on a compacted topic.
    NoKey,
    /// The producer's timestamp is too old or too far ahead.
    Timestamp {
        /// The record's offset as the client wrote it.
        offset: i64,
        /// Its timestamp in milliseconds.
        timestamp: i64,
        /// The earliest that would do.
        earliest: i64,
        /// The latest that would do.
        latest: i64,
    },
    /// A client claims that a broker stamped the record.
    StampedAsBroker {
        /// The record's offset as the client wrote it.
        offset: i64,
        /// Its timestamp in milliseconds.
        timestamp: i64,
        /// Bytes of its key.
        key: usize,
        /// Bytes of its value.
        value: usize,
    },
}

impl RecordFault {
    /// Kafka's words; `partition` is `topic-index`.
    pub fn message(&self, partition: &dyn fmt::Display) -> String {
        match self {
            RecordFault::NoKey => {
                format!("Compacted topic cannot accept message without key in topic partition {partition}")
            }
            RecordFault::Timestamp { offset, timestamp, earliest, latest } => format!(
                "Timestamp {timestamp} of message with offset {offset} is out of range. \
                 The timestamp should be within [{earliest}, {latest}]"
            ),
            RecordFault::StampedAsBroker { offset, timestamp, key, value } => format!(
                "Invalid timestamp type in message DefaultRecord(offset={offset}, timestamp={timestamp}, key={key} bytes, \
                 value={value} bytes). Producer should not set timestamp type to LogAppendTime."
            ),
        }
    }
}

impl BatchRefusal {
    /// Kafka's error code (Kafka semantics 1.2 and the recorded answers).
    pub const fn code(&self) -> ErrorCode {
        match self {
            BatchRefusal::NotOneBatch { .. }
            | BatchRefusal::OldFormat { .. }
            | BatchRefusal::BaseOffset { .. }
            | BatchRefusal::Count { .. }
            | BatchRefusal::CountOfRecords(_)
            | BatchRefusal::ControlRecords
            | BatchRefusal::NegativeSequence { .. }
            | BatchRefusal::InnerOffset { .. }
            | BatchRefusal::Records(FaultyRecords { bad_timestamp: false, .. }) => ErrorCode::InvalidRecord,
            BatchRefusal::UnknownFormat { .. } | BatchRefusal::BadChecksum => ErrorCode::CorruptMessage,
            BatchRefusal::TooLarge { .. } => ErrorCode::MessageTooLarge,
            BatchRefusal::Records(FaultyRecords { bad_timestamp: true, .. }) => ErrorCode::InvalidTimestamp,
            BatchRefusal::UnknownCodec { .. }
            | BatchRefusal::Undecompressable(_)
            | BatchRefusal::Unreadable(_)
            | BatchRefusal::NotCompressed(_) => ErrorCode::UnknownServerError,
        }
    }

    /// Does the answer show the log start offset? Kafka leaves it at -1 for what it finds before it looks into the batch, and for
    /// its size and checksum.
    pub const fn shows_log_start(&self) -> bool {
        match self {
            BatchRefusal::NotOneBatch { .. }
            | BatchRefusal::OldFormat { .. }
            | BatchRefusal::UnknownFormat { .. }
            | BatchRefusal::TooLarge { .. }
            | BatchRefusal::BadChecksum => false,
            BatchRefusal::BaseOffset { .. }
            | BatchRefusal::UnknownCodec { .. }
            | BatchRefusal::Undecompressable(_)
            | BatchRefusal::Unreadable(_)
            | BatchRefusal::Count { .. }
            | BatchRefusal::CountOfRecords(_)
            | BatchRefusal::ControlRecords
            | BatchRefusal::NegativeSequence { .. }
            | BatchRefusal::InnerOffset { .. }
            | BatchRefusal::Records(_)
            | BatchRefusal::NotCompressed(_) => true,
        }
    }

    /// The answer's `RecordErrors`: place in the batch and Kafka's words; `partition` is `topic-index`.
    pub fn record_errors(&self, partition: &dyn fmt::Display) -> Vec<(i32, String)> {
        let BatchRefusal::Records(faults) = self else { return Vec::new() };
        faults.first.iter().map(|(index, fault)| (*index, fault.message(partition))).collect()
    }

    /// The answer's `ErrorMessage`: Kafka has one for faulty records and for an unknown format only.
    pub fn error_message(&self, partition: &dyn fmt::Display) -> Option<String> {
        match self {
            BatchRefusal::UnknownFormat { .. } => Some(self.to_string()),
            BatchRefusal::Records(faults) if faults.bad_timestamp => {
                Some("One or more records have been rejected due to invalid timestamp".to_owned())
            }
            BatchRefusal::Records(faults) => {
                let shown: Vec<String> = faults
                    .first
                    .iter()
                    .take(3)
                    .map(|(index, fault)| {
                        format!("RecordError(batchIndex={index}, message='{}')", fault.message(partition))
                    })
                    .collect();
                Some(format!(
                    "One or more records have been rejected due to {} record errors in total, and only showing the first three errors at most: [{}]",
                    faults.total,
                    shown.join(", ")
                ))
            }
            _ => None,
        }
    }
}
