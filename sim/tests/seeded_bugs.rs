//! The tests of the tests: each guard of the protocol is taken out in turn, and the simulation must notice.

use minikafka_replication::SeededBug;
use minikafka_sim::{Setup, World};

/// Within so many seeds a planted fault must be seen.
const SEEDS: u64 = 400;

fn first_seed_that_notices(bug: SeededBug) -> Option<(u64, String)> {
    (1..=SEEDS).find_map(|seed| {
        let mut setup = Setup::of_seed(seed);
        setup.config.seeded = Some(bug);
        World::run(&setup).broken.map(|why| (seed, why))
    })
}

#[test]
fn every_planted_fault_is_noticed() {
    let mut missed = Vec::new();
    for bug in SeededBug::ALL {
        match first_seed_that_notices(*bug) {
            Some((seed, why)) => println!("{bug:?}: seed {seed}, {why}"),
            None => missed.push(*bug),
        }
    }
    assert!(missed.is_empty(), "nothing noticed {missed:?} within {SEEDS} seeds");
}
