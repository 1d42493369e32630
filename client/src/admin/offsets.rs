//! Offsets by place or time, and where leader epochs end: asked of each partition's leader.

use std::collections::BTreeMap;
use std::time::Duration;

use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, Offset, PartitionIndex, WallMs};
use minikafka_wire::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use minikafka_wire::offset_for_leader_epoch::{EpochPartition, EpochTopic, OffsetForLeaderEpochRequest};
use tokio::time::Instant;

use super::Admin;
use crate::backoff::Backoff;
use crate::client::Shared;
use crate::config::IsolationLevel;
use crate::connection::{Connection, Lane};
use crate::error::{BrokerError, Error};

/// Which offset is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OffsetSpec {
    /// The log start offset.
    Earliest,
    /// The end of what a consumer of this isolation level sees.
    Latest,
    /// The record with the greatest timestamp (from ListOffsets version 7).
    MaxTimestamp,
    /// The first record of this time or later.
    Time(WallMs),
}

impl OffsetSpec {
    const fn code(self) -> i64 {
        match self {
            OffsetSpec::Latest => -1,
            OffsetSpec::Earliest => -2,
            OffsetSpec::MaxTimestamp => -3,
            OffsetSpec::Time(WallMs(millis)) => millis,
        }
    }
}

/// An offset that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundOffset {
    /// The offset; none if no record is as late as was asked.
    pub offset: Option<Offset>,
    /// The record's time, where one was looked for.
    pub timestamp: Option<WallMs>,
    /// Epoch of the leader that appended the record.
    pub leader_epoch: Option<LeaderEpoch>,
}

/// The end of a leader epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEnd {
    /// The newest epoch not after the one asked for; none if the leader knows none.
    pub epoch: Option<LeaderEpoch>,
    /// Its end, exclusive.
    pub end_offset: Option<Offset>,
}

/// A partition by name.
pub(crate) type Place = (String, PartitionIndex);

fn tell<T>(place: &Place, error_code: i16, value: T) -> Result<T, Error> {
    let (topic, partition) = place;
    BrokerError::check(error_code, None)
        .map(|()| value)
        .map_err(|error| Error::broker(format!("partition {topic}-{partition}"), error))
}

/// One ListOffsets request to one broker, with what each partition's current leader epoch is believed to be.
pub(crate) async fn ask_offsets(
    connection: &Connection,
    asked: &[(Place, OffsetSpec, Option<LeaderEpoch>)],
    isolation: IsolationLevel,
    wait: Duration,
) -> Result<Vec<(Place, Result<FoundOffset, Error>)>, Error> {
    let mut topics: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for ((topic, partition), spec, epoch) in asked {
        topics.entry(topic).or_default().push(ListOffsetsPartition {
            partition_index: partition.0,
            current_leader_epoch: epoch.map_or(-1, |epoch| epoch.0),
            timestamp: spec.code(),
        });
    }
    let topics = topics
        .into_iter()
        .map(|(name, partitions)| ListOffsetsTopic { name: name.to_owned(), partitions })
        .collect();
    let request = ListOffsetsRequest {
        replica_id: -1,
        isolation_level: isolation.code(),
        topics,
        timeout_ms: i32::try_from(wait.as_millis()).unwrap_or(i32::MAX),
    };
    let answer = connection.call(&request, wait).await?;
    let mut found = Vec::new();
    for topic in answer.topics {
        for partition in topic.partitions {
            let place = (topic.name.clone(), PartitionIndex(partition.partition_index));
            let value = FoundOffset {
                offset: (partition.offset >= 0).then_some(Offset(partition.offset)),
                timestamp: (partition.timestamp >= 0).then_some(WallMs(partition.timestamp)),
                leader_epoch: (partition.leader_epoch >= 0).then_some(LeaderEpoch(partition.leader_epoch)),
            };
            let result = tell(&place, partition.error_code, value);
            found.push((place, result));
        }
    }
    Ok(found)
}

