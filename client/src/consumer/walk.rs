//! From the bytes of an answer to records: batches one by one, only what the isolation level shows, only from the position on.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use minikafka_model::batch::{BatchHeader, Header, Records, split_batches};
use minikafka_model::{LeaderEpoch, Offset, PartitionIndex, ProducerId, WallMs};

use super::positions::Place;
use crate::error::Error;

/// A record that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerRecord {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: PartitionIndex,
    /// The offset.
    pub offset: Offset,
    /// The timestamp, the producer's or the broker's as the topic is configured.
    pub timestamp: WallMs,
    /// Epoch of the leader that appended it.
    pub leader_epoch: Option<LeaderEpoch>,
    /// The key.
    pub key: Option<Bytes>,
    /// The value; none is a tombstone.
    pub value: Option<Bytes>,
    /// Headers in order.
    pub headers: Vec<Header>,
}

/// A transaction that was aborted: its records from this offset on are not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Aborted {
    pub(super) producer: ProducerId,
    pub(super) first: Offset,
}

/// The records of one answer for one partition.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) place: Place,
    pub(super) generation: u64,
    batches: VecDeque<Bytes>,
    from: Offset,
    check_crcs: bool,
    /// In the order of their first offsets; empty for `read_uncommitted`.
    aborted: VecDeque<Aborted>,
    aborting: BTreeSet<ProducerId>,
    current: Option<(Records, BatchHeader)>,
}

/// Where an answer ends: what to fetch next, and the epoch of the last batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    pub(super) next: Offset,
    pub(super) epoch: Option<LeaderEpoch>,
}

/// A step of the walk.
#[derive(Debug)]
pub(super) enum Step {
    /// A record, and the offset behind it.
    Record(ConsumerRecord, Offset),
    /// A batch was walked to its end: the next offset.
    Passed(Offset),
    /// Nothing is left.
    End,
}

impl Fetched {
    /// Cuts the bytes into batches; none if there is not one whole batch.
    pub(super) fn new(
        place: Place,
        generation: u64,
        bytes: Bytes,
        from: Offset,
        aborted: Vec<Aborted>,
        check_crcs: bool,
    ) -> Result<Option<(Fetched, Reach)>, Error> {
        let damaged = |reason: String| damaged(&place, from, reason);
        let mut batches = VecDeque::new();
        let mut reach = None;
        for batch in split_batches(bytes) {
            let batch = batch.map_err(|error| damaged(error.to_string()))?;
            let header = BatchHeader::parse(&batch).map_err(|error| damaged(error.to_string()))?;
            // A log may give a batch that ends before the position where the one after it was compacted away.
            if header.last_offset() < from {
                continue;
            }
            reach = Some(Reach { next: header.last_offset().next(), epoch: header.leader_epoch });
            batches.push_back(batch);
        }
        let mut aborted: Vec<Aborted> = aborted;
        aborted.sort_by_key(|transaction| transaction.first);
        Ok(reach.map(|reach| {
            let fetched = Fetched {
                place,
                generation,
                batches,
                from,
                check_crcs,
                aborted: aborted.into(),
                aborting: BTreeSet::new(),
                current: None,
            };
            (fetched, reach)
        }))
    }

    /// The next record, or the end of a batch.
    pub(super) fn step(&mut self) -> Result<Step, Error> {
        loop {
            if let Some((records, header)) = &mut self.current {
                match records.next() {
                    Some(Ok(record)) if record.offset < self.from => continue,
                    Some(Ok(record)) => {
                        let behind = record.offset.next();
                        let record = ConsumerRecord {
                            topic: self.place.0.clone(),
                            partition: self.place.1,
                            offset: record.offset,
                            timestamp: WallMs(record.timestamp),
                            leader_epoch: header.leader_epoch,
                            key: record.key,
                            value: record.value,
                            headers: record.headers,
                        };
                        return Ok(Step::Record(record, behind));
                    }
                    Some(Err(error)) => {
                        return Err(damaged(&self.place, header.base_offset, error.to_string()));
                    }
                    None => {
                        let next = header.last_offset().next();
                        self.current = None;
                        return Ok(Step::Passed(next));
                    }
                }
            }
            let Some(batch) = self.batches.pop_front() else { return Ok(Step::End) };
            let (header, records) = self.open(&batch)?;
            match records {
                Some(records) => self.current = Some((records, header)),
                None => return Ok(Step::Passed(header.last_offset().next())),
            }
        }
    }

