//! Who checks: what was shown as committed, what was acknowledged, what was read. Looks after every step; a broken promise ends
//! the run with a sentence.

use std::collections::BTreeMap;

use minikafka_metadata::Image;
use minikafka_model::{BrokerEpoch, BrokerId, LeaderEpoch, Offset, TopicPartition};
use minikafka_replication::{ReadLimit, Replica, ReplicaEvent, ReplicaLog, RoleName};

use crate::broker::Broker;
use crate::message::Seen;
use crate::outbox::Note;
use crate::records::seen;

/// Every record of a log from one offset up to another.
pub(crate) fn records(log: &ReplicaLog, from: Offset, upto: Offset) -> Vec<Seen> {
    let limit = ReadLimit { max_bytes: usize::MAX, at_least_one: true };
    log.plan_read(from, upto, limit).run().expect("in memory").batches.iter().map(seen).collect()
}

/// What happened in a run, counted; a run in which too little happened proves nothing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Acknowledged writes (acks=all).
    pub acknowledged: u64,
    /// Records read by consumers.
    pub read: u64,
    /// Leaders that took over.
    pub elections: u64,
    /// Logs that were cut.
    pub truncations: u64,
    /// ISR changes that were committed.
    pub isr_changes: u64,
    /// Writes refused for too small an ISR.
    pub refusals: u64,
    /// Writes that timed out.
    pub timeouts: u64,
    /// Faults that were set off.
    pub faults: u64,
}

/// `min.insync.replicas` of a simulated cluster.
pub(crate) const MIN_INSYNC_REPLICAS: usize = 2;

/// The checker.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// What was ever below a high watermark, by offset: it must never be anything else.
    committed: BTreeMap<TopicPartition, Vec<(LeaderEpoch, String)>>,
    /// In which leader epoch each of them was first shown as committed.
    committed_in: BTreeMap<TopicPartition, Vec<LeaderEpoch>>,
    /// High watermark of each replica as last seen, with its life and leader epoch.
    marks: BTreeMap<(BrokerId, TopicPartition), Mark>,
    leaders: BTreeMap<(TopicPartition, LeaderEpoch), BrokerId>,
    acknowledged: BTreeMap<TopicPartition, BTreeMap<Offset, String>>,
    /// What happened.
    pub counts: Counts,
    /// Brokers that lost power, with the epoch of the life that ended, until a new life is in every ISR: what the old one had
    /// said of its logs is void.
    pub lost_power: BTreeMap<BrokerId, Option<BrokerEpoch>>,
    /// More was lost than the system promises to survive: losses are counted, not failures.
    pub beyond_budget: bool,
    /// Promises broken while beyond the budget.
    pub losses: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    life: u64,
    high_watermark: Offset,
}

impl Ledger {
    fn broken(&mut self, why: String) -> Result<(), String> {
        if self.beyond_budget {
            self.losses += 1;
            return Ok(());
        }
        Err(why)
    }

    /// Notes of a step.
    pub(crate) fn note(&mut self, note: Note) -> Result<(), String> {
        match note {
            Note::Replica(broker, at, event) => self.event(broker, at, &event),
            Note::Acknowledged(client, write, offset) => {
                self.counts.acknowledged += 1;
                let known =
                    self.committed.get(&write.partition).and_then(|all| all.get(offset.0 as usize)).cloned();
                self.acknowledged.entry(write.partition).or_default().insert(offset, write.value.clone());
                match known {
                    Some((_, value)) if value == write.value => Ok(()),
                    known => self.broken(format!(
                        "H10: client {client} heard that '{}' is at {offset}, where {known:?} is committed",
                        write.value
                    )),
                }
            }
            Note::Refused(..) => Ok(()),
            Note::SequenceRefused { client, broker, what, .. } => self.broken(format!(
                "H4: client {client}, which waits for each write, was refused {what} by {broker}"
            )),
            Note::Read(client, at, records) => {
                self.counts.read += records.len() as u64;
                for record in records {
                    let known =
                        self.committed.get(&at).and_then(|all| all.get(record.offset.0 as usize)).cloned();
                    if known != Some((record.epoch, record.value.clone())) {
                        self.broken(format!(
                            "H8: client {client} read '{}' of epoch {} at {}, where {known:?} is committed",
                            record.value, record.epoch, record.offset
                        ))?;
                    }
                }
                Ok(())
            }
        }
    }

