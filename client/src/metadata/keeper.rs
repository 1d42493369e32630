//! Keeps the picture of the cluster fresh: after an error, on demand, and when it has grown old.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use minikafka_model::BrokerId;
use minikafka_wire::metadata::{MetadataRequest, MetadataResponse, RequestTopic};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::view::{Broker, ClusterView, LeaderHint};
use crate::backoff::Backoff;
use crate::config::ClientConfig;
use crate::connection::{Connection, Lane, Pool};
use crate::error::{BrokerError, Error};

/// How long one broker may take to answer while others could be asked: a paused process takes connections, but never answers.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is known, and how the last try to know more went.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// The newest picture.
    pub(crate) view: Arc<ClusterView>,
    /// Tries so far.
    pub(crate) tries: u64,
    /// Why the last try failed, if it did.
    pub(crate) error: Option<Error>,
}

/// The handle shared by everything that reads metadata.
pub(crate) struct Keeper {
    config: Arc<ClientConfig>,
    pool: Arc<Pool>,
    topics: Mutex<BTreeSet<String>>,
    wanted: Notify,
    known: watch::Sender<Known>,
}

impl Keeper {
    pub(crate) fn new(config: Arc<ClientConfig>, pool: Arc<Pool>) -> Arc<Keeper> {
        Arc::new(Keeper {
            config,
            pool,
            topics: Mutex::default(),
            wanted: Notify::new(),
            known: watch::Sender::new(Known::default()),
        })
    }

    /// The newest picture.
    pub(crate) fn view(&self) -> Arc<ClusterView> {
        self.known.borrow().view.clone()
    }

    /// Hears of every new picture and every failed try.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Known> {
        self.known.subscribe()
    }

    /// Asks for a fresh picture soon (no more often than the backoff allows).
    pub(crate) fn refresh(&self) {
        self.wanted.notify_one();
    }

    /// From now on this topic is asked for.
    pub(crate) fn want(&self, topic: &str) {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        if !topics.contains(topic) {
            topics.insert(topic.to_owned());
            drop(topics);
            self.refresh();
        }
    }

    /// Takes leaders named in an answer.
    pub(crate) fn hint(&self, hints: &[LeaderHint]) {
        self.known.send_if_modified(|known| match known.view.hinted(hints) {
            Some(view) => {
                known.view = Arc::new(view);
                true
            }
            None => false,
        });
    }

    /// Waits until `found` finds in the picture what it looks for, asking for fresh ones as long as it does not.
    pub(crate) async fn find<T>(
        &self,
        what: impl Fn() -> String,
        within: Duration,
        mut found: impl FnMut(&ClusterView) -> Result<T, Option<Error>>,
    ) -> Result<T, Error> {
        let mut known = self.subscribe();
        let deadline = Instant::now() + within;
        let mut last: Option<Error>;
        loop {
            {
                let known = known.borrow_and_update();
                match found(&known.view) {
                    Ok(value) => return Ok(value),
                    Err(why) => last = known.error.clone().or(why),
                }
            }
            self.refresh();
            match tokio::time::timeout_at(deadline, known.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(Error::Closed),
                Err(_) => {
                    return Err(Error::TimedOut { what: what(), after: within, last: last.map(Box::new) });
                }
            }
        }
    }

    /// The task: runs until the client is closed.
    pub(crate) async fn keep(self: Arc<Keeper>, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.keep_for_ever() => {}
        }
    }

    async fn keep_for_ever(&self) {
        let backoff = Backoff::new(self.config.retry_backoff, self.config.retry_backoff_max);
        let mut failures = 0;
        loop {
            let old = tokio::time::sleep(self.config.metadata_max_age);
            tokio::select! { () = self.wanted.notified() => {}, () = old => {} }
            let result = self.ask().await;
            let pause = backoff.pause(failures);
            failures = if result.is_err() { failures.saturating_add(1) } else { 0 };
            self.known.send_modify(|known| {
                known.tries += 1;
                match result {
                    Ok(newer) => {
                        known.view = Arc::new(known.view.updated_by(newer));
                        known.error = None;
                    }
                    Err(error) => {
                        tracing::debug!("metadata: {error}");
                        known.error = Some(error);
                    }
                }
            });
            tokio::time::sleep(pause).await;
        }
    }

    async fn ask(&self) -> Result<ClusterView, Error> {
        let topics: Vec<String> =
            self.topics.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect();
        let answer = self.metadata(Some(topics), self.config.allow_auto_create_topics).await?;
        Ok(ClusterView::from_wire(&answer))
    }

    /// One Metadata request to whichever broker answers; `None` asks for all topics.
    pub(crate) async fn metadata(
        &self,
        topics: Option<Vec<String>>,
        create: bool,
    ) -> Result<MetadataResponse, Error> {
        let topics = topics.map(|names| {
            names
                .into_iter()
                .map(|name| RequestTopic { name: Some(name), ..RequestTopic::default() })
                .collect()
        });
        let request =
            MetadataRequest { topics, allow_auto_topic_creation: create, ..MetadataRequest::default() };
        let connection = self.any().await?;
        let answer = connection.call(&request, self.config.request_timeout.min(PATIENCE)).await?;
        BrokerError::check(answer.error_code, None).map_err(|error| Error::broker("metadata", error))?;
        Ok(answer)
    }

    /// A connection to any broker: an open one, else to a known one, else to a bootstrap server.
    pub(crate) async fn any(&self) -> Result<Arc<Connection>, Error> {
        let view = self.view();
        let open: Vec<BrokerId> = self.pool.connected();
        let (connected, others): (Vec<&Broker>, Vec<&Broker>) =
            view.brokers.values().partition(|broker| open.contains(&broker.id));
        let mut attempts = Vec::new();
        for broker in shuffled(connected).into_iter().chain(shuffled(others)) {
            match patiently(self.pool.broker(broker.id, &broker.address, Lane::Control)).await {
                Ok(connection) => return Ok(connection),
                Err(reason) => attempts.push((broker.address.clone(), reason)),
            }
        }
        for address in &self.config.bootstrap_servers {
            match patiently(self.pool.bootstrap(address)).await {
                Ok(connection) => return Ok(connection),
                Err(reason) => attempts.push((address.clone(), reason)),
            }
        }
        Err(Error::Unreachable { attempts })
    }
}

/// Waits no longer for one broker than another may be asked instead; the error is the reason alone.
async fn patiently(
    connecting: impl Future<Output = Result<Arc<Connection>, Error>>,
) -> Result<Arc<Connection>, String> {
    match tokio::time::timeout(PATIENCE, connecting).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(Error::Unreachable { mut attempts })) if attempts.len() == 1 => Err(attempts.remove(0).1),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} ms", PATIENCE.as_millis())),
    }
}

fn shuffled<T>(mut list: Vec<T>) -> Vec<T> {
    for i in (1..list.len()).rev() {
        let j = rand::random_range(0..=i);
        list.swap(i, j);
    }
    list
}
