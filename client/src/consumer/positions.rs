//! Where a consumer stands in each of its partitions. Shared by the application's side and the fetching task; every change that makes
//! what is under way worthless (a seek, a truncation, a new assignment) raises the partition's generation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minikafka_model::{BrokerId, LeaderEpoch, Offset, PartitionIndex, WallMs};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Fetched answers of one partition that wait to be read; while there are this many it is not fetched.
pub(super) const MAX_BUFFERED: usize = 2;

/// Where reading begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the log start offset.
    Earliest,
    /// At the end of what is committed.
    Latest,
    /// At this offset.
    At(Offset),
    /// At the first record of this time or later.
    Time(WallMs),
}

/// A partition by name.
pub(super) type Place = (Arc<str>, PartitionIndex);

/// One partition.
#[derive(Debug)]
pub(super) struct Position {
    pub(super) generation: u64,
    /// Offset of the next record that the application gets, once known.
    pub(super) next: Option<Offset>,
    /// Epoch of the last record that the application got.
    pub(super) last_epoch: Option<LeaderEpoch>,
    /// Still to be looked up.
    pub(super) start: Option<Start>,
    /// Offset to fetch next; before it lies what is buffered.
    pub(super) fetch_at: Offset,
    /// Epoch of the last batch before `fetch_at`.
    pub(super) fetch_epoch: Option<LeaderEpoch>,
    /// Newest leader epoch against which `fetch_at` was found good.
    pub(super) validated: Option<LeaderEpoch>,
    pub(super) paused: bool,
    /// A request about this partition is under way.
    pub(super) busy: bool,
    pub(super) buffered: usize,
    /// Nothing is asked before.
    pub(super) not_before: Option<Instant>,
    /// Facts of the last answer.
    pub(super) high_watermark: Option<Offset>,
    pub(super) end: Option<Offset>,
    pub(super) log_start: Option<Offset>,
    /// A near replica that the leader named, and until when to read from it.
    pub(super) near: Option<(BrokerId, Instant)>,
}

impl Position {
    pub(super) fn new(generation: u64, start: Start) -> Position {
        let mut position = Position {
            generation,
            next: None,
            last_epoch: None,
            start: Some(start),
            fetch_at: Offset::ZERO,
            fetch_epoch: None,
            validated: None,
            paused: false,
            busy: false,
            buffered: 0,
            not_before: None,
            high_watermark: None,
            end: None,
            log_start: None,
            near: None,
        };
        if let Start::At(offset) = start {
            position.stand_at(offset, None);
        }
        position
    }

    /// Stands at an offset; what was fetched before is worthless.
    pub(super) fn stand_at(&mut self, offset: Offset, epoch: Option<LeaderEpoch>) {
        self.start = None;
        self.next = Some(offset);
        self.last_epoch = epoch;
        self.fetch_at = offset;
        self.fetch_epoch = epoch;
        self.end = None;
    }

    /// Everything that the last answer said is there was read.
    fn is_at_end(&self) -> bool {
        match (self.next, self.end) {
            (Some(next), Some(end)) => self.buffered == 0 && next >= end,
            _ => false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) partitions: BTreeMap<Place, Position>,
    generation: u64,
}

impl Table {
    /// The partition, if it still is of this generation.
    pub(super) fn current(&mut self, place: &Place, generation: u64) -> Option<&mut Position> {
        self.partitions.get_mut(place).filter(|position| position.generation == generation)
    }

    pub(super) fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }
}

/// A handle on a consumer's positions. Cheap to clone; it may be used beside the stream of records.
#[derive(Debug, Clone, Default)]
pub struct Positions {
    pub(super) shared: Arc<SharedTable>,
}

#[derive(Debug, Default)]
pub(super) struct SharedTable {
    table: Mutex<Table>,
    /// The fetching task has something to do.
    pub(super) wake: Notify,
    /// Something was read, or an answer came.
    pub(super) progress: Notify,
}

impl Positions {
    pub(super) fn table(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, topic: &str, partition: i32, change: impl FnOnce(&mut Position) -> T) -> Option<T> {
        let place = (Arc::from(topic), PartitionIndex(partition));
        let changed = self.table().partitions.get_mut(&place).map(change);
        self.shared.wake.notify_one();
        changed
    }

