//! One task per broker: puts writes on their way in the order they were decided, and brings back what became of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, Offset, PartitionIndex, TopicId, Uuid, WallMs};
use minikafka_wire::produce::{PartitionData, PartitionResponse, ProduceRequest, ProduceResponse, TopicData};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::batch::Batch;
use super::ledger::Job;
use super::rules::Rules;
use super::settle::{Done, Told};
use crate::client::Shared;
use crate::config::Acks;
use crate::connection::{Connection, Lane};
use crate::error::{BrokerError, Error};
use crate::metadata::{LeaderHint, broker_from_wire, node};

/// First version of Produce that names topics by id.
const FIRST_WITH_IDS: i16 = 13;
/// The broker gets this part of the request timeout less, so that its own verdict (7) arrives before our timer ends.
const MARGIN_PART: u32 = 10;
const MOST_MARGIN: Duration = Duration::from_secs(1);

/// A job that has ended, and the leaders its answer named.
pub(crate) type Report = (Done, Vec<LeaderHint>);

/// Serves one broker until the sender is gone.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    rules: Rules,
    mut jobs: mpsc::Receiver<Job>,
    reports: mpsc::Sender<Report>,
) {
    while let Some(job) = jobs.recv().await {
        let broker = job.broker;
        match start(&shared, &rules, job).await {
            Ok(begun) => {
                // Answers are awaited beside the next question.
                tokio::spawn(finish(begun, rules, reports.clone()));
            }
            Err((batches, told)) => {
                let batches = batches.into_iter().map(|batch| (batch, told.clone())).collect();
                if reports.send((Done { broker, batches }, Vec::new())).await.is_err() {
                    return;
                }
            }
        }
    }
}

enum Waiting {
    Answer(crate::connection::Begun<ProduceRequest>),
    /// acks=0: it is written, and that is all there is to know.
    Nothing,
}

struct Begun {
    broker: BrokerId,
    batches: Vec<Batch>,
    waiting: Waiting,
    names: BTreeMap<Uuid, String>,
}

type NotBegun = (Vec<Batch>, Told);

async fn start(shared: &Shared, rules: &Rules, job: Job) -> Result<Begun, NotBegun> {
    let Job { broker, mut batches, deadline } = job;
    let connecting = tokio::time::timeout(rules.request_timeout, shared.broker(broker, Lane::Produce));
    let connection = match connecting.await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return Err((batches, Told::NotSent(error))),
        Err(_) => {
            let what = format!("connecting to broker {broker}");
            let error = Error::TimedOut { what, after: rules.request_timeout, last: None };
            return Err((batches, Told::NotSent(error)));
        }
    };
    let ids = topic_ids(shared, &batches);
    let version = match version(&connection, ids.is_some()) {
        Ok(version) => version,
        Err(error) => return Err((batches, Told::NotSent(error))),
    };
    let ids = ids.unwrap_or_default();
    let request = match request(rules, &mut batches, &ids, deadline) {
        Ok(request) => request,
        Err(reason) => return Err((batches, Told::Unsendable(reason))),
    };
    let waiting = if rules.acks == Acks::None {
        match connection.tell(version, &request).await {
            Ok(()) => Waiting::Nothing,
            Err(error) => return Err((batches, Told::NoAnswer(error))),
        }
    } else {
        match connection.begin(version, &request).await {
            Ok(begun) => Waiting::Answer(begun),
            Err(error) => return Err((batches, Told::NotSent(error))),
        }
    };
    let names = ids.into_iter().map(|(name, id)| (id, name)).collect();
    Ok(Begun { broker, batches, waiting, names })
}

/// The id of every topic, or `None` if one is not known.
fn topic_ids(shared: &Shared, batches: &[Batch]) -> Option<BTreeMap<String, Uuid>> {
    let view = shared.keeper.view();
    let id = |batch: &Batch| {
        let TopicId(id) = view.topic(&batch.topic)?.id?;
        Some((batch.topic.to_string(), id))
    };
    batches.iter().map(id).collect()
}

fn version(connection: &Connection, with_ids: bool) -> Result<i16, Error> {
    connection.version_of::<ProduceRequest>(if with_ids { i16::MAX } else { FIRST_WITH_IDS - 1 })
}

fn request(
    rules: &Rules,
    batches: &mut [Batch],
    ids: &BTreeMap<String, Uuid>,
    deadline: Instant,
) -> Result<ProduceRequest, String> {
    let mut topics: BTreeMap<Arc<str>, Vec<PartitionData>> = BTreeMap::new();
    for batch in batches.iter_mut() {
        let records = Some(batch.encode(rules.compression)?);
        let data = PartitionData { index: batch.partition.0, records };
        topics.entry(batch.topic.clone()).or_default().push(data);
    }
    let topic_data = topics
        .into_iter()
        .map(|(name, partition_data)| TopicData {
            topic_id: ids.get(&*name).copied().unwrap_or(Uuid::ZERO),
            name: name.to_string(),
            partition_data,
        })
        .collect();
    let timeout = broker_timeout(rules, deadline, Instant::now());
    Ok(ProduceRequest {
        transactional_id: None,
        acks: rules.acks.code(),
        timeout_ms: i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX),
        topic_data,
    })
}

