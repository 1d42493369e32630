//! What the answer to a fetch means for each partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, Offset, PartitionIndex, ProducerId, TopicId};
use minikafka_wire::fetch::{FetchResponse, PartitionResponse};
use tokio::time::Instant;

use super::Handed;
use super::fetcher::{Fetcher, Wanted};
use super::positions::{Place, Position};
use super::walk::{Aborted, Fetched};
use crate::error::{BrokerError, Error, is_retriable, refreshes_metadata};
use crate::metadata::{LeaderHint, broker_from_wire, node};

/// One partition of an answer.
#[derive(Debug)]
struct Part {
    error: Option<BrokerError>,
    high_watermark: Option<Offset>,
    last_stable: Option<Offset>,
    log_start: Option<Offset>,
    aborted: Vec<Aborted>,
    near: Option<BrokerId>,
    bytes: Bytes,
}

/// An answer, by partition.
#[derive(Debug)]
pub(super) struct Answered {
    error: Option<BrokerError>,
    parts: BTreeMap<Place, Part>,
    hints: Vec<LeaderHint>,
}

fn offset(number: i64) -> Option<Offset> {
    (number >= 0).then_some(Offset(number))
}

impl Part {
    fn from_wire(answer: PartitionResponse) -> Part {
        let aborted = answer.aborted_transactions.unwrap_or_default();
        let aborted = aborted.into_iter().map(|transaction| Aborted {
            producer: ProducerId(transaction.producer_id),
            first: Offset(transaction.first_offset),
        });
        Part {
            error: BrokerError::from_wire(answer.error_code, None),
            high_watermark: offset(answer.high_watermark),
            last_stable: offset(answer.last_stable_offset),
            log_start: offset(answer.log_start_offset),
            aborted: aborted.collect(),
            near: node(answer.preferred_read_replica),
            bytes: answer.records.into_bytes(),
        }
    }
}

impl Answered {
    pub(super) fn from_wire(answer: FetchResponse, wanted: &[Wanted]) -> Answered {
        let brokers: Vec<_> = answer
            .node_endpoints
            .iter()
            .filter_map(|node| broker_from_wire(node.node_id, &node.host, node.port, node.rack.as_deref()))
            .collect();
        let (mut parts, mut hints) = (BTreeMap::new(), Vec::new());
        for topic in answer.responses {
            let by_id = wanted.iter().find(|wanted| wanted.topic_id == Some(TopicId(topic.topic_id)));
            let name: Arc<str> =
                by_id.map_or_else(|| topic.topic.as_str().into(), |wanted| wanted.place.0.clone());
            for partition in topic.partitions {
                let index = PartitionIndex(partition.partition_index);
                let current = &partition.current_leader;
                if let Some(leader) = node(current.leader_id)
                    && current.leader_epoch >= 0
                {
                    hints.push(LeaderHint {
                        topic: name.to_string(),
                        partition: index,
                        leader,
                        epoch: LeaderEpoch(current.leader_epoch),
                        broker: brokers.iter().find(|known| known.id == leader).cloned(),
                    });
                }
                parts.insert((name.clone(), index), Part::from_wire(partition));
            }
        }
        Answered { error: BrokerError::from_wire(answer.error_code, None), parts, hints }
    }
}

impl Fetcher {
    /// Takes the end of a fetch; what the application is handed.
    pub(super) fn fetched(
        &mut self,
        broker: BrokerId,
        wanted: Vec<Wanted>,
        answer: Result<Answered, Error>,
    ) -> Vec<Handed> {
        let now = Instant::now();
        let pause = now + self.backoff.pause(0);
        let positions = self.positions.clone();
        let mut table = positions.table();
        let mut answered = match answer {
            Ok(Answered { error: None, parts, hints }) => {
                self.shared.keeper.hint(&hints);
                parts
            }
            other => {
                let error = match other {
                    Ok(Answered { error: Some(error), .. }) => {
                        Error::broker(format!("fetching from {broker}"), error)
                    }
                    Ok(_) => return Vec::new(),
                    Err(error) => error,
                };
                tracing::debug!("{error}");
                for wanted in &wanted {
                    if let Some(position) = table.current(&wanted.place, wanted.generation) {
                        position.busy = false;
                        position.near = None;
                        position.not_before = Some(pause);
                    }
                }
                self.shared.keeper.refresh();
                let told = !error.is_retriable();
                return if told { vec![Handed::Trouble(error)] } else { Vec::new() };
            }
        };
        let mut handed = Vec::new();
        for wanted in wanted {
            let part = answered.remove(&wanted.place);
            let Some(position) = table.current(&wanted.place, wanted.generation) else { continue };
            position.busy = false;
            match part {
                Some(part) => handed.extend(self.take_part(&wanted, position, part, pause)),
                // It did not fit into the answer.
                None => position.not_before = Some(pause),
            }
        }
        handed
    }

    fn take_part(
        &self,
        wanted: &Wanted,
        position: &mut Position,
        part: Part,
        pause: Instant,
    ) -> Option<Handed> {
        let Part { error, high_watermark, last_stable, log_start, aborted, near, bytes } = part;
        if let Some(error) = error {
            return self.take_error(wanted, position, error, log_start, pause);
        }
        let config = &self.shared.config;
        let committed = config.isolation_level == crate::config::IsolationLevel::ReadCommitted;
        position.high_watermark = high_watermark;
        position.end = if committed { last_stable } else { high_watermark };
        position.log_start = log_start;
        if let Some(near) = near {
            position.near = Some((near, Instant::now() + config.metadata_max_age));
        }
        let aborted = if committed { aborted } else { Vec::new() };
        let place = wanted.place.clone();
        match Fetched::new(place, position.generation, bytes, wanted.at, aborted, config.check_crcs) {
            Ok(Some((fetched, reach))) => {
                position.fetch_at = reach.next;
                position.fetch_epoch = reach.epoch;
                position.buffered += 1;
                Some(Handed::Records(Box::new(fetched)))
            }
            Ok(None) => None,
            Err(error) => {
                position.not_before = Some(pause);
                Some(Handed::Trouble(error))
            }
        }
    }

    fn take_error(
        &self,
        wanted: &Wanted,
        position: &mut Position,
        error: BrokerError,
        log_start: Option<Offset>,
        pause: Instant,
    ) -> Option<Handed> {
        position.near = None;
        position.not_before = Some(pause);
        let (topic, partition) = (wanted.place.0.to_string(), wanted.place.1.0);
        if error.code == ErrorCode::OffsetOutOfRange {
            return match self.reset() {
                Some(start) => {
                    tracing::info!(
                        "{topic}-{partition}: offset {} is out of range, going on at {start:?}",
                        wanted.at
                    );
                    position.start = Some(start);
                    None
                }
                None => {
                    // It stands still until the application says where to go.
                    position.paused = true;
                    Some(Handed::Trouble(Error::OffsetOutOfRange {
                        topic,
                        partition,
                        offset: wanted.at.0,
                        log_start: log_start.map(|offset| offset.0),
                    }))
                }
            };
        }
        if refreshes_metadata(error.code) || error.code == ErrorCode::UnknownLeaderEpoch {
            self.shared.keeper.refresh();
        }
        if is_retriable(error.code) {
            tracing::debug!("{topic}-{partition}: {error}");
            return None;
        }
        Some(Handed::Trouble(Error::broker(format!("partition {topic}-{partition}"), error)))
    }
}