    /// Adds a partition, or moves one that is there already.
    pub fn assign(&self, topic: &str, partition: i32, start: Start) {
        let mut table = self.table();
        let generation = table.next_generation();
        let place = (Arc::from(topic), PartitionIndex(partition));
        let paused = table.partitions.get(&place).is_some_and(|before| before.paused);
        let position = Position { paused, ..Position::new(generation, start) };
        table.partitions.insert(place, position);
        drop(table);
        self.shared.wake.notify_one();
    }

    /// Takes a partition away. False if it was not assigned.
    pub fn unassign(&self, topic: &str, partition: i32) -> bool {
        let place = (Arc::from(topic), PartitionIndex(partition));
        self.table().partitions.remove(&place).is_some()
    }

    /// Goes on at another place. False if the partition is not assigned.
    pub fn seek(&self, topic: &str, partition: i32, to: Start) -> bool {
        let place = (Arc::from(topic), PartitionIndex(partition));
        let assigned = self.table().partitions.contains_key(&place);
        if assigned {
            self.assign(topic, partition, to);
        }
        assigned
    }

    /// Stops fetching a partition; what is buffered is still given. False if it is not assigned.
    pub fn pause(&self, topic: &str, partition: i32) -> bool {
        self.change(topic, partition, |position| position.paused = true).is_some()
    }

    /// Fetches a paused partition again. False if it is not assigned.
    pub fn resume(&self, topic: &str, partition: i32) -> bool {
        self.change(topic, partition, |position| position.paused = false).is_some()
    }

    /// Offset of the next record of a partition; none before it is known.
    pub fn position(&self, topic: &str, partition: i32) -> Option<Offset> {
        let place = (Arc::from(topic), PartitionIndex(partition));
        self.table().partitions.get(&place)?.next
    }

    /// Records between the position and the end of what this consumer may see, by the last answer; none before there was one.
    pub fn lag(&self, topic: &str, partition: i32) -> Option<u64> {
        let place = (Arc::from(topic), PartitionIndex(partition));
        let table = self.table();
        let position = table.partitions.get(&place)?;
        let lag = position.end?.since(position.next?);
        Some(u64::try_from(lag).unwrap_or(0))
    }

    /// The assigned partitions.
    pub fn assigned(&self) -> Vec<(String, i32)> {
        self.table().partitions.keys().map(|(topic, partition)| (topic.to_string(), partition.0)).collect()
    }

    /// Completes once each of these partitions was read up to its offset.
    pub async fn reached(&self, topic: &str, ends: &BTreeMap<i32, Offset>) {
        loop {
            let progress = self.shared.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            let has = |(partition, end): (&i32, &Offset)| {
                self.position(topic, *partition).is_some_and(|position| position >= *end)
            };
            if ends.iter().all(has) {
                return;
            }
            progress.await;
        }
    }

    /// Completes once every assigned partition was read to its end, as the last answer about it told it.
    pub async fn caught_up(&self) {
        loop {
            let progress = self.shared.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            if self.table().partitions.values().all(Position::is_at_end) {
                return;
            }
            progress.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seek_makes_what_is_under_way_worthless() {
        let positions = Positions::default();
        positions.assign("t", 0, Start::At(Offset(5)));
        let place: Place = (Arc::from("t"), PartitionIndex(0));
        let before = positions.table().partitions[&place].generation;
        assert!(positions.seek("t", 0, Start::At(Offset(2))));
        assert_eq!(positions.position("t", 0), Some(Offset(2)));
        assert!(positions.table().current(&place, before).is_none());
        assert!(!positions.seek("t", 1, Start::Earliest), "not assigned");
    }

    #[test]
    fn lag_is_known_once_an_answer_came() {
        let positions = Positions::default();
        positions.assign("t", 0, Start::At(Offset(5)));
        assert_eq!(positions.lag("t", 0), None);
        let place: Place = (Arc::from("t"), PartitionIndex(0));
        positions.table().partitions.get_mut(&place).expect("assigned").end = Some(Offset(9));
        assert_eq!(positions.lag("t", 0), Some(4));
    }
}
