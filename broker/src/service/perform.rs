//! Performs what replicas want done, in their order and never under their locks.

use std::sync::Arc;

use minikafka_model::{LeaderEpoch, Offset};
use minikafka_replication::{Effect, Next};

use super::{ReplicaCell, Service};
use crate::event::{BrokerEvent, NodeEvent};

/// Threads that write epoch checkpoints of one metadata change side by side.
const EPOCH_WRITERS: usize = 4;

/// An epoch checkpoint to be written.
struct EpochsToWrite {
    cell: Arc<ReplicaCell>,
    leader_epoch: LeaderEpoch,
    version: u64,
    entries: Vec<(LeaderEpoch, Offset)>,
}

impl Service {
    /// Performs the effects of one replica. What comes back is for the fetcher that brought the input: what to do next once a held
    /// batch was appended.
    pub(crate) fn perform(&self, cell: &ReplicaCell, effects: Vec<Effect>) -> Option<Next> {
        let mut next = None;
        for effect in effects {
            if let Effect::WriteEpochs { leader_epoch, version, entries } = effect {
                if self.write_epochs(cell, version, &entries) {
                    next = Some(self.epochs_written(cell, leader_epoch));
                }
            } else {
                self.perform_one(cell, effect);
            }
        }
        next
    }

    /// Performs the effects of many replicas, as one change of metadata makes them: the epoch checkpoints are written side by side,
    /// before any of the new leaders takes a write.
    pub(crate) fn perform_all(&self, all: Vec<(Arc<ReplicaCell>, Vec<Effect>)>) {
        let mut to_write = Vec::new();
        for (cell, effects) in all {
            for effect in effects {
                if let Effect::WriteEpochs { leader_epoch, version, entries } = effect {
                    to_write.push(EpochsToWrite { cell: Arc::clone(&cell), leader_epoch, version, entries });
                } else {
                    self.perform_one(&cell, effect);
                }
            }
        }
        let share = to_write.len().div_ceil(EPOCH_WRITERS).max(1);
        std::thread::scope(|scope| {
            for part in to_write.chunks(share) {
                let work = move || {
                    for it in part {
                        if self.write_epochs(&it.cell, it.version, &it.entries) {
                            self.epochs_written(&it.cell, it.leader_epoch);
                        }
                    }
                };
                if to_write.len() <= 1 {
                    work();
                } else {
                    scope.spawn(work);
                }
            }
        });
    }

    /// False: the directory failed.
    fn write_epochs(&self, cell: &ReplicaCell, version: u64, entries: &[(LeaderEpoch, Offset)]) -> bool {
        let mut on_disk = cell.epochs_on_disk.lock();
        if *on_disk >= version {
            return true;
        }
        match self.store.write_epochs(&cell.topic, cell.at, entries) {
            Ok(()) => {
                *on_disk = version;
                true
            }
            Err(error) => {
                drop(on_disk);
                self.directory_failed(&error.to_string());
                false
            }
        }
    }

    fn epochs_written(&self, cell: &ReplicaCell, leader_epoch: LeaderEpoch) -> Next {
        let now = self.clock.now();
        let (next, effects) = self.input(cell, |replica, out| replica.epochs_written(now, leader_epoch, out));
        // A further epoch in what was held asks for another checkpoint: its outcome is the one that counts.
        self.perform(cell, effects).unwrap_or(next)
    }

    fn perform_one(&self, cell: &ReplicaCell, effect: Effect) {
        match effect {
            Effect::Produced { ticket, done } => self.waiting.written(ticket, done),
            Effect::WakeFetch { ticket } => self.waiting.wake_fetch(ticket),
            Effect::WakeStream { stream } => self.waiting.wake_stream(stream, cell.at),
            Effect::ProposeIsr(proposal) => self.proposals.put(cell.at, proposal),
            Effect::WithdrawIsr => self.proposals.withdraw(cell.at),
            Effect::AskChanged => self.ask_changes.put(cell.at),
            Effect::Emit(event) => self.tell(BrokerEvent::Replica {
                topic: cell.topic.to_string(),
                partition: cell.at.partition.0,
                event,
            }),
            Effect::LogFailed { error } => self.directory_failed(&error),
            Effect::WriteEpochs { .. } => unreachable!("written by the callers"),
        }
    }

    /// The log directory failed: every replica goes offline. A failed sync is never tried again.
    pub(crate) fn directory_failed(&self, reason: &str) {
        if !self.store.fail() {
            return;
        }
        self.tell(NodeEvent::LogDirectoryOffline { reason: reason.to_owned() });
        for cell in self.replicas.all() {
            let reason = format!("its log directory failed: {reason}");
            let ((), effects) = self.input(&cell, |replica, out| replica.fail(reason, out));
            for effect in effects {
                if !matches!(effect, Effect::WriteEpochs { .. } | Effect::LogFailed { .. }) {
                    self.perform_one(&cell, effect);
                }
            }
        }
        self.directory_failed.notify_one();
    }
}
