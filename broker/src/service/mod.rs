//! What both doors call: the replicas, what they want done, callers that wait, topic settings, checkpoints, timers.

mod apply;
mod consume;
mod perform;
mod produce;
mod registry;
mod topic_settings;
mod waiting;
mod wakeups;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arc_swap::ArcSwap;
use minikafka_metadata::Image;
use minikafka_model::{BrokerId, TopicPartition};
use minikafka_node::{Clock, EventRing, Faults};
use minikafka_replication::{Effect, IsrProposal, Replica};
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use consume::{ReadAnswer, ReadAsk};
pub(crate) use produce::{WriteOutcome, WriteStart};
pub(crate) use registry::{Registry, ReplicaCell};
pub(crate) use topic_settings::TopicSettings;
pub(crate) use waiting::{StreamWakes, Waiting};
pub(crate) use wakeups::Wakeups;

use crate::event::BrokerEvent;
use crate::settings::BrokerSettings;
use crate::store::LogStore;

/// ISR proposals that the link has not sent yet: at most one for each partition.
#[derive(Debug, Default)]
pub(crate) struct Proposals {
    queue: Mutex<BTreeMap<TopicPartition, IsrProposal>>,
    news: Notify,
}

impl Proposals {
    fn put(&self, at: TopicPartition, proposal: IsrProposal) {
        self.queue.lock().insert(at, proposal);
        self.news.notify_one();
    }

    fn withdraw(&self, at: TopicPartition) {
        self.queue.lock().remove(&at);
    }

    /// Takes at most `most` of them.
    pub(crate) fn take(&self, most: usize) -> BTreeMap<TopicPartition, IsrProposal> {
        let mut queue = self.queue.lock();
        let rest = queue.keys().nth(most).copied().map(|at| queue.split_off(&at)).unwrap_or_default();
        std::mem::replace(&mut *queue, rest)
    }

    /// Whether there are any.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }

    /// Completes when there is one.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }
}

/// Partitions whose leader to ask has changed: the fetcher pool routes them anew. At most one entry for each replica.
#[derive(Debug, Default)]
pub(crate) struct AskChanges {
    partitions: Mutex<BTreeSet<TopicPartition>>,
    news: Notify,
}

impl AskChanges {
    fn put(&self, at: TopicPartition) {
        self.partitions.lock().insert(at);
        self.news.notify_one();
    }

    /// Takes them.
    pub(crate) fn take(&self) -> BTreeSet<TopicPartition> {
        std::mem::take(&mut *self.partitions.lock())
    }

    /// Completes when there is one.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }
}

/// The replicas and everything around them. Shared by the doors, the fetchers and the link to the controllers.
#[derive(Debug)]
pub(crate) struct Service {
    /// This broker.
    pub(crate) id: BrokerId,
    /// Its settings.
    pub(crate) settings: Arc<BrokerSettings>,
    /// The clocks.
    pub(crate) clock: Clock,
    /// The newest metadata.
    pub(crate) image: ArcSwap<Image>,
    /// The replicas.
    pub(crate) replicas: Registry,
    /// Callers that wait.
    pub(crate) waiting: Waiting,
    /// Alarms of the replicas.
    pub(crate) wakeups: Wakeups,
    /// ISR changes for the controllers.
    pub(crate) proposals: Proposals,
    /// Work for the fetcher pool.
    pub(crate) ask_changes: AskChanges,
    /// What happened.
    pub(crate) events: Arc<EventRing<BrokerEvent>>,
    /// The faults of the lab.
    pub(crate) faults: Arc<Faults>,
    /// The data directory.
    pub(crate) store: LogStore,
    /// Completes when the log directory has failed: the process ends, for it is the only one.
    pub(crate) directory_failed: Notify,
}

impl Service {
    /// The cores and rings of a broker, before any metadata is known.
    pub(crate) fn new(
        settings: Arc<BrokerSettings>,
        clock: Clock,
        image: Image,
        events: Arc<EventRing<BrokerEvent>>,
        faults: Arc<Faults>,
        store: LogStore,
    ) -> Service {
        Service {
            id: settings.id,
            settings,
            clock,
            image: ArcSwap::from_pointee(image),
            replicas: Registry::default(),
            waiting: Waiting::default(),
            wakeups: Wakeups::default(),
            proposals: Proposals::default(),
            ask_changes: AskChanges::default(),
            events,
            faults,
            store,
            directory_failed: Notify::new(),
        }
    }

    /// Brings one input to a replica, and performs what it wants done after its lock is released.
    pub(crate) fn with_replica<T>(
        &self,
        cell: &ReplicaCell,
        input: impl FnOnce(&mut Replica, &mut Vec<Effect>) -> T,
    ) -> T {
        let (answer, effects) = self.input(cell, input);
        self.perform(cell, effects);
        answer
    }

    /// Brings one input to a replica; the effects are the caller's to perform.
    pub(crate) fn input<T>(
        &self,
        cell: &ReplicaCell,
        input: impl FnOnce(&mut Replica, &mut Vec<Effect>) -> T,
    ) -> (T, Vec<Effect>) {
        let mut effects = Vec::new();
        let mut core = cell.lock();
        let answer = input(&mut core.replica, &mut effects);
        let wake = core.replica.next_wake();
        // An alarm that rings too early does no harm; moving it at each write would cost more than the write.
        let rearm = match (core.armed, wake) {
            (Some(armed), Some(wake)) => wake < armed,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if rearm {
            self.wakeups.arm(cell.at, core.armed, wake);
            core.armed = wake;
        }
        drop(core);
        (answer, effects)
    }

    /// Tells and keeps an event.
    pub(crate) fn tell(&self, event: impl Into<BrokerEvent>) {
        self.events.tell(self.clock.wall(), event.into());
    }

    /// Rings the alarms that are due; gives back when the next one is.
    pub(crate) fn ring(&self) -> Option<minikafka_model::Mono> {
        let now = self.clock.mono();
        for at in self.wakeups.take_due(now) {
            let Some(cell) = self.replicas.get(at) else { continue };
            cell.lock().armed = None;
            self.with_replica(&cell, |replica, out| replica.tick(now, out));
        }
        self.wakeups.next()
    }
}

impl Service {
    /// Retention by time and size, and by the log start.
    pub(crate) fn retain(&self) {}

    /// Producer ids that were not used for long are forgotten.
    pub(crate) fn expire_producers(&self) {}
}
