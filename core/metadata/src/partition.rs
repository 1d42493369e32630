//! What the metadata knows of one partition, and a change of it.

use std::collections::BTreeSet;

use minikafka_model::{BrokerId, DirectoryId, LeaderEpoch, PartitionEpoch, TopicPartition};
use serde::{Deserialize, Serialize};

use crate::error::Violation;

/// `LeaderRecoveryState` of a partition (Kafka semantics 6.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Recovery {
    /// The normal state.
    Recovered,
    /// After an unclean election, until the leader has reported itself recovered with an ISR proposal.
    Recovering,
}

/// The committed state of one partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionState {
    /// The assigned replicas; their order decides elections, the first is the preferred leader. Replicas that are being added or
    /// removed are included.
    pub replicas: Vec<BrokerId>,
    /// The log directory of each replica on its broker, in the order of `replicas`; none while the broker has not said.
    pub directories: Vec<Option<DirectoryId>>,
    /// The in-sync replicas. Their order carries no meaning (Kafka semantics 2.4).
    pub isr: Vec<BrokerId>,
    /// The leader, if there is one.
    pub leader: Option<BrokerId>,
    /// Raised at every change of leader.
    pub leader_epoch: LeaderEpoch,
    /// Raised at every change.
    pub partition_epoch: PartitionEpoch,
    /// Whether the leader came from an unclean election and has not recovered yet.
    pub recovery: Recovery,
    /// Replicas that a reassignment adds.
    pub adding: Vec<BrokerId>,
    /// Replicas that a reassignment removes.
    pub removing: Vec<BrokerId>,
    /// Eligible leader replicas (KIP-966): outside the ISR, but known to hold every committed record.
    pub elr: Vec<BrokerId>,
    /// The leader at the moment the partition became leaderless, while it is (Kafka's LastKnownElr).
    pub last_known_elr: Option<BrokerId>,
}

impl PartitionState {
    /// A new partition as created: both epochs 0, nothing under way. The ISR is that of the active replicas, the leader its first
    /// (Kafka semantics 6.8).
    pub fn created(
        replicas: Vec<BrokerId>,
        directories: Vec<Option<DirectoryId>>,
        isr: Vec<BrokerId>,
    ) -> PartitionState {
        PartitionState {
            leader: isr.first().copied(),
            replicas,
            directories,
            isr,
            leader_epoch: LeaderEpoch::ZERO,
            partition_epoch: PartitionEpoch::ZERO,
            recovery: Recovery::Recovered,
            adding: Vec::new(),
            removing: Vec::new(),
            elr: Vec::new(),
            last_known_elr: None,
        }
    }

    /// The ISR as a set.
    pub fn isr_set(&self) -> BTreeSet<BrokerId> {
        self.isr.iter().copied().collect()
    }

    /// The broker that should lead where possible: the first of the replicas.
    pub fn preferred_leader(&self) -> Option<BrokerId> {
        self.replicas.first().copied()
    }

    /// The directory of this broker's replica, if the broker has one and has said where.
    pub fn directory(&self, broker: BrokerId) -> Option<DirectoryId> {
        let at = self.replicas.iter().position(|id| *id == broker)?;
        self.directories.get(at).copied().flatten()
    }

    /// A reassignment is under way.
    pub fn is_reassigning(&self) -> bool {
        !self.adding.is_empty() || !self.removing.is_empty()
    }

    /// What must hold of every partition by itself (docs/invariants.md, M2).
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), Violation> {
        let replicas = distinct(&self.replicas).ok_or(Violation::ReplicaTwice)?;
        if replicas.is_empty() {
            return Err(Violation::NoReplicas);
        }
        if self.directories.len() != self.replicas.len() {
            return Err(Violation::DirectoriesDoNotMatchReplicas);
        }
        let isr = distinct(&self.isr).ok_or(Violation::IsrMemberTwice)?;
        let elr = distinct(&self.elr).ok_or(Violation::ElrMemberTwice)?;
        if !isr.is_subset(&replicas) {
            return Err(Violation::IsrOutsideReplicas);
        }
        if !elr.is_subset(&replicas) {
            return Err(Violation::ElrOutsideReplicas);
        }
        if !isr.is_disjoint(&elr) {
            return Err(Violation::ElrInsideIsr);
        }
        if self.leader.is_some_and(|leader| !isr.contains(&leader)) {
            return Err(Violation::LeaderOutsideIsr);
        }
        if self.recovery == Recovery::Recovering && isr.len() > 1 {
            return Err(Violation::RecoveringWithFollowersInIsr);
        }
        let adding = distinct(&self.adding).ok_or(Violation::ReassignmentOutsideReplicas)?;
        let removing = distinct(&self.removing).ok_or(Violation::ReassignmentOutsideReplicas)?;
        let inside = adding.is_subset(&replicas) && removing.is_subset(&replicas);
        if !inside || !adding.is_disjoint(&removing) {
            return Err(Violation::ReassignmentOutsideReplicas);
        }
        Ok(())
    }
}

