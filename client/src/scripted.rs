//! A broker for tests: in this process, on a real socket, with a small honest log per partition, and a script that makes the n-th call
//! of an API go wrong.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use minikafka_model::batch::{BatchHeader, Records};
use minikafka_model::{TopicId, Uuid};
use minikafka_wire::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use minikafka_wire::describe_configs::{
    ConfigEntry, ConfigResult, DescribeConfigsRequest, DescribeConfigsResponse,
};
use minikafka_wire::fetch::{self, FetchRequest, FetchResponse};
use minikafka_wire::init_producer_id::InitProducerIdResponse;
use minikafka_wire::list_offsets::{self, ListOffsetsRequest, ListOffsetsResponse};
use minikafka_wire::metadata::{MetadataBroker, MetadataPartition, MetadataResponse, MetadataTopic};
use minikafka_wire::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, TopicResult,
};
use minikafka_wire::produce::{self, ProduceRequest, ProduceResponse};
use minikafka_wire::{ApiKey, Frame, RequestFrame, api, encode_response};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::codec::{Framed, LengthDelimitedCodec};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What happens to one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// As an honest broker would.
    Serve,
    /// This error code for every partition, and nothing is done.
    Refuse(i16),
    /// Done, but the answer never comes.
    ServeInSilence,
    /// Done, but the connection is closed before the answer.
    ServeAndClose,
    /// Not done, and the connection is closed.
    Close,
}

/// The topic that is always there.
pub(crate) const TOPIC: &str = "t";
pub(crate) const TOPIC_ID: TopicId = TopicId(Uuid(77));
const PRODUCER_ID: i64 = 4000;

/// One partition.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) batches: Vec<Bytes>,
    pub(crate) end: i64,
    producers: BTreeMap<i64, Producing>,
}

/// Epoch of a producer, and (first sequence, last sequence, base offset) of its last five batches.
type Producing = (i16, Vec<(i32, i32, i64)>);

/// Everything a test can look at and change.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) logs: Vec<Log>,
    pub(crate) leader_epoch: i32,
    pub(crate) has_leader: bool,
    pub(crate) min_insync_replicas: i32,
    pub(crate) max_message_bytes: usize,
    /// What OffsetForLeaderEpoch answers: epoch and end.
    pub(crate) epoch_end: Option<(i32, i64)>,
    /// Kept free of versions above this one, per API.
    pub(crate) newest: BTreeMap<i16, i16>,
    pub(crate) calls: BTreeMap<i16, usize>,
    pub(crate) script: BTreeMap<(i16, usize), Action>,
    port: u16,
}

/// A running broker; it ends with the handle.
pub(crate) struct Scripted {
    model: Arc<Mutex<Model>>,
    pub(crate) port: u16,
    _stop: DropGuard,
}

impl Scripted {
    /// Starts a broker with this many partitions.
    pub(crate) async fn start(partitions: usize) -> Scripted {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let model = Arc::new(Mutex::new(Model {
            logs: (0..partitions).map(|_| Log::default()).collect(),
            leader_epoch: 3,
            has_leader: true,
            min_insync_replicas: 2,
            max_message_bytes: usize::MAX,
            epoch_end: None,
            newest: BTreeMap::new(),
            calls: BTreeMap::new(),
            script: BTreeMap::new(),
            port,
        }));
        let stop = CancellationToken::new();
        let (shared, stopped) = (model.clone(), stop.clone());
        tokio::spawn(async move {
            let accept = async {
                loop {
                    let (socket, _) = listener.accept().await.expect("a connection");
                    tokio::spawn(
                        stopped.child_token().run_until_cancelled_owned(serve(socket, shared.clone())),
                    );
                }
            };
            stopped.run_until_cancelled(accept).await
        });
        Scripted { model, port, _stop: stop.drop_guard() }
    }

