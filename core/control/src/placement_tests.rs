//! Kafka semantics 6.8: striping, and what must hold of every placement.

use std::collections::{BTreeMap, BTreeSet};

use minikafka_model::BrokerId;
use proptest::prelude::*;

use super::{Candidate, PlacementError, place};
use crate::dice::Dice;

fn candidate(broker: i32, rack: Option<&str>, fenced: bool) -> Candidate {
    Candidate { broker: BrokerId(broker), rack: rack.map(str::to_owned), fenced }
}

fn three() -> Vec<Candidate> {
    (1..=3).map(|id| candidate(id, None, false)).collect()
}

#[test]
fn three_brokers_in_one_rack_rotate() {
    for seed in 0..20 {
        let placed = place(&three(), 3, 3, &mut Dice::new(seed)).unwrap();
        for (n, replicas) in placed.iter().enumerate() {
            let first = (placed[0][0].0 - 1 + n as i32) % 3;
            let expected: Vec<BrokerId> = (0..3).map(|k| BrokerId((first + k) % 3 + 1)).collect();
            assert_eq!(*replicas, expected, "{placed:?}");
        }
    }
}

#[test]
fn racks_take_turns() {
    let racks = [(10, "a"), (11, "a"), (20, "b"), (21, "b"), (30, "c")];
    let candidates: Vec<Candidate> =
        racks.iter().map(|(id, rack)| candidate(*id, Some(rack), false)).collect();
    for seed in 0..50 {
        for replicas in place(&candidates, 5, 3, &mut Dice::new(seed)).unwrap() {
            let used: BTreeSet<i32> = replicas.iter().map(|id| id.0 / 10).collect();
            assert_eq!(used.len(), 3, "one replica in each rack: {replicas:?}");
        }
    }
}

#[test]
fn what_is_impossible_is_said_in_kafkas_words() {
    let error = place(&three(), 1, 4, &mut Dice::new(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "The target replication factor of 4 cannot be reached because only 3 broker(s) are registered or some brokers have all their log directories cordoned."
    );
    let fenced: Vec<Candidate> = (1..=3).map(|id| candidate(id, None, true)).collect();
    assert_eq!(place(&fenced, 1, 1, &mut Dice::new(1)), Err(PlacementError::AllFenced));
    assert_eq!(place(&three(), 1, 0, &mut Dice::new(1)), Err(PlacementError::NotPositive(0)));
}

proptest! {
    #[test]
    fn every_placement_is_fair(
        brokers in prop::collection::vec((0u8..4, any::<bool>()), 1..12),
        count in 1usize..40,
        replicas in 1usize..12,
        seed: u128,
    ) {
        let candidates: Vec<Candidate> = brokers
            .iter()
            .enumerate()
            .map(|(id, (rack, fenced))| candidate(id as i32, (*rack > 0).then(|| ["", "a", "b", "c"][usize::from(*rack)]), *fenced))
            .collect();
        let unfenced: BTreeSet<BrokerId> = candidates.iter().filter(|c| !c.fenced).map(|c| c.broker).collect();
        let Ok(placed) = place(&candidates, count, replicas, &mut Dice::new(seed)) else {
            prop_assert!(unfenced.is_empty() || replicas > candidates.len());
            return Ok(());
        };
        prop_assert_eq!(placed.len(), count);
        let mut leads: BTreeMap<BrokerId, usize> = BTreeMap::new();
        for partition in &placed {
            prop_assert_eq!(partition.len(), replicas);
            let distinct: BTreeSet<_> = partition.iter().collect();
            prop_assert_eq!(distinct.len(), replicas, "a broker twice: {:?}", partition);
            prop_assert!(unfenced.contains(&partition[0]), "a fenced broker first: {:?}", partition);
            *leads.entry(partition[0]).or_default() += 1;
        }
        let racks: BTreeSet<_> = candidates.iter().map(|c| &c.rack).collect();
        if racks.len() == 1 {
            let (most, least) = (leads.values().max().unwrap(), unfenced.iter().map(|id| leads.get(id).unwrap_or(&0)).min().unwrap());
            prop_assert!(most - least <= 1 + count / unfenced.len(), "leaders are spread: {:?}", leads);
            if count <= unfenced.len() {
                prop_assert!(*most <= 1, "each leads once before anybody leads twice: {:?}", leads);
            }
        }
    }
}
