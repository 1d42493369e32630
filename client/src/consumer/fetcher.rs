//! The task behind a consumer: keeps one fetch under way at each broker that has something to fetch, looks positions up, and checks them
//! against new leader epochs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use minikafka_model::{BrokerId, LeaderEpoch, Offset, TopicId, Uuid};
use minikafka_wire::fetch::{FetchPartition, FetchRequest, FetchTopic};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::Handed;
use super::answer::Answered;
use super::positions::{MAX_BUFFERED, Place, Position, Positions, Start};
use super::validate::{self, Checked};
use crate::backoff::Backoff;
use crate::client::{Shared, known_topic};
use crate::config::OffsetReset;
use crate::connection::Lane;
use crate::error::Error;
use crate::metadata::ClusterView;

/// First version of Fetch that names topics by id.
const FIRST_WITH_IDS: i16 = 13;
/// Ended requests that wait to be looked at.
const MAX_ENDED: usize = 256;

/// One partition in a request, as it was when it was asked for.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) place: Place,
    pub(super) generation: u64,
    pub(super) at: Offset,
    pub(super) leader_epoch: Option<LeaderEpoch>,
    pub(super) topic_id: Option<TopicId>,
}

/// A request of this task that has ended.
pub(super) enum Ended {
    Fetch(BrokerId, Vec<Wanted>, Result<Answered, Error>),
    Check(Checked),
}

pub(super) struct Fetcher {
    pub(super) shared: Arc<Shared>,
    pub(super) positions: Positions,
    pub(super) out: mpsc::Sender<Handed>,
    ended: mpsc::Receiver<Ended>,
    ended_to: mpsc::Sender<Ended>,
    /// Brokers at which a fetch is under way.
    asked: BTreeSet<BrokerId>,
    pub(super) backoff: Backoff,
}

