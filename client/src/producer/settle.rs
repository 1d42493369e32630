//! What an answer means: delivered, try again (when, and with which sequences), or give up.

use std::time::SystemTime;

use minikafka_model::{BrokerId, ErrorCode, Offset, WallMs};
use tokio::time::Instant;

use super::batch::Batch;
use super::delivery::Verdict;
use super::failure::{Attempt, AttemptOutcome, GaveUp};
use super::ledger::{Ledger, Queue, give_back};
use crate::config::Acks;
use crate::error::{BrokerError, Error, is_retriable, refreshes_metadata};
use crate::metadata::ClusterView;

/// What a broker (or the lack of one) said about one batch.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// It is stored.
    Stored {
        /// Offset of its first record, unless acks=0.
        base: Option<Offset>,
        /// The broker's stamp, with `LogAppendTime`.
        append_time: Option<WallMs>,
    },
    /// It is refused. A base offset beside an error means that it was appended before the broker gave up.
    Refused {
        /// The error.
        error: BrokerError,
        /// The base offset in the answer.
        base: Option<Offset>,
    },
    /// It was sent, and no answer came.
    NoAnswer(Error),
    /// It was not sent.
    NotSent(Error),
    /// It cannot be sent at all.
    Unsendable(String),
}

/// A request that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) broker: BrokerId,
    pub(crate) batches: Vec<(Batch, Told)>,
}

/// What follows from it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settled {
    /// What is believed about leaders may be old.
    pub(crate) refresh: bool,
    /// Bytes of buffer memory that became free.
    pub(crate) released: usize,
}

/// What to do with a batch that was not stored.
enum Fate {
    Again { pause: bool },
    Split,
    GiveUp(GaveUp),
}

impl Ledger {
    /// Takes the end of a request.
    pub(crate) fn settle(&mut self, done: Done, view: &ClusterView, now: Instant) -> Settled {
        if let Some(count) = self.in_flight.get_mut(&done.broker) {
            *count = count.saturating_sub(1);
        }
        let mut settled = Settled::default();
        // An answer names all its batches: none of them is under way any more, whatever is said about each.
        for (batch, _) in &done.batches {
            if let Some(queue) = self.queues.get_mut(&(batch.topic.clone(), batch.partition)) {
                queue.in_flight.retain(|flight| flight.order != batch.order);
            }
        }
        for (batch, told) in done.batches {
            self.settle_one(done.broker, batch, told, view, now, &mut settled);
        }
        settled
    }

    fn settle_one(
        &mut self,
        broker: BrokerId,
        mut batch: Batch,
        told: Told,
        view: &ClusterView,
        now: Instant,
        settled: &mut Settled,
    ) {
        let outcome = match told {
            Told::Stored { base, append_time } => {
                return self.stored(&batch, Verdict::Stored { base, append_time }, settled);
            }
            Told::Refused { error, .. } if error.code == ErrorCode::DuplicateSequenceNumber => {
                return self.stored(&batch, Verdict::Stored { base: None, append_time: None }, settled);
            }
            Told::Refused { error, base } => {
                let may_be_stored = base.is_some() || appended_before(error.code);
                AttemptOutcome::Refused { error, may_be_stored }
            }
            Told::NoAnswer(error) => AttemptOutcome::NoAnswer(error),
            Told::NotSent(error) => AttemptOutcome::NotSent(error),
            Told::Unsendable(reason) => {
                settled.released += batch.reserved;
                self.fail(&batch, GaveUp::Unsendable(reason), view);
                return;
            }
        };
        settled.refresh |= match &outcome {
            AttemptOutcome::Refused { error, .. } => refreshes_metadata(error.code),
            _ => true,
        };
        let fate = self.fate(&batch, &outcome);
        batch.outcome.note(Attempt { at: SystemTime::now(), broker: Some(broker), outcome });
        match fate {
            // Its deadline has passed while it was under way; the verdict stands.
            _ if batch.outcome.is_settled() => settled.released += batch.reserved,
            Fate::Again { pause } => {
                batch.not_before =
                    pause.then(|| now + self.rules.backoff.pause(batch.tries.saturating_sub(1)));
                self.put_back(batch);
            }
            Fate::Split => self.split(batch, view, settled),
            Fate::GiveUp(why) => {
                settled.released += batch.reserved;
                self.fail(&batch, why, view);
            }
        }
    }

