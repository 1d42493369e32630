//! The gRPC service: handshake, then one task for each follower's stream.

use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{BrokerId, LeaderEpoch};
use minikafka_node::Shutdown;
use minikafka_proto::replica::replica_server::{Replica, ReplicaServer};
use minikafka_proto::replica::{
    FetchRequest, FetchResponse, Hello, ReplicaOffsetsRequest, ReplicaOffsetsResponse,
};
use minikafka_proto::{Malformed, PROTOCOL_LEVEL, PeerBroker};
use minikafka_replication::NotServed;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::stream;
use crate::event::NodeEvent;
use crate::kafka::{Coded, Rewound};
use crate::service::Service;

/// Answers that wait to be sent on one stream.
const ANSWERS: usize = 8;
/// gRPC connections that wait to be taken up.
pub(crate) const CONNECTIONS: usize = 64;
/// A silent peer is probed after this, and given up after as much again: a stopped process leaves TCP open.
const KEEPALIVE: Duration = Duration::from_secs(2);
/// HTTP/2 windows and frames: with the defaults replication loses a fifth and more.
pub(crate) const STREAM_WINDOW: u32 = 8 << 20;
pub(crate) const CONNECTION_WINDOW: u32 = 16 << 20;
const FRAME: u32 = 1 << 20;
/// A follower's request is small: it lists what changed.
const REQUEST_LIMIT: usize = 16 << 20;

/// The door for followers.
#[derive(Debug, Clone)]
pub(crate) struct ReplicaDoor {
    service: Arc<Service>,
    /// How far this leader may run ahead of what a stream has acknowledged (`minikafka.replica.fetch.max.outstanding`).
    credit: usize,
}

impl ReplicaDoor {
    /// A door to these replicas.
    pub(crate) fn new(service: Arc<Service>) -> ReplicaDoor {
        let credit = service.settings.replica_fetch_outstanding;
        ReplicaDoor { service, credit }
    }

    /// Who asks, if it may: a broker of this cluster, of this level, and of the newest life that is known of it.
    fn welcome(&self, hello: &Hello) -> Result<PeerBroker, String> {
        let peer = PeerBroker::try_from(hello).map_err(|error: Malformed| error.to_string())?;
        let image = self.service.image.load();
        if peer.cluster != *image.cluster() {
            return Err(format!(
                "broker {} belongs to cluster {}, broker {} to cluster {}",
                peer.broker,
                peer.cluster,
                self.service.id,
                image.cluster()
            ));
        }
        if peer.protocol_level != PROTOCOL_LEVEL {
            return Err(format!(
                "broker {} speaks protocol level {}, broker {} level {PROTOCOL_LEVEL}",
                peer.broker, peer.protocol_level, self.service.id
            ));
        }
        match image.broker(peer.broker) {
            // It may know of a registration that this broker has not heard of yet; an older life is over.
            Some(known) if peer.broker_epoch < known.epoch => Err(format!(
                "broker {} comes with broker epoch {}, its registration has {}",
                peer.broker, peer.broker_epoch, known.epoch
            )),
            Some(_) | None => Ok(peer),
        }
    }

    fn refuse(&self, broker: i32, reason: String) -> Status {
        self.service
            .tell(NodeEvent::StreamRefused { peer: format!("broker {broker}"), reason: reason.clone() });
        Status::failed_precondition(reason)
    }
}

#[tonic::async_trait]
impl Replica for ReplicaDoor {
    type FetchStream = ReceiverStream<Result<FetchResponse, Status>>;

    async fn fetch(
        &self,
        request: Request<Streaming<FetchRequest>>,
    ) -> Result<Response<Self::FetchStream>, Status> {
        let mut requests = request.into_inner();
        let first = tokio::time::timeout(KEEPALIVE, requests.message())
            .await
            .map_err(|_| Status::deadline_exceeded("the first message did not come"))??;
        let first = first.ok_or_else(|| Status::invalid_argument("the stream has no messages"))?;
        let hello =
            first.hello.as_ref().ok_or_else(|| Status::invalid_argument("the first message has no hello"))?;
        let peer = self.welcome(hello).map_err(|reason| self.refuse(hello.broker_id, reason))?;
        let (answers, receiver) = mpsc::channel(ANSWERS);
        let stream = stream::FollowerStream::open(Arc::clone(&self.service), &peer, self.credit, answers);
        tokio::spawn(stream.serve(first, requests));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn list_offsets(
        &self,
        request: Request<ReplicaOffsetsRequest>,
    ) -> Result<Response<ReplicaOffsetsResponse>, Status> {
        let request = request.into_inner();
        let caller = request.caller.as_ref().ok_or_else(|| Status::invalid_argument("caller is missing"))?;
        let peer = self.welcome(caller).map_err(|reason| self.refuse(caller.broker_id, reason))?;
        Ok(Response::new(self.bounds(peer.broker, &request)))
    }
}

impl ReplicaDoor {
    fn bounds(&self, _peer: BrokerId, request: &ReplicaOffsetsRequest) -> ReplicaOffsetsResponse {
        let epoch = LeaderEpoch(request.current_leader_epoch);
        let key = minikafka_proto::replica::PartitionKey {
            topic_id: request.topic_id.clone(),
            partition: request.partition,
        };
        let bounds = match minikafka_model::TopicPartition::try_from(&key) {
            Ok(at) => match self.service.replicas.get(at) {
                Some(cell) => cell.lock().replica.bounds_for_follower(epoch),
                None => Err(NotServed::NotLeader),
            },
            Err(_) => Err(NotServed::NotLeader),
        };
        match bounds {
            Ok(bounds) => ReplicaOffsetsResponse {
                error_code: 0,
                log_start_offset: bounds.log_start.0,
                log_end_offset: bounds.log_end.0,
                leader_epoch: epoch.0,
            },
            Err(refused) => ReplicaOffsetsResponse {
                error_code: i32::from(Coded::code(&refused).code()),
                ..ReplicaOffsetsResponse::default()
            },
        }
    }
}

/// Serves the gRPC connections that the inter-broker listener hands over, until the stop.
pub(crate) async fn serve_grpc(
    door: ReplicaDoor,
    connections: mpsc::Receiver<std::io::Result<Rewound>>,
    stop: Shutdown,
) {
    let service = ReplicaServer::new(door).max_decoding_message_size(REQUEST_LIMIT);
    let served = tonic::transport::Server::builder()
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .tcp_nodelay(true)
        .add_service(service)
        .serve_with_incoming_shutdown(ReceiverStream::new(connections), async move { stop.wait().await });
    if let Err(error) = served.await {
        tracing::error!("the door for followers has failed: {error}");
    }
}
