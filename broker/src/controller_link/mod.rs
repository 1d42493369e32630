//! The link to the controllers, on a thread of its own: registration and heartbeats, the metadata feed, ISR changes, producer ids, and
//! requests of clients that only a controller can answer.

mod controllers;
mod feed;
mod forwarder;
mod heartbeats;
mod isr_changes;
mod link;
mod producer_ids;

pub(crate) use controllers::{CallError, Controllers, Voter};
pub(crate) use forwarder::Forwarder;
pub(crate) use heartbeats::{BrokerEpochCell, LifeEnd, Registration, refusal};
pub(crate) use link::{Link, LinkParts};
pub(crate) use producer_ids::ProducerIds;