    fn stored(&mut self, batch: &Batch, verdict: Verdict, settled: &mut Settled) {
        settled.released += batch.reserved;
        if batch.outcome.settle(verdict) {
            self.report.delivered += u64::from(batch.count());
        }
        self.unresolved.remove(&batch.order);
        let stamp = batch.stamp.map(|stamp| (stamp.id, stamp.epoch));
        if let Some(queue) = self.queues.get_mut(&(batch.topic.clone(), batch.partition))
            && stamp.is_some()
            && queue.identity == stamp
        {
            queue.established = true;
        }
    }

    fn fate(&mut self, batch: &Batch, outcome: &AttemptOutcome) -> Fate {
        let error = match outcome {
            AttemptOutcome::Refused { error, .. } => Some(error),
            AttemptOutcome::NotSent(Error::Unsupported { .. }) => return Fate::GiveUp(GaveUp::Refused),
            _ => None,
        };
        if self.rules.acks == Acks::None {
            // Nobody would know what became of an earlier try.
            return Fate::GiveUp(GaveUp::Retries);
        }
        if batch.tries > self.rules.retries {
            return Fate::GiveUp(if self.rules.retries == 0 { GaveUp::Refused } else { GaveUp::Retries });
        }
        let Some(error) = error else { return Fate::Again { pause: true } };
        match error.code {
            ErrorCode::OutOfOrderSequenceNumber
            | ErrorCode::InvalidProducerEpoch
            | ErrorCode::UnknownProducerId
                if batch.stamp.is_some() =>
            {
                self.out_of_order(batch);
                Fate::Again { pause: false }
            }
            ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge if batch.count() > 1 => Fate::Split,
            code if is_retriable(code) => Fate::Again { pause: true },
            _ => Fate::GiveUp(GaveUp::Refused),
        }
    }

    /// A gap before this batch. If earlier batches are still to be sent again, it only came too early; else the gap is certain, and no
    /// later batch of this epoch can be stored either: sequences begin anew.
    fn out_of_order(&mut self, batch: &Batch) {
        let Some(queue) = self.queues.get_mut(&(batch.topic.clone(), batch.partition)) else { return };
        let stamp = batch.stamp.map(|stamp| (stamp.id, stamp.epoch));
        let earlier = queue.again.iter().map(|other| other.order);
        let earlier = earlier.chain(queue.in_flight.iter().map(|flight| flight.order));
        if stamp == queue.identity && earlier.min().is_none_or(|first| first > batch.order) {
            queue.raise_epoch = true;
        }
    }

    fn put_back(&mut self, batch: Batch) {
        if let Some(queue) = self.queues.get_mut(&(batch.topic.clone(), batch.partition)) {
            insert(queue, batch);
        }
    }

    /// Sends a batch that was too large as two.
    fn split(&mut self, mut batch: Batch, view: &ClusterView, settled: &mut Settled) {
        let Some(halves) = batch.split(self.rules.compression) else {
            settled.released += batch.reserved;
            self.fail(&batch, GaveUp::Refused, view);
            return;
        };
        tracing::info!("{}-{}: a batch was too large and is sent as two", batch.topic, batch.partition);
        let Some(queue) = self.queues.get_mut(&(batch.topic.clone(), batch.partition)) else { return };
        give_back(queue, &batch);
        self.unresolved.remove(&batch.order);
        let outcomes = [halves[0].outcome.clone(), halves[1].outcome.clone()];
        for half in halves {
            self.unresolved.insert(half.order);
            insert(queue, half);
        }
        batch.outcome.settle(Verdict::Split { at: batch.count() / 2, halves: outcomes });
    }
}

/// Puts a batch among those to be sent again, in the order of sending.
fn insert(queue: &mut Queue, batch: Batch) {
    let at = queue.again.partition_point(|other| other.order < batch.order);
    queue.again.insert(at, batch);
}

/// Codes that a leader answers after it has appended (or may have).
fn appended_before(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::RequestTimedOut
            | ErrorCode::NotEnoughReplicasAfterAppend
            | ErrorCode::UnknownServerError
            | ErrorCode::KafkaStorageError
            | ErrorCode::NetworkException
    )
}
