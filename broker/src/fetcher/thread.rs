//! One fetcher thread: keeps a stream to its source open while it has partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{BrokerId, TopicPartition};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::pool::Identity;
use super::stream::{LeaderStream, StreamEnd};
use crate::event::NodeEvent;
use crate::service::Service;

/// Before a lost stream is opened anew: doubles up to `replica.fetch.backoff.ms`.
const FIRST_BACKOFF: Duration = Duration::from_millis(50);

/// What the pool tells a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// Fetch this partition from now on, or ask for it anew.
    Ask(TopicPartition),
    /// Fetch it no longer.
    Leave(TopicPartition),
    /// End.
    Stop,
}

/// The newest command for each partition.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    commands: Mutex<BTreeMap<TopicPartition, Command>>,
    news: Notify,
    stop: CancellationToken,
}

impl Inbox {
    pub(super) fn put(&self, command: Command) {
        match command {
            Command::Ask(at) | Command::Leave(at) => {
                self.commands.lock().insert(at, command);
            }
            Command::Stop => self.stop.cancel(),
        }
        self.news.notify_one();
    }

    /// The commands since the last time, and whether to end.
    pub(super) fn take(&self) -> (Vec<Command>, bool) {
        let commands = std::mem::take(&mut *self.commands.lock()).into_values().collect();
        (commands, self.stop.is_cancelled())
    }

    /// Completes when the thread is to end.
    pub(super) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}

/// One fetcher.
pub(super) struct Fetcher {
    pub(super) service: Arc<Service>,
    pub(super) identity: Identity,
    pub(super) source: BrokerId,
    pub(super) index: usize,
    pub(super) inbox: Arc<Inbox>,
    /// What it fetches.
    pub(super) partitions: BTreeSet<TopicPartition>,
    told: String,
}

impl Fetcher {
    pub(super) fn new(
        service: Arc<Service>,
        identity: Identity,
        source: BrokerId,
        index: usize,
        inbox: Arc<Inbox>,
    ) -> Fetcher {
        Fetcher { service, identity, source, index, inbox, partitions: BTreeSet::new(), told: String::new() }
    }

    /// Fetches until it is told to end.
    pub(super) async fn run(mut self) {
        let mut backoff = FIRST_BACKOFF;
        loop {
            let (commands, stop) = self.inbox.take();
            if stop {
                return;
            }
            self.note(&commands);
            if self.partitions.is_empty() {
                self.inbox.news().await;
                continue;
            }
            if let Some(until) = self.service.faults.fetching_stopped() {
                self.tell("fetching is stopped by a fault of the lab");
                tokio::select! {
                    () = sleep_until(Instant::from_std(until)) => {}
                    () = self.service.faults.changed() => {}
                    () = self.inbox.news() => {}
                }
                continue;
            }
            let end = match LeaderStream::open(&self).await {
                Ok(stream) => {
                    self.tell("opened a stream");
                    let (end, answers) = stream.run(&mut self).await;
                    if answers > 0 {
                        backoff = FIRST_BACKOFF;
                    }
                    end
                }
                Err(end) => end,
            };
            if let StreamEnd::Stop = end {
                continue;
            }
            self.tell(&format!("{end}; partitions wait: {}", self.partitions.len()));
            tokio::select! {
                () = sleep(backoff) => {}
                () = self.inbox.stopped() => {}
            }
            backoff = (backoff * 2).min(self.service.settings.replica_fetch_backoff.max(FIRST_BACKOFF));
        }
    }

    /// Takes note of commands while there is no stream.
    pub(super) fn note(&mut self, commands: &[Command]) {
        for command in commands {
            match command {
                Command::Ask(at) => {
                    self.partitions.insert(*at);
                }
                Command::Leave(at) => {
                    self.partitions.remove(at);
                }
                Command::Stop => {}
            }
        }
    }

    /// Tells what has changed, not what goes on.
    fn tell(&mut self, reason: &str) {
        if self.told != reason {
            reason.clone_into(&mut self.told);
            self.service.tell(NodeEvent::FetcherStream {
                source: self.source,
                fetcher: u32::try_from(self.index).unwrap_or(u32::MAX),
                reason: reason.to_owned(),
            });
        }
    }
}
