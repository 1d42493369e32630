//! The follower's end of one stream to a leader.

use std::pin::Pin;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use minikafka_model::{ErrorCode, LeaderEpoch, Offset, TopicPartition};
use minikafka_node::{Direction, FaultKind};
use minikafka_proto::replica::replica_client::ReplicaClient;
use minikafka_proto::replica::{
    FetchPartition, FetchRequest, FetchResponse, Hello, PartitionData, PartitionKey, ReplicaOffsetsRequest,
};
use minikafka_proto::{Malformed, PROTOCOL_LEVEL, PartitionAsk, PeerBroker};
use minikafka_replication::{
    Ask, Divergence, FetchLimits, Fetched, FetchedAnswer, FollowerSession, LeaderBounds, Next, SessionRequest,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};

use super::thread::{Command, Fetcher};
use crate::rpc::{CONNECTION_WINDOW, STREAM_WINDOW};

/// How long an attempt to connect, and to open a stream, may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A silent connection is probed after this, and given up after as much again.
const KEEPALIVE: Duration = Duration::from_secs(2);
/// A leader that leaves a request unanswered for so long over its wait has lost it.
const SILENCE: Duration = Duration::from_secs(30);
/// Requests that wait to be sent.
const REQUESTS: usize = 4;
/// The largest message: one batch of `socket.request.max.bytes`, and room for what stands around it.
const MESSAGE_LIMIT: usize = (100 << 20) + (4 << 20);

/// Why a stream ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamEnd {
    #[error("stopped")]
    Stop,
    #[error("no address of broker {0} is known yet")]
    Unknown(i32),
    #[error("there is nothing to ask for yet")]
    NothingToAsk,
    #[error("could not open a stream to {address}: {why}")]
    Open { address: String, why: String },
    #[error("lost the stream: {0}")]
    Lost(String),
    #[error("the leader sent nonsense: {0}")]
    Malformed(#[from] Malformed),
}

type BoundsAnswer = (TopicPartition, u64, Result<LeaderBounds, ErrorCode>);

/// An open stream.
pub(super) struct LeaderStream {
    client: ReplicaClient<Channel>,
    hello: Hello,
    requests: mpsc::Sender<FetchRequest>,
    answers: Streaming<FetchResponse>,
    session: FollowerSession,
    /// Questions for the leader's bounds that are under way.
    bounds: FuturesUnordered<Pin<Box<dyn Future<Output = BoundsAnswer> + Send>>>,
    heard: Instant,
    answered: u64,
}

impl LeaderStream {
    /// Connects, opens the stream, and asks for every partition of the fetcher anew.
    pub(super) async fn open(fetcher: &Fetcher) -> Result<LeaderStream, StreamEnd> {
        let settings = &fetcher.service.settings;
        let image = fetcher.service.image.load_full();
        let listener = image
            .broker(fetcher.source)
            .and_then(|broker| broker.listener(&settings.inter_broker_listener))
            .ok_or(StreamEnd::Unknown(fetcher.source.0))?;
        let address = format!("{}:{}", listener.host, listener.port);
        let broker_epoch = fetcher.identity.epoch.get().ok_or(StreamEnd::Unknown(fetcher.service.id.0))?;
        let hello = Hello::from(&PeerBroker {
            cluster: fetcher.identity.cluster.clone(),
            broker: fetcher.service.id,
            directory: fetcher.identity.directory,
            broker_epoch,
            protocol_level: PROTOCOL_LEVEL,
            fetcher: u32::try_from(fetcher.index).unwrap_or(u32::MAX),
        });
        let fail = |why: String| StreamEnd::Open { address: address.clone(), why };
        let channel = connect(&address).await.map_err(fail)?;
        let mut client = ReplicaClient::new(channel).max_decoding_message_size(MESSAGE_LIMIT);
        let mut session = FollowerSession::new(FetchLimits {
            max_wait: settings.replica_fetch_wait,
            max_bytes: settings.replica_fetch_response_max_bytes,
            max_partition_bytes: settings.replica_fetch_max_bytes,
            max_outstanding: settings.replica_fetch_outstanding,
        });
        for at in &fetcher.partitions {
            if let Some(ask) = ask(fetcher, *at) {
                session.add(*at, ask);
            }
        }
        let (requests, queue) = mpsc::channel(REQUESTS);
        // The first message opens the stream; it has to be there before the leader answers the call.
        let Some(first) = session.next_request(fetcher.service.clock.mono()) else {
            return Err(StreamEnd::NothingToAsk);
        };
        let first = FetchRequest { hello: Some(hello.clone()), ..message(&first) };
        requests.try_send(first).map_err(|_| fail("the queue is full".to_owned()))?;
        let opened = timeout(CONNECT_TIMEOUT, client.fetch(Request::new(ReceiverStream::new(queue)))).await;
        let answers = match opened {
            Ok(Ok(answers)) => answers.into_inner(),
            Ok(Err(status)) => return Err(fail(status.message().to_owned())),
            Err(_) => return Err(fail(format!("no answer within {CONNECT_TIMEOUT:?}"))),
        };
        let heard = Instant::now();
        Ok(LeaderStream {
            client,
            hello,
            requests,
            answers,
            session,
            bounds: FuturesUnordered::new(),
            heard,
            answered: 0,
        })
    }

