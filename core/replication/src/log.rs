//! The log of a replica. For the moment in memory: `minikafka_storage::Log` takes its place as soon as it is there, with the
//! same operations.
#![allow(missing_docs, reason = "goes away with storage::Log")]

use bytes::Bytes;
use minikafka_model::{ErrorCode, LeaderEpoch, Now, Offset, Sequence, WallMs};
use std::collections::BTreeMap;

use crate::Divergence;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LogError(pub String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    pub max_bytes: usize,
    pub at_least_one: bool,
}

#[derive(Debug)]
pub struct ReadPlan {
    batches: Vec<ReplicatedBatch>,
}
#[derive(Debug)]
pub struct ReadRecords {
    pub batches: Vec<Bytes>,
    pub bytes: usize,
    pub end: Option<Offset>,
    pub last_epoch: Option<LeaderEpoch>,
}
impl ReadPlan {
    pub fn run(self) -> Result<ReadRecords, LogError> {
        let end = self.batches.last().map(|b| b.last_offset().next());
        let last_epoch = self.batches.last().map(|b| b.leader_epoch());
        let batches: Vec<Bytes> = self.batches.into_iter().map(|b| b.bytes).collect();
        Ok(ReadRecords { bytes: batches.iter().map(Bytes::len).sum(), batches, end, last_epoch })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchRefusal(pub ErrorCode);

#[derive(Debug, Clone)]
pub struct ClientBatch {
    pub bytes: Vec<u8>,
}
impl ClientBatch {
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

#[derive(Debug, Clone)]
pub struct ReplicatedBatch {
    bytes: Bytes,
}
fn i32_at(b: &[u8], at: usize) -> i32 {
    i32::from_be_bytes(b[at..at + 4].try_into().unwrap())
}
fn i64_at(b: &[u8], at: usize) -> i64 {
    i64::from_be_bytes(b[at..at + 8].try_into().unwrap())
}
impl ReplicatedBatch {
    pub fn check(bytes: Bytes) -> Result<ReplicatedBatch, String> {
        if bytes.len() < 61 {
            return Err("short".into());
        }
        Ok(ReplicatedBatch { bytes })
    }
    pub fn base_offset(&self) -> Offset {
        Offset(i64_at(&self.bytes, 0))
    }
    pub fn last_offset(&self) -> Offset {
        self.base_offset().plus(i64::from(i32_at(&self.bytes, 23)))
    }
    pub fn leader_epoch(&self) -> LeaderEpoch {
        LeaderEpoch(i32_at(&self.bytes, 12))
    }
    fn producer(&self) -> Option<(i64, i16, i32, i32)> {
        let pid = i64_at(&self.bytes, 43);
        let epoch = i16::from_be_bytes(self.bytes[51..53].try_into().unwrap());
        let seq = i32_at(&self.bytes, 53);
        (pid >= 0).then(|| (pid, epoch, seq, Sequence(seq).plus(i32_at(&self.bytes, 23)).0))
    }
    fn max_timestamp(&self) -> i64 {
        i64_at(&self.bytes, 35)
    }
}

pub enum ProducerVerdict {
    Accept,
    Duplicate { base_offset: Offset, last_offset: Offset, log_append_time: Option<WallMs> },
    Refuse(ErrorCode),
}

#[derive(Debug, Default)]
pub struct ReplicaLog {
    start: i64,
    end: i64,
    batches: Vec<ReplicatedBatch>,
    epochs: Vec<(LeaderEpoch, Offset)>,
}

impl ReplicaLog {
    pub fn start(&self) -> Offset {
        Offset(self.start)
    }
    pub fn end(&self) -> Offset {
        Offset(self.end)
    }
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }
    pub fn last_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.last().map(|e| e.0)
    }
    pub fn epoch_entries(&self) -> Vec<(LeaderEpoch, Offset)> {
        self.epochs.clone()
    }
    pub fn assign_epoch(&mut self, epoch: LeaderEpoch, at: Offset) {
        if self.epochs.last().is_some_and(|(e, s)| *e == epoch && *s <= at) {
            return;
        }
        while self.epochs.last().is_some_and(|(e, s)| *e >= epoch || *s >= at) {
            self.epochs.pop();
        }
        self.epochs.push((epoch, at));
    }
    pub fn end_offset_for(&self, epoch: LeaderEpoch) -> Option<Divergence> {
        let newest = self.epochs.last()?;
        if newest.0 == epoch {
            return Some(Divergence { epoch, end_offset: self.end() });
        }
        let next = self.epochs.iter().position(|(e, _)| *e > epoch)?;
        let end_offset = self.epochs[next].1;
        Some(if next == 0 {
            Divergence { epoch, end_offset }
        } else {
            Divergence { epoch: self.epochs[next - 1].0, end_offset }
        })
    }
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.epochs.iter().rev().find(|(_, s)| *s <= offset).map(|e| e.0)
    }
    pub fn check_producer(&self, batch: &ClientBatch) -> ProducerVerdict {
        let batch = ReplicatedBatch { bytes: Bytes::copy_from_slice(&batch.bytes) };
        let Some((pid, epoch, first, last)) = batch.producer() else { return ProducerVerdict::Accept };
        type Known = (i16, i32, i32, Offset, Offset);
        let mut known: BTreeMap<i64, Vec<Known>> = BTreeMap::new();
        for b in &self.batches {
            if let Some((p, e, f, l)) = b.producer() {
                known.entry(p).or_default().push((e, f, l, b.base_offset(), b.last_offset()));
            }
        }
        let Some(list) = known.get(&pid) else { return ProducerVerdict::Accept };
        let newest = *list.last().unwrap();
        if let Some(d) =
            list.iter().rev().take(5).find(|b| (b.0, b.1, b.2) == (epoch, first, last) && newest.0 == epoch)
        {
            return ProducerVerdict::Duplicate { base_offset: d.3, last_offset: d.4, log_append_time: None };
        }
        if epoch < newest.0 {
            return ProducerVerdict::Refuse(ErrorCode::InvalidProducerEpoch);
        }
        let ok = if epoch > newest.0 { first == 0 } else { first == Sequence(newest.2).plus(1).0 };
        if ok {
            ProducerVerdict::Accept
        } else {
            ProducerVerdict::Refuse(ErrorCode::OutOfOrderSequenceNumber)
        }
    }
    pub fn append(
        &mut self,
        mut batch: ClientBatch,
        epoch: LeaderEpoch,
        _time: Option<WallMs>,
        _now: Now,
    ) -> Result<Offset, LogError> {
        batch.bytes[0..8].copy_from_slice(&self.end.to_be_bytes());
        batch.bytes[12..16].copy_from_slice(&epoch.0.to_be_bytes());
        self.assign_epoch(epoch, self.end());
        let batch = ReplicatedBatch { bytes: batch.bytes.into() };
        let last = batch.last_offset();
        self.batches.push(batch);
        self.end = last.0 + 1;
        Ok(last)
    }
    pub fn append_replicated(&mut self, batches: Vec<ReplicatedBatch>, _now: Now) -> Result<(), LogError> {
        for batch in batches {
            if self.batches.is_empty() && batch.base_offset() < self.end() {
                self.start = batch.base_offset().0;
            }
            self.assign_epoch(batch.leader_epoch(), batch.base_offset());
            self.end = batch.last_offset().0 + 1;
            self.batches.push(batch);
        }
        Ok(())
    }
    pub fn truncate_to(&mut self, to: Offset) -> Result<(), LogError> {
        while self.batches.last().is_some_and(|b| b.last_offset() >= to) {
            self.batches.pop();
        }
        if to.0 < self.end {
            self.end = self.batches.last().map_or(self.start, |b| b.last_offset().0 + 1);
        }
        let end = self.end();
        while self.epochs.last().is_some_and(|(_, s)| *s >= end) {
            self.epochs.pop();
        }
        Ok(())
    }
    pub fn truncate_fully_at(&mut self, at: Offset) -> Result<(), LogError> {
        self.batches.clear();
        self.epochs.clear();
        self.start = at.0;
        self.end = at.0;
        Ok(())
    }
    pub fn advance_start(&mut self, to: Offset) -> Result<(), LogError> {
        self.start = self.start.max(to.0);
        Ok(())
    }
    pub fn plan_read(&self, from: Offset, upto: Offset, limit: ReadLimit) -> ReadPlan {
        let mut batches: Vec<ReplicatedBatch> = Vec::new();
        let mut bytes = 0;
        for b in self.batches.iter().filter(|b| b.last_offset() >= from && b.base_offset() < upto) {
            if bytes + b.bytes.len() > limit.max_bytes && !(limit.at_least_one && batches.is_empty()) {
                break;
            }
            bytes += b.bytes.len();
            batches.push(b.clone());
        }
        ReadPlan { batches }
    }
    pub fn max_timestamp(&self) -> Result<Option<(WallMs, Offset)>, LogError> {
        Ok(self
            .batches
            .iter()
            .map(|b| (WallMs(b.max_timestamp()), b.last_offset()))
            .max_by_key(|(t, o)| (t.0, -o.0)))
    }
    pub fn lookup_time(&self, time: WallMs) -> Result<Option<(WallMs, Offset)>, LogError> {
        Ok(self
            .batches
            .iter()
            .find(|b| b.max_timestamp() >= time.0)
            .map(|b| (WallMs(b.max_timestamp()), b.base_offset())))
    }
}
