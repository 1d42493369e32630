//! One follower's stream, on the leader.

use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{Mono, TopicPartition};
use minikafka_node::{Direction, FaultKind};
use minikafka_proto::replica::{Diverging, FetchRequest, FetchResponse, PartitionData};
use minikafka_proto::{Malformed, PartitionAsk, PeerBroker};
use minikafka_replication::{
    Ask, Bounds, FollowerAnswer, FollowerAsk, LeaderSession, NotServed, Served, SessionError, SessionRequest,
    StreamId,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tonic::{Status, Streaming};

use super::chunks::messages;
use crate::kafka::Coded;
use crate::service::{Service, StreamWakes};

/// The longest that a stream sleeps without a request.
const IDLE: Duration = Duration::from_secs(3600);

/// The leader's end of one stream.
pub(super) struct FollowerStream {
    service: Arc<Service>,
    session: LeaderSession,
    stream: StreamId,
    wakes: Arc<StreamWakes>,
    answers: mpsc::Sender<Result<FetchResponse, Status>>,
}

/// Why a stream ends.
#[derive(Debug, thiserror::Error)]
enum StreamEnd {
    #[error("the follower closed its stream")]
    Closed,
    #[error("{0}")]
    Transport(#[from] Box<Status>),
    #[error("{0}")]
    Session(#[from] SessionError),
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("dropped by a fault of the lab")]
    Blocked,
}

impl FollowerStream {
    pub(super) fn open(
        service: Arc<Service>,
        peer: &PeerBroker,
        credit: usize,
        answers: mpsc::Sender<Result<FetchResponse, Status>>,
    ) -> FollowerStream {
        let (stream, wakes) = service.waiting.open_stream();
        let session = LeaderSession::new(stream, peer.broker, peer.broker_epoch, credit);
        FollowerStream { service, session, stream, wakes, answers }
    }

    /// Serves until either end closes.
    pub(super) async fn serve(mut self, first: FetchRequest, mut requests: Streaming<FetchRequest>) {
        let end = match self.run(first, &mut requests).await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        tracing::debug!("fetch stream of broker {}: {end}", self.session.follower());
        let last = match end {
            StreamEnd::Session(_) | StreamEnd::Malformed(_) => {
                Some(Status::invalid_argument(end.to_string()))
            }
            StreamEnd::Blocked => Some(Status::unavailable(end.to_string())),
            StreamEnd::Closed | StreamEnd::Transport(_) => None,
        };
        if let Some(status) = last {
            // The follower may be gone already.
            let _gone = self.answers.send(Err(status)).await;
        }
    }

    async fn run(
        &mut self,
        first: FetchRequest,
        requests: &mut Streaming<FetchRequest>,
    ) -> Result<std::convert::Infallible, StreamEnd> {
        self.take(first).await?;
        loop {
            self.answer().await?;
            let due = self.session.deadline().map(|at| self.service.clock.instant(at));
            tokio::select! {
                request = requests.message() => match request {
                    Ok(Some(request)) => self.take(request).await?,
                    Ok(None) => return Err(StreamEnd::Closed),
                    Err(status) => return Err(Box::new(status).into()),
                },
                () = self.wakes.news() => {}
                () = sleep_until(due.unwrap_or_else(|| Instant::now() + IDLE)) => {}
                () = self.answers.closed() => return Err(StreamEnd::Closed),
            }
            for partition in self.wakes.take() {
                self.session.wake(partition);
            }
        }
    }

    async fn pass(&self, direction: Direction) -> Result<(), StreamEnd> {
        let peer = self.session.follower().0;
        let passed = self.service.faults.pass(FaultKind::Replication, peer, direction).await;
        passed.map_err(|_| StreamEnd::Blocked)
    }

    async fn take(&mut self, request: FetchRequest) -> Result<(), StreamEnd> {
        self.pass(Direction::In).await?;
        let leader = self.service.id;
        let partitions = request
            .partitions
            .iter()
            .map(|wanted| {
                let ask = PartitionAsk::try_from(wanted)?;
                let asked = Ask {
                    leader,
                    leader_epoch: ask.leader_epoch,
                    position: ask.position,
                    last_epoch: ask.last_epoch,
                    log_start: ask.log_start,
                    generation: ask.generation,
                };
                Ok((ask.partition, asked))
            })
            .collect::<Result<_, Malformed>>()?;
        let forgotten = request.forgotten.iter().map(TopicPartition::try_from).collect::<Result<_, _>>()?;
        let request = SessionRequest {
            sequence: request.sequence,
            partitions,
            forgotten,
            max_wait: Duration::from_millis(u64::from(request.max_wait_ms)),
            max_bytes: request.max_bytes as usize,
            max_partition_bytes: request.max_partition_bytes as usize,
            max_outstanding: request.max_outstanding as usize,
        };
        self.session.request(self.service.clock.mono(), request)?;
        Ok(())
    }

    /// Takes the turns there are, and sends what has become due.
    async fn answer(&mut self) -> Result<(), StreamEnd> {
        loop {
            let now = self.service.clock.mono();
            let mut answers = Vec::new();
            while let Some((at, ask)) = self.session.next_turn() {
                let generation = self.session.generation(at).unwrap_or_default();
                let (served, data) = self.turn(now, at, &ask, generation);
                if self.session.answered(at, served)
                    && let Some(data) = data
                {
                    answers.push(data);
                }
            }
            let Some(sequence) = self.session.finish(now) else { return Ok(()) };
            self.pass(Direction::Out).await?;
            for message in messages(sequence, answers) {
                self.answers.send(Ok(message)).await.map_err(|_| StreamEnd::Closed)?;
            }
        }
    }

    fn turn(
        &self,
        now: Mono,
        at: TopicPartition,
        ask: &FollowerAsk,
        generation: u64,
    ) -> (Served, Option<PartitionData>) {
        let about = || PartitionData::about(at, generation);
        let refused = |refused: NotServed| {
            let code = i32::from(Coded::code(&refused).code());
            let data = PartitionData { error_code: code, ..about() };
            (Served::other(&FollowerAnswer::Refused(refused)), Some(data))
        };
        let Some(cell) = self.service.replicas.get(at) else { return refused(NotServed::NotLeader) };
        let answer = self.service.with_replica(&cell, |replica, out| replica.follower_fetch(now, ask, out));
        let marked = |bounds: Bounds| PartitionData {
            high_watermark: bounds.high_watermark.0,
            log_start_offset: bounds.log_start.0,
            log_end_offset: bounds.log_end.0,
            leader_epoch: ask.leader_epoch.0,
            ..about()
        };
        let served = Served::other(&answer);
        match answer {
            FollowerAnswer::Read { plan, bounds } => match plan.run() {
                Ok(read) => {
                    let served = Served::read(&read, bounds);
                    (served, Some(PartitionData { batches: read.batches, ..marked(bounds) }))
                }
                Err(error) => {
                    self.service.with_replica(&cell, |replica, out| replica.fail(error.to_string(), out));
                    refused(NotServed::Offline)
                }
            },
            FollowerAnswer::News { bounds } => (served, Some(marked(bounds))),
            FollowerAnswer::Diverging(divergence) => {
                let diverging =
                    Diverging { epoch: Some(divergence.epoch.0), end_offset: divergence.end_offset.0 };
                (served, Some(PartitionData { diverging: Some(diverging), ..about() }))
            }
            FollowerAnswer::OutOfRange => {
                let code = minikafka_model::ErrorCode::OffsetOutOfRange.code();
                (served, Some(PartitionData { error_code: i32::from(code), ..about() }))
            }
            FollowerAnswer::Refused(not_served) => refused(not_served),
            FollowerAnswer::Later | FollowerAnswer::Parked => (served, None),
        }
    }
}

impl Drop for FollowerStream {
    fn drop(&mut self) {
        self.service.waiting.close_stream(self.stream);
    }
}