    /// Fetches until the stream or the thread ends. Also tells how many answers came.
    pub(super) async fn run(mut self, fetcher: &mut Fetcher) -> (StreamEnd, u64) {
        loop {
            if let Err(end) = self.step(fetcher).await {
                return (end, self.answered);
            }
        }
    }

    async fn step(&mut self, fetcher: &mut Fetcher) -> Result<(), StreamEnd> {
        if fetcher.service.faults.fetching_stopped().is_some() {
            return Err(StreamEnd::Stop);
        }
        let now = fetcher.service.clock.mono();
        while let Some(request) = self.session.next_request(now) {
            pass(fetcher, Direction::Out).await?;
            self.requests
                .send(message(&request))
                .await
                .map_err(|_| StreamEnd::Lost("it takes no requests".to_owned()))?;
        }
        let wake = self.session.next_wake(now).map(|at| fetcher.service.clock.instant(at));
        let silent = self.heard + fetcher.service.settings.replica_fetch_wait + SILENCE;
        tokio::select! {
            answer = self.answers.message() => match answer {
                Ok(Some(answer)) => {
                    pass(fetcher, Direction::In).await?;
                    self.take(fetcher, answer)?;
                }
                Ok(None) => return Err(StreamEnd::Lost("the leader closed it".to_owned())),
                Err(status) => return Err(StreamEnd::Lost(status.message().to_owned())),
            },
            () = fetcher.inbox.news() => {
                let (commands, stop) = fetcher.inbox.take();
                if stop {
                    return Err(StreamEnd::Stop);
                }
                self.commands(fetcher, &commands);
                if fetcher.partitions.is_empty() {
                    return Err(StreamEnd::Stop);
                }
            }
            Some((at, generation, bounds)) = self.bounds.next() => self.bounds_came(fetcher, at, generation, bounds),
            () = sleep_until(wake.unwrap_or(silent)) => {}
            () = fetcher.service.faults.changed() => {}
        }
        if Instant::now() >= silent {
            return Err(StreamEnd::Lost(format!("no answer for {SILENCE:?}")));
        }
        Ok(())
    }

    fn commands(&mut self, fetcher: &mut Fetcher, commands: &[Command]) {
        fetcher.note(commands);
        for command in commands {
            match command {
                Command::Ask(at) => match ask(fetcher, *at) {
                    Some(ask) => self.session.add(*at, ask),
                    None => self.session.remove(*at),
                },
                Command::Leave(at) => self.session.remove(*at),
                Command::Stop => {}
            }
        }
    }

    fn take(&mut self, fetcher: &Fetcher, answer: FetchResponse) -> Result<(), StreamEnd> {
        self.heard = Instant::now();
        if answer.error_code != 0 {
            return Err(StreamEnd::Lost(format!("refused with {}: {}", answer.error_code, answer.message)));
        }
        if answer.last {
            self.session.answered();
            self.answered += 1;
        }
        for data in answer.partitions {
            let at = data.key()?;
            if self.session.expects(at, data.generation) {
                self.partition(fetcher, at, data)?;
            }
        }
        Ok(())
    }

    fn partition(
        &mut self,
        fetcher: &Fetcher,
        at: TopicPartition,
        data: PartitionData,
    ) -> Result<(), StreamEnd> {
        let service = &fetcher.service;
        let Some(cell) = service.replicas.get(at) else {
            self.session.remove(at);
            return Ok(());
        };
        let fetched = Fetched { generation: data.generation, answer: answer_of(data)? };
        if let Some(delay) = service.faults.disk_delay() {
            // A slow disk of the lab stalls this thread, as a real one does.
            std::thread::sleep(delay);
        }
        let now = service.clock.now();
        let (next, effects) = service.input(&cell, |replica, out| replica.fetched(now, fetched, out));
        let next = service.perform(&cell, effects).unwrap_or(next);
        self.follow(at, next);
        Ok(())
    }

    fn follow(&mut self, at: TopicPartition, next: Next) {
        self.session.next(at, next);
        if let Next::AskBounds { leader_epoch, generation, .. } = next {
            let client = self.client.clone();
            let hello = self.hello.clone();
            self.bounds.push(Box::pin(ask_bounds(client, hello, at, leader_epoch, generation)));
        }
    }

