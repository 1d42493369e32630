//! A controller for tests of the broker: one process, no quorum, no rules but the simplest. It records what it was asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use minikafka_metadata::{
    BrokerChange, Image, Listener, PartitionChange, PartitionState, Position, Record, RegisterBroker,
    encode_records,
};
use minikafka_model::{
    BrokerEpoch, BrokerId, ClusterId, DirectoryId, ErrorCode, IncarnationId, MetadataOffset, PartitionIndex,
    ProducerId, Term, TopicId, TopicPartition, Uuid,
};
use minikafka_proto::cluster::cluster_server::{Cluster, ClusterServer};
use minikafka_proto::cluster::metadata_chunk::Body;
use minikafka_proto::cluster::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, AlterPartitionRequest, AlterPartitionResponse,
    AlterPartitionResult, CreateTopicsRequest, CreateTopicsResponse, CreatedTopic, DeleteTopicsRequest,
    DeleteTopicsResponse, DeletedTopic, DescribeQuorumRequest, DescribeQuorumResponse, FollowMetadataRequest,
    HeartbeatRequest, HeartbeatResponse, MetadataChunk, MetadataEntry, Progress, RegisterBrokerRequest,
    RegisterBrokerResponse, Status,
};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response};

/// The cluster of all tests.
pub(crate) const CLUSTER: &str = "test-cluster-0123456789";

#[derive(Debug)]
struct Metadata {
    image: Image,
    entries: Vec<Vec<Record>>,
    topics: u128,
}

/// The controller.
#[derive(Debug, Clone)]
pub(crate) struct Controller {
    state: Arc<Mutex<Metadata>>,
    end: watch::Sender<usize>,
    address: SocketAddr,
}

fn uuid(bytes: &[u8]) -> Uuid {
    Uuid::from_bytes(bytes.try_into().expect("sixteen bytes"))
}

fn ok() -> Option<Status> {
    Some(Status { active_controller: Some(101), term: 1, ..Status::default() })
}

impl Controller {
    /// Starts on a free port of the loopback, on the current runtime.
    pub(crate) async fn start() -> Controller {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let image = Image::empty(ClusterId(CLUSTER.to_owned()));
        let state = Arc::new(Mutex::new(Metadata { image, entries: Vec::new(), topics: 0 }));
        let controller = Controller { state, end: watch::Sender::new(0), address };
        let service = ClusterServer::new(controller.clone());
        tokio::spawn(
            tonic::transport::Server::builder()
                .add_service(service)
                .serve_with_incoming(TcpListenerStream::new(listener)),
        );
        controller
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Decides: the records apply together and go to the brokers.
    pub(crate) fn decide(&self, records: impl FnOnce(&Image) -> Vec<Record>) {
        let mut state = self.state.lock();
        let records = records(&state.image);
        if records.is_empty() {
            return;
        }
        let at = Position { offset: MetadataOffset(state.entries.len() as i64), term: Term(1) };
        state.image.apply(at, &records).expect("the test decides what applies");
        state.entries.push(records);
        self.end.send_replace(state.entries.len());
    }

    /// The metadata at this moment.
    pub(crate) fn image(&self) -> Image {
        self.state.lock().image.clone()
    }

    /// Makes a topic with these replica lists; the first of each leads, all are in sync.
    pub(crate) fn create(&self, name: &str, partitions: &[&[i32]]) -> TopicId {
        let id = {
            let mut state = self.state.lock();
            state.topics += 1;
            TopicId(Uuid(0x4000_0000_0000_4000_8000_0000_0000_0000 + state.topics))
        };
        self.decide(|image| {
            let mut records = vec![Record::Topic { id, name: name.to_owned() }];
            for (index, replicas) in partitions.iter().enumerate() {
                let replicas: Vec<BrokerId> = replicas.iter().map(|id| BrokerId(*id)).collect();
                let isr = replicas.iter().copied().filter(|id| image.is_active(*id)).collect();
                let at = TopicPartition { topic: id, partition: PartitionIndex(index as i32) };
                let state = PartitionState::created(replicas.clone(), vec![None; replicas.len()], isr);
                records.push(Record::Partition { at, state });
            }
            records
        });
        id
    }

    /// Moves the leader of a partition.
    pub(crate) fn elect(&self, at: TopicPartition, leader: i32) {
        self.change(at, |state| {
            state.leader = Some(BrokerId(leader));
            state.leader_epoch = state.leader_epoch.next();
        });
    }

    /// Changes a partition.
    pub(crate) fn change(&self, at: TopicPartition, change: impl FnOnce(&mut PartitionState)) {
        self.decide(|image| {
            let before = image.partition(at).expect("it exists");
            let mut after = PartitionState::clone(before);
            change(&mut after);
            after.partition_epoch = before.partition_epoch.next();
            vec![Record::PartitionChange(PartitionChange::between(at, before, &after))]
        });
    }
}

#[tonic::async_trait]
impl Cluster for Controller {
    type FollowMetadataStream = ReceiverStream<Result<MetadataChunk, tonic::Status>>;

