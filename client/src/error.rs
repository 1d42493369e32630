//! What can go wrong in a call, with the questions an application asks about it: try again? give up for good? which code?

use std::fmt;
use std::time::Duration;

use minikafka_model::ErrorCode;
use minikafka_wire::{ApiKey, Versions};

use crate::config::{Address, ConfigError};

/// An error code from a broker, with the broker's own words if it had any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerError {
    /// The code; a number that Kafka 4.4 does not know is `UnknownServerError`.
    pub code: ErrorCode,
    /// The number on the wire.
    pub number: i16,
    /// What the broker said about it.
    pub message: Option<String>,
}

impl BrokerError {
    /// `None` for the code 0, success.
    pub(crate) fn from_wire(number: i16, message: Option<String>) -> Option<BrokerError> {
        if number == 0 {
            return None;
        }
        let code = ErrorCode::from_code(number).unwrap_or(ErrorCode::UnknownServerError);
        Some(BrokerError { code, number, message: message.filter(|text| !text.is_empty()) })
    }

    /// `Ok` for the code 0.
    pub(crate) fn check(number: i16, message: Option<String>) -> Result<(), BrokerError> {
        BrokerError::from_wire(number, message).map_or(Ok(()), Err)
    }
}

impl fmt::Display for BrokerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.code.name(), self.number)?;
        match &self.message {
            Some(message) => write!(f, ": {message}"),
            None => Ok(()),
        }
    }
}

/// Why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No broker could be reached.
    #[error("cannot connect to {}", list(attempts))]
    Unreachable {
        /// Each address that was tried, with the reason.
        attempts: Vec<(Address, String)>,
    },
    /// The connection was lost, so that the outcome of what was under way is unknown.
    #[error("connection to {address} lost: {reason}")]
    Disconnected {
        /// The broker's address.
        address: Address,
        /// Why.
        reason: String,
    },
    /// A broker answered what cannot be understood.
    #[error("{address} answered what cannot be understood: {reason}")]
    Protocol {
        /// The broker's address.
        address: Address,
        /// What was wrong.
        reason: String,
    },
    /// The broker does not offer the API in a version that this client speaks.
    #[error("{address} does not offer {api} {}", offered(*theirs, *ours))]
    Unsupported {
        /// The broker's address.
        address: Address,
        /// What was wanted.
        api: ApiKey,
        /// The versions this client speaks.
        ours: Versions,
        /// The versions the broker offers, if it knows the API at all.
        theirs: Option<Versions>,
    },
    /// A broker refused.
    #[error("{subject}: {error}")]
    Broker {
        /// What it was about, for example `topic orders`.
        subject: String,
        /// What the broker said.
        error: BrokerError,
    },
    /// Time ran out. Whether a command was carried out is unknown, unless the last error says otherwise.
    #[error("{what} took longer than {} ms{}", after.as_millis(), because(last.as_deref()))]
    TimedOut {
        /// What was awaited.
        what: String,
        /// How long it was awaited.
        after: Duration,
        /// The last thing that went wrong before.
        last: Option<Box<Error>>,
    },
    /// The consumer's position does not exist (any more) and `auto.offset.reset` is `none`.
    #[error("{topic}-{partition}: offset {offset} is out of range{}", begins(*log_start))]
    OffsetOutOfRange {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Where the consumer stood.
        offset: i64,
        /// The log start offset, if the broker told it.
        log_start: Option<i64>,
    },
    /// Records that the consumer has read are gone: an unclean election put another leader's log in their place. The consumer goes on
    /// at `end_offset`.
    #[error(
        "{topic}-{partition}: the log was truncated: read up to offset {offset}, but epoch {epoch} ends at {end_offset}"
    )]
    LogTruncation {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Where the consumer stood.
        offset: i64,
        /// The newest leader epoch that consumer and leader have in common.
        epoch: i32,
        /// The end of that epoch: what lies behind it was read, but is not there any more.
        end_offset: i64,
    },
    /// A batch that is damaged or cannot be read.
    #[error("{topic}-{partition}: the batch at offset {offset} is damaged: {reason}")]
    Corrupt {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// Where the batch begins.
        offset: i64,
        /// What is wrong with it.
        reason: String,
    },
    /// The client was closed.
    #[error("the client is closed")]
    Closed,
}

fn list(attempts: &[(Address, String)]) -> String {
    attempts
        .iter()
        .map(|(address, reason)| format!("{address} ({reason})"))
        .collect::<Vec<String>>()
        .join(", ")
}

fn offered(theirs: Option<Versions>, ours: Versions) -> String {
    match theirs {
        Some(theirs) => format!("in a version of {ours}, only {theirs}"),
        None => "at all".to_owned(),
    }
}

