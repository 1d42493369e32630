//! Fetch: consumers read records, with or without a session, waiting where there is too little.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use minikafka_metadata::Image;
use minikafka_model::{ErrorCode, LeaderEpoch, Offset, TopicPartition};
use minikafka_replication::{ConsumerAsk, ReadLimit};
use minikafka_wire::fetch::{
    EpochEndOffset, FetchRequest, FetchResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionResponse,
};
use tokio::time::{Instant, timeout_at};

use crate::kafka::answer::{Answer, Asked, CloseReason};
use crate::kafka::cluster_view::ClusterView;
use crate::kafka::error_map::Coded;
use crate::kafka::fetch_sessions::{Context, FetchSessions, Wanted, by_topic};
use crate::service::{ReadAnswer, ReadAsk, Service};

/// First version that a follower serves to consumers, with topic ids, and with the leader's address in an error.
const FOLLOWERS_SERVE: i16 = 11;
const BY_ID: i16 = 13;
const SENDS_LEADERS: i16 = 16;
/// What a client gets by default of what no answer was made for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 3600);

/// One request on its way.
struct Fetch {
    asked: Asked,
    listener: Arc<str>,
    service: Arc<Service>,
    sessions: Arc<FetchSessions>,
    request: FetchRequest,
    context: Context,
}

/// One round over all partitions.
struct Round {
    answers: Vec<PartitionResponse>,
    /// Where to wait for more, for each partition that has been found.
    wait_at: Vec<(TopicPartition, Offset)>,
    bytes: usize,
    /// An error or a divergence: answer at once.
    at_once: bool,
}

/// Reads; waits if there is less than `min_bytes` and time is left.
pub(crate) fn handle(
    request: FetchRequest,
    asked: Asked,
    listener: &Arc<str>,
    service: &Arc<Service>,
    sessions: &Arc<FetchSessions>,
) -> Result<Answer, CloseReason> {
    let refused =
        |code: ErrorCode| asked.now(&FetchResponse { error_code: code.code(), ..FetchResponse::default() });
    if !matches!(request.isolation_level, 0 | 1) {
        return refused(ErrorCode::UnknownServerError);
    }
    let context = sessions.enter(service.clock.mono(), asked.version, &request);
    if let Context::Refused(code) = context {
        return refused(code);
    }
    let fetch = Fetch {
        asked,
        listener: Arc::clone(listener),
        service: Arc::clone(service),
        sessions: Arc::clone(sessions),
        request,
        context,
    };
    let round = fetch.round();
    let wait = Duration::from_millis(u64::try_from(fetch.request.max_wait_ms).unwrap_or(0)).min(LONGEST_WAIT);
    if fetch.enough(&round) || wait.is_zero() {
        let response = fetch.finish(round.answers);
        return asked.now(&response);
    }
    let deadline = Instant::now() + wait;
    Ok(asked.later(fetch.wait(round, deadline)))
}

impl Fetch {
    fn wanted(&self) -> &[Wanted] {
        match &self.context {
            Context::Sessionless(wanted) | Context::Full(wanted) | Context::Incremental { wanted, .. } => {
                wanted
            }
            Context::Refused(_) => &[],
        }
    }

    fn enough(&self, round: &Round) -> bool {
        let min_bytes = usize::try_from(self.request.min_bytes).unwrap_or(0);
        round.at_once || round.bytes >= min_bytes || self.wanted().is_empty()
    }

    /// Reads every partition once, in the order asked, within the limits; the first records may exceed them (KIP-74).
    fn round(&self) -> Round {
        let image = self.service.image.load_full();
        let view = ClusterView { image: &image, listener: &self.listener };
        let most = self
            .request
            .max_bytes
            .min(i32::try_from(self.service.settings.fetch_max_bytes).unwrap_or(i32::MAX));
        let mut round = Round { answers: Vec::new(), wait_at: Vec::new(), bytes: 0, at_once: false };
        for wanted in self.wanted() {
            let answer = match view.partition(&wanted.topic, wanted.params.partition) {
                Err(code) => {
                    round.at_once = true;
                    PartitionResponse { aborted_transactions: Some(Vec::new()), ..failed(code) }
                }
                Ok(_) if wanted.params.partition_max_bytes < 0 || most < 0 => {
                    round.at_once = true;
                    failed(ErrorCode::UnknownServerError)
                }
                Ok(at) => {
                    let left = usize::try_from(most).unwrap_or(0).saturating_sub(round.bytes);
                    let answer = self.service.read(&self.ask(at, wanted, left, round.bytes == 0));
                    self.take_in(at, wanted, answer, &mut round)
                }
            };
            round.answers.push(PartitionResponse { partition_index: wanted.params.partition, ..answer });
        }
        round
    }

