//! The `minikafka` command: `up` runs a cluster, `broker`, `controller` and `node` run one role of it, the rest asks a cluster over
//! the Kafka protocol. Data goes to standard output, talk to standard error; exit codes are those of [`failure::Kind`].

mod args;
mod commands;
mod container;
mod failure;
mod role;
mod up;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Cluster, Command, Log};
use crate::failure::Outcome;

fn main() -> ExitCode {
    minikafka_node::raise_malloc_thresholds();
    let arguments = Arguments::parse();
    let output = arguments.command.output();
    // A container ends as its node ended.
    if let Command::Container(asked) = &arguments.command {
        return container::run(asked).map_or_else(|failure| failure.report(output), ExitCode::from);
    }
    match run(&arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(output),
    }
}

fn run(command: &Command) -> Outcome {
    match command {
        Command::Up(asked) => up::run(asked),
        Command::Broker(asked) => role::broker(asked),
        Command::Controller(asked) => role::controller(asked),
        Command::Node(asked) => role::node(asked),
        Command::Container(asked) => container::run(asked).map(drop),
        Command::Health(asked) => commands::health(asked),
        Command::Topic(asked) => commands::topic(asked),
        Command::Produce(asked) => commands::produce(asked),
        Command::Consume(asked) => commands::consume(asked),
        Command::Cluster(Cluster::Info(asked)) => commands::info(asked),
        Command::ApiVersions(asked) => commands::api_versions(asked),
        Command::Log(Log::Dump(asked)) => commands::log_dump(asked),
    }
}