fn distinct(ids: &[BrokerId]) -> Option<BTreeSet<BrokerId>> {
    let set: BTreeSet<BrokerId> = ids.iter().copied().collect();
    (set.len() == ids.len()).then_some(set)
}

/// A change of one partition: the epochs after it, and the fields that are set anew. A field that is absent stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionChange {
    /// The partition.
    pub at: TopicPartition,
    /// The partition epoch after the change: one more than before.
    pub partition_epoch: PartitionEpoch,
    /// The leader epoch after the change: as before, or one more where `leader` is present or replicas are taken away
    /// (Kafka semantics 6.5).
    pub leader_epoch: LeaderEpoch,
    /// The leader is set, perhaps to the same broker again, or to nobody.
    pub leader: Option<Option<BrokerId>>,
    /// The ISR is set.
    pub isr: Option<Vec<BrokerId>>,
    /// The replica list is set, with the directory of each.
    pub replicas: Option<Vec<BrokerId>>,
    /// The directories are set.
    pub directories: Option<Vec<Option<DirectoryId>>>,
    /// The recovery state is set.
    pub recovery: Option<Recovery>,
    /// The replicas being added are set.
    pub adding: Option<Vec<BrokerId>>,
    /// The replicas being removed are set.
    pub removing: Option<Vec<BrokerId>>,
    /// The ELR is set.
    pub elr: Option<Vec<BrokerId>>,
    /// The last known leader is set.
    pub last_known_elr: Option<Option<BrokerId>>,
}

impl PartitionChange {
    /// The change that leads from one state to another. The leader is named wherever the leader epoch rises.
    pub fn between(at: TopicPartition, before: &PartitionState, after: &PartitionState) -> PartitionChange {
        fn changed<T: PartialEq + Clone>(before: &T, after: &T) -> Option<T> {
            (before != after).then(|| after.clone())
        }
        let led_anew = before.leader_epoch != after.leader_epoch || before.leader != after.leader;
        PartitionChange {
            at,
            partition_epoch: after.partition_epoch,
            leader_epoch: after.leader_epoch,
            leader: led_anew.then_some(after.leader),
            isr: changed(&before.isr, &after.isr),
            replicas: changed(&before.replicas, &after.replicas),
            directories: changed(&before.directories, &after.directories),
            recovery: changed(&before.recovery, &after.recovery),
            adding: changed(&before.adding, &after.adding),
            removing: changed(&before.removing, &after.removing),
            elr: changed(&before.elr, &after.elr),
            last_known_elr: changed(&before.last_known_elr, &after.last_known_elr),
        }
    }

    /// The state after the change.
    ///
    /// # Errors
    /// An epoch that does not follow from the state before, or a state that breaks a rule.
    pub fn onto(&self, before: &PartitionState) -> Result<PartitionState, Violation> {
        if self.partition_epoch != before.partition_epoch.next() {
            return Err(Violation::PartitionEpochNotNext {
                before: before.partition_epoch,
                after: self.partition_epoch,
            });
        }
        let raised = self.leader_epoch == before.leader_epoch.next();
        let leader_moves = self.leader.is_some_and(|leader| leader != before.leader);
        if !raised && (leader_moves || self.leader_epoch != before.leader_epoch) {
            return Err(Violation::LeaderEpochDoesNotFollow {
                before: before.leader_epoch,
                after: self.leader_epoch,
            });
        }
        let mut after = before.clone();
        after.partition_epoch = self.partition_epoch;
        after.leader_epoch = self.leader_epoch;
        set(&mut after.leader, self.leader.as_ref());
        set(&mut after.isr, self.isr.as_ref());
        set(&mut after.replicas, self.replicas.as_ref());
        set(&mut after.directories, self.directories.as_ref());
        set(&mut after.recovery, self.recovery.as_ref());
        set(&mut after.adding, self.adding.as_ref());
        set(&mut after.removing, self.removing.as_ref());
        set(&mut after.elr, self.elr.as_ref());
        set(&mut after.last_known_elr, self.last_known_elr.as_ref());
        after.check()?;
        Ok(after)
    }
}

fn set<T: Clone>(field: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        field.clone_from(value);
    }
}
