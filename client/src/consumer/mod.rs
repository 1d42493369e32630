//! The consumer: a stream of records from partitions that were assigned by hand.

mod answer;
mod fetcher;
mod positions;
mod validate;
mod walk;

#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use positions::{Positions, Start};
pub use walk::ConsumerRecord;

use crate::client::Shared;
use crate::error::Error;
use fetcher::Fetcher;
use walk::{Fetched, Step};

/// Answers that wait to be read, over all partitions (each of which has a bound of its own).
const MAX_WAITING: usize = 1024;

/// Begins a consumer.
///
/// ```no_run
/// # async fn example(client: minikafka_client::Client) -> Result<(), minikafka_client::Error> {
/// use futures::StreamExt;
/// use minikafka_client::Start;
///
/// let mut consumer = client.consumer().assign("orders", 0, Start::Earliest).start();
/// while let Some(record) = consumer.next().await {
///     let record = record?;
///     println!("{} {:?}", record.offset, record.value);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct ConsumerBuilder {
    shared: Arc<Shared>,
    positions: Positions,
}

impl ConsumerBuilder {
    pub(crate) fn new(shared: Arc<Shared>) -> ConsumerBuilder {
        ConsumerBuilder { shared, positions: Positions::default() }
    }

    /// With this partition, from there on.
    pub fn assign(self, topic: &str, partition: i32, start: Start) -> ConsumerBuilder {
        self.positions.assign(topic, partition, start);
        self
    }

    /// Begins to fetch. Must be called inside a tokio runtime.
    pub fn start(self) -> Consumer {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let stop = CancellationToken::new();
        let fetcher = Fetcher::new(self.shared, self.positions.clone(), sender);
        tokio::spawn(fetcher.run(stop.clone()));
        Consumer { positions: self.positions, waiting: receiver, current: None, _stop: stop.drop_guard() }
    }
}

/// What the fetching task hands over.
#[derive(Debug)]
enum Handed {
    Records(Box<Fetched>),
    Trouble(Error),
}

/// A stream of records. Records of one partition come in the order of their offsets; partitions take turns, answer by answer.
///
/// An error in the stream does not end it: the consumer goes on where it can (after [`Error::LogTruncation`] at the point of truncation),
/// and stands still in a partition whose position does not exist until it is told where to go ([`Positions::seek`]).
pub struct Consumer {
    positions: Positions,
    waiting: mpsc::Receiver<Handed>,
    current: Option<Box<Fetched>>,
    _stop: DropGuard,
}

impl Consumer {
    /// Positions, lag, seek, pause: usable while the stream is read.
    pub fn positions(&self) -> Positions {
        self.positions.clone()
    }

    /// The next record of the answer being read.
    fn walk(&mut self) -> Option<Result<ConsumerRecord, Error>> {
        loop {
            let fetched = self.current.as_mut()?;
            let mut table = self.positions.table();
            let Some(position) = table.current(&fetched.place, fetched.generation) else {
                // A seek has made it worthless.
                self.current = None;
                return None;
            };
            let step = fetched.step();
            let found = match step {
                Ok(Step::Record(record, behind)) => {
                    position.next = Some(behind);
                    position.last_epoch = record.leader_epoch;
                    return Some(Ok(record));
                }
                Ok(Step::Passed(next)) => {
                    position.next = Some(next);
                    continue;
                }
                Ok(Step::End) => None,
                Err(error) => Some(Err(error)),
            };
            position.buffered = position.buffered.saturating_sub(1);
            drop(table);
            self.current = None;
            self.positions.shared.wake.notify_one();
            self.positions.shared.progress.notify_waiters();
            return found;
        }
    }
}

impl Stream for Consumer {
    type Item = Result<ConsumerRecord, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.walk() {
                return Poll::Ready(Some(item));
            }
            match self.waiting.poll_recv(context) {
                Poll::Ready(Some(Handed::Records(fetched))) => self.current = Some(fetched),
                Poll::Ready(Some(Handed::Trouble(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").field("assigned", &self.positions.assigned()).finish_non_exhaustive()
    }
}