fn margin(rules: &Rules) -> Duration {
    (rules.request_timeout / MARGIN_PART).min(MOST_MARGIN)
}

/// How long the broker may wait for the in-sync replicas: its verdict should come before the request and the delivery time out.
fn broker_timeout(rules: &Rules, deadline: Instant, now: Instant) -> Duration {
    let left = rules.request_timeout.min(deadline.saturating_duration_since(now));
    left.saturating_sub(margin(rules)).max(Duration::from_millis(1))
}

async fn finish(begun: Begun, rules: Rules, reports: mpsc::Sender<Report>) {
    let Begun { broker, batches, waiting, names } = begun;
    let report = match waiting {
        Waiting::Nothing => {
            let stored = Told::Stored { base: None, append_time: None };
            let batches = batches.into_iter().map(|batch| (batch, stored.clone())).collect();
            (Done { broker, batches }, Vec::new())
        }
        Waiting::Answer(answer) => {
            // Past the delivery deadline the answer still settles the sequences.
            match answer.finish(rules.request_timeout + margin(&rules)).await {
                Ok(answer) => understand(broker, batches, answer, &names),
                Err(error) => {
                    let batches =
                        batches.into_iter().map(|batch| (batch, Told::NoAnswer(error.clone()))).collect();
                    (Done { broker, batches }, Vec::new())
                }
            }
        }
    };
    // The sender is gone only when the producer was closed.
    let _ = reports.send(report).await;
}

fn understand(
    broker: BrokerId,
    batches: Vec<Batch>,
    answer: ProduceResponse,
    names: &BTreeMap<Uuid, String>,
) -> Report {
    let brokers: Vec<_> = answer
        .node_endpoints
        .iter()
        .filter_map(|node| broker_from_wire(node.node_id, &node.host, node.port, node.rack.as_deref()))
        .collect();
    let mut told: BTreeMap<(String, PartitionIndex), PartitionResponse> = BTreeMap::new();
    let mut hints = Vec::new();
    for topic in answer.responses {
        let name = names.get(&topic.topic_id).cloned().unwrap_or(topic.name);
        for partition in topic.partition_responses {
            let index = PartitionIndex(partition.index);
            let current = &partition.current_leader;
            if let Some(leader) = node(current.leader_id)
                && current.leader_epoch >= 0
            {
                hints.push(LeaderHint {
                    topic: name.clone(),
                    partition: index,
                    leader,
                    epoch: LeaderEpoch(current.leader_epoch),
                    broker: brokers.iter().find(|known| known.id == leader).cloned(),
                });
            }
            told.insert((name.clone(), index), partition);
        }
    }
    let batches = batches.into_iter().map(|batch| {
        let answer = told.remove(&(batch.topic.to_string(), batch.partition));
        let told = answer.map_or_else(|| Told::NoAnswer(left_out(broker)), verdict);
        (batch, told)
    });
    (Done { broker, batches: batches.collect() }, hints)
}

fn left_out(broker: BrokerId) -> Error {
    let message = Some(format!("broker {broker} answered, but not about this partition"));
    let error = BrokerError::from_wire(ErrorCode::UnknownServerError.code(), message);
    Error::broker("a write", error.expect("not zero"))
}

fn verdict(answer: PartitionResponse) -> Told {
    let base = (answer.base_offset >= 0).then_some(Offset(answer.base_offset));
    let records: Vec<String> = answer
        .record_errors
        .iter()
        .filter_map(|record| {
            let message = record.batch_index_error_message.as_ref()?;
            Some(format!("record {}: {message}", record.batch_index))
        })
        .collect();
    let message = match (answer.error_message, records.is_empty()) {
        (message, true) => message,
        (None, false) => Some(records.join("; ")),
        (Some(message), false) => Some(format!("{message} ({})", records.join("; "))),
    };
    match BrokerError::from_wire(answer.error_code, message) {
        None => {
            let append_time = (answer.log_append_time_ms >= 0).then_some(WallMs(answer.log_append_time_ms));
            Told::Stored { base, append_time }
        }
        Some(error) => Told::Refused { error, base },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ClientConfig;

    #[tokio::test]
    async fn the_broker_is_given_less_time_than_we_wait() {
        let rules = Rules::of(&ClientConfig::default());
        let now = Instant::now();
        let far = now + Duration::from_secs(120);
        assert_eq!(broker_timeout(&rules, far, now), Duration::from_secs(29));
        let near = now + Duration::from_secs(5);
        assert_eq!(
            broker_timeout(&rules, near, now),
            Duration::from_secs(4),
            "the delivery deadline is near"
        );
        assert_eq!(broker_timeout(&rules, now, now), Duration::from_millis(1));
    }
}