    fn event(&mut self, broker: BrokerId, at: TopicPartition, event: &ReplicaEvent) -> Result<(), String> {
        match event {
            ReplicaEvent::Election { leader_epoch, .. } => {
                self.counts.elections += 1;
                let before = self.leaders.insert((at, *leader_epoch), broker);
                if before.is_some_and(|before| before != broker) {
                    return Err(format!("M1: {before:?} and {broker} lead {at} in epoch {leader_epoch}"));
                }
            }
            ReplicaEvent::Truncation { below_high_watermark, from, to, high_watermark, .. } => {
                self.counts.truncations += 1;
                if *below_high_watermark {
                    return self.broken(format!(
                        "R7: broker {broker} cut {at} from {from} to {to}, below its high watermark {high_watermark}"
                    ));
                }
            }
            ReplicaEvent::StartedAnew { from, at: start } => {
                return self.broken(format!("R7: broker {broker} threw away {at} up to {from} for {start}"));
            }
            ReplicaEvent::IsrCommitted { .. } => self.counts.isr_changes += 1,
            ReplicaEvent::Refusal { .. } => self.counts.refusals += 1,
            ReplicaEvent::Timeout { .. } => self.counts.timeouts += 1,
            ReplicaEvent::BadReplicaData { reason, .. } => {
                return self.broken(format!("broker {broker} was sent bad data for {at}: {reason}"));
            }
            _ => {}
        }
        Ok(())
    }

    /// After a step of a broker: its marks, and what it shows as committed.
    pub(crate) fn look(
        &mut self,
        id: BrokerId,
        brokers: &BTreeMap<BrokerId, Broker>,
        image: &Image,
    ) -> Result<(), String> {
        let broker = &brokers[&id];
        let Some(process) = &broker.process else { return Ok(()) };
        for (at, replica) in &process.replicas {
            let Some(bounds) = replica.bounds() else { continue };
            let status_life = broker.lives;
            let key = (id, *at);
            let before = self.marks.get(&key).copied();
            let same_life = before.is_some_and(|mark| mark.life == status_life);
            let from =
                if same_life { before.map_or(Offset(0), |mark| mark.high_watermark) } else { Offset(0) };
            if same_life && bounds.high_watermark == from {
                continue;
            }
            self.marks.insert(key, Mark { life: status_life, high_watermark: bounds.high_watermark });
            if bounds.high_watermark < from {
                self.broken(format!(
                    "the high watermark of {at} on {id} went from {from} to {}",
                    bounds.high_watermark
                ))?;
                continue;
            }
            self.shown(id, *at, replica, from, brokers, image)?;
        }
        Ok(())
    }

    /// R1 and R6: what a replica shows as committed is what all others show at these offsets, and every in-sync replica that
    /// runs has it.
    fn shown(
        &mut self,
        id: BrokerId,
        at: TopicPartition,
        replica: &Replica,
        from: Offset,
        brokers: &BTreeMap<BrokerId, Broker>,
        image: &Image,
    ) -> Result<(), String> {
        let (Some(log), Some(bounds)) = (replica.log(), replica.bounds()) else { return Ok(()) };
        let shown = records(log, from, bounds.high_watermark);
        let leader_epoch = replica.status().leader_epoch.unwrap_or(LeaderEpoch(0));
        let mut fresh = Vec::new();
        for record in shown {
            let committed = self.committed.entry(at).or_default();
            let index = record.offset.0 as usize;
            match committed.get(index) {
                Some((epoch, value)) if *epoch == record.epoch && *value == record.value => {}
                Some(known) => {
                    let known = known.clone();
                    self.broken(format!(
                        "R1: {id} shows {record:?} as committed in {at}, where {known:?} is"
                    ))?;
                    self.committed.entry(at).or_default()[index] = (record.epoch, record.value);
                }
                None if index == committed.len() => {
                    committed.push((record.epoch, record.value.clone()));
                    self.committed_in.entry(at).or_default().push(leader_epoch);
                    fresh.push(record);
                }
                None => return Err(format!("R3: {id} shows a hole in {at} before {record:?}")),
            }
        }
        if fresh.is_empty() || replica.status().role != RoleName::Leader {
            return Ok(());
        }
        self.held_by_enough(id, at, &fresh, brokers)?;
        let Some(state) = image.partition(at) else { return Ok(()) };
        let isr = state.isr_set();
        let first = fresh.first().map_or(Offset(0), |record| record.offset);
        for member in isr.iter().filter(|member| **member != id) {
            if self.lost_power.contains_key(member) {
                continue;
            }
            let Some(log) = brokers[member].log(at) else { continue };
            let have = records(log, first, log.end());
            let holds = fresh.iter().all(|record| have.contains(record));
            if !holds {
                self.broken(format!(
                    "R6: {id} committed {at} up to {} without member {member} of the ISR, whose log ends at {}",
                    bounds.high_watermark,
                    log.end()
                ))?;
            }
        }
        Ok(())
    }

