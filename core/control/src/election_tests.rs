//! Kafka semantics 6.4, 6.5 and 6.6, row by row, and the worked examples.

use minikafka_metadata::{PartitionState, Recovery};
use minikafka_model::{BrokerId, LeaderEpoch, PartitionEpoch};

use super::{Change, Elected, ElectionKind, ElectionRules, Wish, change_partition};
use crate::seeded::Faults;

fn ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

fn state(replicas: &[i32], isr: &[i32], leader: Option<i32>) -> PartitionState {
    let mut state = PartitionState::created(ids(replicas), vec![None; replicas.len()], ids(isr));
    state.leader = leader.map(BrokerId);
    state
}

/// A small cluster: which brokers are alive, whether ELR is on, the min ISR.
struct Rules {
    alive: Vec<BrokerId>,
    elr: bool,
    min_isr: usize,
}

impl Rules {
    fn new(alive: &[i32]) -> Rules {
        Rules { alive: ids(alive), elr: false, min_isr: 1 }
    }

    fn with_elr(alive: &[i32], min_isr: usize) -> Rules {
        Rules { alive: ids(alive), elr: true, min_isr }
    }

    fn change(&self, before: &PartitionState, kind: ElectionKind, wish: Wish) -> Option<Change> {
        let acceptable = |id: BrokerId| self.alive.contains(&id);
        let rules = ElectionRules {
            kind,
            elr: self.elr,
            min_isr: self.min_isr,
            acceptable: &acceptable,
            faults: Faults::default(),
        };
        let change = change_partition(before, wish, &rules);
        if let Some(change) = &change {
            change.after.check().expect("the next state keeps the rules");
            assert_eq!(change.after.partition_epoch, before.partition_epoch.next());
        }
        change
    }

    /// A broker leaves the ISR because it is fenced; it is not alive any more.
    fn fence(&mut self, before: &PartitionState, broker: i32) -> PartitionState {
        self.alive.retain(|id| id.0 != broker);
        let isr = before.isr.iter().copied().filter(|id| id.0 != broker).collect();
        self.change(before, ElectionKind::Online, Wish::isr(isr)).expect("fencing changes it").after
    }

    fn unfence(&mut self, before: &PartitionState, broker: i32) -> Option<Change> {
        self.alive.push(BrokerId(broker));
        self.change(before, ElectionKind::Online, Wish::default())
    }

    /// A broker registers anew and may have lost records.
    fn unclean(&self, before: &PartitionState, broker: i32) -> PartitionState {
        let isr = before.isr.iter().copied().filter(|id| id.0 != broker).collect();
        let wish = Wish { unclean_shutdown: ids(&[broker]), ..Wish::isr(isr) };
        self.change(before, ElectionKind::Online, wish).map_or_else(|| before.clone(), |change| change.after)
    }
}

#[test]
fn online_keeps_the_leader_where_it_can() {
    let before = state(&[1, 2, 3], &[1, 2, 3], Some(2));
    let change = Rules::new(&[1, 2]).change(&before, ElectionKind::Online, Wish::isr(ids(&[1, 2]))).unwrap();
    assert_eq!((change.after.leader, change.elected), (Some(BrokerId(2)), None));
    assert_eq!(change.after.leader_epoch, LeaderEpoch(0), "a pure ISR change keeps the leader epoch");
    assert_eq!(change.after.partition_epoch, PartitionEpoch(1));
}

#[test]
fn the_first_in_sync_replica_in_list_order_is_elected() {
    let before = state(&[3, 2, 1], &[1, 2, 3], Some(3));
    let change = Rules::new(&[1, 2]).change(&before, ElectionKind::Online, Wish::isr(ids(&[1, 2]))).unwrap();
    assert_eq!((change.after.leader, change.elected), (Some(BrokerId(2)), Some(Elected::FromIsr)));
    assert_eq!(change.after.leader_epoch, LeaderEpoch(1));
}

#[test]
fn preferred_goes_back_to_the_first_replica() {
    let before = state(&[1, 2, 3], &[1, 2, 3], Some(3));
    let all = Rules::new(&[1, 2, 3]);
    let back = all.change(&before, ElectionKind::Preferred, Wish::default()).unwrap();
    assert_eq!(back.after.leader, Some(BrokerId(1)));
    // The preferred replica is alive but not in sync: the leader stays, nothing changes.
    let out = state(&[1, 2, 3], &[2, 3], Some(3));
    assert_eq!(all.change(&out, ElectionKind::Preferred, Wish::default()), None);
    // Leaderless, and the preferred one is away: another valid one.
    let mut leaderless = state(&[1, 2, 3], &[2], None);
    leaderless.leader = None;
    let other = Rules::new(&[2]).change(&leaderless, ElectionKind::Preferred, Wish::default()).unwrap();
    assert_eq!(other.after.leader, Some(BrokerId(2)));
}

