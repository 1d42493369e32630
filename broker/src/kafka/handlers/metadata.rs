//! Metadata: brokers, topics, leaders; makes topics that are asked for and missing, where that is allowed.

use std::collections::BTreeSet;
use std::sync::Arc;

use minikafka_metadata::{PartitionState, TopicImage};
use minikafka_model::{ErrorCode, PartitionIndex, Uuid};
use minikafka_proto::cluster::CreateTopic;
use minikafka_wire::metadata::{
    MetadataBroker, MetadataPartition, MetadataRequest, MetadataResponse, MetadataTopic, RequestTopic,
};

use crate::controller_link::Forwarder;
use crate::kafka::cluster_view::{ClusterView, check_topic_name, is_internal};
use crate::settings::BrokerSettings;

/// What anybody may do with the cluster and with a topic, where there is no authorizer (bits of Kafka's AclOperation).
pub(crate) const CLUSTER_OPERATIONS: i32 = 8096;
const TOPIC_OPERATIONS: i32 = 3576;

/// Answers from the metadata as this broker has it.
pub(crate) fn handle(
    request: &MetadataRequest,
    version: i16,
    view: &ClusterView<'_>,
    settings: &BrokerSettings,
    forwarder: &Forwarder,
) -> MetadataResponse {
    let create = settings.auto_create_topics && (version < 4 || request.allow_auto_topic_creation);
    let operations = request.include_topic_authorized_operations;
    let mut topics = Vec::new();
    let mut missing = Vec::new();
    match &request.topics {
        Some(wanted) if version > 0 || !wanted.is_empty() => {
            let mut seen = BTreeSet::new();
            for topic in wanted.iter().filter(|topic| seen.insert((topic.name.as_deref(), topic.topic_id))) {
                topics.push(one(topic, version, view, create, &mut missing));
            }
        }
        _ => topics.extend(view.image.topics_by_name().map(|topic| described(topic, version, view))),
    }
    if operations {
        let known = topics.iter_mut().filter(|topic| topic.error_code == ErrorCode::None.code());
        known.for_each(|topic| topic.topic_authorized_operations = TOPIC_OPERATIONS);
    }
    if !missing.is_empty() {
        forwarder.create_in_background(missing, settings.request_timeout);
    }
    let cluster_operations = request.include_cluster_authorized_operations;
    MetadataResponse {
        brokers: view
            .alive()
            .map(|(broker, at)| MetadataBroker {
                node_id: broker.id.0,
                host: at.host.clone(),
                port: i32::from(at.port),
                rack: broker.rack.clone(),
            })
            .collect(),
        cluster_id: Some(view.image.cluster().0.clone()),
        controller_id: view.controller().map_or(-1, |id| id.0),
        topics,
        cluster_authorized_operations: if cluster_operations { CLUSTER_OPERATIONS } else { i32::MIN },
        ..MetadataResponse::default()
    }
}

fn one(
    wanted: &RequestTopic,
    version: i16,
    view: &ClusterView<'_>,
    create: bool,
    missing: &mut Vec<CreateTopic>,
) -> MetadataTopic {
    let failed = |code: ErrorCode, name: Option<&str>, id: Uuid| MetadataTopic {
        error_code: code.code(),
        name: name.map(str::to_owned),
        topic_id: id,
        is_internal: name.is_some_and(is_internal),
        ..MetadataTopic::default()
    };
    let Some(name) = wanted.name.as_deref() else {
        return match view.image.topic(minikafka_model::TopicId(wanted.topic_id)) {
            Some(topic) => described(topic, version, view),
            None => failed(ErrorCode::UnknownTopicId, None, wanted.topic_id),
        };
    };
    if let Some(topic) = view.image.topic_by_name(name) {
        return described(topic, version, view);
    }
    if check_topic_name(name).is_err() {
        return failed(ErrorCode::InvalidTopicException, Some(name), Uuid::ZERO);
    }
    if create {
        missing.push(CreateTopic {
            name: name.to_owned(),
            partitions: -1,
            replication_factor: -1,
            ..CreateTopic::default()
        });
    }
    failed(ErrorCode::UnknownTopicOrPartition, Some(name), Uuid::ZERO)
}

fn described(topic: &Arc<TopicImage>, version: i16, view: &ClusterView<'_>) -> MetadataTopic {
    MetadataTopic {
        error_code: ErrorCode::None.code(),
        name: Some(topic.name.to_string()),
        topic_id: topic.id.0,
        is_internal: is_internal(&topic.name),
        partitions: topic
            .partitions
            .iter()
            .map(|(index, state)| partition(*index, state, version, view))
            .collect(),
        ..MetadataTopic::default()
    }
}

fn partition(
    index: PartitionIndex,
    state: &PartitionState,
    version: i16,
    view: &ClusterView<'_>,
) -> MetadataPartition {
    let ids = |brokers: &[minikafka_model::BrokerId]| brokers.iter().map(|id| id.0).collect();
    let registered = state.leader.filter(|id| view.image.broker(*id).is_some_and(|broker| !broker.fenced));
    let code = match registered {
        None => ErrorCode::LeaderNotAvailable,
        Some(id) if view.endpoint(id).is_some() => ErrorCode::None,
        // Clients before version 6 do not know the code.
        Some(_) if version >= 6 => ErrorCode::ListenerNotFound,
        Some(_) => ErrorCode::LeaderNotAvailable,
    };
    let leader = if code == ErrorCode::None { registered } else { None };
    MetadataPartition {
        error_code: code.code(),
        partition_index: index.0,
        leader_id: leader.map_or(-1, |id| id.0),
        leader_epoch: state.leader_epoch.0,
        replica_nodes: ids(&state.replicas),
        isr_nodes: ids(&state.isr),
        offline_replicas: state.replicas.iter().filter(|id| view.offline(**id)).map(|id| id.0).collect(),
    }
}