    fn ask(&self, at: TopicPartition, wanted: &Wanted, left: usize, at_least_one: bool) -> ReadAsk {
        let params = &wanted.params;
        let max_bytes = usize::try_from(params.partition_max_bytes).unwrap_or(0).min(left);
        ReadAsk {
            at,
            ask: ConsumerAsk {
                leader_epoch: (params.current_leader_epoch >= 0)
                    .then_some(LeaderEpoch(params.current_leader_epoch)),
                position: Offset(params.fetch_offset),
                last_epoch: (params.last_fetched_epoch >= 0)
                    .then_some(LeaderEpoch(params.last_fetched_epoch)),
                follower_may_serve: self.asked.version >= FOLLOWERS_SERVE,
                limit: ReadLimit { max_bytes, at_least_one },
            },
        }
    }

    fn take_in(
        &self,
        at: TopicPartition,
        wanted: &Wanted,
        answer: ReadAnswer,
        round: &mut Round,
    ) -> PartitionResponse {
        let code = answer.code();
        let committed = self.request.isolation_level == 1;
        let mut response = match answer {
            ReadAnswer::Records { batches, bounds } => {
                let bytes: usize = batches.iter().map(bytes::Bytes::len).sum();
                round.bytes += bytes;
                let position = Offset(wanted.params.fetch_offset).max(bounds.high_watermark);
                round.wait_at.push((at, position));
                PartitionResponse {
                    high_watermark: bounds.high_watermark.0,
                    last_stable_offset: bounds.high_watermark.0,
                    log_start_offset: bounds.log_start.0,
                    records: batches.into(),
                    ..PartitionResponse::default()
                }
            }
            ReadAnswer::Diverging(divergence, bounds) => {
                round.at_once = true;
                PartitionResponse {
                    high_watermark: bounds.high_watermark.0,
                    last_stable_offset: bounds.high_watermark.0,
                    log_start_offset: bounds.log_start.0,
                    diverging_epoch: EpochEndOffset {
                        epoch: divergence.epoch.0,
                        end_offset: divergence.end_offset.0,
                    },
                    ..PartitionResponse::default()
                }
            }
            ReadAnswer::OutOfRange | ReadAnswer::Refused(_) | ReadAnswer::NotHosted => {
                round.at_once = true;
                failed(code)
            }
        };
        response.aborted_transactions = committed.then(Vec::new);
        response
    }

    /// Looks again whenever a partition has news, until there is enough or time is over.
    async fn wait(self, mut round: Round, deadline: Instant) -> FetchResponse {
        let mut waiting = self.service.wait_for_news();
        loop {
            let mut parked = true;
            for (at, position) in &round.wait_at {
                parked &= waiting.park(*at, *position);
            }
            let in_time = !parked || timeout_at(deadline, waiting.news()).await.is_ok();
            round = self.round();
            if !in_time || self.enough(&round) {
                drop(waiting);
                return self.finish(round.answers);
            }
            if Instant::now() >= deadline {
                return self.finish(round.answers);
            }
        }
    }

    /// Adds the leaders' addresses to errors and leaves out what the session has told before.
    fn finish(&self, mut answers: Vec<PartitionResponse>) -> FetchResponse {
        let image = self.service.image.load_full();
        let node_endpoints = self.name_leaders(&image, &mut answers);
        let now = self.service.clock.mono();
        let wanted = self.wanted();
        let keyed = |answers: Vec<PartitionResponse>| {
            wanted.iter().map(|it| it.topic.clone()).zip(answers).collect::<Vec<_>>()
        };
        let (session_id, answers) = match &self.context {
            Context::Full(_) => {
                let id = self.sessions.open(now, self.asked.version >= BY_ID, wanted, &answers);
                (id, keyed(answers))
            }
            Context::Incremental { id, session, .. } => {
                let mut session = session.lock();
                let mut news = keyed(answers);
                news.retain(|(topic, answer)| session.note(topic, answer));
                (*id, news)
            }
            Context::Sessionless(_) | Context::Refused(_) => (0, keyed(answers)),
        };
        FetchResponse { session_id, responses: by_topic(answers), node_endpoints, ..FetchResponse::default() }
    }

    fn name_leaders(&self, image: &Image, answers: &mut [PartitionResponse]) -> Vec<NodeEndpoint> {
        if self.asked.version < SENDS_LEADERS {
            return Vec::new();
        }
        let view = ClusterView { image, listener: &self.listener };
        let moved = [ErrorCode::NotLeaderOrFollower.code(), ErrorCode::FencedLeaderEpoch.code()];
        let mut leaders = BTreeSet::new();
        for (wanted, answer) in self.wanted().iter().zip(answers) {
            if moved.contains(&answer.error_code)
                && let Ok(at) = view.partition(&wanted.topic, wanted.params.partition)
                && let Some((leader, epoch)) = view.leader(at)
            {
                answer.current_leader = LeaderIdAndEpoch { leader_id: leader.0, leader_epoch: epoch.0 };
                leaders.insert(leader);
            }
        }
        let endpoint = |id| {
            let (broker, at) = view.endpoint(id)?;
            let (host, port) = (at.host.clone(), i32::from(at.port));
            Some(NodeEndpoint { node_id: broker.id.0, host, port, rack: broker.rack.clone() })
        };
        leaders.into_iter().filter_map(endpoint).collect()
    }
}

fn failed(code: ErrorCode) -> PartitionResponse {
    PartitionResponse { error_code: code.code(), high_watermark: -1, ..PartitionResponse::default() }
}
