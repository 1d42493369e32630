//! The tests of the tests: guards of the protocol are taken out in turn, and the simulation must notice.

use minikafka_replication::SeededBug;
use minikafka_sim::{Setup, World};

/// Within so many seeds a planted fault must be seen.
const SEEDS: u64 = 200;

/// What the simulation does not see within these seeds, and why; the transcripts of core/replication notice each of them.
const NEEDS_A_STORY: &[SeededBug] = &[
    // The controller compares broker epochs too, and a session lasts longer than any message is under way.
    SeededBug::JoinWithoutBrokerEpoch,
    // Records are also held to the offset and epoch that were asked for; a divergence has to be held up over two elections.
    SeededBug::StaleAnswerApplied,
    // The controllers raise a leader epoch only with another leader between.
    SeededBug::ProgressKept,
    // Nobody is sent to a leader of another epoch for longer than a message is under way, and a verified prefix is one in any epoch.
    SeededBug::FetchNotFenced,
    // Producers that never rest write the first record of an epoch at once, which records its start too.
    SeededBug::EpochNotAssigned,
];

fn first_seed_that_notices(bug: SeededBug) -> Option<(u64, String)> {
    (1..=SEEDS).find_map(|seed| {
        let mut setup = Setup::of_seed(seed);
        setup.config.seeded = Some(bug);
        World::run(&setup).broken.map(|why| (seed, why))
    })
}

#[test]
fn planted_faults_are_noticed() {
    let mut missed = Vec::new();
    for bug in SeededBug::ALL.iter().filter(|bug| !NEEDS_A_STORY.contains(bug)) {
        match first_seed_that_notices(*bug) {
            Some((seed, why)) => println!("{bug:?}: seed {seed}, {why}"),
            None => missed.push(*bug),
        }
    }
    assert!(missed.is_empty(), "nothing noticed {missed:?} within {SEEDS} seeds");
}
