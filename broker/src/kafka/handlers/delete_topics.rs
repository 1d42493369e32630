//! DeleteTopics: carried to the active controller.

use std::sync::Arc;

use minikafka_model::{ErrorCode, Uuid};
use minikafka_proto::cluster::{DeleteTopic, DeletedTopic};
use minikafka_wire::delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse, TopicResult};

use super::create_topics::{code_of, time_allowed, told, whole_refusal};
use crate::controller_link::Forwarder;
use crate::kafka::error_map::Coded;
use crate::settings::BrokerSettings;

/// Names (up to version 5) or names and ids (from 6 on).
pub(crate) async fn handle(
    request: DeleteTopicsRequest,
    settings: Arc<BrokerSettings>,
    forwarder: Forwarder,
) -> DeleteTopicsResponse {
    let by_name =
        request.topic_names.into_iter().map(|name| DeleteTopic { name: Some(name), topic_id: None });
    let either = request.topics.into_iter().map(|topic| DeleteTopic {
        topic_id: topic.name.is_none().then(|| topic.topic_id.to_bytes().to_vec().into()),
        name: topic.name,
    });
    let topics: Vec<DeleteTopic> = by_name.chain(either).collect();
    let responses = if topics.is_empty() {
        Vec::new()
    } else {
        forwarded(topics, request.timeout_ms, &settings, &forwarder).await
    };
    DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() }
}

async fn forwarded(
    topics: Vec<DeleteTopic>,
    timeout_ms: i32,
    settings: &BrokerSettings,
    forwarder: &Forwarder,
) -> Vec<TopicResult> {
    let all = |code: ErrorCode, message: String| {
        let failed = |topic: &DeleteTopic| TopicResult {
            name: topic.name.clone(),
            topic_id: topic.topic_id.as_deref().map_or(Uuid::ZERO, uuid),
            error_code: code.code(),
            error_message: Some(message.clone()),
        };
        topics.iter().map(failed).collect()
    };
    let Some(within) = time_allowed(timeout_ms, settings) else {
        return all(ErrorCode::RequestTimedOut, "The request timed out.".to_owned());
    };
    match forwarder.delete_topics(topics.clone(), within).await {
        Ok(answer) => match whole_refusal(answer.status.as_ref()) {
            Some((code, message)) => all(code, message),
            None => answer.topics.into_iter().map(deleted).collect(),
        },
        Err(error) => all(error.code(), told(&error)),
    }
}

fn uuid(bytes: &[u8]) -> Uuid {
    <[u8; 16]>::try_from(bytes).map_or(Uuid::ZERO, Uuid::from_bytes)
}

fn deleted(topic: DeletedTopic) -> TopicResult {
    TopicResult {
        name: topic.name,
        topic_id: uuid(&topic.topic_id),
        error_code: code_of(topic.error_code).code(),
        error_message: topic.message,
    }
}
