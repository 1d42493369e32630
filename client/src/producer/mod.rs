//! The producer: `send` gives an immediate answer about what it can know, and a [`Delivery`] for the rest.

mod batch;
mod delivery;
mod failure;
mod ledger;
mod partitioner;
mod promise;
mod record;
mod rules;
mod sender;
mod settle;
mod worker;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use minikafka_model::{PartitionIndex, WallMs};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use delivery::{Delivery, Stored};
pub use failure::{Attempt, AttemptOutcome, GaveUp, PartitionState, Persisted, ProduceError};
pub use ledger::CloseReport;
pub use partitioner::{murmur2, partition_of_key};
pub use record::Record;

use crate::client::{Shared, known_topic};
use crate::config::Acks;
use crate::error::Error;
use crate::metadata::TopicView;
use ledger::Ledger;
use partitioner::Sticky;
use promise::{Promise, Promises};
use rules::Rules;
use sender::Sender;

/// Why a record was not taken. Nothing was sent.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// Larger than `max.request.size` or `buffer.memory`.
    #[error("the record takes up to {size} bytes, more than {key}={limit}")]
    TooLarge {
        /// An upper bound of its bytes.
        size: usize,
        /// The key that forbids it.
        key: &'static str,
        /// Its value.
        limit: usize,
    },
    /// `buffer.memory` was full for `max.block.ms` (or is full now, for [`Producer::try_send`]).
    #[error("buffer.memory ({limit} bytes) is full of records that are not delivered yet{}", waited(*after))]
    BufferFull {
        /// `buffer.memory`.
        limit: usize,
        /// How long it was awaited.
        after: Duration,
    },
    /// The topic, or its metadata, could not be had within `max.block.ms`.
    #[error("topic {topic}: {error}")]
    Metadata {
        /// The topic.
        topic: String,
        /// Why.
        error: Error,
    },
    /// What [`Producer::try_send`] needs to know is not known yet: use [`Producer::send`] for the first record of a topic.
    #[error("nothing is known about topic {topic} yet")]
    NotKnownYet {
        /// The topic.
        topic: String,
    },
    /// The topic has no such partition.
    #[error("topic {topic} has no partition {partition}, only 0 to {}", count - 1)]
    NoSuchPartition {
        /// The topic.
        topic: String,
        /// The partition asked for.
        partition: PartitionIndex,
        /// How many there are.
        count: usize,
    },
    /// The topic promises less than `require.min.insync.replicas` asks for.
    #[error(
        "topic {topic} promises {effective} in-sync replica(s) for acks=all (min.insync.replicas={configured}, {replicas} replica(s)), but require.min.insync.replicas={required}"
    )]
    PromiseTooWeak {
        /// The topic.
        topic: String,
        /// In-sync replicas that an acknowledged record is on, at least.
        effective: u16,
        /// Its `min.insync.replicas`.
        configured: u16,
        /// Its replicas.
        replicas: u16,
        /// What this producer requires.
        required: u16,
    },
    /// The producer was closed.
    #[error("the producer is closed")]
    Closed,
}

fn waited(after: Duration) -> String {
    if after.is_zero() { String::new() } else { format!(", for {} ms", after.as_millis()) }
}

impl EnqueueError {
    /// Whether the same record may be taken later.
    pub fn is_retriable(&self) -> bool {
        match self {
            EnqueueError::BufferFull { .. } | EnqueueError::NotKnownYet { .. } => true,
            EnqueueError::Metadata { error, .. } => error.is_retriable(),
            _ => false,
        }
    }

    /// Kafka's code, where a broker gave one.
    pub fn kafka_code(&self) -> Option<minikafka_model::ErrorCode> {
        match self {
            EnqueueError::Metadata { error, .. } => error.kafka_code(),
            _ => None,
        }
    }
}

/// What the handles and the sender share.
pub(crate) struct Core {
    shared: Arc<Shared>,
    rules: Rules,
    ledger: Mutex<Ledger>,
    /// One permit for each free byte of `buffer.memory`.
    memory: Semaphore,
    /// Something new for the sender.
    wake: Notify,
    /// A batch has its verdict.
    resolved: Notify,
    /// Callers that wait for memory.
    short: std::sync::atomic::AtomicUsize,
    promises: Promises,
    closing: CancellationToken,
}

impl Core {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, bytes: usize) {
        if bytes > 0 {
            self.memory.add_permits(bytes);
        }
    }

    fn is_short_of_memory(&self) -> bool {
        self.short.load(std::sync::atomic::Ordering::Relaxed) > 0
    }
}

/// Writes records. Clones share everything; the last one closes it.
///
/// Records of one partition are stored in the order of `send`. With idempotence (the default) a record is stored once, however often it
/// had to be sent.
#[derive(Clone)]
pub struct Producer {
    core: Arc<Core>,
    sticky: Arc<Mutex<Sticky>>,
    _stop: Arc<DropGuard>,
}

