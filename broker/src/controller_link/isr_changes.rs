//! Sends ISR changes to the active controller: one request at a time, all that wait in one batch (Kafka semantics 2.5).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, PartitionEpoch, TopicPartition};
use minikafka_node::FaultKind;
use minikafka_proto::cluster::{AlterPartitionItem, AlterPartitionRequest, AlterPartitionResult, IsrMember};
use minikafka_replication::{IsrAnswer, IsrProposal};
use tokio::time::{Instant, sleep};

use super::controllers::{Client, Controllers, with_deadline};
use super::heartbeats::{BrokerEpochCell, refusal};
use crate::service::Service;

/// Changes in one request.
const BATCH: usize = 1000;
/// Before changes are sent again after an error of the whole request.
const RETRY: Duration = Duration::from_millis(50);
/// How long one request may look for the active controller before its changes are offered anew.
const CALL: Duration = Duration::from_secs(5);

/// Sends proposals for as long as the broker lives.
pub(crate) async fn send_all(
    service: Arc<Service>,
    controllers: Arc<Controllers>,
    epoch: Arc<BrokerEpochCell>,
) {
    loop {
        if service.proposals.is_empty() {
            service.proposals.news().await;
            continue;
        }
        let broker_epoch = epoch.registered().await;
        let batch = service.proposals.take(BATCH);
        if batch.is_empty() {
            continue;
        }
        let request = AlterPartitionRequest {
            caller: controllers.caller(),
            broker_epoch: broker_epoch.0,
            items: batch.iter().map(item).collect(),
        };
        let call =
            async |mut client: Client| client.alter_partition(with_deadline(request.clone(), CALL)).await;
        let answer = controllers.ask(Some(FaultKind::Isr), Instant::now() + CALL, call).await;
        let results = match answer {
            Ok(answer) if refusal(answer.status.as_ref()).is_none() => answer.results,
            Ok(_) | Err(_) => Vec::new(),
        };
        let retry = answer_all(&service, batch, &results);
        if retry {
            sleep(RETRY).await;
        }
    }
}

fn item((at, proposal): (&TopicPartition, &IsrProposal)) -> AlterPartitionItem {
    AlterPartitionItem {
        topic_id: at.topic.0.to_bytes().to_vec().into(),
        partition: at.partition.0,
        leader_epoch: proposal.leader_epoch.0,
        partition_epoch: proposal.partition_epoch.0,
        new_isr: proposal
            .isr
            .iter()
            .map(|(broker, epoch)| IsrMember {
                broker_id: broker.0,
                broker_epoch: epoch.map(|epoch| epoch.0),
            })
            .collect(),
        recovering: false,
    }
}

/// Brings each answer to its replica; a change that no answer mentions is to be sent again. True if there is one.
fn answer_all(
    service: &Service,
    batch: BTreeMap<TopicPartition, IsrProposal>,
    results: &[AlterPartitionResult],
) -> bool {
    let mut retry = false;
    let now = service.clock.mono();
    for (at, proposal) in batch {
        let topic = at.topic.0.to_bytes();
        let result = results.iter().find(|it| it.partition == at.partition.0 && *it.topic_id == topic);
        let answer = result.map_or(IsrAnswer::TryAgain, answer_of);
        retry |= answer == IsrAnswer::TryAgain;
        if let Some(cell) = service.replicas.get(at) {
            service.with_replica(&cell, |replica, out| replica.isr_answered(now, &proposal, answer, out));
        }
    }
    retry
}

/// What a leader makes of the controller's answer (Kafka semantics 2.7).
fn answer_of(result: &AlterPartitionResult) -> IsrAnswer {
    let code = i16::try_from(result.error_code).ok().and_then(ErrorCode::from_code);
    match code {
        Some(ErrorCode::None) => IsrAnswer::Accepted {
            isr: result.isr.iter().map(|id| BrokerId(*id)).collect(),
            leader_epoch: LeaderEpoch(result.leader_epoch),
            partition_epoch: PartitionEpoch(result.partition_epoch),
        },
        Some(ErrorCode::IneligibleReplica | ErrorCode::OperationNotAttempted) => IsrAnswer::NotApplied,
        Some(
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::UnknownTopicId
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::InvalidUpdateVersion
            | ErrorCode::InvalidRequest
            | ErrorCode::NewLeaderElected,
        ) => IsrAnswer::AwaitMetadata,
        _ => IsrAnswer::TryAgain,
    }
}
