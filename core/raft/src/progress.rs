//! What a leader knows of one voter.

use std::collections::VecDeque;

use minikafka_model::{DirectoryId, MetadataOffset, Mono};

use crate::SnapshotInfo;

#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// The next entry to send.
    pub(crate) next: MetadataOffset,
    /// Durable there, by its word.
    pub(crate) matched: MetadataOffset,
    /// Equal to ours up to here, durable or not.
    pub(crate) received: MetadataOffset,
    /// Sequences of append messages with entries that were not answered.
    pub(crate) in_flight: VecDeque<u64>,
    /// Its position was found: entries may be sent ahead of answers.
    pub(crate) found: bool,
    pub(crate) directory: Option<DirectoryId>,
    /// Sent time of the newest answered message.
    pub(crate) contact: Option<Mono>,
    pub(crate) caught_up: Option<Mono>,
    pub(crate) last_sent: Mono,
    pub(crate) snapshot: Option<SnapshotSend>,
}

#[derive(Debug, Clone)]
pub(crate) struct SnapshotSend {
    pub(crate) info: SnapshotInfo,
    pub(crate) position: u64,
    pub(crate) sent: Mono,
}

impl Progress {
    pub(crate) fn new(end: MetadataOffset, now: Mono) -> Progress {
        Progress {
            next: end,
            matched: MetadataOffset::ZERO,
            received: MetadataOffset::ZERO,
            in_flight: VecDeque::new(),
            found: false,
            directory: None,
            contact: None,
            caught_up: None,
            last_sent: now,
            snapshot: None,
        }
    }

    pub(crate) fn answered(&mut self, sequence: u64, sent_at: Mono) {
        self.contact = Some(self.contact.map_or(sent_at, |known| known.max(sent_at)));
        while self.in_flight.front().is_some_and(|first| *first <= sequence) {
            self.in_flight.pop_front();
        }
    }

    /// Starts again from `next`, one message at a time until the position is found.
    pub(crate) fn probe(&mut self, next: MetadataOffset) {
        self.next = next;
        self.found = false;
        self.in_flight.clear();
    }
}