impl Producer {
    pub(crate) fn start(shared: Arc<Shared>) -> Producer {
        let rules = Rules::of(&shared.config);
        let core = Arc::new(Core {
            memory: Semaphore::new(shared.config.buffer_memory),
            ledger: Mutex::new(Ledger::new(rules)),
            rules,
            wake: Notify::new(),
            resolved: Notify::new(),
            short: std::sync::atomic::AtomicUsize::new(0),
            promises: Promises::default(),
            closing: CancellationToken::new(),
            shared,
        });
        let stop = CancellationToken::new();
        tokio::spawn(Sender::new(core.clone()).run(stop.clone()));
        Producer { core, sticky: Arc::default(), _stop: Arc::new(stop.drop_guard()) }
    }

    /// Takes a record into the buffer. Waits, at most `max.block.ms`, for the topic's metadata when it is new and for room in
    /// `buffer.memory`; never for the delivery, which the returned future tells.
    ///
    /// # Errors
    /// What is wrong with the record or its topic, before anything is sent.
    pub async fn send(&self, record: Record) -> Result<Delivery, EnqueueError> {
        let size = self.check_size(&record)?;
        let deadline = Instant::now() + self.core.shared.config.max_block;
        if !self.is_known(&record.topic) {
            self.learn(&record.topic).await?;
        }
        self.check_promise(&record.topic)?;
        self.reserve(size, deadline).await?;
        self.append(&record, size)
    }

    /// As [`Producer::send`], without waiting.
    ///
    /// # Errors
    /// As `send`, and where it would have to wait.
    pub fn try_send(&self, record: &Record) -> Result<Delivery, EnqueueError> {
        let size = self.check_size(record)?;
        if !self.is_known(&record.topic) {
            self.core.shared.keeper.want(&record.topic);
            return Err(EnqueueError::NotKnownYet { topic: record.topic.clone() });
        }
        self.check_promise(&record.topic)?;
        let permits = u32::try_from(size).unwrap_or(u32::MAX);
        match self.core.memory.try_acquire_many(permits) {
            Ok(permit) => permit.forget(),
            Err(tokio::sync::TryAcquireError::Closed) => return Err(EnqueueError::Closed),
            Err(tokio::sync::TryAcquireError::NoPermits) => {
                let limit = self.core.shared.config.buffer_memory;
                return Err(EnqueueError::BufferFull { limit, after: Duration::ZERO });
            }
        }
        self.append(record, size)
    }

    /// Sends everything taken so far at once, ignoring `linger.ms`, and waits until each record has its verdict.
    pub async fn flush(&self) {
        let upto = self.core.ledger().flush();
        self.core.wake.notify_one();
        loop {
            let resolved = self.core.resolved.notified();
            tokio::pin!(resolved);
            resolved.as_mut().enable();
            if self.core.ledger().is_resolved(upto) {
                return;
            }
            resolved.await;
        }
    }

    /// Takes no more records, flushes for at most `within`, gives up what is left, and reports the counts over the producer's life.
    pub async fn close(self, within: Duration) -> CloseReport {
        self.core.closing.cancel();
        // A time-out is no error: what is left is counted as unsent.
        let _ = tokio::time::timeout(within, self.flush()).await;
        let view = self.core.shared.keeper.view();
        let mut ledger = self.core.ledger();
        ledger.close(&view);
        ledger.report()
    }

    /// Records without a verdict.
    pub fn waiting(&self) -> u64 {
        self.core.ledger().waiting()
    }

    fn check_size(&self, record: &Record) -> Result<usize, EnqueueError> {
        if self.core.closing.is_cancelled() {
            return Err(EnqueueError::Closed);
        }
        let size = record.size();
        let config = &self.core.shared.config;
        for (key, limit) in
            [("max.request.size", config.max_request_size), ("buffer.memory", config.buffer_memory)]
        {
            if size > limit {
                return Err(EnqueueError::TooLarge { size, key, limit });
            }
        }
        Ok(size)
    }

    fn is_known(&self, topic: &str) -> bool {
        let config = &self.core.shared.config;
        self.core.shared.keeper.view().topic(topic).is_some()
            && (config.acks != Acks::All
                || config.require_min_insync_replicas.is_none()
                || self.core.promises.get(topic, config.metadata_max_age).is_some())
    }

