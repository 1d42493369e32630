//! The gRPC service for brokers: commands to the desk, and the feed of committed metadata.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;

use minikafka_control::{Answer, Command};
use minikafka_metadata::encode_records;
use minikafka_model::{ClusterId, ControllerId, ErrorCode, MetadataOffset};
use minikafka_node::{Clock, Shutdown};
use minikafka_proto::PROTOCOL_LEVEL;
use minikafka_proto::cluster as wire;
use minikafka_proto::cluster::cluster_server::Cluster;
use minikafka_proto::cluster::metadata_chunk::Body;
use minikafka_raft::Payload;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::cluster_codec as codec;
use crate::core::{DeskError, Published, Reply, ToCore};
use crate::metadata_log::read_entries;

/// How long a command may wait where the caller names no time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Chunks on their way to one broker.
const FEED_QUEUE: usize = 64;
/// Bytes of entries read at once for a feed.
const FEED_BYTES: usize = 1 << 20;
/// Bytes of a snapshot in one piece.
const PIECE: usize = 512 << 10;
/// A feed says at least this often how far everything is.
const PROGRESS: Duration = Duration::from_millis(500);

/// What the service needs.
#[derive(Clone)]
pub(crate) struct ClusterDoor {
    pub(crate) cluster: ClusterId,
    pub(crate) endpoints: Arc<BTreeMap<ControllerId, String>>,
    pub(crate) inbox: SyncSender<ToCore>,
    pub(crate) published: watch::Receiver<Arc<Published>>,
    pub(crate) clock: Clock,
    pub(crate) shutdown: Shutdown,
}

impl ClusterDoor {
    fn view(&self) -> Arc<Published> {
        self.published.borrow().clone()
    }

    fn status(&self, code: ErrorCode, message: String) -> wire::Status {
        let view = self.view();
        let leader = view.status.leader;
        wire::Status {
            error_code: i32::from(code.code()),
            message,
            active_controller: leader.map(|id| id.0),
            active_endpoint: leader.and_then(|id| self.endpoints.get(&id).cloned()).unwrap_or_default(),
            term: view.status.term.0,
        }
    }

    fn good(&self) -> Option<wire::Status> {
        Some(self.status(ErrorCode::None, String::new()))
    }

    fn invalid(&self, why: String) -> wire::Status {
        self.status(ErrorCode::InvalidRequest, why)
    }

    fn caller(&self, caller: Option<wire::Caller>) -> Result<wire::Caller, wire::Status> {
        let caller = caller.ok_or_else(|| self.invalid("the caller does not say who it is".to_owned()))?;
        if caller.protocol_level != PROTOCOL_LEVEL {
            let (node, theirs) = (caller.node_id, caller.protocol_level);
            let why = format!("node {node} speaks protocol level {theirs}, this is {PROTOCOL_LEVEL}");
            return Err(self.status(ErrorCode::UnsupportedVersion, why));
        }
        if caller.cluster_id != self.cluster.0 {
            let (node, theirs) = (caller.node_id, &caller.cluster_id);
            let why = format!("node {node} belongs to cluster '{theirs}', this is '{}'", self.cluster);
            return Err(self.status(ErrorCode::InconsistentClusterId, why));
        }
        Ok(caller)
    }

    /// Asks the desk and waits until the decision is committed.
    pub(crate) async fn ask(&self, command: Command, timeout_ms: i64) -> Reply {
        let given = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0).map(Duration::from_millis);
        let patience = given.unwrap_or(PATIENCE).min(PATIENCE);
        let arrived = self.clock.mono();
        let (reply, answer) = oneshot::channel();
        let message =
            ToCore::Command { command: Box::new(command), arrived, deadline: arrived.after(patience), reply };
        match self.inbox.try_send(message) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(DeskError::Busy),
            Err(TrySendError::Disconnected(_)) => return Err(DeskError::NotActive { active: None }),
        }
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(DeskError::OutcomeUnknown),
        }
    }

    async fn decide(
        &self,
        command: Result<Command, String>,
        timeout_ms: i64,
    ) -> Result<Answer, wire::Status> {
        let command = command.map_err(|why| self.invalid(why))?;
        match self.ask(command, timeout_ms).await {
            Ok(Answer::Refused(refusal)) => {
                Err(self.status(refusal.code, refusal.message.unwrap_or_default()))
            }
            Ok(answer) => Ok(answer),
            Err(error @ DeskError::NotActive { .. }) => {
                Err(self.status(ErrorCode::NotController, error.to_string()))
            }
            Err(error) => Err(self.status(ErrorCode::RequestTimedOut, error.to_string())),
        }
    }
}

