//! What a partition knows of the idempotent producers that wrote to it (Kafka semantics 9).

mod snapshot;

pub use snapshot::{SNAPSHOT_VERSION, SnapshotEntry, SnapshotError, snapshot_from_bytes, snapshot_to_bytes};

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use minikafka_model::batch::{BatchHeader, Records};
use minikafka_model::{ErrorCode, Offset, ProducerEpoch, ProducerId, Sequence, WallMs};

/// How many batches of a producer are remembered: as many as a client may have in flight.
pub const WINDOW: usize = 5;

/// One batch of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerBatch {
    /// Sequence of its last record.
    pub last_sequence: Sequence,
    /// Offset of its last record.
    pub last_offset: Offset,
    /// Last less first offset.
    pub offset_delta: i32,
    /// Its largest timestamp.
    pub timestamp: i64,
}

impl ProducerBatch {
    /// Sequence of its first record, wrapped as Kafka wraps it.
    pub fn first_sequence(&self) -> Sequence {
        Sequence(self.last_sequence.0.wrapping_sub(self.offset_delta) & i32::MAX)
    }

    /// Offset of its first record.
    pub fn base_offset(&self) -> Offset {
        Offset(self.last_offset.0 - i64::from(self.offset_delta))
    }
}

/// One producer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerEntry {
    /// Its epoch.
    pub epoch: ProducerEpoch,
    /// Its newest batches of this epoch, oldest first, at most [`WINDOW`].
    pub batches: VecDeque<ProducerBatch>,
    /// Largest timestamp of its newest batch or marker: what expiry goes by.
    pub last_timestamp: i64,
    /// Epoch of the transaction coordinator that wrote its last marker.
    pub coordinator_epoch: Option<i32>,
    /// First offset of its open transaction.
    pub transaction_start: Option<Offset>,
}

impl ProducerEntry {
    fn new(epoch: ProducerEpoch) -> ProducerEntry {
        ProducerEntry {
            epoch,
            batches: VecDeque::with_capacity(WINDOW),
            last_timestamp: -1,
            coordinator_epoch: None,
            transaction_start: None,
        }
    }

    fn raise_epoch(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
    }

    /// Sequence of its newest record.
    pub fn last_sequence(&self) -> Option<Sequence> {
        self.batches.back().map(|batch| batch.last_sequence)
    }
}

/// What to do with a batch of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProducerVerdict {
    /// Append it.
    Accept,
    /// It was appended before: answer what was answered then, write nothing.
    Duplicate(ProducerBatch),
    /// Refuse it.
    Refuse(ProducerRefusal),
}

/// Why a batch of a producer is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProducerRefusal {
    /// A newer epoch of the producer has written.
    #[error("producer {producer} writes with epoch {epoch}, but epoch {current} has written already")]
    StaleEpoch {
        /// The producer.
        producer: ProducerId,
        /// Of the batch.
        epoch: ProducerEpoch,
        /// The newest known.
        current: ProducerEpoch,
    },
    /// The batch does not follow the last one.
    #[error("producer {producer} with epoch {epoch}: sequence {first} came, {} was expected", expected.0)]
    OutOfOrder {
        /// The producer.
        producer: ProducerId,
        /// Of the batch.
        epoch: ProducerEpoch,
        /// Its first sequence.
        first: Sequence,
        /// The sequence that would have followed.
        expected: Sequence,
    },
}

impl ProducerRefusal {
    /// Kafka's code: 47 or 45.
    pub const fn code(&self) -> ErrorCode {
        match self {
            ProducerRefusal::StaleEpoch { .. } => ErrorCode::InvalidProducerEpoch,
            ProducerRefusal::OutOfOrder { .. } => ErrorCode::OutOfOrderSequenceNumber,
        }
    }
}

/// All producers of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerStates {
    entries: BTreeMap<ProducerId, ProducerEntry>,
}

impl ProducerStates {
    /// By id.
    pub fn entries(&self) -> &BTreeMap<ProducerId, ProducerEntry> {
        &self.entries
    }

