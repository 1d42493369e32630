//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A mini Kafka cluster that speaks Kafka's protocol and says why.
#[derive(Debug, Parser)]
#[command(
    name = "minikafka",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a whole cluster on this machine and watch over it until Ctrl-C
    Up(Up),
    /// Run one broker in the foreground
    Broker(Role),
    /// Run one controller in the foreground
    Controller(Role),
    /// Run a combined node, broker and controller in one process, in the foreground
    Node(Role),
}

/// Start a whole cluster on this machine and watch over it until Ctrl-C.
///
/// Controllers (ids from 101) and brokers (ids from 1) are processes of their own on 127.0.0.1: Kafka at P, P+2, P+4 ...,
/// controllers at P+100 ..., HTTP of brokers at P+200 ... and of controllers at P+300 ..., where P is the base port. A second start
/// on the same directory finds everything again. Ctrl-C stops brokers in order, then controllers; a second Ctrl-C kills.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  minikafka up
  minikafka up --brokers 1 --controllers 1 --fresh
  minikafka up --combined -X min.insync.replicas=2
  minikafka up --base-port 19092 --data-dir /srv/minikafka --json")]
pub(crate) struct Up {
    /// Brokers, ids 1..N (3, or as the data directory has them)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=50))]
    pub(crate) brokers: Option<u16>,
    /// Controllers, ids 101.. (3, or as the data directory has them)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=50))]
    pub(crate) controllers: Option<u16>,
    /// Broker and controller in one process each, ids 1..N
    #[arg(long)]
    pub(crate) combined: bool,
    /// First port of the cluster
    #[arg(long, value_name = "P", default_value_t = 9092, value_parser = clap::value_parser!(u16).range(1..=65186))]
    pub(crate) base_port: u16,
    /// Where the cluster keeps its data, configuration and logs
    #[arg(long, value_name = "DIR", default_value = "minikafka-data")]
    pub(crate) data_dir: PathBuf,
    /// Remove what an earlier cluster left in the data directory, then start anew
    #[arg(long)]
    pub(crate) fresh: bool,
    /// A configuration key for all nodes
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// One JSON object a line on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run one role in the foreground, with Kafka's keys from a .properties file, the environment and the command line.
#[derive(Debug, Args)]
pub(crate) struct Role {
    /// A .properties file with Kafka's keys
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// A configuration key; stronger than file and environment
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Process id of the supervisor to end with
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) supervisor: Option<u32>,
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), value.trim().to_owned())),
        _ => Err("key=value is wanted, for example min.insync.replicas=2".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_setting_is_split_at_its_first_equals_sign() {
        assert_eq!(key_and_value("a.b = c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        assert!(key_and_value("nothing").is_err());
        assert!(key_and_value("=x").is_err());
    }
}