impl Fetcher {
    pub(super) fn new(shared: Arc<Shared>, positions: Positions, out: mpsc::Sender<Handed>) -> Fetcher {
        let (ended_to, ended) = mpsc::channel(MAX_ENDED);
        let backoff = Backoff::new(shared.config.retry_backoff, shared.config.retry_backoff_max);
        Fetcher { shared, positions, out, ended, ended_to, asked: BTreeSet::new(), backoff }
    }

    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut known = self.shared.keeper.subscribe();
        let positions = self.positions.clone();
        loop {
            let wake_at = self.ask();
            let timer = async {
                match wake_at {
                    Some(moment) => sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            let handed = tokio::select! {
                () = stop.cancelled() => return,
                Some(ended) = self.ended.recv() => self.take(ended),
                () = positions.shared.wake.notified() => Vec::new(),
                _ = known.changed() => Vec::new(),
                () = timer => Vec::new(),
            };
            for item in handed {
                // The application's side is gone, or it reads too slowly and this task waits for it.
                tokio::select! {
                    () = stop.cancelled() => return,
                    sent = self.out.send(item) => if sent.is_err() { return },
                }
            }
            positions.shared.progress.notify_waiters();
        }
    }

    /// Sends every request that can be sent; when to look again.
    fn ask(&mut self) -> Option<Instant> {
        let view = self.shared.keeper.view();
        let now = Instant::now();
        let mut wake_at: Option<Instant> = None;
        let mut fetches: BTreeMap<BrokerId, Vec<Wanted>> = BTreeMap::new();
        let positions = self.positions.clone();
        let mut table = positions.table();
        let mut refresh = false;
        for (place, position) in &mut table.partitions {
            self.shared.keeper.want(&place.0);
            let leader_epoch = view.partition(&place.0, place.1).and_then(|known| known.leader_epoch);
            // A position is looked up and checked also while nothing more is fetched: what is buffered may be worthless.
            let unsure = position.start.is_some() || validate::is_due(position, leader_epoch);
            let full = position.paused || position.buffered >= MAX_BUFFERED;
            if position.busy || (full && !unsure) {
                continue;
            }
            if let Some(moment) = position.not_before.filter(|moment| *moment > now) {
                wake_at = Some(wake_at.map_or(moment, |known| known.min(moment)));
                continue;
            }
            let Some(leader) = view.leader(&place.0, place.1) else {
                self.without_leader(place, position, &view, now);
                refresh = true;
                continue;
            };
            if unsure {
                position.busy = true;
                let job = validate::Job::new(place.clone(), position, leader.id, leader_epoch);
                let (shared, ended) = (self.shared.clone(), self.ended_to.clone());
                tokio::spawn(async move {
                    // The receiver is gone only when the consumer is.
                    let _ = ended.send(Ended::Check(job.run(&shared).await)).await;
                });
                continue;
            }
            let broker = match position.near {
                Some((near, until)) if until > now && view.brokers.contains_key(&near) => near,
                _ => leader.id,
            };
            if self.asked.contains(&broker) {
                continue;
            }
            fetches.entry(broker).or_default().push(Wanted {
                place: place.clone(),
                generation: position.generation,
                at: position.fetch_at,
                leader_epoch,
                topic_id: view.topic(&place.0).and_then(|topic| topic.id),
            });
            position.busy = true;
        }
        drop(table);
        if refresh {
            self.shared.keeper.refresh();
        }
        for (broker, wanted) in fetches {
            self.asked.insert(broker);
            let (shared, ended) = (self.shared.clone(), self.ended_to.clone());
            tokio::spawn(async move {
                let answer = fetch(&shared, broker, &wanted).await;
                // The receiver is gone only when the consumer is.
                let _ = ended.send(Ended::Fetch(broker, wanted, answer)).await;
            });
        }
        wake_at
    }

    /// A topic that certainly does not exist is told; a missing leader is waited for.
    fn without_leader(&self, place: &Place, position: &mut Position, view: &ClusterView, now: Instant) {
        position.not_before = Some(now + self.backoff.pause(0));
        let missing = match known_topic(view, &place.0) {
            Ok(topic) if topic.partitions.contains_key(&place.1) => None,
            Ok(_) => crate::error::BrokerError::from_wire(
                minikafka_model::ErrorCode::UnknownTopicOrPartition.code(),
                None,
            )
            .map(|error| Error::broker(format!("partition {}-{}", place.0, place.1), error)),
            Err(why) => why,
        };
        if let Some(error) = missing {
            position.not_before = Some(now + self.backoff.pause(u32::MAX));
            // Where the application does not read, it need not hear it twice.
            let _ = self.out.try_send(Handed::Trouble(error));
        }
    }

    fn take(&mut self, ended: Ended) -> Vec<Handed> {
        match ended {
            Ended::Fetch(broker, wanted, answer) => {
                self.asked.remove(&broker);
                self.fetched(broker, wanted, answer)
            }
            Ended::Check(checked) => self.checked(checked),
        }
    }

    /// Where to go when the position does not exist; `None` leaves that to the application.
    pub(super) fn reset(&self) -> Option<Start> {
        match self.shared.config.auto_offset_reset {
            OffsetReset::Earliest => Some(Start::Earliest),
            OffsetReset::Latest => Some(Start::Latest),
            OffsetReset::None => None,
        }
    }
}

async fn fetch(shared: &Shared, broker: BrokerId, wanted: &[Wanted]) -> Result<Answered, Error> {
    let config = &shared.config;
    let connection = shared.broker(broker, Lane::Fetch).await?;
    let by_id = wanted.iter().all(|wanted| wanted.topic_id.is_some());
    let version = connection.version_of::<FetchRequest>(if by_id { i16::MAX } else { FIRST_WITH_IDS - 1 })?;
    let mut topics: BTreeMap<(&str, Uuid), Vec<FetchPartition>> = BTreeMap::new();
    for wanted in wanted {
        let id = wanted.topic_id.map_or(Uuid::ZERO, |TopicId(id)| id);
        topics.entry((&wanted.place.0, id)).or_default().push(FetchPartition {
            partition: wanted.place.1.0,
            current_leader_epoch: wanted.leader_epoch.map_or(-1, |epoch| epoch.0),
            fetch_offset: wanted.at.0,
            partition_max_bytes: limited(config.max_partition_fetch_bytes),
            ..FetchPartition::default()
        });
    }
    let topics = topics.into_iter().map(|((topic, topic_id), partitions)| FetchTopic {
        topic: topic.to_owned(),
        topic_id,
        partitions,
    });
    let request = FetchRequest {
        max_wait_ms: i32::try_from(config.fetch_max_wait.as_millis()).unwrap_or(i32::MAX),
        min_bytes: limited(config.fetch_min_bytes),
        max_bytes: limited(config.fetch_max_bytes),
        isolation_level: config.isolation_level.code(),
        topics: topics.collect(),
        rack_id: config.client_rack.clone(),
        ..FetchRequest::default()
    };
    let wait = config.request_timeout + config.fetch_max_wait;
    let answer = connection.exchange(version, &request, wait).await?;
    Ok(Answered::from_wire(answer, wanted))
}

fn limited(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}
