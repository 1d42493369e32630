//! Every change of a partition is computed here: a state, a wish and the rules go in, the next state comes out (Kafka semantics 6.4, 6.5,
//! 6.6, KIP-966). A pure function; nothing else in this room sets a leader, an epoch or an ELR.

use minikafka_metadata::{PartitionState, Recovery};
use minikafka_model::{BrokerId, DirectoryId};

use crate::seeded::{Faults, SeededBug};

/// Which candidates count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElectionKind {
    /// The leader stays where it can; else the first in-sync replica.
    Online,
    /// The first replica where it is in sync.
    Preferred,
    /// As `Online`, but where nobody is in sync any live replica.
    Unclean,
}

/// What is wanted of a partition. What is absent stays.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// The ISR.
    pub isr: Option<Vec<BrokerId>>,
    /// The recovery state.
    pub recovery: Option<Recovery>,
    /// The replicas with their directories.
    pub replicas: Option<Vec<(BrokerId, Option<DirectoryId>)>>,
    /// The replicas being added.
    pub adding: Option<Vec<BrokerId>>,
    /// The replicas being removed.
    pub removing: Option<Vec<BrokerId>>,
    /// Brokers that may have lost records: they are in no ELR any more.
    pub unclean_shutdown: Vec<BrokerId>,
}

impl Wish {
    /// Another ISR and nothing else.
    pub fn isr(isr: Vec<BrokerId>) -> Wish {
        Wish { isr: Some(isr), ..Wish::default() }
    }
}

/// By what a change is judged.
pub struct ElectionRules<'a> {
    /// Which election.
    pub kind: ElectionKind,
    /// Whether the cluster keeps eligible leader replicas.
    pub elr: bool,
    /// The effective min ISR.
    pub min_isr: usize,
    /// Whether a broker may lead: active, and its directory of this replica is online.
    pub acceptable: &'a dyn Fn(BrokerId) -> bool,
    /// Faults planted for a test of the tests: none.
    pub faults: Faults,
}

/// How a leader was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elected {
    /// In the ISR.
    FromIsr,
    /// In the ELR, the ISR being empty: it holds every committed record.
    FromElr,
    /// The last known leader, ISR and ELR being empty: records may be lost.
    LastKnownLeader,
    /// Any live replica: records may be lost.
    Unclean,
}

impl Elected {
    /// Records may be lost.
    pub fn is_unclean(self) -> bool {
        matches!(self, Elected::LastKnownLeader | Elected::Unclean)
    }
}

/// The next state of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The state.
    pub after: PartitionState,
    /// How its leader was found, where it is another one than before.
    pub elected: Option<Elected>,
    /// A reassignment was completed by it.
    pub completed_reassignment: bool,
}

/// The next state, or none where nothing changes.
pub fn change_partition(before: &PartitionState, wish: Wish, rules: &ElectionRules<'_>) -> Option<Change> {
    let mut after = before.clone();
    let mut isr = wish.isr.unwrap_or_else(|| before.isr.clone());
    if let Some(recovery) = wish.recovery {
        after.recovery = recovery;
    }
    if let Some(replicas) = wish.replicas {
        (after.replicas, after.directories) = replicas.into_iter().unzip();
    }
    if let Some(adding) = wish.adding {
        after.adding = adding;
    }
    if let Some(removing) = wish.removing {
        after.removing = removing;
    }
    let completed_reassignment = complete_reassignment(&mut after, &mut isr);
    let mut elr = if rules.elr {
        target_elr(before, &after.replicas, &isr, &wish.unclean_shutdown, rules)
    } else {
        Vec::new()
    };

    let found = elect(before, &after.replicas, &isr, &elr, rules);
    let leader = found.map(|(leader, _)| leader);
    let elected = found.filter(|_| leader != before.leader).map(|(_, how)| how);
    match found {
        Some((leader, Elected::FromElr)) => {
            elr.retain(|id| *id != leader);
            isr = vec![leader];
        }
        Some((leader, Elected::LastKnownLeader | Elected::Unclean)) => {
            elr.clear();
            isr = vec![leader];
            after.recovery = Recovery::Recovering;
        }
        Some((_, Elected::FromIsr)) => {}
        None => {}
    }
    if isr.is_empty() && !rules.elr {
        // Without ELR the last member stays listed, so that it is known who held everything.
        isr = before.isr.iter().copied().filter(|id| after.replicas.contains(id)).collect();
    }
    after.last_known_elr = last_known_leader(before, leader, &isr, rules.elr);
    after.leader = leader;
    after.isr = isr;
    after.elr = elr;

    if after == *before {
        return None;
    }
    let lost_replicas = !rules.faults.has(SeededBug::EpochStaysOnRemoval)
        && before.replicas.iter().any(|id| !after.replicas.contains(id));
    // An election that ends with the same leader in an unclean way is an election all the same: it starts a new epoch.
    let elected_again =
        leader.is_some() && leader == before.leader && found.is_some_and(|(_, how)| how.is_unclean());
    if leader != before.leader || lost_replicas || elected_again {
        after.leader_epoch = before.leader_epoch.next();
    }
    after.partition_epoch = before.partition_epoch.next();
    Some(Change { after, elected, completed_reassignment })
}

