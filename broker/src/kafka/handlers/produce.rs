//! Produce: the shape of each payload and `acks` are checked for the whole request, then each partition is written by itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use minikafka_model::{BrokerId, ErrorCode, Offset, TopicPartition};
use minikafka_replication::{Acks, BatchRefusal, ProduceDone, ProduceRefusal, Written};
use minikafka_wire::produce::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionResponse, ProduceRequest, ProduceResponse, RecordError,
    TopicResponse,
};
use tokio::sync::oneshot;

use crate::kafka::answer::{Answer, Asked, CloseReason};
use crate::kafka::cluster_view::{ClusterView, is_internal, topic_key};
use crate::kafka::error_map::Coded;
use crate::kafka::payload::{Payload, payload};
use crate::service::{Service, WriteOutcome, WriteStart};

/// First version with `CurrentLeader` and `NodeEndpoints` (KIP-951), and with topic ids.
const SENDS_LEADERS: i16 = 10;
const BY_ID: i16 = 13;
/// First version that may carry zstd.
const ZSTD: i16 = 7;

/// One partition on its way through the checks.
struct Slot {
    topic: usize,
    index: i32,
    at: Option<TopicPartition>,
    state: State,
}

enum State {
    /// Passed all checks so far.
    Payload(Bytes),
    Failed(ErrorCode, Option<String>),
    Ended(WriteOutcome),
    Waiting(oneshot::Receiver<ProduceDone>),
}

/// Begins the writes; the answer waits for what `acks` asks for.
pub(crate) fn handle(
    request: ProduceRequest,
    asked: Asked,
    listener: &str,
    service: &Arc<Service>,
) -> Result<Answer, CloseReason> {
    let image = service.image.load_full();
    let view = ClusterView { image: &image, listener };
    let (acks, timeout_ms) = (request.acks, request.timeout_ms);
    let names: Vec<(String, minikafka_model::Uuid)> =
        request.topic_data.iter().map(|topic| (topic.name.clone(), topic.topic_id)).collect();
    let mut slots = admit(request, asked.version, &view);
    let acks = match acks {
        0 => Some(Acks::None),
        1 => Some(Acks::Leader),
        -1 => Some(Acks::All),
        _ => None,
    };
    let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
    for slot in &mut slots {
        let State::Payload(_) = slot.state else { continue };
        let State::Payload(records) =
            std::mem::replace(&mut slot.state, State::Failed(ErrorCode::None, None))
        else {
            continue;
        };
        slot.state = match (acks, slot.at) {
            (Some(acks), Some(at)) => match service.write(at, records, acks, timeout) {
                WriteStart::Done(outcome) => State::Ended(outcome),
                WriteStart::Waiting(waiting) => State::Waiting(waiting),
            },
            _ => State::Failed(ErrorCode::InvalidRequiredAcks, None),
        };
    }
    if acks == Some(Acks::None) {
        return without_answer(&slots);
    }
    let finish = Finish { asked, names, listener: listener.into(), service: Arc::clone(service) };
    if slots.iter().any(|slot| matches!(slot.state, State::Waiting(_))) {
        return Ok(asked.later(finish.wait(slots)));
    }
    asked.now(&finish.answer(slots.into_iter().map(ended).collect()))
}

/// The checks that come before any replica is looked at (Kafka semantics 1.2, rows 1 to 8).
fn admit(request: ProduceRequest, version: i16, view: &ClusterView<'_>) -> Vec<Slot> {
    let mut slots = Vec::new();
    let mut transactional = false;
    let known_id = request.transactional_id.is_some();
    for (topic, data) in request.topic_data.into_iter().enumerate() {
        let key = topic_key(version >= BY_ID, &data.name, data.topic_id);
        for partition in data.partition_data {
            let at = view.partition(&key, partition.index);
            let state = match at {
                Err(code) => State::Failed(code, None),
                Ok(_) => match payload(partition.records) {
                    Payload::Batch(records, header) => {
                        transactional |= header.is_transactional();
                        if version < ZSTD && header.is_zstd() {
                            State::Failed(ErrorCode::UnsupportedCompressionType, None)
                        } else if header.is_transactional() && known_id {
                            State::Failed(ErrorCode::InvalidProducerIdMapping, None)
                        } else if view.topic(&key).is_ok_and(|topic| is_internal(&topic.name)) {
                            State::Failed(ErrorCode::InvalidTopicException, None)
                        } else {
                            State::Payload(records)
                        }
                    }
                    Payload::Invalid => State::Failed(ErrorCode::InvalidRecord, None),
                    Payload::Corrupt(message) => State::Failed(ErrorCode::CorruptMessage, Some(message)),
                },
            };
            slots.push(Slot { topic, index: partition.index, at: at.ok(), state });
        }
    }
    if transactional && !known_id {
        let code = ErrorCode::TransactionalIdAuthorizationFailed;
        slots.iter_mut().for_each(|slot| slot.state = State::Failed(code, None));
    }
    refuse_repeated(&mut slots);
    slots
}

/// The same partition twice in one request: Kafka drops the earlier records in silence; here nothing of it is written.
fn refuse_repeated(slots: &mut [Slot]) {
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<TopicPartition> =
        slots.iter().filter_map(|slot| slot.at).filter(|at| !seen.insert(*at)).collect();
    for slot in slots.iter_mut().filter(|slot| slot.at.is_some_and(|at| repeated.contains(&at))) {
        let message = "The same partition stands more than once in this request.".to_owned();
        slot.state = State::Failed(ErrorCode::InvalidRecord, Some(message));
    }
}

