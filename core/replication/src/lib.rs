//! One replica of one partition, and the sessions between replicas: who leads, who is in sync, what is committed.
//!
//! Everything here is synchronous and deterministic. An input is a method call with the time; what has to be done outside comes
//! back as [`Effect`]s, to be performed in their order once the replica's lock is released. Callers that wait are named by a
//! [`Ticket`](minikafka_model::Ticket), followers' streams by a [`StreamId`].
//!
//! - [`Replica`]: leader, follower or offline, over its own log.
//! - [`LeaderSession`]: what one follower's stream asks of this broker, with its ready list.
//! - [`FollowerSession`]: what one fetcher asks of one leader.
//! - [`BrokerLifecycle`]: registration, heartbeats, controlled shutdown.
//!
//! The rules are those of Kafka semantics 1 to 5, 7, 9 and 6.3; docs/invariants.md lists what must always hold.

mod acks;
mod config;
mod consumer;
mod effect;
mod event;
mod facts;
mod follower;
mod follower_session;
mod high_watermark;
mod invariant;
mod isr;
mod isr_change;
mod leader;
mod leader_session;
mod lifecycle;
mod log;
mod outcome;
mod produce;
mod progress;
mod replica;
mod seeded;
mod serve;
mod truncation;

pub use config::ReplicaConfig;
pub use consumer::{ConsumerAnswer, ConsumerAsk, EpochEndAnswer, OffsetAnswer, OffsetSpec};
pub use effect::{Effect, IsrAnswer, IsrProposal, StreamId};
pub use event::ReplicaEvent;
pub use facts::{BrokerFacts, Brokers, PartitionFacts, Recovery, brokers_of};
pub use follower::{Ask, Fetched, FetchedAnswer, LeaderBounds, Next};
pub use follower_session::{FetchLimits, FollowerSession};
pub use isr::{Isr, IsrState};
pub use leader_session::{LeaderSession, Served, SessionError, SessionRequest};
pub use lifecycle::{
    BrokerLifecycle, Heartbeat, HeartbeatAnswer, LifecycleConfig, LifecycleEffect, OwnRegistration, ShutDown,
};
pub use log::{BatchRefusal, ClientBatch, LogError, ReadLimit, ReadPlan, ReadRecords, ReplicaLog};
pub use outcome::{
    Acks, Bounds, Divergence, NotServed, ProduceDone, ProduceRefusal, Produced, Records, TooFewReplicas,
    Written,
};
pub use produce::Produce;
pub use progress::Progress;
pub use replica::{Replica, ReplicaStatus, RoleName};
pub use seeded::SeededBug;
pub use serve::{FollowerAnswer, FollowerAsk};