    /// Checks a batch and begins to read it; no records if it is hidden.
    fn open(&mut self, batch: &Bytes) -> Result<(BatchHeader, Option<Records>), Error> {
        let header =
            BatchHeader::parse(batch).map_err(|error| damaged(&self.place, self.from, error.to_string()))?;
        let at = header.base_offset;
        if self.check_crcs {
            header.verify(batch).map_err(|error| damaged(&self.place, at, error.to_string()))?;
        }
        if self.is_hidden(&header, batch) {
            return Ok((header, None));
        }
        let records = Records::of(batch).map_err(|error| damaged(&self.place, at, error.to_string()))?;
        Ok((header, Some(records)))
    }

    /// Control batches are never shown; batches of aborted transactions not to `read_committed`.
    fn is_hidden(&mut self, header: &BatchHeader, batch: &Bytes) -> bool {
        while let Some(transaction) =
            self.aborted.pop_front_if(|transaction| transaction.first <= header.last_offset())
        {
            self.aborting.insert(transaction.producer);
        }
        let Some(producer) = header.producer_id else { return header.is_control() };
        if header.is_control() {
            if is_abort_marker(batch) {
                self.aborting.remove(&producer);
            }
            return true;
        }
        header.is_transactional() && self.aborting.contains(&producer)
    }
}

/// The key of a control record is (version, type), both two bytes; type 0 is an abort.
fn is_abort_marker(batch: &Bytes) -> bool {
    let first = Records::of(batch).ok().and_then(|mut records| records.next()?.ok());
    first.and_then(|record| record.key).is_some_and(|key| key.get(2..4) == Some(&[0, 0]))
}

fn damaged(place: &Place, offset: Offset, reason: String) -> Error {
    Error::Corrupt { topic: place.0.to_string(), partition: place.1.0, offset: offset.0, reason }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use minikafka_model::batch::{BatchBuilder, CompressionType};

    use super::*;

    /// A batch as a leader gives it.
    fn batch(base: i64, epoch: i32, values: &[&str]) -> BytesMut {
        let mut builder = BatchBuilder::new();
        values.iter().for_each(|value| builder.push(1, None, Some(value.as_bytes()), &[]));
        let bytes = builder.build(CompressionType::None, None).expect("a batch");
        let mut bytes = BytesMut::from(&bytes[..]);
        bytes[..8].copy_from_slice(&base.to_be_bytes());
        bytes[12..16].copy_from_slice(&epoch.to_be_bytes());
        bytes
    }

    fn place() -> Place {
        (Arc::from("t"), PartitionIndex(0))
    }

    fn walk(bytes: Bytes, from: i64) -> (Vec<(i64, String)>, Option<Reach>) {
        let fetched = Fetched::new(place(), 1, bytes, Offset(from), Vec::new(), true).expect("batches");
        let Some((mut fetched, reach)) = fetched else { return (Vec::new(), None) };
        let mut seen = Vec::new();
        loop {
            match fetched.step().expect("good records") {
                Step::Record(record, behind) => {
                    assert_eq!(behind, record.offset.next());
                    let value = record.value.expect("a value");
                    seen.push((record.offset.0, String::from_utf8_lossy(&value).into_owned()));
                }
                Step::Passed(_) => {}
                Step::End => return (seen, Some(reach)),
            }
        }
    }

    #[test]
    fn only_records_from_the_position_on() {
        let mut bytes = batch(10, 2, &["a", "b", "c"]);
        bytes.extend_from_slice(&batch(13, 3, &["d"]));
        let (seen, reach) = walk(bytes.freeze(), 11);
        assert_eq!(seen, [(11, "b".to_owned()), (12, "c".to_owned()), (13, "d".to_owned())]);
        assert_eq!(reach, Some(Reach { next: Offset(14), epoch: Some(LeaderEpoch(3)) }));
    }

    #[test]
    fn a_part_of_a_batch_at_the_end_waits_for_the_next_answer() {
        let mut bytes = batch(0, 0, &["a"]);
        let second = batch(1, 0, &["b"]);
        bytes.extend_from_slice(&second[..second.len() - 1]);
        let (seen, reach) = walk(bytes.freeze(), 0);
        assert_eq!(seen.len(), 1);
        assert_eq!(reach.map(|reach| reach.next), Some(Offset(1)));
        assert_eq!(walk(second.freeze().slice(..20), 1).1, None);
    }

    #[test]
    fn damage_is_told_with_its_place() {
        let mut bytes = batch(7, 0, &["abc"]);
        let last = bytes.len() - 2;
        bytes[last] ^= 1;
        let fetched = Fetched::new(place(), 1, bytes.freeze(), Offset(7), Vec::new(), true);
        let (mut fetched, _) = fetched.expect("whole").expect("one batch");
        let error = fetched.step().expect_err("damaged");
        assert!(matches!(error, Error::Corrupt { offset: 7, partition: 0, .. }), "{error}");
    }
}
