//! The connections of a client: one per broker and lane, made when first wanted and made anew with a growing pause.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use minikafka_model::BrokerId;
use tokio::time::Instant;

use super::Connection;
use crate::backoff::Backoff;
use crate::config::{Address, ClientConfig};
use crate::error::Error;

/// Connections are kept apart by use, so that a long poll or a stuck write delays nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// Metadata, admin calls, lookups.
    Control,
    /// Writes.
    Produce,
    /// Reads, which wait at the broker.
    Fetch,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    Broker(BrokerId),
    Bootstrap(Address),
}

#[derive(Default)]
struct Slot {
    connection: Option<Arc<Connection>>,
    failures: u32,
    not_before: Option<Instant>,
}

/// All connections of one client.
pub(crate) struct Pool {
    config: Arc<ClientConfig>,
    backoff: Backoff,
    slots: Mutex<BTreeMap<(Peer, Lane), SharedSlot>>,
}

/// Locked while a connection is being made, so that only one is.
type SharedSlot = Arc<tokio::sync::Mutex<Slot>>;

impl Pool {
    pub(crate) fn new(config: Arc<ClientConfig>) -> Pool {
        let backoff = Backoff::new(config.reconnect_backoff, config.reconnect_backoff_max);
        Pool { config, backoff, slots: Mutex::default() }
    }

    /// The connection to a known broker.
    ///
    /// Waits out the pause after a failed try; callers bound their patience themselves.
    pub(crate) async fn broker(
        &self,
        id: BrokerId,
        address: &Address,
        lane: Lane,
    ) -> Result<Arc<Connection>, Error> {
        self.get(Peer::Broker(id), address, lane).await
    }

    /// A connection to one of the bootstrap servers.
    pub(crate) async fn bootstrap(&self, address: &Address) -> Result<Arc<Connection>, Error> {
        self.get(Peer::Bootstrap(address.clone()), address, Lane::Control).await
    }

    /// Brokers to which a control connection is open now.
    pub(crate) fn connected(&self) -> Vec<BrokerId> {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let open = slots.iter().filter_map(|((peer, lane), slot)| match (peer, lane) {
            (Peer::Broker(id), Lane::Control) => {
                let slot = slot.try_lock().ok()?;
                slot.connection.as_ref().filter(|connection| !connection.is_closed()).map(|_| *id)
            }
            _ => None,
        });
        open.collect()
    }

    async fn get(&self, peer: Peer, address: &Address, lane: Lane) -> Result<Arc<Connection>, Error> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry((peer, lane)).or_default().clone()
        };
        let mut slot = slot.lock().await;
        if let Some(connection) = &slot.connection
            && !connection.is_closed()
            && connection.address() == address
        {
            return Ok(connection.clone());
        }
        slot.connection = None;
        if let Some(moment) = slot.not_before {
            tokio::time::sleep_until(moment).await;
        }
        match Connection::open(address, &self.config).await {
            Ok(connection) => {
                tracing::debug!("connected to {address} for {lane:?}");
                let connection = Arc::new(connection);
                // A broker that takes connections and drops them at once is not hammered either.
                *slot = Slot {
                    connection: Some(connection.clone()),
                    failures: 0,
                    not_before: Some(Instant::now() + self.config.reconnect_backoff),
                };
                Ok(connection)
            }
            Err(error) => {
                tracing::debug!("no connection to {address} for {lane:?}: {error}");
                slot.not_before = Some(Instant::now() + self.pause(slot.failures));
                slot.failures = slot.failures.saturating_add(1);
                Err(error)
            }
        }
    }

    fn pause(&self, failures: u32) -> Duration {
        self.backoff.pause(failures)
    }
}