/// One OffsetForLeaderEpoch request to one broker: per partition the current leader epoch and the epoch whose end is wanted.
pub(crate) async fn ask_epoch_ends(
    connection: &Connection,
    asked: &[(Place, Option<LeaderEpoch>, LeaderEpoch)],
    wait: Duration,
) -> Result<Vec<(Place, Result<EpochEnd, Error>)>, Error> {
    let mut topics: BTreeMap<&str, Vec<EpochPartition>> = BTreeMap::new();
    for ((topic, partition), current, epoch) in asked {
        topics.entry(topic).or_default().push(EpochPartition {
            partition: partition.0,
            current_leader_epoch: current.map_or(-1, |epoch| epoch.0),
            leader_epoch: epoch.0,
        });
    }
    let topics = topics
        .into_iter()
        .map(|(topic, partitions)| EpochTopic { topic: topic.to_owned(), partitions })
        .collect();
    let request = OffsetForLeaderEpochRequest { replica_id: -1, topics };
    let answer = connection.call(&request, wait).await?;
    let mut found = Vec::new();
    for topic in answer.topics {
        for partition in topic.partitions {
            let place = (topic.topic.clone(), PartitionIndex(partition.partition));
            let value = EpochEnd {
                epoch: (partition.leader_epoch >= 0).then_some(LeaderEpoch(partition.leader_epoch)),
                end_offset: (partition.end_offset >= 0).then_some(Offset(partition.end_offset)),
            };
            let result = tell(&place, partition.error_code, value);
            found.push((place, result));
        }
    }
    Ok(found)
}

impl Admin {
    /// Looks offsets up, each at its partition's leader; failures that may pass are tried again for at most `default.api.timeout.ms`.
    /// What this client's `isolation.level` hides is not counted.
    pub async fn list_offsets(
        &self,
        asked: &[(String, i32, OffsetSpec)],
    ) -> Vec<((String, i32), Result<FoundOffset, Error>)> {
        let limit = self.shared.config.default_api_timeout;
        let deadline = Instant::now() + limit;
        let lookups = asked.iter().map(|(topic, partition, spec)| async move {
            let place = (topic.clone(), PartitionIndex(*partition));
            let result = find_offset(&self.shared, &place, *spec, deadline, limit).await;
            ((topic.clone(), *partition), result)
        });
        futures::future::join_all(lookups).await
    }

    /// Where a leader epoch of a partition ended, says its leader (Kafka semantics 4.3).
    ///
    /// # Errors
    /// No leader, no answer, or the leader's refusal.
    pub async fn epoch_end(
        &self,
        topic: &str,
        partition: i32,
        epoch: LeaderEpoch,
    ) -> Result<EpochEnd, Error> {
        let place = (topic.to_owned(), PartitionIndex(partition));
        let limit = self.shared.config.default_api_timeout;
        let (leader, _) = self.shared.leader(topic, place.1, limit).await?;
        let connection = self.shared.broker(leader.id, Lane::Control).await?;
        let asked = [(place.clone(), None, epoch)];
        let answers = ask_epoch_ends(&connection, &asked, self.shared.config.request_timeout).await?;
        answers.into_iter().next().map_or_else(|| Err(left_out(&place, leader.id)), |(_, result)| result)
    }
}

async fn find_offset(
    shared: &Shared,
    place: &Place,
    spec: OffsetSpec,
    deadline: Instant,
    limit: Duration,
) -> Result<FoundOffset, Error> {
    let config = &shared.config;
    let backoff = Backoff::new(config.retry_backoff, config.retry_backoff_max);
    let mut last: Option<Error> = None;
    for failures in 0.. {
        let one = find_offset_once(shared, place, spec, deadline);
        match tokio::time::timeout_at(deadline, one).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) if !error.is_retriable() => return Err(error),
            Ok(Err(error)) => {
                if error.refreshes_metadata() {
                    shared.keeper.refresh();
                }
                last = Some(error);
            }
            Err(_) => break,
        }
        let pause = backoff.pause(failures);
        if Instant::now() + pause >= deadline {
            break;
        }
        tokio::time::sleep(pause).await;
    }
    let what = format!("finding an offset of {}-{}", place.0, place.1);
    Err(match last {
        Some(error @ Error::TimedOut { .. }) => error,
        last => Error::TimedOut { what, after: limit, last: last.map(Box::new) },
    })
}

async fn find_offset_once(
    shared: &Shared,
    place: &Place,
    spec: OffsetSpec,
    deadline: Instant,
) -> Result<FoundOffset, Error> {
    let left = deadline.saturating_duration_since(Instant::now());
    let (leader, partition) = shared.leader(&place.0, place.1, left).await?;
    let connection = shared.broker(leader.id, Lane::Control).await?;
    let asked = [(place.clone(), spec, partition.leader_epoch)];
    let wait = shared.config.request_timeout.min(left);
    let answers = ask_offsets(&connection, &asked, shared.config.isolation_level, wait).await?;
    answers.into_iter().next().map_or_else(|| Err(left_out(place, leader.id)), |(_, result)| result)
}

fn left_out(place: &Place, broker: BrokerId) -> Error {
    let message = Some(format!("broker {broker} answered, but not about this partition"));
    let error = BrokerError::from_wire(ErrorCode::UnknownServerError.code(), message);
    Error::broker(format!("partition {}-{}", place.0, place.1), error.expect("not zero"))
}
