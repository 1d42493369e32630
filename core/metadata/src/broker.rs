//! What the metadata knows of one broker.

use minikafka_model::{BrokerEpoch, BrokerId, DirectoryId, IncarnationId, MetadataOffset};
use serde::{Deserialize, Serialize};

/// An address under which a broker can be reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Listener {
    /// The listener's name, for example `PLAINTEXT`.
    pub name: String,
    /// Host name or address as advertised.
    pub host: String,
    /// Port as advertised.
    pub port: u16,
    /// Kafka's name of the protocol, for example `PLAINTEXT`.
    pub security_protocol: String,
}

/// A broker's current registration (Kafka semantics 6.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerRegistration {
    /// The broker.
    pub id: BrokerId,
    /// Names this life of the broker; rises with each new incarnation.
    pub epoch: BrokerEpoch,
    /// Drawn by the process at its start.
    pub incarnation: IncarnationId,
    /// Where clients and peers reach it.
    pub listeners: Vec<Listener>,
    /// Its rack (`broker.rack`), if it has one.
    pub rack: Option<String>,
    /// The log directories that are online.
    pub log_dirs: Vec<DirectoryId>,
    /// Not serving: neither leader nor in an ISR.
    pub fenced: bool,
    /// On its way out: keeps running, but gets no leadership and is in no ISR.
    pub in_controlled_shutdown: bool,
}

impl BrokerRegistration {
    /// Registered, unfenced and not in controlled shutdown: may lead and be in an ISR (Kafka semantics 6.3, KIP-841).
    pub fn is_active(&self) -> bool {
        !self.fenced && !self.in_controlled_shutdown
    }

    /// The offset of the entry that registered this incarnation. An entry is atomic and takes one offset, and the epoch is that
    /// offset; a broker that has applied it knows its own registration.
    pub fn registered_at(&self) -> MetadataOffset {
        MetadataOffset(self.epoch.0)
    }

    /// The listener of this name.
    pub fn listener(&self, name: &str) -> Option<&Listener> {
        self.listeners.iter().find(|listener| listener.name == name)
    }
}