#[test]
fn without_elr_the_last_isr_member_stays_listed() {
    let before = state(&[1, 2], &[1], Some(1));
    let mut rules = Rules::new(&[1, 2]);
    let gone = rules.fence(&before, 1);
    assert_eq!((gone.leader, gone.isr.clone()), (None, ids(&[1])));
    assert_eq!(gone.leader_epoch, LeaderEpoch(1), "becoming leaderless raises the leader epoch");
    // Broker 2 is alive but was not in sync: nobody is elected.
    assert_eq!(rules.change(&gone, ElectionKind::Online, Wish::default()), None);
    let back = rules.unfence(&gone, 1).unwrap();
    assert_eq!((back.after.leader, back.after.recovery), (Some(BrokerId(1)), Recovery::Recovered));
}

#[test]
fn unclean_takes_the_first_live_replica_and_it_recovers() {
    let before = state(&[1, 3, 2], &[1], None);
    let change = Rules::new(&[2, 3]).change(&before, ElectionKind::Unclean, Wish::default()).unwrap();
    assert_eq!((change.after.leader, change.elected), (Some(BrokerId(3)), Some(Elected::Unclean)));
    assert_eq!((change.after.isr, change.after.recovery), (ids(&[3]), Recovery::Recovering));
    // Nobody alive: nothing happens.
    assert_eq!(Rules::new(&[]).change(&before, ElectionKind::Unclean, Wish::default()), None);
}

#[test]
fn the_leaders_report_ends_the_recovery() {
    let mut before = state(&[1, 2], &[1], Some(1));
    before.recovery = Recovery::Recovering;
    let wish = Wish { recovery: Some(Recovery::Recovered), ..Wish::default() };
    let change = Rules::new(&[1, 2]).change(&before, ElectionKind::Online, wish).unwrap();
    assert_eq!(change.after.recovery, Recovery::Recovered);
    assert_eq!(change.after.leader_epoch, LeaderEpoch(0));
}

#[test]
fn the_same_isr_changes_nothing() {
    let before = state(&[1, 2], &[1, 2], Some(1));
    assert_eq!(Rules::new(&[1, 2]).change(&before, ElectionKind::Online, Wish::isr(ids(&[1, 2]))), None);
}

/// The worked example of Kafka semantics 6.6 with one replica.
#[test]
fn elr_with_one_replica() {
    let before = state(&[3], &[3], Some(3));
    let mut rules = Rules::with_elr(&[3], 1);
    let gone = rules.fence(&before, 3);
    assert_eq!((gone.leader, gone.isr.clone(), gone.elr.clone()), (None, ids(&[]), ids(&[3])));
    assert_eq!(gone.last_known_elr, Some(BrokerId(3)));

    // Stopped cleanly: it comes back from the ELR, cleanly.
    let back = rules.unfence(&gone, 3).unwrap();
    assert_eq!((back.after.leader, back.elected), (Some(BrokerId(3)), Some(Elected::FromElr)));
    assert_eq!((back.after.isr, back.after.elr, back.after.last_known_elr), (ids(&[3]), ids(&[]), None));
    assert_eq!(back.after.recovery, Recovery::Recovered);

    // Killed: not in the ELR any more when it registers, and elected as the last known leader, uncleanly.
    rules.alive.clear();
    let lost = rules.unclean(&gone, 3);
    assert_eq!((lost.elr.clone(), lost.last_known_elr), (ids(&[]), Some(BrokerId(3))));
    let back = rules.unfence(&lost, 3).unwrap();
    assert_eq!((back.after.leader, back.elected), (Some(BrokerId(3)), Some(Elected::LastKnownLeader)));
    assert_eq!((back.after.isr, back.after.recovery), (ids(&[3]), Recovery::Recovering));
    assert_eq!(back.after.last_known_elr, None);
}

