//! CreateTopics: carried to the active controller.

use std::collections::BTreeMap;
use std::time::Duration;

use minikafka_model::{ErrorCode, Uuid};
use minikafka_proto::cluster::{self, CreateTopic, CreatedTopic, ReplicaAssignment};
use minikafka_wire::create_topics::{
    CreatableTopic, CreateTopicsRequest, CreateTopicsResponse, TopicConfig, TopicResult,
};

use crate::controller_link::{CallError, Forwarder};
use crate::kafka::error_map::Coded;
use crate::settings::BrokerSettings;

/// Topics named twice are refused here; all others are the controller's to judge.
pub(crate) async fn handle(
    request: CreateTopicsRequest,
    settings: std::sync::Arc<BrokerSettings>,
    forwarder: Forwarder,
) -> CreateTopicsResponse {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for topic in &request.topics {
        *count.entry(&topic.name).or_default() += 1;
    }
    let mut results: Vec<TopicResult> = count
        .iter()
        .filter(|(_, times)| **times > 1)
        .map(|(name, _)| failed(name, ErrorCode::InvalidRequest, "Duplicate topic name."))
        .collect();
    let wanted: Vec<&CreatableTopic> =
        request.topics.iter().filter(|topic| count.get(topic.name.as_str()) == Some(&1)).collect();
    if !wanted.is_empty() {
        results.extend(forwarded(&wanted, &request, &settings, &forwarder).await);
    }
    CreateTopicsResponse { topics: results, ..CreateTopicsResponse::default() }
}

async fn forwarded(
    wanted: &[&CreatableTopic],
    request: &CreateTopicsRequest,
    settings: &BrokerSettings,
    forwarder: &Forwarder,
) -> Vec<TopicResult> {
    let all = |code: ErrorCode, message: &str| {
        wanted.iter().map(|topic| failed(&topic.name, code, message)).collect()
    };
    let Some(within) = time_allowed(request.timeout_ms, settings) else {
        return all(ErrorCode::RequestTimedOut, "The request timed out.");
    };
    let topics = wanted.iter().map(|topic| to_create(topic)).collect();
    match forwarder.create_topics(topics, request.validate_only, within).await {
        Ok(answer) => match whole_refusal(answer.status.as_ref()) {
            Some((code, message)) => all(code, &message),
            None => answer.topics.into_iter().map(created).collect(),
        },
        Err(error) => all(error.code(), &told(&error)),
    }
}

/// How long a forwarded request may take: what the client allows, at most the broker's own limit. None: no time at all.
pub(crate) fn time_allowed(timeout_ms: i32, settings: &BrokerSettings) -> Option<Duration> {
    let asked = u64::try_from(timeout_ms).ok().filter(|ms| *ms > 0)?;
    Some(Duration::from_millis(asked).min(settings.request_timeout.max(Duration::from_secs(60))))
}

/// What a client is told of a request that the controllers did not answer.
pub(crate) fn told(error: &CallError) -> String {
    error.to_string()
}

/// An error that concerns the whole request.
pub(crate) fn whole_refusal(status: Option<&cluster::Status>) -> Option<(ErrorCode, String)> {
    crate::controller_link::refusal(status)
}

/// The code in an answer of the controllers; a number that is unknown here is UNKNOWN_SERVER_ERROR.
pub(crate) fn code_of(number: i32) -> ErrorCode {
    i16::try_from(number).ok().and_then(ErrorCode::from_code).unwrap_or(ErrorCode::UnknownServerError)
}

fn failed(name: &str, code: ErrorCode, message: &str) -> TopicResult {
    TopicResult {
        name: name.to_owned(),
        error_code: code.code(),
        error_message: Some(message.to_owned()),
        configs: Some(Vec::new()),
        ..TopicResult::default()
    }
}

fn to_create(topic: &CreatableTopic) -> CreateTopic {
    CreateTopic {
        name: topic.name.clone(),
        partitions: topic.num_partitions,
        replication_factor: i32::from(topic.replication_factor),
        assignments: topic
            .assignments
            .iter()
            .map(|it| ReplicaAssignment { partition: it.partition_index, brokers: it.broker_ids.clone() })
            .collect(),
        configs: topic
            .configs
            .iter()
            .map(|it| cluster::TopicConfig { name: it.name.clone(), value: it.value.clone() })
            .collect(),
    }
}

fn created(topic: CreatedTopic) -> TopicResult {
    let code = code_of(topic.error_code);
    if code != ErrorCode::None {
        return failed(&topic.name, code, topic.message.as_deref().unwrap_or(code.name()));
    }
    let id = <[u8; 16]>::try_from(&topic.topic_id[..]).map_or(Uuid::ZERO, Uuid::from_bytes);
    TopicResult {
        name: topic.name,
        topic_id: id,
        num_partitions: topic.partitions,
        replication_factor: i16::try_from(topic.replication_factor).unwrap_or(-1),
        configs: Some(
            topic
                .configs
                .into_iter()
                .map(|it| TopicConfig {
                    name: it.name,
                    value: it.value,
                    read_only: it.read_only,
                    config_source: i8::try_from(it.source).unwrap_or(-1),
                    is_sensitive: it.sensitive,
                })
                .collect(),
        ),
        ..TopicResult::default()
    }
}