    pub(crate) fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the n-th call of an API (counted from 1) go this way.
    pub(crate) fn script(&self, api: ApiKey, calls: impl IntoIterator<Item = usize>, action: Action) {
        let mut model = self.model();
        calls.into_iter().for_each(|n| {
            model.script.insert((api.code(), n), action);
        });
    }

    pub(crate) fn calls(&self, api: ApiKey) -> usize {
        self.model().calls.get(&api.code()).copied().unwrap_or(0)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The values stored in a partition, in order.
    pub(crate) fn values(&self, partition: usize) -> Vec<String> {
        let model = self.model();
        let records =
            model.logs[partition].batches.iter().flat_map(|batch| Records::of(batch).expect("a batch"));
        records
            .map(|record| {
                let value = record.expect("a record").value.expect("a value");
                String::from_utf8_lossy(&value).into_owned()
            })
            .collect()
    }

    /// Appends values as another producer would.
    pub(crate) fn append(&self, partition: usize, values: &[&str]) {
        let mut builder = minikafka_model::batch::BatchBuilder::new();
        values.iter().for_each(|value| builder.push(1, None, Some(value.as_bytes()), &[]));
        let bytes = builder.build(minikafka_model::batch::CompressionType::None, None).expect("a batch");
        let mut model = self.model();
        let epoch = model.leader_epoch;
        model.logs[partition].append(&bytes, epoch).expect("no producer, no refusal");
    }
}

impl Log {
    /// Kafka's check of sequences (Kafka semantics 9.3), then the append; the base offset or an error code.
    fn append(&mut self, batch: &Bytes, leader_epoch: i32) -> Result<i64, i16> {
        let header = BatchHeader::parse(batch).expect("a batch");
        header.verify(batch).expect("a good checksum");
        if let Some(id) = header.producer_id {
            let (first, last) = (header.base_sequence.0, header.last_sequence().0);
            if let Some((epoch, batches)) = self.producers.get(&id.0) {
                if let Some((.., base)) = batches
                    .iter()
                    .find(|(f, l, _)| *epoch == header.producer_epoch.0 && (*f, *l) == (first, last))
                {
                    return Ok(*base);
                }
                if header.producer_epoch.0 < *epoch {
                    return Err(47);
                }
                let next = batches.last().map_or(0, |(_, last, _)| last + 1);
                let expected = if header.producer_epoch.0 > *epoch { 0 } else { next };
                if first != expected {
                    return Err(45);
                }
            }
            let state = self.producers.entry(id.0).or_insert((header.producer_epoch.0, Vec::new()));
            if state.0 != header.producer_epoch.0 {
                *state = (header.producer_epoch.0, Vec::new());
            }
            state.1.push((first, last, self.end));
            let too_many = state.1.len().saturating_sub(5);
            state.1.drain(..too_many);
        }
        let mut bytes = BytesMut::from(&batch[..]);
        bytes[..8].copy_from_slice(&self.end.to_be_bytes());
        bytes[12..16].copy_from_slice(&leader_epoch.to_be_bytes());
        self.batches.push(bytes.freeze());
        let base = self.end;
        self.end += i64::from(header.count);
        Ok(base)
    }

