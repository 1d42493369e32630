//! Appending a client's batch (Kafka semantics 1.2, rows 10 to 21).

use minikafka_model::{Mono, Now, Offset, Ticket};

use crate::acks::Waiter;
use crate::log::{LogError, ProducerVerdict};
use crate::replica::{Online, Role};
use crate::{
    Acks, BatchRefusal, ClientBatch, Effect, NotServed, ProduceDone, ProduceRefusal, Produced, ReplicaEvent,
    SeededBug, TooFewReplicas, Written,
};

/// One batch to append.
#[derive(Debug)]
pub struct Produce {
    /// The batch, checked before the lock was taken; or what is wrong with it, told only if nothing comes first.
    pub batch: Result<ClientBatch, BatchRefusal>,
    /// When the caller is answered.
    pub acks: Acks,
    /// Names the caller, if it has to wait.
    pub ticket: Ticket,
    /// With acks=all: when it hears REQUEST_TIMED_OUT.
    pub deadline: Mono,
}

impl Online {
    /// Gives the verdict in Kafka's order, appends, and leaves a waiter if the caller has to wait.
    pub(crate) fn produce(
        &mut self,
        now: Now,
        produce: Produce,
        out: &mut Vec<Effect>,
    ) -> Result<Produced, LogError> {
        let batch = match self.admit(&produce, out) {
            Ok(()) => match produce.batch {
                Ok(batch) => batch,
                Err(refusal) => return Ok(Produced::Refused(ProduceRefusal::Batch(refusal))),
            },
            Err(refusal) => return Ok(Produced::Refused(refusal)),
        };
        if batch.size() > self.context.config.segment_bytes {
            let limit = self.context.config.segment_bytes;
            return Ok(Produced::Refused(ProduceRefusal::LargerThanSegment { size: batch.size(), limit }));
        }
        let verdict = if self.context.config.has(SeededBug::SequenceNotChecked) {
            ProducerVerdict::Accept
        } else {
            self.log.check_producer(&batch)
        };
        let written = match verdict {
            ProducerVerdict::Accept => self.append_as_leader(now, batch)?,
            ProducerVerdict::Duplicate { base_offset, last_offset, log_append_time } => Written {
                base_offset,
                last_offset,
                log_append_time,
                log_start_offset: self.log.start(),
                duplicate: true,
            },
            ProducerVerdict::Refuse(code) => {
                let log_start_offset = self.log.start();
                return Ok(Produced::Refused(ProduceRefusal::Producer { code, log_start_offset }));
            }
        };
        if !written.duplicate {
            if let Role::Leader(leader) = &mut self.role {
                leader.wake_streams(out);
            }
            self.raise_high_watermark(now.mono, out);
        }
        Ok(self.answer_or_wait(written, produce.acks, produce.ticket, produce.deadline))
    }

    /// Rows 10 and 11: leadership and, for acks=all, the minimum.
    fn admit(&mut self, produce: &Produce, out: &mut Vec<Effect>) -> Result<(), ProduceRefusal> {
        let Role::Leader(leader) = &mut self.role else {
            return Err(ProduceRefusal::NotServed(NotServed::NotLeader));
        };
        if !leader.admitted {
            return Err(ProduceRefusal::NotServed(NotServed::NotLeader));
        }
        if produce.acks == Acks::All && leader.below_min_isr(&self.context) {
            let refusal = TooFewReplicas {
                isr: leader.isr.committed().iter().copied().collect(),
                needed: leader.needed(&self.context),
                configured: self.context.config.min_insync_replicas,
            };
            if leader.refusal_told != Some(leader.isr.partition_epoch()) {
                leader.refusal_told = Some(leader.isr.partition_epoch());
                out.push(Effect::Emit(ReplicaEvent::Refusal {
                    reason: refusal.to_string(),
                    isr: refusal.isr.clone(),
                    needed: refusal.needed,
                    configured: refusal.configured,
                }));
            }
            return Err(ProduceRefusal::NotEnoughReplicas(refusal));
        }
        Ok(())
    }

    fn append_as_leader(&mut self, now: Now, batch: ClientBatch) -> Result<Written, LogError> {
        let base_offset = self.log.end();
        let Role::Leader(leader) = &mut self.role else { unreachable!("admitted only on a leader") };
        leader.samples.take(now.mono, base_offset, self.context.config.lag_time_max);
        let log_append_time = self.context.config.log_append_time.then_some(now.wall);
        let last_offset = self.log.append(batch, leader.epoch, log_append_time, now)?;
        Ok(Written {
            base_offset,
            last_offset,
            log_append_time,
            log_start_offset: self.log.start(),
            duplicate: false,
        })
    }

    fn answer_or_wait(&mut self, written: Written, acks: Acks, ticket: Ticket, deadline: Mono) -> Produced {
        let committed = written.last_offset < self.high_watermark;
        let Role::Leader(leader) = &mut self.role else { unreachable!("admitted only on a leader") };
        if acks != Acks::All || committed || self.context.config.has(SeededBug::AckOnAppend) {
            // Error 20 cannot arise here: the ISR was large enough a moment ago, under the same lock.
            return Produced::Done(written);
        }
        leader.waiters.add(ticket, Waiter { written, leader_epoch: leader.epoch, deadline });
        Produced::Waiting(written)
    }

    /// Waiting writes whose time is over hear REQUEST_TIMED_OUT; what they wrote stays.
    pub(crate) fn expire_writes(&mut self, now: Mono, out: &mut Vec<Effect>) {
        let high_watermark = self.high_watermark;
        let Role::Leader(leader) = &mut self.role else { return };
        let expired = leader.waiters.expired(now);
        if let Some((_, waiter)) = expired.last() {
            let last_offset = waiter.written.last_offset;
            out.push(Effect::Emit(ReplicaEvent::Timeout {
                last_offset,
                high_watermark,
                lacking: leader.lacking(last_offset),
                below_min_isr: leader.below_min_isr(&self.context),
            }));
        }
        for (ticket, waiter) in expired {
            out.push(Effect::Produced { ticket, done: ProduceDone::TimedOut(waiter.written) });
        }
    }
}

impl crate::leader::Leader {
    /// Members of the maximal ISR that do not have the record at `offset`, as far as is known.
    fn lacking(&self, offset: Offset) -> Vec<minikafka_model::BrokerId> {
        let lacks = |progress: &crate::Progress| progress.acknowledged.is_none_or(|end| end <= offset);
        self.progress
            .iter()
            .filter(|(broker, progress)| self.isr.may_contain(**broker) && lacks(progress))
            .map(|(broker, _)| *broker)
            .collect()
    }
}