    /// M5: whatever is committed is held by as many replicas as `min.insync.replicas` asks for.
    fn held_by_enough(
        &mut self,
        id: BrokerId,
        at: TopicPartition,
        fresh: &[Seen],
        brokers: &BTreeMap<BrokerId, Broker>,
    ) -> Result<(), String> {
        if !self.lost_power.is_empty() {
            return Ok(());
        }
        let Some(last) = fresh.last() else { return Ok(()) };
        let holds = |broker: &Broker| {
            broker.log(at).is_some_and(|log| records(log, last.offset, log.end()).first() == Some(last))
        };
        let holders = brokers.values().filter(|broker| holds(broker)).count();
        if holders < MIN_INSYNC_REPLICAS {
            return self
                .broken(format!("M5: {id} committed {last:?} of {at}, which {holders} replicas hold"));
        }
        Ok(())
    }

    /// R6: who joined an ISR by a committed change has everything that is committed.
    pub(crate) fn joined(
        &mut self,
        before: &Image,
        after: &Image,
        brokers: &BTreeMap<BrokerId, Broker>,
    ) -> Result<(), String> {
        for (at, state) in after.partitions() {
            let old = before.partition(at).map(|state| state.isr_set()).unwrap_or_default();
            for member in state.isr_set().difference(&old) {
                if self.lost_power.contains_key(member) {
                    continue;
                }
                let committed = self.committed.get(&at).map_or(&[][..], Vec::as_slice);
                let Some(log) = brokers[member].log(at) else { continue };
                let have = records(log, log.start(), log.end());
                let complete = have.len() >= committed.len()
                    && committed
                        .iter()
                        .zip(&have)
                        .all(|((epoch, value), r)| *epoch == r.epoch && *value == r.value);
                if !complete {
                    let (has, all) = (have.len(), committed.len());
                    self.broken(format!(
                        "R6: {member} joined the ISR of {at} with {has} of {all} committed records"
                    ))?;
                }
            }
        }
        Ok(())
    }

    /// R5: the leader of an epoch has everything that was committed in earlier epochs.
    pub(crate) fn elected(
        &mut self,
        id: BrokerId,
        at: TopicPartition,
        epoch: LeaderEpoch,
        log: &ReplicaLog,
    ) -> Result<(), String> {
        let mut committed = self.committed.get(&at).cloned().unwrap_or_default();
        let in_epochs = self.committed_in.get(&at).map_or(&[][..], Vec::as_slice);
        committed.truncate(in_epochs.partition_point(|committed_in| *committed_in < epoch));
        let have = records(log, Offset(0), log.end());
        let complete = have.len() >= committed.len()
            && committed
                .iter()
                .zip(&have)
                .all(|((epoch, value), record)| *epoch == record.epoch && *value == record.value);
        if complete {
            return Ok(());
        }
        self.broken(format!(
            "R5: {id} was elected for {at} with {} of {} committed records",
            have.len(),
            committed.len()
        ))
    }

    /// H12: a write that was refused with 19, and only so, is in no log.
    pub(crate) fn refused(
        &mut self,
        at: TopicPartition,
        value: &str,
        brokers: &BTreeMap<BrokerId, Broker>,
    ) -> Result<(), String> {
        for (id, broker) in brokers {
            let log = broker.log(at);
            if log.is_some_and(|log| {
                records(log, log.start(), log.end()).iter().any(|record| record.value == value)
            }) {
                self.broken(format!("H12: '{value}' was refused with 19 and is in the log of {id}"))?;
            }
        }
        Ok(())
    }

    /// At the end: every acknowledged write is in every log, once and in order.
    pub(crate) fn at_the_end(
        &mut self,
        at: TopicPartition,
        id: BrokerId,
        log: &ReplicaLog,
    ) -> Result<(), String> {
        let have = records(log, Offset(0), log.end());
        let acknowledged = self.acknowledged.get(&at).cloned().unwrap_or_default();
        for (offset, value) in &acknowledged {
            let found = have.get(offset.0 as usize).map(|record| &record.value);
            if found != Some(value) {
                self.broken(format!(
                    "H1: {id} has {found:?} at {offset} of {at}, where '{value}' was acknowledged"
                ))?;
            }
        }
        let mut newest: BTreeMap<String, i32> = BTreeMap::new();
        for record in &have {
            let Some((client, number)) = record.value.split_once('-') else { continue };
            let number: i32 =
                number.parse().map_err(|_| format!("H3: '{}' was never written", record.value))?;
            if client.starts_with('c') {
                let before = newest.insert(client.to_owned(), number);
                if before.map_or(0, |before| before + 1) != number {
                    self.broken(format!("H5: {id} has '{}' in {at} after number {before:?}", record.value))?;
                }
            }
        }
        Ok(())
    }
}
