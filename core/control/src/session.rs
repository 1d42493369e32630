//! When each broker was last heard of. Soft state of the active controller: it is in no record, and a new active controller starts
//! with a fresh session for every unfenced broker (Kafka semantics 6.3).

use std::collections::BTreeMap;
use std::time::Duration;

use minikafka_metadata::Image;
use minikafka_model::{BrokerEpoch, BrokerId, MetadataOffset, Mono};

/// What is known of a broker's process beyond its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Session {
    /// The registration it belongs to.
    pub(crate) epoch: BrokerEpoch,
    /// When it was last heard of.
    pub(crate) contact: Mono,
    /// How far it had applied the metadata then.
    pub(crate) metadata_offset: Option<MetadataOffset>,
    /// Where the entry stands that began its controlled shutdown.
    pub(crate) shutdown_offset: Option<MetadataOffset>,
}

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_broker: BTreeMap<BrokerId, Session>,
}

impl Sessions {
    /// Every unfenced broker has just been heard of.
    pub(crate) fn fresh(image: &Image, now: Mono) -> Sessions {
        let by_broker = image
            .brokers()
            .values()
            .filter(|broker| !broker.fenced)
            .map(|broker| {
                let session = Session {
                    epoch: broker.epoch,
                    contact: now,
                    metadata_offset: None,
                    shutdown_offset: None,
                };
                (broker.id, session)
            })
            .collect();
        Sessions { by_broker }
    }

    pub(crate) fn get(&self, broker: BrokerId, epoch: BrokerEpoch) -> Option<&Session> {
        self.by_broker.get(&broker).filter(|session| session.epoch == epoch)
    }

    /// A broker was heard of at this moment. Time does not go back, and an older life does not replace a newer one.
    pub(crate) fn contact(&mut self, broker: BrokerId, epoch: BrokerEpoch, at: Mono) -> &mut Session {
        let fresh = Session { epoch, contact: at, metadata_offset: None, shutdown_offset: None };
        let session = self.by_broker.entry(broker).or_insert(fresh);
        if session.epoch < epoch {
            *session = fresh;
        }
        session.contact = session.contact.max(at);
        session
    }

    pub(crate) fn end(&mut self, broker: BrokerId) {
        self.by_broker.remove(&broker);
    }

    /// How much is left of a session; none when there is no session or it is over.
    pub(crate) fn left(
        &self,
        broker: BrokerId,
        epoch: BrokerEpoch,
        now: Mono,
        timeout: Duration,
    ) -> Option<Duration> {
        let contact = self.get(broker, epoch)?.contact;
        timeout.checked_sub(now.since(contact)).filter(|left| !left.is_zero())
    }

    /// The broker whose session has been over for longest, with its epoch and its last contact.
    pub(crate) fn expired(&self, now: Mono, timeout: Duration) -> Option<(BrokerId, BrokerEpoch, Mono)> {
        self.by_broker
            .iter()
            .filter(|(_, session)| now.since(session.contact) >= timeout)
            .min_by_key(|(id, session)| (session.contact, **id))
            .map(|(id, session)| (*id, session.epoch, session.contact))
    }
}
