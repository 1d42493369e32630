//! Deterministic simulation of a whole cluster: the real cores of replication, behind a simulated network, disk and clock, with
//! clients that write and read, and a ledger that looks after every step.
//!
//! A run depends on its seed alone: the same seed gives the same steps and the same hash. `minikafka-sim --seed N` repeats one.

mod broker;
mod client;
mod control;
mod dice;
mod faults;
mod fetcher;
mod ledger;
mod message;
mod net;
mod outbox;
mod records;
mod world;

pub use ledger::Counts;
pub use world::{Outcome, Setup, World};
