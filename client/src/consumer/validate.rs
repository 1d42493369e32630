//! Finds positions (where to start, where to go on) and checks them against the log of a new leader (KIP-320, Kafka semantics 4.8).

use minikafka_model::{BrokerId, LeaderEpoch, Offset};
use tokio::time::Instant;

use super::Handed;
use super::fetcher::Fetcher;
use super::positions::{Place, Position, Start};
use crate::admin::{EpochEnd, FoundOffset, OffsetSpec, ask_epoch_ends, ask_offsets};
use crate::client::Shared;
use crate::connection::Lane;
use crate::error::Error;

/// Whether a position was not yet checked against this leader epoch. Nothing is to check before a record was read, or where the broker
/// tells no epochs.
pub(super) fn is_due(position: &Position, leader_epoch: Option<LeaderEpoch>) -> bool {
    position.fetch_epoch.is_some()
        && leader_epoch.is_some()
        && leader_epoch > position.fetch_epoch
        && leader_epoch > position.validated
}

/// One partition to look up or to check.
#[derive(Debug)]
pub(super) struct Job {
    place: Place,
    generation: u64,
    leader: BrokerId,
    leader_epoch: Option<LeaderEpoch>,
    start: Option<Start>,
    last_epoch: LeaderEpoch,
}

/// What it came to.
#[derive(Debug)]
pub(super) struct Checked {
    place: Place,
    generation: u64,
    leader_epoch: Option<LeaderEpoch>,
    found: Result<Found, Error>,
}

#[derive(Debug)]
enum Found {
    Start(FoundOffset),
    End(EpochEnd),
}

impl Job {
    pub(super) fn new(
        place: Place,
        position: &Position,
        leader: BrokerId,
        leader_epoch: Option<LeaderEpoch>,
    ) -> Job {
        Job {
            place,
            generation: position.generation,
            leader,
            leader_epoch,
            start: position.start,
            last_epoch: position.fetch_epoch.unwrap_or(LeaderEpoch::ZERO),
        }
    }

    pub(super) async fn run(self, shared: &Shared) -> Checked {
        let found = self.ask(shared).await;
        let Job { place, generation, leader_epoch, .. } = self;
        Checked { place, generation, leader_epoch, found }
    }

    async fn ask(&self, shared: &Shared) -> Result<Found, Error> {
        let config = &shared.config;
        let connection = shared.broker(self.leader, Lane::Control).await?;
        let place = (self.place.0.to_string(), self.place.1);
        let nothing = || Error::Protocol {
            address: connection.address().clone(),
            reason: format!("its answer says nothing about {}-{}", place.0, place.1),
        };
        let spec = match self.start {
            Some(Start::Earliest) => OffsetSpec::Earliest,
            Some(Start::Latest) => OffsetSpec::Latest,
            Some(Start::Time(time)) => OffsetSpec::Time(time),
            Some(Start::At(offset)) => {
                let found = FoundOffset { offset: Some(offset), timestamp: None, leader_epoch: None };
                return Ok(Found::Start(found));
            }
            None => {
                let asked = [(place.clone(), self.leader_epoch, self.last_epoch)];
                let answers = ask_epoch_ends(&connection, &asked, config.request_timeout).await?;
                return answers.into_iter().next().ok_or_else(nothing)?.1.map(Found::End);
            }
        };
        let asked = [(place.clone(), spec, self.leader_epoch)];
        let answers =
            ask_offsets(&connection, &asked, config.isolation_level, config.request_timeout).await?;
        answers.into_iter().next().ok_or_else(nothing)?.1.map(Found::Start)
    }
}

impl Fetcher {
    /// Takes the end of a lookup or a check; what the application is handed.
    pub(super) fn checked(&mut self, checked: Checked) -> Vec<Handed> {
        let Checked { place, generation, leader_epoch, found } = checked;
        let positions = self.positions.clone();
        let mut table = positions.table();
        let anew = table.next_generation();
        let Some(position) = table.current(&place, generation) else { return Vec::new() };
        position.busy = false;
        match found {
            Ok(Found::Start(found)) => {
                match found.offset {
                    Some(offset) => position.stand_at(offset, None),
                    // No record is as late as was asked: at the end.
                    None => position.start = Some(Start::Latest),
                }
                Vec::new()
            }
            Ok(Found::End(end)) => {
                position.validated = leader_epoch;
                truncated(position, end).map_or_else(Vec::new, |to| {
                    // What is buffered belongs to a log that is no more.
                    position.generation = anew;
                    position.buffered = 0;
                    let read = position.next;
                    let back = read.map_or(to, |next| next.min(to));
                    position.stand_at(back, end.epoch);
                    position.validated = leader_epoch;
                    let error = Error::LogTruncation {
                        topic: place.0.to_string(),
                        partition: place.1.0,
                        offset: read.unwrap_or(to).0,
                        epoch: end.epoch.map_or(-1, |epoch| epoch.0),
                        end_offset: to.0,
                    };
                    // The application hears of it if it has read what is gone.
                    if read > Some(to) { vec![Handed::Trouble(error)] } else { Vec::new() }
                })
            }
            Err(error) => {
                tracing::debug!("{}-{}: {error}", place.0, place.1);
                position.not_before = Some(Instant::now() + self.backoff.pause(0));
                if error.refreshes_metadata() {
                    self.shared.keeper.refresh();
                }
                let told = !error.is_retriable();
                if told { vec![Handed::Trouble(error)] } else { Vec::new() }
            }
        }
    }
}

/// Where the leader's log leaves what was fetched, if it does.
fn truncated(position: &Position, end: EpochEnd) -> Option<Offset> {
    let (epoch, offset) = (end.epoch?, end.end_offset?);
    (Some(epoch) < position.fetch_epoch || offset < position.fetch_at).then_some(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(fetch_at: i64, epoch: Option<i32>) -> Position {
        let mut position = Position::new(1, Start::At(Offset(0)));
        position.stand_at(Offset(fetch_at), epoch.map(LeaderEpoch));
        position
    }

    fn end(epoch: i32, offset: i64) -> EpochEnd {
        EpochEnd { epoch: Some(LeaderEpoch(epoch)), end_offset: Some(Offset(offset)) }
    }

    #[test]
    fn a_position_is_checked_once_per_leader_epoch() {
        let mut position = position(10, Some(2));
        assert!(!is_due(&position, Some(LeaderEpoch(2))), "the same leader");
        assert!(!is_due(&position, None), "a broker without epochs");
        assert!(is_due(&position, Some(LeaderEpoch(3))));
        position.validated = Some(LeaderEpoch(3));
        assert!(!is_due(&position, Some(LeaderEpoch(3))));
        assert!(is_due(&position, Some(LeaderEpoch(4))));
    }

    #[test]
    fn a_log_that_ends_earlier_was_truncated() {
        assert_eq!(truncated(&position(10, Some(2)), end(2, 12)), None);
        assert_eq!(truncated(&position(10, Some(2)), end(2, 10)), None, "exactly what was read");
        assert_eq!(truncated(&position(10, Some(2)), end(2, 8)), Some(Offset(8)));
        assert_eq!(truncated(&position(10, Some(2)), end(1, 10)), Some(Offset(10)), "the epoch is gone");
    }
}
