//! The replicas of this broker, each behind its own lock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use minikafka_model::{Mono, TopicPartition};
use minikafka_replication::Replica;
use parking_lot::{Mutex, MutexGuard};

use super::topic_settings::TopicSettings;

/// One replica with its lock.
#[derive(Debug)]
pub(crate) struct ReplicaCell {
    /// The partition.
    pub(crate) at: TopicPartition,
    /// The topic's name, for the doors and for people.
    pub(crate) topic: Arc<str>,
    core: Mutex<Core>,
    settings: ArcSwap<TopicSettings>,
    /// Version of the newest epoch checkpoint written; held while one is written, so that an older never replaces a newer.
    pub(crate) epochs_on_disk: Mutex<u64>,
    gone: AtomicBool,
}

/// What the lock guards.
#[derive(Debug)]
pub(crate) struct Core {
    /// The replica.
    pub(crate) replica: Replica,
    /// Its alarm as set in the alarm clock.
    pub(crate) armed: Option<Mono>,
}

impl ReplicaCell {
    /// A cell around a replica.
    pub(crate) fn new(topic: Arc<str>, replica: Replica, settings: Arc<TopicSettings>) -> ReplicaCell {
        ReplicaCell {
            at: replica.partition(),
            topic,
            core: Mutex::new(Core { replica, armed: None }),
            settings: ArcSwap::new(settings),
            epochs_on_disk: Mutex::new(0),
            gone: AtomicBool::new(false),
        }
    }

    /// Takes the lock. Not across an await, never two at once, no fsync under it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock()
    }

    /// The topic's settings at this moment.
    pub(crate) fn settings(&self) -> Arc<TopicSettings> {
        self.settings.load_full()
    }

    /// The topic has other settings now.
    pub(crate) fn set_settings(&self, settings: Arc<TopicSettings>) {
        self.settings.store(settings);
    }

    /// The partition was deleted or is no longer assigned: whoever still holds the cell finds nothing in it.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Takes the replica out for good.
    pub(crate) fn take(&self) -> Replica {
        self.gone.store(true, Ordering::Release);
        let gone = Replica::offline(self.at, "the replica was removed from this broker".to_owned());
        std::mem::replace(&mut self.core.lock().replica, gone)
    }
}

type Map = HashMap<TopicPartition, Arc<ReplicaCell>>;

/// All replicas. Reading costs no lock; only the metadata thread changes the set.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    map: ArcSwap<Map>,
    changing: Mutex<()>,
}

impl Registry {
    /// The replica of this partition.
    pub(crate) fn get(&self, at: TopicPartition) -> Option<Arc<ReplicaCell>> {
        self.map.load().get(&at).cloned()
    }

    /// All replicas, in the order of topic id and partition.
    pub(crate) fn all(&self) -> Vec<Arc<ReplicaCell>> {
        let mut cells: Vec<_> = self.map.load().values().cloned().collect();
        cells.sort_by_key(|cell| cell.at);
        cells
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.map.load().len()
    }

    /// Adds replicas.
    pub(crate) fn add(&self, cells: impl IntoIterator<Item = Arc<ReplicaCell>>) {
        let _one_at_a_time = self.changing.lock();
        let mut map = Map::clone(&self.map.load());
        map.extend(cells.into_iter().map(|cell| (cell.at, cell)));
        self.map.store(Arc::new(map));
    }

    /// Takes replicas out.
    pub(crate) fn remove(&self, gone: &[TopicPartition]) -> Vec<Arc<ReplicaCell>> {
        let _one_at_a_time = self.changing.lock();
        let mut map = Map::clone(&self.map.load());
        let removed = gone.iter().filter_map(|at| map.remove(at)).collect();
        self.map.store(Arc::new(map));
        removed
    }
}
