//! The two ISRs of a leader (Kafka semantics 2.4): the committed one, and the maximal one while a change is undecided.

use std::collections::BTreeSet;

use minikafka_model::{BrokerId, PartitionEpoch};

/// The in-sync replicas as the leader knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isr {
    committed: BTreeSet<BrokerId>,
    partition_epoch: PartitionEpoch,
    state: IsrState,
}

/// Whether a change of the ISR is on its way to the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IsrState {
    /// Nothing is on its way.
    Committed,
    /// A replica is to join. Until that is decided it counts for the high watermark, and not for the minimum.
    Growing {
        /// Who joins.
        joining: BrokerId,
        /// The proposal may be sent again; false after an answer that only newer metadata can resolve.
        sendable: bool,
    },
    /// Replicas are to leave. Until that is decided they count for everything.
    Shrinking {
        /// Who leaves.
        leaving: BTreeSet<BrokerId>,
        /// As in `Growing`.
        sendable: bool,
    },
}

impl Isr {
    /// The ISR that the metadata gives.
    pub fn committed_at(members: BTreeSet<BrokerId>, partition_epoch: PartitionEpoch) -> Isr {
        Isr { committed: members, partition_epoch, state: IsrState::Committed }
    }

    /// The committed members: for the minimum (error 19) and for shrinking.
    pub fn committed(&self) -> &BTreeSet<BrokerId> {
        &self.committed
    }

    /// The partition epoch that goes with the committed members.
    pub fn partition_epoch(&self) -> PartitionEpoch {
        self.partition_epoch
    }

    /// Whether a change is on its way.
    pub fn state(&self) -> &IsrState {
        &self.state
    }

    /// Whether a change is undecided.
    pub fn in_flight(&self) -> bool {
        self.state != IsrState::Committed
    }

    /// The committed members and whoever may have been added since: for the high watermark.
    pub fn maximal(&self) -> BTreeSet<BrokerId> {
        let mut members = self.committed.clone();
        if let IsrState::Growing { joining, .. } = self.state {
            members.insert(joining);
        }
        members
    }

    /// Whether the replica is in the maximal ISR.
    pub fn may_contain(&self, broker: BrokerId) -> bool {
        self.committed.contains(&broker)
            || matches!(self.state, IsrState::Growing { joining, .. } if joining == broker)
    }

    /// How many members the maximal ISR has.
    pub fn maximal_len(&self) -> usize {
        self.committed.len() + usize::from(matches!(self.state, IsrState::Growing { .. }))
    }

    /// The members that the change on its way asks for.
    pub fn proposed(&self) -> BTreeSet<BrokerId> {
        match &self.state {
            IsrState::Committed => self.committed.clone(),
            IsrState::Growing { .. } => self.maximal(),
            IsrState::Shrinking { leaving, .. } => self.committed.difference(leaving).copied().collect(),
        }
    }

    /// Sets off the joining of a replica. Only from `Committed`, and only who is not a member.
    pub(crate) fn grow(&mut self, joining: BrokerId) {
        assert!(!self.in_flight() && !self.committed.contains(&joining), "an ISR change on top of another");
        self.state = IsrState::Growing { joining, sendable: true };
    }

    /// Sets off the leaving of members. Only from `Committed`.
    pub(crate) fn shrink(&mut self, leaving: BTreeSet<BrokerId>) {
        assert!(!self.in_flight() && leaving.is_subset(&self.committed), "an ISR change on top of another");
        self.state = IsrState::Shrinking { leaving, sendable: true };
    }

    /// Back to the last committed state: only after an answer that proves nobody applied the change.
    pub(crate) fn revert(&mut self) {
        self.state = IsrState::Committed;
    }

    /// The answer was one that only newer metadata resolves: the change stays undecided and is not sent again.
    pub(crate) fn leave_to_metadata(&mut self) {
        match &mut self.state {
            IsrState::Committed => {}
            IsrState::Growing { sendable, .. } | IsrState::Shrinking { sendable, .. } => *sendable = false,
        }
    }

    /// Whether the change on its way may be sent again.
    pub fn sendable(&self) -> bool {
        match self.state {
            IsrState::Committed => false,
            IsrState::Growing { sendable, .. } | IsrState::Shrinking { sendable, .. } => sendable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ids: &[i32]) -> BTreeSet<BrokerId> {
        ids.iter().map(|id| BrokerId(*id)).collect()
    }

    #[test]
    fn while_undecided_the_more_demanding_set_counts() {
        let mut isr = Isr::committed_at(set(&[1, 2]), PartitionEpoch(4));
        isr.grow(BrokerId(3));
        assert_eq!(
            (isr.committed(), isr.maximal(), isr.proposed()),
            (&set(&[1, 2]), set(&[1, 2, 3]), set(&[1, 2, 3]))
        );
        isr.revert();
        isr.shrink(set(&[2]));
        assert_eq!(
            (isr.committed(), isr.maximal(), isr.proposed()),
            (&set(&[1, 2]), set(&[1, 2]), set(&[1]))
        );
        assert!(isr.sendable());
        isr.leave_to_metadata();
        assert!(isr.in_flight() && !isr.sendable());
    }

    #[test]
    #[should_panic(expected = "on top of another")]
    fn one_change_at_a_time() {
        let mut isr = Isr::committed_at(set(&[1, 2]), PartitionEpoch(4));
        isr.grow(BrokerId(3));
        isr.shrink(set(&[2]));
    }
}
