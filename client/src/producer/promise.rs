//! What `acks=all` promises for a topic: the effective `min.insync.replicas`, asked for once and remembered for a while.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use minikafka_model::PartitionIndex;
use tokio::time::Instant;

use crate::client::Shared;
use crate::error::Error;

/// The promise of one topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Promise {
    /// `min.insync.replicas` as configured.
    pub(crate) configured: u16,
    /// Replicas of its first partition.
    pub(crate) replicas: u16,
}

impl Promise {
    /// In-sync replicas that an acknowledged record is on: never more than there are replicas (Kafka semantics 1.3).
    pub(crate) fn effective(self) -> u16 {
        self.configured.min(self.replicas).max(1)
    }
}

/// The promises asked for so far.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    known: Mutex<BTreeMap<String, (Promise, Instant)>>,
}

impl Promises {
    /// A promise that is known and not older than `max_age`.
    pub(crate) fn get(&self, topic: &str, max_age: Duration) -> Option<Promise> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(topic).filter(|(_, asked)| asked.elapsed() < max_age).map(|(promise, _)| *promise)
    }

    /// Asks the cluster and remembers the answer. The topic must be in the metadata.
    pub(crate) async fn ask(&self, shared: &Shared, topic: &str) -> Result<Promise, Error> {
        let configured = crate::admin::min_insync_replicas(shared, topic).await?;
        let view = shared.keeper.view();
        let replicas = view.partition(topic, PartitionIndex::ZERO).map_or(1, |known| known.replicas.len());
        let promise = Promise { configured, replicas: u16::try_from(replicas).unwrap_or(u16::MAX) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(topic.to_owned(), (promise, Instant::now()));
        Ok(promise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_promised_than_there_are_replicas() {
        assert_eq!(Promise { configured: 2, replicas: 1 }.effective(), 1);
        assert_eq!(Promise { configured: 2, replicas: 3 }.effective(), 2);
    }
}