fn begins(log_start: Option<i64>) -> String {
    log_start.map_or_else(String::new, |offset| format!(" (the log begins at {offset})"))
}

fn because(last: Option<&Error>) -> String {
    last.map_or_else(String::new, |last| format!("; the last error was: {last}"))
}

impl Error {
    pub(crate) fn broker(subject: impl fmt::Display, error: BrokerError) -> Error {
        Error::Broker { subject: subject.to_string(), error }
    }

    /// Kafka's code, where a broker gave one (also one that a time-out would have hidden).
    pub fn kafka_code(&self) -> Option<ErrorCode> {
        match self {
            Error::Broker { error, .. } => Some(error.code),
            Error::TimedOut { last: Some(last), .. } => last.kafka_code(),
            Error::OffsetOutOfRange { .. } => Some(ErrorCode::OffsetOutOfRange),
            _ => None,
        }
    }

    /// Whether the same call may well succeed later.
    pub fn is_retriable(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::Disconnected { .. } | Error::TimedOut { .. } => true,
            Error::Broker { error, .. } => is_retriable(error.code),
            _ => false,
        }
    }

    /// Whether this client cannot go on at all.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Error::Closed | Error::Config(_))
    }

    /// Whether what this client believes about leaders may be old.
    pub fn refreshes_metadata(&self) -> bool {
        match self {
            Error::Unreachable { .. } | Error::Disconnected { .. } => true,
            Error::Broker { error, .. } => refreshes_metadata(error.code),
            _ => false,
        }
    }
}

/// Whether a request that heard this code may be sent again (Kafka semantics 1.7, and the coordinator and throttling codes).
pub(crate) fn is_retriable(code: ErrorCode) -> bool {
    refreshes_metadata(code)
        || matches!(
            code,
            ErrorCode::CorruptMessage
                | ErrorCode::RequestTimedOut
                | ErrorCode::NotEnoughReplicas
                | ErrorCode::NotEnoughReplicasAfterAppend
                | ErrorCode::CoordinatorLoadInProgress
                | ErrorCode::CoordinatorNotAvailable
                | ErrorCode::NotCoordinator
                | ErrorCode::NotController
                | ErrorCode::UnknownLeaderEpoch
                | ErrorCode::OffsetNotAvailable
                | ErrorCode::ConcurrentTransactions
                | ErrorCode::FetchSessionIdNotFound
                | ErrorCode::InvalidFetchSessionEpoch
                | ErrorCode::FetchSessionTopicIdError
                | ErrorCode::ThrottlingQuotaExceeded
                | ErrorCode::ReassignmentInProgress
                | ErrorCode::BrokerIdNotRegistered
        )
}

/// Whether this code says that somebody else leads, or that the topic is not what it was.
pub(crate) fn refreshes_metadata(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::UnknownTopicOrPartition
            | ErrorCode::LeaderNotAvailable
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::BrokerNotAvailable
            | ErrorCode::ReplicaNotAvailable
            | ErrorCode::NetworkException
            | ErrorCode::KafkaStorageError
            | ErrorCode::ListenerNotFound
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::PreferredLeaderNotAvailable
            | ErrorCode::EligibleLeadersNotAvailable
            | ErrorCode::ElectionNotNeeded
            | ErrorCode::UnknownTopicId
            | ErrorCode::InconsistentTopicId
            | ErrorCode::NewLeaderElected
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_does_not_hide_the_brokers_code() {
        let error = BrokerError::from_wire(19, Some("2 of 3".to_owned())).expect("an error");
        let last = Box::new(Error::broker("topic orders", error));
        let error = Error::TimedOut {
            what: "creating a topic".to_owned(),
            after: Duration::from_secs(2),
            last: Some(last),
        };
        assert_eq!(error.kafka_code(), Some(ErrorCode::NotEnoughReplicas));
        assert!(error.is_retriable());
        let text = error.to_string();
        assert_eq!(
            text,
            "creating a topic took longer than 2000 ms; the last error was: topic orders: NOT_ENOUGH_REPLICAS (19): 2 of 3"
        );
    }

    #[test]
    fn every_code_that_moves_leaders_is_retriable() {
        for code in ErrorCode::ALL.iter().copied().filter(|code| refreshes_metadata(*code)) {
            assert!(is_retriable(code), "{code}");
        }
        assert!(!is_retriable(ErrorCode::MessageTooLarge));
        assert!(!is_retriable(ErrorCode::OutOfOrderSequenceNumber), "the producer decides that one itself");
    }
}
