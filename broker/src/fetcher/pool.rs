//! Which thread fetches which partition, and the life of the threads.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use minikafka_model::{BrokerId, ClusterId, DirectoryId, TopicPartition};
use minikafka_node::block_on_thread;
use parking_lot::Mutex;
use std::thread::JoinHandle;

use super::spread;
use super::thread::{Command, Fetcher, Inbox};
use crate::controller_link::BrokerEpochCell;
use crate::service::Service;
use crate::settings::Spread;

/// One thread of one source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    source: BrokerId,
    index: usize,
}

/// Who this broker is, for the handshake with leaders.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) cluster: ClusterId,
    pub(crate) directory: DirectoryId,
    pub(crate) epoch: Arc<BrokerEpochCell>,
}

#[derive(Debug)]
struct Running {
    inbox: Arc<Inbox>,
    partitions: usize,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Threads {
    running: BTreeMap<Key, Running>,
    assigned: BTreeMap<TopicPartition, Key>,
    /// Threads that were told to stop.
    leaving: Vec<JoinHandle<()>>,
    stopped: bool,
}

/// The fetcher threads of this broker.
#[derive(Debug)]
pub(crate) struct FetcherPool {
    service: Arc<Service>,
    identity: Identity,
    spread: Spread,
    threads: Mutex<(usize, Threads)>,
}

impl FetcherPool {
    /// A pool without threads: they start with their first partition.
    pub(crate) fn new(service: Arc<Service>, identity: Identity) -> FetcherPool {
        let per_source = service.settings.replica_fetchers.max(1);
        let spread = service.settings.fetcher_spread;
        FetcherPool { service, identity, spread, threads: Mutex::new((per_source, Threads::default())) }
    }

    /// Whom the replica of this partition has to ask, if it follows somebody.
    fn source_of(&self, at: TopicPartition) -> Option<BrokerId> {
        let cell = self.service.replicas.get(at)?;
        let (leader, _) = cell.lock().replica.leader()?;
        (leader != self.service.id).then_some(leader)
    }

    /// The leader of this partition, or what to ask it, has changed.
    pub(crate) fn route(&self, at: TopicPartition) {
        let source = self.source_of(at);
        let mut guard = self.threads.lock();
        let (per_source, threads) = &mut *guard;
        if threads.stopped {
            return;
        }
        let present = threads.assigned.get(&at).copied();
        match (present, source) {
            (Some(key), Some(source)) if key.source == source => threads.tell(key, Command::Ask(at)),
            (present, source) => {
                if let Some(key) = present {
                    threads.take_away(at, key);
                }
                if let Some(source) = source {
                    let index = self.index_for(at, source, *per_source, threads);
                    self.give(at, Key { source, index }, threads);
                }
            }
        }
    }

    fn index_for(&self, at: TopicPartition, source: BrokerId, per_source: usize, threads: &Threads) -> usize {
        match self.spread {
            Spread::Even => {
                let counts = threads
                    .running
                    .iter()
                    .filter(|(key, _)| key.source == source)
                    .map(|(key, running)| (key.index, running.partitions))
                    .collect();
                spread::fewest(per_source, &counts)
            }
            Spread::Kafka => {
                let topic = self.service.replicas.get(at).map(|cell| Arc::clone(&cell.topic));
                spread::kafka(topic.as_deref().unwrap_or_default(), at.partition.0, per_source)
            }
        }
    }

    fn give(&self, at: TopicPartition, key: Key, threads: &mut Threads) {
        let running = match threads.running.entry(key) {
            Entry::Occupied(running) => running.into_mut(),
            Entry::Vacant(place) => match self.start(key) {
                Ok(running) => place.insert(running),
                Err(error) => {
                    // Without a thread the partition is not replicated, which the leader sees; the next change tries again.
                    tracing::error!("fetcher thread {}-{} cannot start: {error}", key.source, key.index);
                    return;
                }
            },
        };
        running.partitions += 1;
        running.inbox.put(Command::Ask(at));
        threads.assigned.insert(at, key);
    }

    fn start(&self, key: Key) -> std::io::Result<Running> {
        let inbox = Arc::new(Inbox::default());
        let (service, identity) = (Arc::clone(&self.service), self.identity.clone());
        let fetcher = Fetcher::new(service, identity, key.source, key.index, Arc::clone(&inbox));
        let name = format!("fetcher-{}-{}", key.source, key.index);
        let thread = block_on_thread(&name, move || fetcher.run())?;
        Ok(Running { inbox, partitions: 0, thread })
    }

    /// Another number of threads for each source (`num.replica.fetchers`), while everything runs. Only partitions that have to move do.
    pub(crate) fn resize(&self, per_source: usize) {
        let mut guard = self.threads.lock();
        let (present, threads) = &mut *guard;
        if threads.stopped || *present == per_source.max(1) {
            return;
        }
        *present = per_source.max(1);
        let per_source = *present;
        let all: Vec<(TopicPartition, Key)> = threads.assigned.iter().map(|(at, key)| (*at, *key)).collect();
        let mut of_source: BTreeMap<BrokerId, usize> = BTreeMap::new();
        all.iter().for_each(|(_, key)| *of_source.entry(key.source).or_default() += 1);
        for (at, key) in all {
            let share = of_source.get(&key.source).copied().unwrap_or(0).div_ceil(per_source);
            let stays = match self.spread {
                Spread::Even => {
                    key.index < per_source
                        && threads.running.get(&key).is_some_and(|running| running.partitions <= share)
                }
                Spread::Kafka => self.index_for(at, key.source, per_source, threads) == key.index,
            };
            if !stays {
                threads.take_away(at, key);
                let index = self.index_for(at, key.source, per_source, threads);
                self.give(at, Key { source: key.source, index }, threads);
            }
        }
    }

    /// The threads there are: source, number, partitions.
    pub(crate) fn shown(&self) -> Vec<(BrokerId, usize, usize)> {
        let guard = self.threads.lock();
        guard.1.running.iter().map(|(key, running)| (key.source, key.index, running.partitions)).collect()
    }

    /// Stops all threads and waits for them.
    pub(crate) fn stop(&self) {
        let leaving = {
            let mut guard = self.threads.lock();
            let threads = &mut guard.1;
            threads.stopped = true;
            threads.assigned.clear();
            let mut leaving = std::mem::take(&mut threads.leaving);
            for (_, running) in std::mem::take(&mut threads.running) {
                running.inbox.put(Command::Stop);
                leaving.push(running.thread);
            }
            leaving
        };
        for thread in leaving {
            if thread.join().is_err() {
                tracing::error!("a fetcher thread has panicked");
            }
        }
    }
}

impl Threads {
    fn tell(&self, key: Key, command: Command) {
        if let Some(running) = self.running.get(&key) {
            running.inbox.put(command);
        }
    }

    /// A thread that has no partitions left ends.
    fn take_away(&mut self, at: TopicPartition, key: Key) {
        self.assigned.remove(&at);
        let Some(running) = self.running.get_mut(&key) else { return };
        running.partitions -= 1;
        running.inbox.put(Command::Leave(at));
        if running.partitions == 0
            && let Some(running) = self.running.remove(&key)
        {
            running.inbox.put(Command::Stop);
            self.leaving.retain(|thread| !thread.is_finished());
            self.leaving.push(running.thread);
        }
    }
}
