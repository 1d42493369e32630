//! The verdict on a record, as a future. The records of a batch share one verdict.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use minikafka_model::{Offset, PartitionIndex, WallMs};

use super::failure::{Attempt, History, ProduceError};

/// Where a record was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: PartitionIndex,
    /// The offset; with acks=0 nobody tells it.
    pub offset: Option<Offset>,
    /// The timestamp: the producer's, or the broker's where the topic says `LogAppendTime`.
    pub timestamp: WallMs,
}

/// The verdict on a batch.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// Stored, the first record at this offset.
    Stored {
        /// Offset of the first record, unless acks=0.
        base: Option<Offset>,
        /// The broker's stamp, with `LogAppendTime`.
        append_time: Option<WallMs>,
    },
    /// Not delivered.
    Failed(ProduceError),
    /// Split in two, because it was too large: records from `at` on are in the second.
    Split {
        /// Index of the first record of the second half.
        at: u32,
        /// The halves.
        halves: [Arc<Outcome>; 2],
    },
}

/// What is known of one batch: its attempts so far and, in the end, the verdict.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    verdict: Option<Verdict>,
    history: History,
    wakers: Vec<Option<Waker>>,
}

impl Outcome {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an attempt that did not succeed.
    pub(crate) fn note(&self, attempt: Attempt) {
        self.state().history.add(attempt);
    }

    /// The attempts so far.
    pub(crate) fn history(&self) -> History {
        self.state().history.clone()
    }

    /// Gives the verdict; the first one counts. True if this was it.
    pub(crate) fn settle(&self, verdict: Verdict) -> bool {
        let mut state = self.state();
        if state.verdict.is_some() {
            return false;
        }
        state.verdict = Some(verdict);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
        true
    }

    /// Whether there is a verdict.
    pub(crate) fn is_settled(&self) -> bool {
        self.state().verdict.is_some()
    }
}

/// Resolves once the record is delivered or has failed, within `delivery.timeout.ms`.
///
/// It is `'static` and can be dropped at any time: the record is delivered all the same, and only its verdict is lost.
#[derive(Debug)]
#[must_use = "a delivery that is not awaited hides whether the record was stored"]
pub struct Delivery {
    outcome: Arc<Outcome>,
    index: u32,
    slot: Option<usize>,
    topic: Arc<str>,
    partition: PartitionIndex,
    timestamp: WallMs,
}

impl Delivery {
    pub(crate) fn new(
        outcome: Arc<Outcome>,
        index: u32,
        topic: Arc<str>,
        partition: PartitionIndex,
        timestamp: WallMs,
    ) -> Delivery {
        Delivery { outcome, index, slot: None, topic, partition, timestamp }
    }

    /// The partition that was chosen.
    pub fn partition(&self) -> PartitionIndex {
        self.partition
    }

    fn stored(&self, base: Option<Offset>, append_time: Option<WallMs>) -> Stored {
        Stored {
            topic: self.topic.clone(),
            partition: self.partition,
            offset: base.map(|base| base.plus(i64::from(self.index))),
            timestamp: append_time.unwrap_or(self.timestamp),
        }
    }
}

impl Future for Delivery {
    type Output = Result<Stored, ProduceError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let this = &mut *self;
            let mut state = this.outcome.state();
            match &state.verdict {
                None => {
                    let waker = Some(context.waker().clone());
                    match this.slot {
                        Some(slot) => state.wakers[slot] = waker,
                        None => {
                            this.slot = Some(state.wakers.len());
                            state.wakers.push(waker);
                        }
                    }
                    return Poll::Pending;
                }
                Some(Verdict::Stored { base, append_time }) => {
                    let (base, append_time) = (*base, *append_time);
                    drop(state);
                    return Poll::Ready(Ok(this.stored(base, append_time)));
                }
                Some(Verdict::Failed(error)) => return Poll::Ready(Err(error.clone())),
                Some(Verdict::Split { at, halves }) => {
                    let second = this.index >= *at;
                    let half = halves[usize::from(second)].clone();
                    let at = *at;
                    drop(state);
                    this.outcome = half;
                    this.slot = None;
                    if second {
                        this.index -= at;
                    }
                }
            }
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            // After the verdict the list is gone.
            if let Some(waker) = self.outcome.state().wakers.get_mut(slot) {
                *waker = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(outcome: &Arc<Outcome>, index: u32) -> Delivery {
        Delivery::new(outcome.clone(), index, "t".into(), PartitionIndex(0), WallMs(5))
    }

    #[tokio::test]
    async fn every_record_of_a_batch_hears_its_offset() {
        let outcome = Arc::new(Outcome::default());
        let deliveries: Vec<Delivery> = (0..3).map(|index| delivery(&outcome, index)).collect();
        let waiting = tokio::spawn(futures::future::join_all(deliveries));
        tokio::task::yield_now().await;
        assert!(outcome.settle(Verdict::Stored { base: Some(Offset(40)), append_time: None }));
        let offsets: Vec<Option<Offset>> =
            waiting.await.expect("joined").into_iter().map(|stored| stored.expect("stored").offset).collect();
        assert_eq!(offsets, [Some(Offset(40)), Some(Offset(41)), Some(Offset(42))]);
    }

    #[tokio::test]
    async fn a_split_batch_leads_to_its_halves() {
        let whole = Arc::new(Outcome::default());
        let halves = [Arc::new(Outcome::default()), Arc::new(Outcome::default())];
        let (early, late) = (delivery(&whole, 1), delivery(&whole, 2));
        whole.settle(Verdict::Split { at: 2, halves: halves.clone() });
        halves[0].settle(Verdict::Stored { base: Some(Offset(0)), append_time: Some(WallMs(9)) });
        halves[1].settle(Verdict::Stored { base: Some(Offset(7)), append_time: None });
        let early = early.await.expect("stored");
        assert_eq!((early.offset, early.timestamp), (Some(Offset(1)), WallMs(9)));
        assert_eq!(late.await.expect("stored").offset, Some(Offset(7)));
    }

    #[test]
    fn only_the_first_verdict_counts() {
        let outcome = Outcome::default();
        assert!(outcome.settle(Verdict::Stored { base: None, append_time: None }));
        assert!(!outcome.settle(Verdict::Stored { base: Some(Offset(1)), append_time: None }));
    }
}