/// Asks the desk; a refusal becomes the response's status.
macro_rules! decided {
    ($door:expr, $caller:expr, $response:ident, $command:expr, $timeout:expr, $($answer:pat => $fields:expr),+) => {{
        let outcome = match $door.caller($caller) {
            Ok(caller) => $door.decide($command(&caller), $timeout).await,
            Err(status) => Err(status),
        };
        Ok(Response::new(match outcome {
            $(Ok($answer) => $fields,)+
            Ok(_) => return Err(Status::internal("an answer of another kind")),
            Err(status) => wire::$response { status: Some(status), ..Default::default() },
        }))
    }};
}

#[tonic::async_trait]
impl Cluster for ClusterDoor {
    type FollowMetadataStream = ReceiverStream<Result<wire::MetadataChunk, Status>>;

    async fn register_broker(
        &self,
        request: Request<wire::RegisterBrokerRequest>,
    ) -> Result<Response<wire::RegisterBrokerResponse>, Status> {
        let mut m = request.into_inner();
        let timeout = m.timeout_ms;
        decided!(self, m.caller.take(), RegisterBrokerResponse, |c: &_| codec::register(c, m), timeout,
            Answer::Registered(epoch) =>
                wire::RegisterBrokerResponse { status: self.good(), broker_epoch: epoch.0 })
    }

    async fn heartbeat(
        &self,
        request: Request<wire::HeartbeatRequest>,
    ) -> Result<Response<wire::HeartbeatResponse>, Status> {
        let mut m = request.into_inner();
        decided!(self, m.caller.take(), HeartbeatResponse, |c: &_| codec::heartbeat(c, &m), 0,
        Answer::Heartbeat(reply) => wire::HeartbeatResponse {
            status: self.good(),
            is_caught_up: reply.caught_up,
            is_fenced: reply.fenced,
            should_shut_down: reply.should_shut_down,
        })
    }

    async fn alter_partition(
        &self,
        request: Request<wire::AlterPartitionRequest>,
    ) -> Result<Response<wire::AlterPartitionResponse>, Status> {
        let mut m = request.into_inner();
        decided!(self, m.caller.take(), AlterPartitionResponse, |c: &_| codec::alter_partition(c, &m), 0,
        Answer::AlteredPartitions(results) => wire::AlterPartitionResponse {
            status: self.good(),
            results: results.into_iter().map(codec::altered).collect(),
        })
    }

    async fn allocate_producer_ids(
        &self,
        request: Request<wire::AllocateProducerIdsRequest>,
    ) -> Result<Response<wire::AllocateProducerIdsResponse>, Status> {
        let mut m = request.into_inner();
        decided!(self, m.caller.take(), AllocateProducerIdsResponse, |c: &_| Ok(codec::producer_ids(c, &m)), 0,
        Answer::ProducerIds { first, count } => wire::AllocateProducerIdsResponse {
            status: self.good(),
            first_id: first.0,
            count: i32::try_from(count).unwrap_or(i32::MAX),
        })
    }

    async fn create_topics(
        &self,
        request: Request<wire::CreateTopicsRequest>,
    ) -> Result<Response<wire::CreateTopicsResponse>, Status> {
        let mut m = request.into_inner();
        let timeout = m.timeout_ms;
        decided!(self, m.caller.take(), CreateTopicsResponse, |_: &_| Ok(codec::create_topics(m)), timeout,
        Answer::CreatedTopics(topics) => wire::CreateTopicsResponse {
            status: self.good(),
            topics: topics.into_iter().map(codec::created).collect(),
        })
    }

    async fn delete_topics(
        &self,
        request: Request<wire::DeleteTopicsRequest>,
    ) -> Result<Response<wire::DeleteTopicsResponse>, Status> {
        let mut m = request.into_inner();
        let timeout = m.timeout_ms;
        decided!(self, m.caller.take(), DeleteTopicsResponse, |_: &_| codec::delete_topics(m), timeout,
        Answer::DeletedTopics(topics) => wire::DeleteTopicsResponse {
            status: self.good(),
            topics: topics.into_iter().map(codec::deleted).collect(),
        })
    }

