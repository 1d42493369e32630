//! Writes that wait for the high watermark (Kafka semantics 1.5).

use std::collections::{BTreeMap, BTreeSet};

use minikafka_model::{LeaderEpoch, Mono, Ticket};

use crate::Written;

/// One write that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) written: Written,
    /// The epoch it was appended in (for a duplicate: in which it was asked again).
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) deadline: Mono,
}

/// The waiting writes of one leader, by the offset they wait for. The shell bounds their number: each belongs to a request
/// that it holds.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    by_ticket: BTreeMap<Ticket, Waiter>,
    by_offset: BTreeSet<(i64, Ticket)>,
    by_deadline: BTreeSet<(Mono, Ticket)>,
}

impl Waiters {
    pub(crate) fn add(&mut self, ticket: Ticket, waiter: Waiter) {
        self.remove(ticket);
        self.by_offset.insert((waiter.written.last_offset.0, ticket));
        self.by_deadline.insert((waiter.deadline, ticket));
        self.by_ticket.insert(ticket, waiter);
    }

    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<Waiter> {
        let waiter = self.by_ticket.remove(&ticket)?;
        self.by_offset.remove(&(waiter.written.last_offset.0, ticket));
        self.by_deadline.remove(&(waiter.deadline, ticket));
        Some(waiter)
    }

    /// Takes the waiters whose last offset lies below the high watermark, in the order of their offsets.
    pub(crate) fn below(&mut self, high_watermark: minikafka_model::Offset) -> Vec<(Ticket, Waiter)> {
        let mut done = Vec::new();
        while let Some((offset, ticket)) = self.by_offset.first().copied()
            && offset < high_watermark.0
        {
            done.extend(self.remove(ticket).map(|waiter| (ticket, waiter)));
        }
        done
    }

    /// Takes the waiters whose time is over.
    pub(crate) fn expired(&mut self, now: Mono) -> Vec<(Ticket, Waiter)> {
        let mut done = Vec::new();
        while let Some((deadline, ticket)) = self.by_deadline.first().copied()
            && deadline <= now
        {
            done.extend(self.remove(ticket).map(|waiter| (ticket, waiter)));
        }
        done
    }

    /// Takes them all, in the order of their offsets.
    pub(crate) fn drain(&mut self) -> Vec<(Ticket, Waiter)> {
        let order: Vec<Ticket> = self.by_offset.iter().map(|(_, ticket)| *ticket).collect();
        order.into_iter().filter_map(|ticket| self.remove(ticket).map(|waiter| (ticket, waiter))).collect()
    }

    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        self.by_deadline.first().map(|(deadline, _)| *deadline)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_ticket.len()
    }
}

#[cfg(test)]
mod tests {
    use minikafka_model::Offset;

    use super::*;

    fn waiter(last: i64, deadline: u64) -> Waiter {
        Waiter {
            written: Written {
                base_offset: Offset(last),
                last_offset: Offset(last),
                log_append_time: None,
                log_start_offset: Offset(0),
                duplicate: false,
            },
            leader_epoch: LeaderEpoch(1),
            deadline: Mono(deadline),
        }
    }

    #[test]
    fn answered_by_offset_expired_by_deadline() {
        let mut waiters = Waiters::default();
        waiters.add(Ticket(1), waiter(9, 100));
        waiters.add(Ticket(2), waiter(4, 300));
        waiters.add(Ticket(3), waiter(4, 50));
        assert_eq!(waiters.next_deadline(), Some(Mono(50)));
        let tickets = |taken: Vec<(Ticket, Waiter)>| taken.iter().map(|(t, _)| t.0).collect::<Vec<_>>();
        assert_eq!(tickets(waiters.expired(Mono(50))), [3]);
        assert_eq!(tickets(waiters.below(Offset(4))), Vec::<u64>::new());
        assert_eq!(tickets(waiters.below(Offset(5))), [2]);
        assert_eq!(tickets(waiters.drain()), [1]);
        assert_eq!((waiters.len(), waiters.next_deadline()), (0, None));
    }
}