    /// Judges a batch that a client sent (Kafka semantics 9.3). Batches without a producer id and control batches pass.
    pub fn validate(&self, batch: &BatchHeader) -> ProducerVerdict {
        let Some(producer) = batch.producer_id.filter(|_| !batch.is_control()) else {
            return ProducerVerdict::Accept;
        };
        let Some(entry) = self.entries.get(&producer) else { return ProducerVerdict::Accept };
        let (epoch, first, last) = (batch.producer_epoch, batch.base_sequence, batch.last_sequence());
        if epoch == entry.epoch {
            let same =
                |known: &&ProducerBatch| known.first_sequence() == first && known.last_sequence == last;
            if let Some(known) = entry.batches.iter().find(same) {
                return ProducerVerdict::Duplicate(*known);
            }
        }
        if epoch < entry.epoch {
            return ProducerVerdict::Refuse(ProducerRefusal::StaleEpoch {
                producer,
                epoch,
                current: entry.epoch,
            });
        }
        let expected = match entry.last_sequence() {
            Some(last) if epoch == entry.epoch => last.plus(1),
            // A raised epoch begins at 0, unless nothing is known of the old one (epoch -1, only after a foreign snapshot).
            _ if epoch > entry.epoch && entry.epoch.0 < 0 => first,
            _ => Sequence(0),
        };
        if first == expected {
            return ProducerVerdict::Accept;
        }
        ProducerVerdict::Refuse(ProducerRefusal::OutOfOrder { producer, epoch, first, expected })
    }

    /// Remembers a batch that was appended, on leaders and followers alike. `bytes` is the whole batch; only of control batches more
    /// than the header is looked at.
    pub fn appended(&mut self, header: &BatchHeader, bytes: &Bytes) {
        if let Some(producer) = header.producer_id {
            if header.is_control() {
                if let Some(coordinator_epoch) = end_of_transaction(bytes) {
                    self.transaction_ended(producer, header, coordinator_epoch);
                }
            } else {
                self.data_appended(producer, header);
            }
        }
    }

    fn data_appended(&mut self, producer: ProducerId, header: &BatchHeader) {
        let entry = self.entries.entry(producer).or_insert_with(|| ProducerEntry::new(header.producer_epoch));
        entry.raise_epoch(header.producer_epoch);
        if entry.batches.len() == WINDOW {
            entry.batches.pop_front();
        }
        entry.batches.push_back(ProducerBatch {
            last_sequence: header.last_sequence(),
            last_offset: header.last_offset(),
            offset_delta: header.last_offset_delta,
            timestamp: header.max_timestamp,
        });
        entry.last_timestamp = header.max_timestamp;
        if header.is_transactional() {
            entry.transaction_start.get_or_insert(header.base_offset);
        }
    }

    fn transaction_ended(&mut self, producer: ProducerId, header: &BatchHeader, coordinator_epoch: i32) {
        let entry = self.entries.entry(producer).or_insert_with(|| ProducerEntry::new(header.producer_epoch));
        entry.raise_epoch(header.producer_epoch);
        entry.last_timestamp = header.max_timestamp;
        entry.coordinator_epoch = Some(coordinator_epoch);
        entry.transaction_start = None;
    }

    /// Forgets producers that have not written for `after_ms`, by the timestamps of their records as Kafka does; never one with an
    /// open transaction. Returns how many.
    pub fn expire(&mut self, now: WallMs, after_ms: i64) -> usize {
        let before = self.entries.len();
        self.entries.retain(|_, entry| {
            entry.transaction_start.is_some() || now.0.saturating_sub(entry.last_timestamp) < after_ms
        });
        before - self.entries.len()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// What a snapshot keeps: of each producer its newest batch.
    pub fn to_snapshot(&self) -> Vec<SnapshotEntry> {
        let entry = |(producer, entry): (&ProducerId, &ProducerEntry)| SnapshotEntry {
            producer: *producer,
            epoch: entry.epoch,
            last_batch: entry.batches.back().copied(),
            last_timestamp: entry.last_timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            transaction_start: entry.transaction_start,
        };
        self.entries.iter().map(entry).collect()
    }

    /// Takes up a snapshot.
    pub fn from_snapshot(entries: Vec<SnapshotEntry>) -> ProducerStates {
        let entry = |snapshot: SnapshotEntry| {
            let mut entry = ProducerEntry::new(snapshot.epoch);
            entry.batches.extend(snapshot.last_batch);
            entry.last_timestamp = snapshot.last_timestamp;
            entry.coordinator_epoch = snapshot.coordinator_epoch;
            entry.transaction_start = snapshot.transaction_start;
            (snapshot.producer, entry)
        };
        ProducerStates { entries: entries.into_iter().map(entry).collect() }
    }
}

/// The coordinator epoch of an end-of-transaction marker; `None` for any other control batch.
fn end_of_transaction(batch: &Bytes) -> Option<i32> {
    let record = Records::of(batch).ok()?.next()?.ok()?;
    let (key, value) = (record.key?, record.value?);
    let kind = i16::from_be_bytes(key.get(2..4)?.try_into().ok()?);
    let coordinator_epoch = i32::from_be_bytes(value.get(2..6)?.try_into().ok()?);
    matches!(kind, 0 | 1).then_some(coordinator_epoch)
}

#[cfg(test)]
mod tests;
