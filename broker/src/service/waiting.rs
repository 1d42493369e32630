//! Callers that wait: the cores know tickets and stream ids, here stands who is meant.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use minikafka_model::{Ticket, TopicPartition};
use minikafka_replication::{ProduceDone, StreamId};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// Writes, consumer fetches and followers' streams that wait for something of a replica. Their number is bounded by the connections
/// and the requests each may have in flight.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    next: AtomicU64,
    writes: Mutex<HashMap<Ticket, oneshot::Sender<ProduceDone>>>,
    fetches: Mutex<HashMap<Ticket, Arc<Notify>>>,
    streams: Mutex<HashMap<StreamId, Arc<StreamWakes>>>,
}

/// News for one follower's stream that its task has not looked at yet.
#[derive(Debug, Default)]
pub(crate) struct StreamWakes {
    partitions: Mutex<BTreeSet<TopicPartition>>,
    news: Notify,
}

impl StreamWakes {
    /// Completes when a partition has news.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// The partitions that have news.
    pub(crate) fn take(&self) -> BTreeSet<TopicPartition> {
        std::mem::take(&mut *self.partitions.lock())
    }
}

impl Waiting {
    /// A ticket that was never given out before.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Registers a write before it is brought to its replica, since its answer may come at once.
    pub(crate) fn write(&self, ticket: Ticket) -> oneshot::Receiver<ProduceDone> {
        let (sender, receiver) = oneshot::channel();
        self.writes.lock().insert(ticket, sender);
        receiver
    }

    /// A write does not wait after all.
    pub(crate) fn forget_write(&self, ticket: Ticket) {
        self.writes.lock().remove(&ticket);
    }

    /// A write is answered.
    pub(crate) fn written(&self, ticket: Ticket, done: ProduceDone) {
        let waiting = self.writes.lock().remove(&ticket);
        if let Some(sender) = waiting {
            // The connection may be gone; the record stays.
            let _nobody_listens = sender.send(done);
        }
    }

    /// Registers a consumer's fetch.
    pub(crate) fn fetch(&self, ticket: Ticket) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        self.fetches.lock().insert(ticket, Arc::clone(&notify));
        notify
    }

    /// A consumer's fetch is over.
    pub(crate) fn forget_fetch(&self, ticket: Ticket) {
        self.fetches.lock().remove(&ticket);
    }

    /// A consumer's fetch should look again.
    pub(crate) fn wake_fetch(&self, ticket: Ticket) {
        if let Some(notify) = self.fetches.lock().get(&ticket) {
            notify.notify_one();
        }
    }

    /// Registers a follower's stream.
    pub(crate) fn open_stream(&self) -> (StreamId, Arc<StreamWakes>) {
        let stream = StreamId(self.next.fetch_add(1, Ordering::Relaxed));
        let wakes = Arc::new(StreamWakes::default());
        self.streams.lock().insert(stream, Arc::clone(&wakes));
        (stream, wakes)
    }

    /// A follower's stream is closed.
    pub(crate) fn close_stream(&self, stream: StreamId) {
        self.streams.lock().remove(&stream);
    }

    /// A partition has news for a stream.
    pub(crate) fn wake_stream(&self, stream: StreamId, partition: TopicPartition) {
        let wakes = self.streams.lock().get(&stream).cloned();
        if let Some(wakes) = wakes {
            wakes.partitions.lock().insert(partition);
            wakes.news.notify_one();
        }
    }

    /// How many writes wait.
    pub(crate) fn writes_waiting(&self) -> usize {
        self.writes.lock().len()
    }
}