    /// Waits for metadata (and, where it is required, for the promise) of a topic.
    async fn learn(&self, topic: &str) -> Result<(), EnqueueError> {
        let Core { shared, promises, .. } = &*self.core;
        let config = &shared.config;
        let named = |error: Error| EnqueueError::Metadata { topic: topic.to_owned(), error };
        shared.keeper.want(topic);
        let what = || "finding the topic".to_owned();
        let known = shared.keeper.find(what, config.max_block, |view| known_topic(view, topic).map(|_| ()));
        known.await.map_err(named)?;
        if config.acks != Acks::All || promises.get(topic, config.metadata_max_age).is_some() {
            return Ok(());
        }
        if config.require_min_insync_replicas.is_some() {
            let asked = tokio::time::timeout(config.max_block, promises.ask(shared, topic)).await;
            let promise = asked
                .map_err(|_| Error::TimedOut {
                    what: "asking for min.insync.replicas".to_owned(),
                    after: config.max_block,
                    last: None,
                })
                .and_then(|promise| promise)
                .map_err(named)?;
            self.core.ledger().promise(topic, promise.effective());
        } else {
            tokio::spawn(warn_of_a_weak_promise(self.core.clone(), topic.to_owned()));
        }
        Ok(())
    }

    fn check_promise(&self, topic: &str) -> Result<(), EnqueueError> {
        let config = &self.core.shared.config;
        let Some(required) = config.require_min_insync_replicas else { return Ok(()) };
        let Some(promise) = self.core.promises.get(topic, config.metadata_max_age) else {
            return Err(EnqueueError::NotKnownYet { topic: topic.to_owned() });
        };
        let Promise { configured, replicas } = promise;
        let effective = promise.effective();
        if effective >= required {
            return Ok(());
        }
        Err(EnqueueError::PromiseTooWeak {
            topic: topic.to_owned(),
            effective,
            configured,
            replicas,
            required,
        })
    }

    async fn reserve(&self, size: usize, deadline: Instant) -> Result<(), EnqueueError> {
        let Core { memory, short, wake, shared, .. } = &*self.core;
        let permits = u32::try_from(size).unwrap_or(u32::MAX);
        if let Ok(permit) = memory.try_acquire_many(permits) {
            permit.forget();
            return Ok(());
        }
        /// Counts a caller that waits, also when its future is dropped.
        struct Short<'a>(&'a std::sync::atomic::AtomicUsize);
        impl Drop for Short<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
        short.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let _short = Short(short);
        wake.notify_one();
        match tokio::time::timeout_at(deadline, memory.acquire_many(permits)).await {
            Ok(Ok(permit)) => {
                permit.forget();
                Ok(())
            }
            Ok(Err(_)) => Err(EnqueueError::Closed),
            Err(_) => {
                let (limit, after) = (shared.config.buffer_memory, shared.config.max_block);
                Err(EnqueueError::BufferFull { limit, after })
            }
        }
    }

    fn append(&self, record: &Record, size: usize) -> Result<Delivery, EnqueueError> {
        let view = self.core.shared.keeper.view();
        let partition = match view.topic(&record.topic) {
            Some(topic) => self.partition(record, topic, size),
            None => Err(EnqueueError::NotKnownYet { topic: record.topic.clone() }),
        };
        let partition = partition.inspect_err(|_| self.core.release(size))?;
        let timestamp = record.timestamp.unwrap_or_else(wall_clock);
        let (delivery, news) = self.core.ledger().append(record, partition, timestamp, size, Instant::now());
        if news {
            self.core.wake.notify_one();
        }
        Ok(delivery)
    }

    fn partition(
        &self,
        record: &Record,
        topic: &TopicView,
        size: usize,
    ) -> Result<PartitionIndex, EnqueueError> {
        let config = &self.core.shared.config;
        let count = topic.partitions.len();
        if let Some(partition) = record.partition {
            return if topic.partitions.contains_key(&partition) {
                Ok(partition)
            } else {
                Err(EnqueueError::NoSuchPartition { topic: topic.name.clone(), partition, count })
            };
        }
        if let Some(key) = &record.key
            && !config.partitioner_ignore_keys
        {
            return Ok(partition_of_key(key, i32::try_from(count).unwrap_or(i32::MAX)));
        }
        let mut sticky = self.sticky.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(sticky.choose(topic, size, config.batch_size, |below| rand::random_range(0..below)))
    }
}

/// Tells once, where acks=all means no more than acks=1 would.
async fn warn_of_a_weak_promise(core: Arc<Core>, topic: String) {
    match core.promises.ask(&core.shared, &topic).await {
        Ok(promise) => {
            core.ledger().promise(&topic, promise.effective());
            if promise.effective() == 1 && promise.replicas > 1 {
                tracing::warn!(
                    "topic {topic} has min.insync.replicas=1: acks=all may be answered with the leader as the only copy"
                );
            }
        }
        Err(error) => tracing::debug!("min.insync.replicas of {topic} is not known: {error}"),
    }
}

fn wall_clock() -> WallMs {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producer").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}