    async fn follow_metadata(
        &self,
        request: Request<wire::FollowMetadataRequest>,
    ) -> Result<Response<Self::FollowMetadataStream>, Status> {
        let m = request.into_inner();
        let (sender, receiver) = mpsc::channel(FEED_QUEUE);
        match self.caller(m.caller) {
            Ok(_) => {
                let (door, from) = (self.clone(), MetadataOffset(m.from_offset.max(0)));
                tokio::spawn(async move {
                    let shutdown = door.shutdown.clone();
                    tokio::select! { _ended = feed(door, from, sender) => {} () = shutdown.wait() => {} }
                });
            }
            Err(status) => {
                let chunk = wire::MetadataChunk { body: Some(Body::Refused(status)) };
                let _gone = sender.try_send(Ok(chunk));
            }
        }
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn describe_quorum(
        &self,
        request: Request<wire::DescribeQuorumRequest>,
    ) -> Result<Response<wire::DescribeQuorumResponse>, Status> {
        let refused = self.caller(request.into_inner().caller).err();
        let status = self.view().status.clone();
        let (mono, wall) = (self.clock.mono(), self.clock.wall().0);
        let at = |moment: Option<minikafka_model::Mono>| {
            let ago = moment.map(|m| i64::try_from(mono.since(m).as_millis()).unwrap_or(i64::MAX));
            ago.map_or(-1, |ago| wall.saturating_sub(ago))
        };
        let voter = |v: &minikafka_raft::VoterStatus| wire::QuorumReplica {
            node_id: v.id.0,
            directory_id: v.directory.map(|d| d.0.to_bytes().to_vec().into()).unwrap_or_default(),
            log_end_offset: v.match_end.map_or(-1, |end| end.0),
            last_fetch_ms: at(v.last_contact),
            last_caught_up_ms: at(v.last_caught_up),
            endpoint: self.endpoints.get(&v.id).cloned().unwrap_or_default(),
        };
        Ok(Response::new(wire::DescribeQuorumResponse {
            status: refused.or_else(|| self.good()),
            leader: status.leader.map_or(-1, |id| id.0),
            term: status.term.0,
            high_watermark: status.committed.0,
            voters: status.voters.iter().map(voter).collect(),
            observers: Vec::new(),
        }))
    }
}

type Chunks = mpsc::Sender<Result<wire::MetadataChunk, Status>>;

/// Sends committed metadata from `from` on, for as long as anybody listens.
async fn feed(mut door: ClusterDoor, mut from: MetadataOffset, to: Chunks) -> Option<()> {
    loop {
        let view = door.published.borrow_and_update().clone();
        if from < MetadataOffset(view.log.start_offset().0)
            && let Some((end, term, bytes)) = view.snapshot.clone()
        {
            let total = bytes.len() as u64;
            for position in (0..bytes.len().max(1)).step_by(PIECE) {
                let chunk = bytes.slice(position..bytes.len().min(position + PIECE));
                let position = position as u64;
                let piece =
                    wire::SnapshotPiece { end_offset: end.0, end_term: term.0, position, total, chunk };
                send(&to, Body::Snapshot(piece)).await?;
            }
            from = end;
        }
        while from < view.applied {
            let entries = match read_entries(&view.log, from, view.applied, FEED_BYTES) {
                Ok(entries) if !entries.is_empty() => entries,
                // The log was trimmed or truncated meanwhile: the next view knows.
                Ok(_) | Err(_) => break,
            };
            let wanted = from;
            for entry in entries.into_iter().filter(|entry| entry.offset >= wanted) {
                from = entry.offset.next();
                let records = match entry.payload {
                    Payload::Command(bytes) => bytes,
                    Payload::NoOp | Payload::Voters(_) => encode_records(&[]),
                };
                let (offset, term) = (entry.offset.0, entry.term.0);
                let entry = wire::MetadataEntry { offset, term, timestamp_ms: door.clock.wall().0, records };
                send(&to, Body::Entry(entry)).await?;
            }
        }
        let (leader, term) = (view.status.leader, view.status.term);
        let progress = wire::Progress {
            committed: view.applied.0,
            active_controller: leader.map(|id| id.0),
            term: term.0,
        };
        send(&to, Body::Progress(progress)).await?;
        let known = |now: &Arc<Published>| {
            now.applied > from || now.status.leader != leader || now.status.term != term
        };
        // Either something is new, or it is time to say that nothing is.
        let _quiet = tokio::time::timeout(PROGRESS, door.published.wait_for(known)).await;
        if to.is_closed() {
            return None;
        }
    }
}

async fn send(to: &Chunks, body: Body) -> Option<()> {
    to.send(Ok(wire::MetadataChunk { body: Some(body) })).await.ok()
}