/// The worked example of Kafka semantics 6.6 with three replicas and a minimum of two.
#[test]
fn elr_with_three_replicas_and_min_isr_two() {
    let before = state(&[1, 2, 3], &[1, 2, 3], Some(1));
    let mut rules = Rules::with_elr(&[1, 2, 3], 2);
    let two = rules.fence(&before, 3);
    assert_eq!((two.isr.clone(), two.elr.clone()), (ids(&[1, 2]), ids(&[])));
    let one = rules.fence(&two, 2);
    assert_eq!((one.isr.clone(), one.elr.clone()), (ids(&[1]), ids(&[2])));
    let none = rules.fence(&one, 1);
    assert_eq!((none.isr.clone(), none.elr.clone(), none.leader), (ids(&[]), ids(&[2, 1]), None));
    assert_eq!(none.last_known_elr, Some(BrokerId(1)));

    let back = rules.unfence(&none, 2).unwrap().after;
    assert_eq!((back.leader, back.isr.clone(), back.elr.clone()), (Some(BrokerId(2)), ids(&[2]), ids(&[1])));
    // Broker 3 was never in the ELR: alone it is not elected.
    rules.alive.clear();
    assert_eq!(rules.unfence(&none, 3), None);
    // As soon as the ISR has two members again the ELR is empty.
    rules.alive = ids(&[1, 2]);
    let full = rules.change(&back, ElectionKind::Online, Wish::isr(ids(&[2, 3]))).unwrap().after;
    assert_eq!(full.elr, ids(&[]));
}

/// A leader's own shrink can put two members into the ELR at once (oracle README, 6.6).
#[test]
fn a_shrink_moves_members_into_the_elr() {
    let before = state(&[1, 2, 3], &[1, 2, 3], Some(1));
    let rules = Rules::with_elr(&[1, 2, 3], 3);
    let change = rules.change(&before, ElectionKind::Online, Wish::isr(ids(&[1]))).unwrap();
    assert_eq!(change.after.elr, ids(&[2, 3]));
}

#[test]
fn the_elr_counts_only_while_the_isr_is_empty() {
    let mut before = state(&[1, 2, 3], &[3], Some(3));
    before.elr = ids(&[1]);
    // 3 is in the ISR but not alive, 1 in the ELR and alive: the ISR is not empty, so nobody is elected.
    let rules = Rules::with_elr(&[1], 2);
    let change = rules.change(&before, ElectionKind::Online, Wish::isr(ids(&[3]))).unwrap();
    assert_eq!(change.after.leader, None);
}

#[test]
fn a_dead_last_known_leader_is_not_elected() {
    let mut before = state(&[1, 2], &[], None);
    before.last_known_elr = Some(BrokerId(1));
    assert_eq!(Rules::with_elr(&[2], 1).change(&before, ElectionKind::Online, Wish::default()), None);
    let unclean = Rules::with_elr(&[2], 1).change(&before, ElectionKind::Unclean, Wish::default()).unwrap();
    assert_eq!(unclean.elected, Some(Elected::Unclean));
}

fn moving(replicas: &[i32], adding: &[i32], removing: &[i32], isr: &[i32]) -> PartitionState {
    let mut moving = state(replicas, isr, Some(isr[0]));
    moving.adding = ids(adding);
    moving.removing = ids(removing);
    moving
}

#[test]
fn a_reassignment_completes_when_all_that_is_added_is_in_sync() {
    let all = Rules::new(&[1, 2, 3, 4]);
    let before = moving(&[3, 4, 1, 2], &[3, 4], &[1, 2], &[1, 2]);
    let one = all.change(&before, ElectionKind::Online, Wish::isr(ids(&[1, 2, 3]))).unwrap();
    assert!(!one.completed_reassignment);
    let both = all.change(&one.after, ElectionKind::Online, Wish::isr(ids(&[1, 2, 3, 4]))).unwrap();
    assert!(both.completed_reassignment);
    assert_eq!((both.after.replicas, both.after.isr), (ids(&[3, 4]), ids(&[3, 4])));
    assert_eq!((both.after.leader, both.after.leader_epoch), (Some(BrokerId(3)), LeaderEpoch(1)));
}

#[test]
fn taking_replicas_away_raises_the_leader_epoch_even_with_the_same_leader() {
    let all = Rules::new(&[1, 2, 3]);
    let before = moving(&[1, 3, 2], &[3], &[2], &[1, 2]);
    let done = all.change(&before, ElectionKind::Online, Wish::isr(ids(&[1, 2, 3]))).unwrap();
    assert!(done.completed_reassignment);
    assert_eq!((done.after.leader, done.elected), (Some(BrokerId(1)), None));
    assert_eq!(done.after.leader_epoch, LeaderEpoch(1), "removed followers are fenced out");
}

/// KAFKA-15665: when the number of replicas falls, all that stay must be in sync.
#[test]
fn a_smaller_replica_set_must_be_in_sync_whole() {
    let all = Rules::new(&[1, 2, 3]);
    let before = moving(&[1, 2, 3], &[], &[3], &[1, 3]);
    let not_yet = all.change(&before, ElectionKind::Online, Wish::isr(ids(&[3, 1])));
    assert!(not_yet.is_none_or(|change| !change.completed_reassignment));
    let done = all.change(&before, ElectionKind::Online, Wish::isr(ids(&[1, 2, 3]))).unwrap();
    assert!(done.completed_reassignment);
}
