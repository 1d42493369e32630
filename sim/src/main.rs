//! Runs seeds of the simulation: one to repeat a failure, many for a campaign.

use std::process::ExitCode;

use minikafka_sim::{Setup, World};

const USAGE: &str = "minikafka-sim --seed N            one seed, with the last steps if it fails
minikafka-sim --seeds FIRST COUNT  a campaign
  --break-budget   power fails on all brokers: the checker must see the loss
  --trace          print every step that is kept";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, n: usize| -> Option<u64> {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + n)?.parse().ok()
    };
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let (first, count) = match (number("--seed", 1), number("--seeds", 1), number("--seeds", 2)) {
        (Some(seed), _, _) => (seed, 1),
        (None, Some(first), Some(count)) => (first, count),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let (mut failed, mut void, mut steps) = (0_u64, 0_u64, 0_u64);
    for seed in first..first + count {
        let mut setup = Setup::of_seed(seed);
        setup.break_budget = has("--break-budget");
        setup.trace = count == 1;
        let outcome = World::run(&setup);
        steps += outcome.steps;
        void += u64::from(outcome.void());
        if let Some(broken) = &outcome.broken {
            failed += 1;
            for line in &outcome.trace {
                println!("{line}");
            }
            println!("seed {seed}: {broken}\nrepeat it: cargo run -p minikafka-sim -- --seed {seed}");
        } else if count == 1 {
            if has("--trace") {
                outcome.trace.iter().for_each(|line| println!("{line}"));
            }
            println!(
                "seed {seed}: {:?}, {} losses, hash {:016x}",
                outcome.counts, outcome.losses, outcome.hash
            );
        }
    }
    println!("{count} seeds, {steps} steps, {void} void, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
