//! OffsetForLeaderEpoch: where an epoch ended.

use minikafka_model::{ErrorCode, LeaderEpoch, TopicPartition};
use minikafka_replication::EpochEndAnswer;
use minikafka_wire::offset_for_leader_epoch::{
    EpochEndOffset, EpochPartition, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, TopicResult,
};

use crate::kafka::cluster_view::ClusterView;
use crate::kafka::error_map::Coded;
use crate::kafka::fetch_sessions::TopicKey;
use crate::service::Service;

/// Looks each partition's epoch up.
pub(crate) fn handle(
    request: OffsetForLeaderEpochRequest,
    view: &ClusterView<'_>,
    service: &Service,
) -> OffsetForLeaderEpochResponse {
    let topics = request
        .topics
        .into_iter()
        .map(|topic| {
            let key = TopicKey::Name(topic.topic.as_str().into());
            let answer = |wanted: &EpochPartition| {
                let found = match view.partition(&key, wanted.partition) {
                    Ok(at) => look_up(at, wanted, service),
                    Err(code) => failed(code),
                };
                EpochEndOffset { partition: wanted.partition, ..found }
            };
            TopicResult { partitions: topic.partitions.iter().map(answer).collect(), topic: topic.topic }
        })
        .collect();
    OffsetForLeaderEpochResponse { topics, ..OffsetForLeaderEpochResponse::default() }
}

fn failed(code: ErrorCode) -> EpochEndOffset {
    EpochEndOffset { error_code: code.code(), ..EpochEndOffset::default() }
}

fn look_up(at: TopicPartition, wanted: &EpochPartition, service: &Service) -> EpochEndOffset {
    let Some(cell) = service.replicas.get(at) else { return failed(ErrorCode::NotLeaderOrFollower) };
    let epoch = (wanted.current_leader_epoch != -1).then_some(LeaderEpoch(wanted.current_leader_epoch));
    let answer = cell.lock().replica.end_of_epoch(epoch, LeaderEpoch(wanted.leader_epoch));
    match answer {
        EpochEndAnswer::Found(end) => EpochEndOffset {
            leader_epoch: end.epoch.0,
            end_offset: end.end_offset.0,
            ..EpochEndOffset::default()
        },
        EpochEndAnswer::Unknown | EpochEndAnswer::Refused(_) => failed(answer.code()),
    }
}
