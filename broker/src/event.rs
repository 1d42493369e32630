//! The typed events of a broker: what `/v1/events` shows and the log prints.

use std::fmt;

use minikafka_model::{BrokerEpoch, BrokerId, ErrorCode, MetadataOffset};
use minikafka_replication::ReplicaEvent;
use serde::Serialize;

/// A turn in the life of a broker, with its numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum BrokerEvent {
    /// Something happened to a replica.
    Replica {
        /// Its topic.
        topic: String,
        /// Its partition.
        partition: i32,
        /// What.
        #[serde(flatten)]
        event: ReplicaEvent,
    },
    /// Something happened to the broker itself.
    Node(NodeEvent),
}

/// A turn in the life of the broker itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NodeEvent {
    /// The controllers took the registration.
    Registration {
        /// The epoch given.
        broker_epoch: BrokerEpoch,
    },
    /// They did not.
    RegistrationRefused {
        /// The attempt.
        attempt: u64,
        /// Kafka's name of the error, or that nobody answered.
        reason: String,
    },
    /// A heartbeat was refused.
    HeartbeatRefused {
        /// Kafka's name of the error.
        reason: String,
    },
    /// The controllers fenced this broker.
    Fenced,
    /// The controllers unfenced this broker.
    Unfenced,
    /// The metadata feed started anew, from a snapshot or from the log.
    MetadataFeed {
        /// From whom.
        controller: String,
        /// From which offset on.
        from: i64,
    },
    /// A request was not served.
    RequestRefused {
        /// Who asked: address, software and version as far as they are known.
        client: String,
        /// Which API, version and range.
        reason: String,
    },
    /// A follower's stream was refused.
    StreamRefused {
        /// Who asked.
        peer: String,
        /// Why, with both sides.
        reason: String,
    },
    /// A stream to a leader was opened, lost or could not be opened.
    FetcherStream {
        /// The leader.
        source: BrokerId,
        /// The fetcher thread.
        fetcher: u32,
        /// What happened.
        reason: String,
    },
    /// Logs were opened at the start.
    Recovery {
        /// How many.
        logs: usize,
        /// How many had to be recovered.
        recovered: usize,
        /// Whether the last stop was a clean one.
        clean: bool,
        /// Milliseconds it took.
        took_ms: u64,
    },
    /// The log directory failed.
    LogDirectoryOffline {
        /// What the disk said.
        reason: String,
    },
    /// The broker stops.
    Shutdown {
        /// How it went.
        reason: String,
    },
    /// A request to the controllers was not answered in time; its outcome is unknown.
    ForwardTimeout {
        /// Which.
        request: &'static str,
        /// What the last attempt said.
        reason: String,
    },
    /// How far the metadata was applied when the broker began to serve.
    CaughtUp {
        /// The offset.
        offset: MetadataOffset,
    },
}

/// Kafka's name of an error, or that nobody answered.
pub(crate) fn reason_of(code: Option<ErrorCode>) -> String {
    code.map_or_else(|| "no active controller answered".to_owned(), |code| code.to_string())
}

impl From<NodeEvent> for BrokerEvent {
    fn from(event: NodeEvent) -> BrokerEvent {
        BrokerEvent::Node(event)
    }
}

impl fmt::Display for BrokerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BrokerEvent::Replica { topic, partition, event } => {
                write!(f, "[Partition {topic}-{partition}] {event}")
            }
            BrokerEvent::Node(event) => event.fmt(f),
        }
    }
}

impl fmt::Display for NodeEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeEvent::Registration { broker_epoch } => {
                write!(f, "Successfully registered broker with broker epoch {broker_epoch}")
            }
            NodeEvent::RegistrationRefused { attempt, reason } => {
                write!(f, "Unable to register the broker (attempt {attempt}): {reason}")
            }
            NodeEvent::HeartbeatRefused { reason } => write!(f, "A heartbeat was refused: {reason}"),
            NodeEvent::Fenced => f.write_str("The broker has been fenced by the controllers"),
            NodeEvent::Unfenced => {
                f.write_str("The broker has been unfenced. Transitioning from RECOVERY to RUNNING.")
            }
            NodeEvent::MetadataFeed { controller, from } => {
                write!(f, "Following metadata of controller {controller} from offset {from}")
            }
            NodeEvent::RequestRefused { client, reason } => {
                write!(f, "Closing the connection of {client}: {reason}")
            }
            NodeEvent::StreamRefused { peer, reason } => {
                write!(f, "Refused the fetch stream of {peer}: {reason}")
            }
            NodeEvent::FetcherStream { source, fetcher, reason } => {
                write!(f, "[ReplicaFetcher fetcherId={fetcher}, leaderId={source}] {reason}")
            }
            NodeEvent::Recovery { logs, recovered, clean, took_ms } => write!(
                f,
                "Loaded {logs} logs in {took_ms}ms after {} shutdown; {recovered} were recovered",
                if *clean { "a clean" } else { "an unclean" }
            ),
            NodeEvent::LogDirectoryOffline { reason } => {
                write!(f, "The log directory is offline: {reason}")
            }
            NodeEvent::Shutdown { reason } => write!(f, "Controlled shutdown: {reason}"),
            NodeEvent::ForwardTimeout { request, reason } => {
                write!(f, "{request} was not answered: {reason}; whether it was carried out is unknown")
            }
            NodeEvent::CaughtUp { offset } => {
                write!(f, "Finished catching up with the metadata at offset {offset}")
            }
        }
    }
}
