//! What consumers read: records below the high watermark, and waiting for them.

use std::sync::Arc;

use bytes::Bytes;
use minikafka_model::{Offset, Ticket, TopicPartition};
use minikafka_replication::{Bounds, ConsumerAnswer, ConsumerAsk, Divergence, NotServed};
use tokio::sync::Notify;

use super::{ReplicaCell, Service};

/// One partition of a consumer's fetch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadAsk {
    /// Which partition.
    pub(crate) at: TopicPartition,
    /// What of it.
    pub(crate) ask: ConsumerAsk,
}

/// What a consumer's fetch of one partition gives.
#[derive(Debug)]
pub(crate) enum ReadAnswer {
    /// Records, perhaps none.
    Records { batches: Vec<Bytes>, bounds: Bounds },
    /// The reader holds records that this log does not.
    Diverging(Divergence, Bounds),
    /// No such offset.
    OutOfRange,
    /// Not served.
    Refused(NotServed),
    /// No replica of the partition lives here.
    NotHosted,
}

impl Service {
    /// Reads without waiting. The lock is held for the plan, not for the read.
    pub(crate) fn read(&self, ask: &ReadAsk) -> ReadAnswer {
        let Some(cell) = self.replicas.get(ask.at) else { return ReadAnswer::NotHosted };
        let answer = cell.lock().replica.consumer_fetch(&ask.ask);
        match answer {
            ConsumerAnswer::Read { plan, bounds } => match plan.run() {
                Ok(read) => ReadAnswer::Records { batches: read.batches, bounds },
                Err(error) => {
                    self.with_replica(&cell, |replica, out| replica.fail(error.to_string(), out));
                    ReadAnswer::Refused(NotServed::Offline)
                }
            },
            ConsumerAnswer::Empty { bounds } => ReadAnswer::Records { batches: Vec::new(), bounds },
            ConsumerAnswer::Diverging(divergence, bounds) => ReadAnswer::Diverging(divergence, bounds),
            ConsumerAnswer::OutOfRange(_) => ReadAnswer::OutOfRange,
            ConsumerAnswer::Refused(refused) => ReadAnswer::Refused(refused),
        }
    }

    /// Begins to wait for news of some partitions. What is left behind in the replicas goes when the wait is dropped.
    pub(crate) fn wait_for_news(self: &Arc<Self>) -> NewsWait {
        let ticket = self.waiting.ticket();
        NewsWait { service: Arc::clone(self), ticket, news: self.waiting.fetch(ticket), parked: Vec::new() }
    }
}

/// A consumer's fetch that waits.
pub(crate) struct NewsWait {
    service: Arc<Service>,
    ticket: Ticket,
    news: Arc<Notify>,
    parked: Vec<Arc<ReplicaCell>>,
}

impl NewsWait {
    /// Waits for the high watermark of this partition to pass `position`, or for its role to change. False: look again at once.
    pub(crate) fn park(&mut self, at: TopicPartition, position: Offset) -> bool {
        let Some(cell) = self.service.replicas.get(at) else { return false };
        if cell.is_gone() {
            return false;
        }
        let parked = cell.lock().replica.park(self.ticket, position);
        self.parked.push(cell);
        parked
    }

    /// Completes when there is news; the partitions are then no longer waited for.
    pub(crate) async fn news(&mut self) {
        self.news.notified().await;
        self.leave();
    }

    fn leave(&mut self) {
        for cell in self.parked.drain(..) {
            cell.lock().replica.forget(self.ticket);
        }
    }
}

impl Drop for NewsWait {
    fn drop(&mut self) {
        self.leave();
        self.service.waiting.forget_fetch(self.ticket);
    }
}
