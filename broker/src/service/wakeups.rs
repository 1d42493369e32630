//! The alarm clock of the replicas: who wants to be ticked when.

use std::collections::BTreeSet;

use minikafka_model::{Mono, TopicPartition};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// At most one entry for each replica.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    due: Mutex<BTreeSet<(Mono, TopicPartition)>>,
    earlier: Notify,
}

impl Wakeups {
    /// Moves a replica's alarm: `old` is what it had.
    pub(crate) fn arm(&self, partition: TopicPartition, old: Option<Mono>, new: Option<Mono>) {
        let mut due = self.due.lock();
        let first = due.first().map(|(at, _)| *at);
        if let Some(old) = old {
            due.remove(&(old, partition));
        }
        let Some(new) = new else { return };
        due.insert((new, partition));
        drop(due);
        if first.is_none_or(|first| new < first) {
            self.earlier.notify_one();
        }
    }

    /// The earliest alarm.
    pub(crate) fn next(&self) -> Option<Mono> {
        self.due.lock().first().map(|(at, _)| *at)
    }

    /// Takes the replicas whose time has come.
    pub(crate) fn take_due(&self, now: Mono) -> Vec<TopicPartition> {
        let mut due = self.due.lock();
        let mut taken = Vec::new();
        while let Some((at, partition)) = due.first().copied()
            && at <= now
        {
            due.pop_first();
            taken.push(partition);
        }
        taken
    }

    /// Completes when an alarm was set that is earlier than all others.
    pub(crate) async fn earlier(&self) {
        self.earlier.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minikafka_model::{PartitionIndex, TopicId, Uuid};

    #[test]
    fn alarms_ring_in_their_order_and_once() {
        let at = |p| TopicPartition { topic: TopicId(Uuid(1)), partition: PartitionIndex(p) };
        let wakeups = Wakeups::default();
        wakeups.arm(at(1), None, Some(Mono(50)));
        wakeups.arm(at(2), None, Some(Mono(20)));
        wakeups.arm(at(1), Some(Mono(50)), Some(Mono(10)));
        assert_eq!(wakeups.next(), Some(Mono(10)));
        assert_eq!(wakeups.take_due(Mono(20)), [at(1), at(2)]);
        wakeups.arm(at(2), Some(Mono(20)), None);
        assert_eq!(wakeups.next(), None);
    }
}
