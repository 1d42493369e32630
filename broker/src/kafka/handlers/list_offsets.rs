//! ListOffsets: the first, the last, or the first offset at a time.

use minikafka_model::{ErrorCode, LeaderEpoch, TopicPartition, WallMs};
use minikafka_replication::{OffsetAnswer, OffsetSpec};
use minikafka_wire::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, PartitionResponse, TopicResponse,
};

use crate::kafka::cluster_view::ClusterView;
use crate::kafka::error_map::Coded;
use crate::kafka::fetch_sessions::TopicKey;
use crate::service::Service;

/// What a special time asks for.
enum Asked {
    Spec(OffsetSpec),
    /// Of the tiers that do not exist here: no offset, no error.
    Tier,
    /// 35 for the partition.
    Unsupported,
}

fn asked(timestamp: i64, version: i16) -> Asked {
    match timestamp {
        -1 => Asked::Spec(OffsetSpec::Latest),
        -2 => Asked::Spec(OffsetSpec::Earliest),
        -3 if version >= 7 => Asked::Spec(OffsetSpec::MaxTimestamp),
        -4 if version >= 8 => Asked::Spec(OffsetSpec::Earliest),
        -5 if version >= 9 => Asked::Tier,
        -6 if version >= 11 => Asked::Tier,
        time if time >= 0 => Asked::Spec(OffsetSpec::AtOrAfter(WallMs(time))),
        _ => Asked::Unsupported,
    }
}

/// Looks each partition up. A replica or debugger (replica id other than -1) sees up to the log end.
pub(crate) fn handle(
    request: ListOffsetsRequest,
    version: i16,
    view: &ClusterView<'_>,
    service: &Service,
) -> ListOffsetsResponse {
    let consumer = request.replica_id == -1;
    let topics = request
        .topics
        .into_iter()
        .map(|topic| {
            let key = TopicKey::Name(topic.name.as_str().into());
            let answer = |wanted: &ListOffsetsPartition| {
                let found = match view.partition(&key, wanted.partition_index) {
                    Ok(at) => look_up(at, wanted, version, consumer, service),
                    Err(code) => failed(code),
                };
                PartitionResponse { partition_index: wanted.partition_index, ..found }
            };
            TopicResponse { partitions: topic.partitions.iter().map(answer).collect(), name: topic.name }
        })
        .collect();
    ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }
}

fn failed(code: ErrorCode) -> PartitionResponse {
    PartitionResponse { error_code: code.code(), ..PartitionResponse::default() }
}

fn look_up(
    at: TopicPartition,
    wanted: &ListOffsetsPartition,
    version: i16,
    consumer: bool,
    service: &Service,
) -> PartitionResponse {
    let spec = match asked(wanted.timestamp, version) {
        Asked::Spec(spec) => spec,
        Asked::Tier => return PartitionResponse::default(),
        Asked::Unsupported => return failed(ErrorCode::UnsupportedVersion),
    };
    let Some(cell) = service.replicas.get(at) else { return failed(ErrorCode::NotLeaderOrFollower) };
    let epoch = (wanted.current_leader_epoch != -1).then_some(LeaderEpoch(wanted.current_leader_epoch));
    let (answer, log_end) = service.with_replica(&cell, |replica, out| {
        let log_end = replica.bounds().map(|bounds| bounds.log_end);
        (replica.list_offsets(epoch, spec, out), log_end)
    });
    let answer = match (answer, log_end) {
        (OffsetAnswer::At { .. } | OffsetAnswer::NotAvailable, Some(offset))
            if !consumer && spec == OffsetSpec::Latest =>
        {
            let leader_epoch = view_epoch(&answer).or(epoch);
            OffsetAnswer::At { offset, timestamp: None, leader_epoch }
        }
        (answer, _) => answer,
    };
    // Clients before version 5 do not know OFFSET_NOT_AVAILABLE.
    let code = match answer.code() {
        ErrorCode::OffsetNotAvailable if version < 5 => ErrorCode::LeaderNotAvailable,
        code => code,
    };
    match answer {
        OffsetAnswer::At { offset, timestamp, leader_epoch } => PartitionResponse {
            timestamp: timestamp.map_or(-1, |time| time.0),
            offset: offset.0,
            leader_epoch: leader_epoch.map_or(-1, |epoch| epoch.0),
            ..PartitionResponse::default()
        },
        OffsetAnswer::NotFound | OffsetAnswer::NotAvailable | OffsetAnswer::Refused(_) => failed(code),
    }
}

fn view_epoch(answer: &OffsetAnswer) -> Option<LeaderEpoch> {
    match answer {
        OffsetAnswer::At { leader_epoch, .. } => *leader_epoch,
        OffsetAnswer::NotFound | OffsetAnswer::NotAvailable | OffsetAnswer::Refused(_) => None,
    }
}
