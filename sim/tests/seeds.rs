//! The standard run: a hundred seeds, a seed run twice, and runs that break the fault budget.

use minikafka_sim::{Outcome, Setup, World};

/// At most so many of a hundred seeds may prove nothing.
const MOST_VOID: usize = 20;

fn check(outcome: &Outcome) {
    if let Some(broken) = &outcome.broken {
        panic!(
            "seed {}: {broken}\nrepeat it: cargo run -p minikafka-sim -- --seed {}",
            outcome.seed, outcome.seed
        );
    }
}

#[test]
fn a_hundred_seeds_keep_every_promise() {
    let outcomes: Vec<Outcome> = (1..=100).map(|seed| World::run(&Setup::of_seed(seed))).collect();
    outcomes.iter().for_each(check);
    let void: Vec<u64> =
        outcomes.iter().filter(|outcome| outcome.void()).map(|outcome| outcome.seed).collect();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>();
    println!(
        "100 seeds: {} steps, {} acknowledged writes, {} elections, {} truncations, {} faults; void: {void:?}",
        sum(|o| o.steps),
        sum(|o| o.counts.acknowledged),
        sum(|o| o.counts.elections),
        sum(|o| o.counts.truncations),
        sum(|o| o.counts.faults),
    );
    assert!(void.len() <= MOST_VOID, "too little happened in the seeds {void:?}");
    assert!(sum(|o| o.counts.truncations) > 20, "hardly a log was cut");
}

#[test]
fn a_seed_run_twice_is_the_same_run() {
    for seed in [7, 8, 9] {
        let (one, other) = (World::run(&Setup::of_seed(seed)), World::run(&Setup::of_seed(seed)));
        assert_eq!((one.hash, one.steps, one.counts), (other.hash, other.steps, other.counts), "seed {seed}");
    }
    assert_ne!(World::run(&Setup::of_seed(7)).hash, World::run(&Setup::of_seed(8)).hash);
}

#[test]
fn beyond_the_fault_budget_the_loss_is_seen() {
    let lost = (1..=10)
        .map(|seed| {
            let outcome = World::run(&Setup { break_budget: true, ..Setup::of_seed(seed) });
            check(&outcome);
            outcome.losses
        })
        .filter(|losses| *losses > 0)
        .count();
    assert!(lost >= 8, "power failed everywhere, and a loss was seen in {lost} of 10 runs");
}