/// A reassignment is complete when what it adds is in sync; where it adds nothing, when a member that stays is in sync; and where the
/// number of replicas falls, when all that stay are (Kafka semantics 6.8, KAFKA-15665).
fn complete_reassignment(after: &mut PartitionState, isr: &mut Vec<BrokerId>) -> bool {
    if !after.is_reassigning() {
        return false;
    }
    let stays = |id: &BrokerId| !after.removing.contains(id);
    let target: Vec<BrokerId> = after.replicas.iter().copied().filter(stays).collect();
    let target_isr: Vec<BrokerId> = isr.iter().copied().filter(stays).collect();
    let shrinks = after.removing.len() > after.adding.len();
    let complete = !target.is_empty()
        && !target_isr.is_empty()
        && after.adding.iter().all(|id| target_isr.contains(id))
        && (!shrinks || target.iter().all(|id| target_isr.contains(id)));
    if !complete {
        return false;
    }
    after.directories = target.iter().map(|id| after.directory(*id)).collect();
    after.replicas = target;
    after.adding.clear();
    after.removing.clear();
    *isr = target_isr;
    true
}

/// Whoever was in the ISR when it fell below the minimum holds every committed record, for nothing is committed below it (Kafka
/// semantics 6.6, rules 1 and 2).
fn target_elr(
    before: &PartitionState,
    replicas: &[BrokerId],
    isr: &[BrokerId],
    unclean_shutdown: &[BrokerId],
    rules: &ElectionRules<'_>,
) -> Vec<BrokerId> {
    let enough = isr.len() >= rules.min_isr.min(replicas.len());
    if enough && !rules.faults.has(SeededBug::ElrNeverCleared) {
        return Vec::new();
    }
    let mut elr: Vec<BrokerId> = Vec::new();
    for id in before.elr.iter().chain(&before.isr) {
        let out = isr.contains(id)
            || (unclean_shutdown.contains(id) && !rules.faults.has(SeededBug::UncleanStaysInElr))
            || !replicas.contains(id);
        if !out && !elr.contains(id) {
            elr.push(*id);
        }
    }
    elr
}

fn elect(
    before: &PartitionState,
    replicas: &[BrokerId],
    isr: &[BrokerId],
    elr: &[BrokerId],
    rules: &ElectionRules<'_>,
) -> Option<(BrokerId, Elected)> {
    let valid = |id: BrokerId| {
        if !(rules.acceptable)(id) {
            None
        } else if isr.contains(&id) {
            Some((id, Elected::FromIsr))
        } else if rules.elr
            && (isr.is_empty() || rules.faults.has(SeededBug::ElrBeforeIsr))
            && elr.contains(&id)
        {
            Some((id, Elected::FromElr))
        } else {
            None
        }
    };
    let current = || before.leader.and_then(valid);
    let first_choice = match rules.kind {
        ElectionKind::Preferred => replicas.first().copied().and_then(valid).or_else(current),
        ElectionKind::Online | ElectionKind::Unclean => current(),
    };
    first_choice
        .or_else(|| replicas.iter().copied().find_map(valid))
        .or_else(|| {
            let last = before.last_known_elr.filter(|_| rules.elr && isr.is_empty() && elr.is_empty());
            last.filter(|id| replicas.contains(id) && (rules.acceptable)(*id))
                .map(|id| (id, Elected::LastKnownLeader))
        })
        .or_else(|| {
            let any = replicas.iter().copied().find(|id| (rules.acceptable)(*id));
            any.filter(|_| {
                rules.kind == ElectionKind::Unclean || rules.faults.has(SeededBug::UncleanWithoutLeave)
            })
            .map(|id| (id, Elected::Unclean))
        })
}

/// Remembered at the moment a partition becomes leaderless, forgotten as soon as it has a leader (rule 5).
fn last_known_leader(
    before: &PartitionState,
    leader: Option<BrokerId>,
    isr: &[BrokerId],
    elr: bool,
) -> Option<BrokerId> {
    if leader.is_some() || !elr {
        None
    } else if isr.is_empty() && before.leader.is_some() {
        before.leader
    } else if isr.is_empty() && before.last_known_elr.is_none() {
        // It became leaderless before ELR was switched on: the last member of its ISR is who led.
        before.isr.first().copied()
    } else {
        before.last_known_elr
    }
}

#[cfg(test)]
#[path = "election_tests.rs"]
mod tests;
