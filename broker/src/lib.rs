//! The broker process: the door for Kafka clients, the door for followers, fetcher threads, the link to the controllers.

mod controller_link;
mod event;
mod fetcher;
mod janitor;
mod kafka;
mod rpc;
mod server;
mod service;
mod settings;
mod store;
mod surface;

pub use event::{BrokerEvent, NodeEvent};
pub use server::{Broker, BrokerAddresses, BrokerEnd, StartError};
pub use settings::{BrokerSettings, ControllerAddress, ListenerSettings, Spread};
