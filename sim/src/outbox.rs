//! What a node's step brings about: messages, timers, and notes for whoever checks.

use std::time::Duration;

use minikafka_model::{BrokerId, LeaderEpoch, Mono, Now, TopicPartition, WallMs};
use minikafka_replication::{ReplicaEvent, StreamId};

use crate::dice::Dice;
use crate::message::{Message, Node};

/// A timer of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Broker: the lifecycle wants a tick.
    Lifecycle,
    /// Broker: a replica wants a tick.
    Replica(TopicPartition),
    /// Broker: the epoch checkpoint of a replica is on disk.
    EpochsWritten(TopicPartition, LeaderEpoch, u64),
    /// Broker: a stream's request has waited long enough.
    Serve(StreamId),
    /// Broker: a fetcher looks whether it may ask, or connects anew.
    Fetcher(BrokerId),
    /// Broker: an ISR proposal without an answer.
    IsrOverdue(TopicPartition, u64),
    /// Broker: a heartbeat or registration without an answer.
    CallOverdue(u64),
    /// Broker: high watermarks are checkpointed and logs synced.
    Checkpoint,
    /// Controller: sessions are looked at, metadata is sent again.
    Controller,
    /// Controller: an entry is committed.
    Commit,
    /// Client: the next thing to do, or a request without an answer.
    Client(u64),
}

/// Something the checker wants to hear.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    /// An event of a replica.
    Replica(BrokerId, TopicPartition, ReplicaEvent),
    /// A write with acks=all was acknowledged to the producer.
    Acknowledged(u32, crate::message::Write, minikafka_model::Offset),
    /// Every attempt of a write so far was refused with certainty.
    Refused(TopicPartition, String),
    /// A producer heard that its sequence is wrong, although it waits for each write.
    SequenceRefused {
        /// The producer.
        client: u32,
        /// The partition.
        partition: TopicPartition,
        /// Who said so.
        broker: BrokerId,
        /// The value and the error.
        what: String,
    },
    /// A consumer read this.
    Read(u32, TopicPartition, Vec<crate::message::Seen>),
}

/// Collects what one step brings about.
#[derive(Debug)]
pub(crate) struct Outbox<'a> {
    /// The time.
    pub(crate) now: Mono,
    /// Chance.
    pub(crate) dice: &'a mut Dice,
    /// Messages to send.
    pub(crate) sends: Vec<(Node, Message)>,
    /// Timers to set.
    pub(crate) timers: Vec<(Mono, Timer)>,
    /// Notes.
    pub(crate) notes: Vec<Note>,
}

impl Outbox<'_> {
    /// Both clocks.
    pub(crate) fn clocks(&self) -> Now {
        Now { mono: self.now, wall: WallMs(1_700_000_000_000 + (self.now.0 / 1000) as i64) }
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, to: Node, message: Message) {
        self.sends.push((to, message));
    }

    /// Sets a timer.
    pub(crate) fn after(&mut self, span: Duration, timer: Timer) {
        self.timers.push((self.now.after(span), timer));
    }

    /// Sets a timer for a moment, or for now if it has passed.
    pub(crate) fn at(&mut self, moment: Mono, timer: Timer) {
        self.timers.push((moment.max(self.now), timer));
    }
}