/// With acks 0 there is no answer; any error closes the connection, which is the only sign a client can get.
fn without_answer(slots: &[Slot]) -> Result<Answer, CloseReason> {
    for slot in slots {
        let code = match &slot.state {
            State::Failed(code, _) => *code,
            State::Ended(outcome) => outcome.code(),
            State::Payload(_) | State::Waiting(_) => ErrorCode::None,
        };
        if code != ErrorCode::None {
            return Err(CloseReason::AcksZero(format!("partition {}: {code}", slot.index)));
        }
    }
    Ok(Answer::Nothing)
}

fn ended(slot: Slot) -> (usize, Option<TopicPartition>, PartitionResponse) {
    let answer = match slot.state {
        State::Failed(code, message) => failed(code, message),
        State::Ended(outcome) => outcome_answer(&outcome),
        State::Payload(_) | State::Waiting(_) => failed(ErrorCode::UnknownServerError, None),
    };
    (slot.topic, slot.at, PartitionResponse { index: slot.index, ..answer })
}

fn failed(code: ErrorCode, message: Option<String>) -> PartitionResponse {
    PartitionResponse {
        error_code: code.code(),
        base_offset: -1,
        error_message: message,
        ..PartitionResponse::default()
    }
}

fn written(code: ErrorCode, written: &Written) -> PartitionResponse {
    PartitionResponse {
        error_code: code.code(),
        base_offset: written.base_offset.0,
        log_append_time_ms: written.log_append_time.map_or(-1, |time| time.0),
        log_start_offset: written.log_start_offset.0,
        ..PartitionResponse::default()
    }
}

fn outcome_answer(outcome: &WriteOutcome) -> PartitionResponse {
    let code = outcome.code();
    match outcome {
        WriteOutcome::Written(it) => written(code, it),
        WriteOutcome::Waited(done) => written(code, &done.written()),
        WriteOutcome::NotHosted => failed(code, None),
        WriteOutcome::Refused(refusal) => match refusal {
            ProduceRefusal::NotEnoughReplicas(few) => failed(code, Some(few.to_string())),
            ProduceRefusal::Batch(refusal) => batch_refused(code, refusal),
            ProduceRefusal::Producer { log_start_offset, .. } => {
                with_log_start(failed(code, None), *log_start_offset)
            }
            ProduceRefusal::NotServed(_) | ProduceRefusal::LargerThanSegment { .. } => failed(code, None),
        },
    }
}

fn with_log_start(answer: PartitionResponse, log_start: Offset) -> PartitionResponse {
    PartitionResponse { log_start_offset: log_start.0, ..answer }
}

fn batch_refused(code: ErrorCode, _refusal: &BatchRefusal) -> PartitionResponse {
    PartitionResponse { record_errors: Vec::<RecordError>::new(), ..failed(code, None) }
}

/// Puts the answers together.
struct Finish {
    asked: Asked,
    names: Vec<(String, minikafka_model::Uuid)>,
    listener: Arc<str>,
    service: Arc<Service>,
}

impl Finish {
    async fn wait(self, slots: Vec<Slot>) -> ProduceResponse {
        let mut done = Vec::with_capacity(slots.len());
        for mut slot in slots {
            if let State::Waiting(waiting) = slot.state {
                slot.state = match waiting.await {
                    Ok(outcome) => State::Ended(WriteOutcome::Waited(outcome)),
                    // The replica is gone with its waiters: the broker stops.
                    Err(_) => State::Failed(ErrorCode::NotLeaderOrFollower, None),
                };
            }
            done.push(ended(slot));
        }
        self.answer(done)
    }

    fn answer(&self, done: Vec<(usize, Option<TopicPartition>, PartitionResponse)>) -> ProduceResponse {
        let image = self.service.image.load();
        let view = ClusterView { image: &image, listener: &self.listener };
        let mut responses: Vec<TopicResponse> = self
            .names
            .iter()
            .map(|(name, id)| TopicResponse {
                name: name.clone(),
                topic_id: *id,
                partition_responses: Vec::new(),
            })
            .collect();
        let mut leaders = BTreeSet::new();
        for (topic, at, mut answer) in done {
            if self.asked.version >= SENDS_LEADERS
                && answer.error_code == ErrorCode::NotLeaderOrFollower.code()
                && let Some((leader, epoch)) = at.and_then(|at| view.leader(at))
            {
                answer.current_leader = LeaderIdAndEpoch { leader_id: leader.0, leader_epoch: epoch.0 };
                leaders.insert(leader);
            }
            responses[topic].partition_responses.push(answer);
        }
        // A topic without partitions is not answered for, as in Kafka.
        responses.retain(|topic| !topic.partition_responses.is_empty());
        let node_endpoints = leaders.into_iter().filter_map(|id| endpoint(&view, id)).collect();
        ProduceResponse { responses, node_endpoints, ..ProduceResponse::default() }
    }
}

fn endpoint(view: &ClusterView<'_>, id: BrokerId) -> Option<NodeEndpoint> {
    let (broker, at) = view.endpoint(id)?;
    Some(NodeEndpoint {
        node_id: id.0,
        host: at.host.clone(),
        port: i32::from(at.port),
        rack: broker.rack.clone(),
    })
}
