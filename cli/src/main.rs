//! The `minikafka` command: `up` runs a cluster, `broker`, `controller` and `node` run one role of it, the rest asks a cluster over
//! the Kafka protocol. Data goes to standard output, talk to standard error; exit codes are those of [`failure::Kind`].

mod args;
mod failure;
mod role;
mod up;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Command};
use crate::failure::Outcome;

fn main() -> ExitCode {
    minikafka_node::raise_malloc_thresholds();
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(arguments: Arguments) -> Outcome {
    match arguments.command {
        Command::Up(asked) => up::run(&asked),
        Command::Broker(asked) => role::broker(&asked),
        Command::Controller(asked) => role::controller(&asked),
        Command::Node(asked) => role::node(&asked),
    }
}