    fn bounds_came(
        &mut self,
        fetcher: &Fetcher,
        at: TopicPartition,
        generation: u64,
        bounds: Result<LeaderBounds, ErrorCode>,
    ) {
        let service = &fetcher.service;
        let Some(cell) = service.replicas.get(at) else { return };
        let now = service.clock.now();
        let (next, effects) =
            service.input(&cell, |replica, out| replica.leader_bounds(now, generation, bounds, out));
        let next = service.perform(&cell, effects).unwrap_or(next);
        self.follow(at, next);
    }
}

/// What the replica wants to ask of this fetcher's source, in a new generation.
fn ask(fetcher: &Fetcher, at: TopicPartition) -> Option<Ask> {
    let cell = fetcher.service.replicas.get(at)?;
    let ask = cell.lock().replica.ask()?;
    (ask.leader == fetcher.source).then_some(ask)
}

async fn pass(fetcher: &Fetcher, direction: Direction) -> Result<(), StreamEnd> {
    tokio::select! {
        passed = fetcher.service.faults.pass(FaultKind::Replication, fetcher.source.0, direction) => {
            passed.map_err(|blocked| StreamEnd::Lost(blocked.to_string()))
        }
        () = fetcher.inbox.stopped() => Err(StreamEnd::Stop),
    }
}

async fn connect(address: &str) -> Result<Channel, String> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|error| format!("it is no address: {error}"))?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .tcp_nodelay(true);
    let connected = timeout(CONNECT_TIMEOUT, endpoint.connect()).await;
    connected.map_err(|_| format!("no connection within {CONNECT_TIMEOUT:?}"))?.map_err(|error| {
        let mut cause: &dyn std::error::Error = &error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        cause.to_string()
    })
}

fn message(request: &SessionRequest) -> FetchRequest {
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    FetchRequest {
        sequence: request.sequence,
        hello: None,
        partitions: request.partitions.iter().map(|(at, ask)| wanted(*at, ask)).collect(),
        forgotten: request.forgotten.iter().map(|at| PartitionKey::from(*at)).collect(),
        max_wait_ms: u32::try_from(request.max_wait.as_millis()).unwrap_or(u32::MAX),
        max_bytes: narrow(request.max_bytes),
        max_partition_bytes: narrow(request.max_partition_bytes),
        trace_parent: String::new(),
        max_outstanding: narrow(request.max_outstanding),
    }
}

fn wanted(partition: TopicPartition, ask: &Ask) -> FetchPartition {
    FetchPartition::from(&PartitionAsk {
        partition,
        leader_epoch: ask.leader_epoch,
        position: ask.position,
        last_epoch: ask.last_epoch,
        log_start: ask.log_start,
        generation: ask.generation,
    })
}

fn answer_of(data: PartitionData) -> Result<FetchedAnswer, Malformed> {
    if data.error_code != 0 {
        let code = i16::try_from(data.error_code).ok().and_then(ErrorCode::from_code);
        return Ok(FetchedAnswer::Error(code.unwrap_or(ErrorCode::UnknownServerError)));
    }
    if let Some((epoch, end_offset)) = data.divergence()? {
        return Ok(FetchedAnswer::Diverging(Divergence { epoch, end_offset }));
    }
    Ok(FetchedAnswer::Data {
        high_watermark: Offset(data.high_watermark),
        log_start: Offset(data.log_start_offset),
        batches: data.batches,
    })
}

async fn ask_bounds(
    mut client: ReplicaClient<Channel>,
    hello: Hello,
    at: TopicPartition,
    leader_epoch: LeaderEpoch,
    generation: u64,
) -> BoundsAnswer {
    let key = PartitionKey::from(at);
    let mut request = Request::new(ReplicaOffsetsRequest {
        caller: Some(hello),
        topic_id: key.topic_id,
        partition: key.partition,
        current_leader_epoch: leader_epoch.0,
    });
    request.set_timeout(CONNECT_TIMEOUT);
    let bounds = match client.list_offsets(request).await.map(tonic::Response::into_inner) {
        Ok(answer) if answer.error_code == 0 => Ok(LeaderBounds {
            log_start: Offset(answer.log_start_offset),
            log_end: Offset(answer.log_end_offset),
        }),
        Ok(answer) => {
            let code = i16::try_from(answer.error_code).ok().and_then(ErrorCode::from_code);
            Err(code.unwrap_or(ErrorCode::UnknownServerError))
        }
        Err(_) => Err(ErrorCode::NetworkException),
    };
    (at, generation, bounds)
}