    async fn register_broker(
        &self,
        request: Request<RegisterBrokerRequest>,
    ) -> Result<Response<RegisterBrokerResponse>, tonic::Status> {
        let request = request.into_inner();
        let broker = BrokerId(request.caller.expect("a caller").node_id);
        let mut epoch = BrokerEpoch(0);
        self.decide(|image| {
            epoch = BrokerEpoch(image.offset().map_or(0, |offset| offset.0 + 1));
            let listeners = request.listeners.iter().map(|it| Listener {
                name: it.name.clone(),
                host: it.host.clone(),
                port: it.port as u16,
                security_protocol: it.security_protocol.clone(),
            });
            vec![Record::RegisterBroker(RegisterBroker {
                broker,
                epoch,
                incarnation: IncarnationId(uuid(&request.incarnation_id)),
                listeners: listeners.collect(),
                rack: request.rack.clone(),
                log_dirs: request.log_dirs.iter().map(|dir| DirectoryId(uuid(dir))).collect(),
                fenced: true,
                in_controlled_shutdown: false,
            })]
        });
        Ok(Response::new(RegisterBrokerResponse { status: ok(), broker_epoch: epoch.0 }))
    }

    async fn heartbeat(
        &self,
        request: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, tonic::Status> {
        let request = request.into_inner();
        let broker = BrokerId(request.caller.expect("a caller").node_id);
        let epoch = BrokerEpoch(request.broker_epoch);
        let caught_up = request.metadata_offset >= request.broker_epoch;
        self.decide(|image| {
            let known = image.broker(broker).expect("registered");
            if known.fenced && !request.want_fence && caught_up && !request.want_shutdown {
                vec![Record::BrokerChange(BrokerChange {
                    broker,
                    epoch,
                    fenced: Some(false),
                    in_controlled_shutdown: None,
                    log_dirs: None,
                })]
            } else {
                Vec::new()
            }
        });
        let fenced = self.state.lock().image.broker(broker).is_none_or(|known| known.fenced);
        Ok(Response::new(HeartbeatResponse {
            status: ok(),
            is_caught_up: caught_up,
            is_fenced: fenced,
            should_shut_down: request.want_shutdown,
        }))
    }

    async fn alter_partition(
        &self,
        request: Request<AlterPartitionRequest>,
    ) -> Result<Response<AlterPartitionResponse>, tonic::Status> {
        let mut results = Vec::new();
        for item in request.into_inner().items {
            let at = TopicPartition {
                topic: TopicId(uuid(&item.topic_id)),
                partition: PartitionIndex(item.partition),
            };
            let known = self.image().partition(at).expect("it exists").partition_epoch;
            if known.0 == item.partition_epoch {
                let isr = item.new_isr.iter().map(|it| BrokerId(it.broker_id)).collect();
                self.change(at, |state| state.isr = isr);
            }
            let state = Arc::clone(self.image().partition(at).expect("it exists"));
            let code = if known.0 == item.partition_epoch {
                ErrorCode::None
            } else {
                ErrorCode::InvalidUpdateVersion
            };
            results.push(AlterPartitionResult {
                topic_id: item.topic_id,
                partition: item.partition,
                error_code: i32::from(code.code()),
                leader: state.leader.map(|id| id.0),
                leader_epoch: state.leader_epoch.0,
                partition_epoch: state.partition_epoch.0,
                isr: state.isr.iter().map(|id| id.0).collect(),
                recovering: false,
            });
        }
        Ok(Response::new(AlterPartitionResponse { status: ok(), results }))
    }

    async fn allocate_producer_ids(
        &self,
        request: Request<AllocateProducerIdsRequest>,
    ) -> Result<Response<AllocateProducerIdsResponse>, tonic::Status> {
        let request = request.into_inner();
        let mut first = 0;
        self.decide(|image| {
            first = image.next_producer_id().0;
            vec![Record::ProducerIds {
                broker: BrokerId(request.caller.expect("a caller").node_id),
                epoch: BrokerEpoch(request.broker_epoch),
                next: ProducerId(first + 1000),
            }]
        });
        Ok(Response::new(AllocateProducerIdsResponse { status: ok(), first_id: first, count: 1000 }))
    }

    async fn create_topics(
        &self,
        request: Request<CreateTopicsRequest>,
    ) -> Result<Response<CreateTopicsResponse>, tonic::Status> {
        let brokers: Vec<i32> = self.image().brokers().keys().map(|id| id.0).collect();
        let topics = request.into_inner().topics.into_iter().map(|topic| {
            if self.image().topic_by_name(&topic.name).is_some() {
                return CreatedTopic {
                    name: topic.name,
                    error_code: i32::from(ErrorCode::TopicAlreadyExists.code()),
                    message: Some("exists".to_owned()),
                    ..CreatedTopic::default()
                };
            }
            let partitions = topic.partitions.max(1);
            let factor = usize::try_from(topic.replication_factor.max(1)).expect("small");
            let lists: Vec<Vec<i32>> = (0..partitions as usize)
                .map(|p| (0..factor).map(|r| brokers[(p + r) % brokers.len()]).collect())
                .collect();
            let lists: Vec<&[i32]> = lists.iter().map(Vec::as_slice).collect();
            let id = self.create(&topic.name, &lists);
            CreatedTopic {
                name: topic.name,
                topic_id: id.0.to_bytes().to_vec().into(),
                partitions,
                replication_factor: factor as i32,
                ..CreatedTopic::default()
            }
        });
        Ok(Response::new(CreateTopicsResponse { topics: topics.collect(), status: ok() }))
    }

    async fn delete_topics(
        &self,
        request: Request<DeleteTopicsRequest>,
    ) -> Result<Response<DeleteTopicsResponse>, tonic::Status> {
        let topics = request.into_inner().topics.into_iter().map(|topic| {
            let name = topic.name.expect("by name");
            let id = self.image().topic_id(&name).expect("it exists");
            self.decide(|_| vec![Record::RemoveTopic { id }]);
            DeletedTopic {
                name: Some(name),
                topic_id: id.0.to_bytes().to_vec().into(),
                error_code: 0,
                message: None,
            }
        });
        Ok(Response::new(DeleteTopicsResponse { topics: topics.collect(), status: ok() }))
    }

    async fn follow_metadata(
        &self,
        request: Request<FollowMetadataRequest>,
    ) -> Result<Response<Self::FollowMetadataStream>, tonic::Status> {
        let mut next = usize::try_from(request.into_inner().from_offset).expect("from 0 on");
        let (sender, receiver) = mpsc::channel(16);
        let (controller, mut end) = (self.clone(), self.end.subscribe());
        tokio::spawn(async move {
            loop {
                let chunks: Vec<Body> = {
                    let state = controller.state.lock();
                    let mut chunks: Vec<Body> = (next..state.entries.len())
                        .map(|at| {
                            Body::Entry(MetadataEntry {
                                offset: at as i64,
                                term: 1,
                                timestamp_ms: 0,
                                records: encode_records(&state.entries[at]),
                            })
                        })
                        .collect();
                    next = state.entries.len();
                    let committed = next as i64 - 1;
                    chunks.push(Body::Progress(Progress {
                        committed,
                        active_controller: Some(101),
                        term: 1,
                    }));
                    chunks
                };
                for body in chunks {
                    if sender.send(Ok(MetadataChunk { body: Some(body) })).await.is_err() {
                        return;
                    }
                }
                let _more = tokio::time::timeout(Duration::from_secs(1), end.changed()).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn describe_quorum(
        &self,
        _: Request<DescribeQuorumRequest>,
    ) -> Result<Response<DescribeQuorumResponse>, tonic::Status> {
        Err(tonic::Status::unimplemented("not in this test"))
    }
}