    /// Forgets a producer's state beyond what stands in the log before `end`, and the log behind it.
    pub(crate) fn truncate(&mut self, end: i64) {
        self.batches.retain(|batch| BatchHeader::parse(batch).expect("a batch").base_offset.0 < end);
        self.end = end;
        for (_, batches) in self.producers.values_mut() {
            batches.retain(|(.., base)| *base < end);
        }
    }
}

async fn serve(socket: TcpStream, model: Arc<Mutex<Model>>) {
    let codec = LengthDelimitedCodec::builder().max_frame_length(64 << 20).new_codec();
    let mut framed = Framed::new(socket, codec);
    while let Some(Ok(frame)) = framed.next().await {
        let request = RequestFrame::parse(frame.freeze()).expect("a request that is served");
        let (answer, action) = {
            let mut model = model.lock().unwrap_or_else(PoisonError::into_inner);
            let n = model.calls.entry(request.key.code()).or_default();
            *n += 1;
            let n = *n;
            let action = model.script.get(&(request.key.code(), n)).copied().unwrap_or(Action::Serve);
            (if action == Action::Close { None } else { model.answer(&request, action) }, action)
        };
        match (action, answer) {
            (Action::Close | Action::ServeAndClose, _) => return,
            (Action::ServeInSilence, _) | (_, None) => {}
            (_, Some(answer)) => {
                // The codec writes the four length bytes itself.
                let bytes = answer.to_bytes().slice(4..);
                if framed.send(bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

impl Model {
    fn answer(&mut self, request: &RequestFrame, action: Action) -> Option<Frame> {
        let code = if let Action::Refuse(code) = action { Some(code) } else { None };
        let (id, version) = (request.correlation_id, request.version);
        let frame = match request.key {
            ApiKey::ApiVersions => {
                let _: ApiVersionsRequest = request.decode().expect("a request");
                let mut api_keys = api::advertised();
                for row in &mut api_keys {
                    if let Some(newest) = self.newest.get(&row.api_key) {
                        row.max_version = *newest;
                    }
                }
                encode_response(id, version, &ApiVersionsResponse { api_keys, ..Default::default() })
            }
            ApiKey::Metadata => encode_response(id, version, &self.metadata()),
            ApiKey::InitProducerId => {
                let answer = InitProducerIdResponse {
                    error_code: code.unwrap_or(0),
                    producer_id: PRODUCER_ID,
                    producer_epoch: 0,
                    ..Default::default()
                };
                encode_response(id, version, &answer)
            }
            ApiKey::Produce => {
                let request: ProduceRequest = request.decode().expect("a request");
                let answer = self.produce(&request, code);
                if request.acks == 0 {
                    return None;
                }
                encode_response(id, version, &answer)
            }
            ApiKey::Fetch => {
                let request: FetchRequest = request.decode().expect("a request");
                encode_response(id, version, &self.fetch(&request, code))
            }
            ApiKey::ListOffsets => {
                let request: ListOffsetsRequest = request.decode().expect("a request");
                encode_response(id, version, &self.offsets(&request, code))
            }
            ApiKey::OffsetForLeaderEpoch => {
                let request: OffsetForLeaderEpochRequest = request.decode().expect("a request");
                encode_response(id, version, &self.epoch_ends(&request))
            }
            ApiKey::DescribeConfigs => {
                let request: DescribeConfigsRequest = request.decode().expect("a request");
                encode_response(id, version, &self.configs(&request))
            }
            other => panic!("{other} is not in the script"),
        };
        Some(frame.expect("an answer that can be written"))
    }

    fn metadata(&self) -> MetadataResponse {
        let partitions = (0..self.logs.len()).map(|index| MetadataPartition {
            partition_index: i32::try_from(index).expect("few"),
            error_code: if self.has_leader { 0 } else { 5 },
            leader_id: if self.has_leader { 1 } else { -1 },
            leader_epoch: self.leader_epoch,
            replica_nodes: vec![1, 2, 3],
            isr_nodes: vec![1],
            ..Default::default()
        });
        let topic = MetadataTopic {
            name: Some(TOPIC.to_owned()),
            topic_id: TOPIC_ID.0,
            partitions: partitions.collect(),
            ..Default::default()
        };
        MetadataResponse {
            brokers: vec![MetadataBroker {
                node_id: 1,
                host: "127.0.0.1".to_owned(),
                port: i32::from(self.port),
                rack: None,
            }],
            controller_id: 1,
            topics: vec![topic],
            ..Default::default()
        }
    }

    fn produce(&mut self, request: &ProduceRequest, code: Option<i16>) -> ProduceResponse {
        let (epoch, most) = (self.leader_epoch, self.max_message_bytes);
        let mut responses = Vec::new();
        for topic in &request.topic_data {
            let partition_responses = topic.partition_data.iter().map(|data| {
                let batch = data.records.clone().expect("records");
                let log = &mut self.logs[usize::try_from(data.index).expect("an index")];
                let result = match code {
                    Some(code) => Err(code),
                    None if batch.len() > most => Err(10),
                    None => log.append(&batch, epoch),
                };
                let (error_code, base_offset) = result.map_or_else(|code| (code, -1), |base| (0, base));
                produce::PartitionResponse {
                    index: data.index,
                    error_code,
                    base_offset,
                    ..Default::default()
                }
            });
            responses.push(produce::TopicResponse {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                partition_responses: partition_responses.collect(),
            });
        }
        ProduceResponse { responses, ..Default::default() }
    }

    fn fetch(&self, request: &FetchRequest, code: Option<i16>) -> FetchResponse {
        let responses = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|wanted| {
                let log = &self.logs[usize::try_from(wanted.partition).expect("an index")];
                let stale =
                    wanted.current_leader_epoch >= 0 && wanted.current_leader_epoch != self.leader_epoch;
                let mut error_code = code.unwrap_or(0);
                if error_code == 0 && stale {
                    error_code = if wanted.current_leader_epoch < self.leader_epoch { 74 } else { 75 };
                } else if error_code == 0 && wanted.fetch_offset > log.end {
                    error_code = 1;
                }
                let behind = |batch: &&Bytes| {
                    BatchHeader::parse(batch).expect("a batch").last_offset().0 >= wanted.fetch_offset
                };
                let records = if error_code == 0 {
                    log.batches.iter().filter(behind).cloned().collect()
                } else {
                    Vec::new()
                };
                fetch::PartitionResponse {
                    partition_index: wanted.partition,
                    error_code,
                    high_watermark: log.end,
                    last_stable_offset: log.end,
                    log_start_offset: 0,
                    records: records.into(),
                    ..Default::default()
                }
            });
            fetch::TopicResponse {
                topic: topic.topic.clone(),
                topic_id: topic.topic_id,
                partitions: partitions.collect(),
            }
        });
        FetchResponse { responses: responses.collect(), ..Default::default() }
    }

    fn offsets(&self, request: &ListOffsetsRequest, code: Option<i16>) -> ListOffsetsResponse {
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|wanted| {
                let log = &self.logs[usize::try_from(wanted.partition_index).expect("an index")];
                list_offsets::PartitionResponse {
                    partition_index: wanted.partition_index,
                    error_code: code.unwrap_or(0),
                    timestamp: -1,
                    offset: if wanted.timestamp == -2 { 0 } else { log.end },
                    leader_epoch: self.leader_epoch,
                }
            });
            list_offsets::TopicResponse { name: topic.name.clone(), partitions: partitions.collect() }
        });
        ListOffsetsResponse { topics: topics.collect(), ..Default::default() }
    }

    fn epoch_ends(&self, request: &OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse {
        let topics = request.topics.iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|wanted| {
                let log = &self.logs[usize::try_from(wanted.partition).expect("an index")];
                let (leader_epoch, end_offset) = self.epoch_end.unwrap_or((wanted.leader_epoch, log.end));
                EpochEndOffset { error_code: 0, partition: wanted.partition, leader_epoch, end_offset }
            });
            TopicResult { topic: topic.topic.clone(), partitions: partitions.collect() }
        });
        OffsetForLeaderEpochResponse { topics: topics.collect(), ..Default::default() }
    }

    fn configs(&self, request: &DescribeConfigsRequest) -> DescribeConfigsResponse {
        let results = request.resources.iter().map(|resource| ConfigResult {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs: vec![ConfigEntry {
                name: "min.insync.replicas".to_owned(),
                value: Some(self.min_insync_replicas.to_string()),
                config_source: 5,
                ..Default::default()
            }],
            ..Default::default()
        });
        DescribeConfigsResponse { results: results.collect(), ..Default::default() }
    }
}

/// Waits until `condition` holds, looking again whenever other tasks ran; fails after five seconds.
pub(crate) async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !condition() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(5), "not within 5 s: {what}");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}
