//! Appending what a producer sends.

use std::time::Duration;

use bytes::Bytes;
use minikafka_model::TopicPartition;
use minikafka_replication::{
    Acks, BatchRefusal, ClientBatch, Produce, ProduceDone, ProduceRefusal, Produced, Written,
};
use tokio::sync::oneshot;

use super::{ReplicaCell, Service, TopicSettings};

/// How a write begins.
#[derive(Debug)]
pub(crate) enum WriteStart {
    /// It is over.
    Done(WriteOutcome),
    /// It is in the log and waits for the in-sync replicas.
    Waiting(oneshot::Receiver<ProduceDone>),
}

/// How a write ends.
#[derive(Debug)]
pub(crate) enum WriteOutcome {
    /// Written, as far as `acks` asks.
    Written(Written),
    /// It waited, and this is what became of it.
    Waited(ProduceDone),
    /// Nothing was written.
    Refused(ProduceRefusal),
    /// No replica of the partition lives here.
    NotHosted,
}

impl Service {
    /// Checks and appends one batch. The costly checks run before the lock is taken; the verdict is given under it, in Kafka's order.
    pub(crate) fn write(
        &self,
        at: TopicPartition,
        records: Bytes,
        acks: Acks,
        timeout: Duration,
    ) -> WriteStart {
        let Some(cell) = self.replicas.get(at) else { return WriteStart::Done(WriteOutcome::NotHosted) };
        let now = self.clock.now();
        let settings = cell.settings();
        let batch = check(&cell, &settings, records);
        if let Some(delay) = self.faults.disk_delay() {
            // A slow disk of the lab stalls whoever writes, as a real one does.
            std::thread::sleep(delay);
        }
        let ticket = self.waiting.ticket();
        let receiver = (acks == Acks::All).then(|| self.waiting.write(ticket));
        let produce = Produce { batch, acks, ticket, deadline: now.mono.after(timeout) };
        match (self.with_replica(&cell, |replica, out| replica.produce(now, produce, out)), receiver) {
            (Produced::Waiting(_), Some(receiver)) => WriteStart::Waiting(receiver),
            (Produced::Waiting(written) | Produced::Done(written), _) => {
                self.waiting.forget_write(ticket);
                WriteStart::Done(WriteOutcome::Written(written))
            }
            (Produced::Refused(refusal), _) => {
                self.waiting.forget_write(ticket);
                WriteStart::Done(WriteOutcome::Refused(refusal))
            }
        }
    }
}

/// The checks of the batch itself (Kafka semantics 1.2, rows 12 to 17).
#[allow(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "until the storage room is joined"
)]
fn check(
    _cell: &ReplicaCell,
    _settings: &TopicSettings,
    records: Bytes,
) -> Result<ClientBatch, BatchRefusal> {
    Ok(ClientBatch { bytes: records.to_vec() })
}
