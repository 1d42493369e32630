//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Run the node that a container's environment describes, as its process 1
    Container(Container),
    /// Ask the node on this machine whether it is ready, and why not
    Health(Health),
    /// Create, list, describe and delete topics
    #[command(subcommand)]
    Topic(Topic),
    /// Write the lines of standard input to a topic
    Produce(Produce),
    /// Read records of a topic
    Consume(Consume),
    /// What the cluster consists of
    #[command(subcommand)]
    Cluster(Cluster),
    /// What each broker offers of the Kafka protocol
    ApiVersions(ApiVersions),
    /// Look into the files of a log directory
    #[command(subcommand)]
    Log(Log),
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

/// What a process is part of: the brokers, the controllers, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// A broker.
    Broker,
    /// A controller.
    Controller,
    /// Both in one process.
    Node,
}

impl Part {
    /// The subcommand that runs it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Part::Broker => "broker",
            Part::Controller => "controller",
            Part::Node => "node",
        }
    }

    /// Whether it serves Kafka clients.
    pub(crate) const fn is_broker(self) -> bool {
        matches!(self, Part::Broker | Part::Node)
    }

    /// Whether it takes part in the quorum.
    pub(crate) const fn is_controller(self) -> bool {
        matches!(self, Part::Controller | Part::Node)
    }
}

/// Run the node that a container's environment describes, as its process 1.
///
/// KAFKA_* and KAFKA_CFG_* variables as in the Apache and Bitnami images, and CLUSTER_ID, are added to the image's defaults: one
/// combined node with Kafka on port 9092. Signals are handed on to the node: SIGTERM is a controlled shutdown.
#[derive(Debug, Args)]
pub(crate) struct Container {
    /// A .properties file below the environment in strength (/mnt/shared/config/server.properties, if it is there)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print the completed .properties file and start nothing
    #[arg(long)]
    pub(crate) print: bool,
}

/// Ask the node on this machine whether it is ready, and why not. Exit code 10: it is not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  minikafka health
  minikafka health --at 127.0.0.1:9292 --wait 30s")]
pub(crate) struct Health {
    /// Where its HTTP server listens; only the port matters, loopback is asked
    #[arg(long, value_name = "HOST:PORT", env = "KAFKA_MINIKAFKA_HTTP_LISTEN", default_value = crate::container::HTTP)]
    pub(crate) at: String,
    /// Only whether it lives
    #[arg(long)]
    pub(crate) live: bool,
    /// Ask again for so long, for example 30s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
}

/// How to reach a cluster, and how to answer.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// Brokers to ask first, host:port with commas between
    #[arg(
        short,
        long = "bootstrap-server",
        visible_alias = "bootstrap-servers",
        value_name = "HOST:PORT,..",
        env = "MINIKAFKA_BOOTSTRAP",
        default_value = "127.0.0.1:9092"
    )]
    pub(crate) bootstrap: String,
    /// How long to try, for example 500ms, 2s or 1m (10 s; a write 30 s)
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// A key of the client configuration
    #[arg(short = 'X', value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) set: Vec<(String, String)>,
    /// A .properties file with keys of the client configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) command_config: Option<PathBuf>,
    /// How to answer
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

/// How a command answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs; records one object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Topic {
    /// Create a topic
    Create(TopicCreate),
    /// List the names of all topics
    List(TopicList),
    /// Leaders, replicas, ISR and configs
    Describe(TopicDescribe),
    /// Delete topics
    Delete(TopicDelete),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  minikafka topic create orders --partitions 3 --replication-factor 3 --config min.insync.replicas=2
  minikafka topic create ledger --assignment 1:2:3,2:3:1")]
pub(crate) struct TopicCreate {
    /// Its name
    pub(crate) name: String,
    /// Number of partitions (the broker's num.partitions)
    #[arg(long, value_name = "N", conflicts_with = "assignment", allow_negative_numbers = true)]
    pub(crate) partitions: Option<i32>,
    /// Replicas of each partition (the broker's default.replication.factor)
    #[arg(long, value_name = "R", conflicts_with = "assignment", allow_negative_numbers = true)]
    pub(crate) replication_factor: Option<i16>,
    /// Replicas of each partition by hand: brokers with colons between, partitions with commas between
    #[arg(long, value_name = "1:2:3,..", value_parser = assignment)]
    pub(crate) assignment: Option<Assignment>,
    /// A topic config
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) config: Vec<(String, String)>,
    /// Check only, create nothing
    #[arg(long)]
    pub(crate) validate_only: bool,
    /// A topic that is there already is fine
    #[arg(long)]
    pub(crate) if_not_exists: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Replicas of each partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Assignment(pub(crate) Vec<Vec<i32>>);

#[derive(Debug, Args)]
pub(crate) struct TopicList {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Args)]
pub(crate) struct TopicDescribe {
    /// Topics (all)
    pub(crate) names: Vec<String>,
    /// Only partitions with fewer in-sync replicas than replicas
    #[arg(long)]
    pub(crate) under_replicated: bool,
    /// Only partitions with fewer in-sync replicas than min.insync.replicas, or without a leader
    #[arg(long)]
    pub(crate) under_min_isr: bool,
    /// Only partitions with exactly min.insync.replicas in-sync replicas
    #[arg(long)]
    pub(crate) at_min_isr: bool,
    /// Only partitions without a living leader
    #[arg(long)]
    pub(crate) unavailable: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Args)]
pub(crate) struct TopicDelete {
    /// Topics
    #[arg(required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  echo hello | minikafka produce orders
  minikafka produce orders -K : --acks all --timeout 5s < lines.txt
  minikafka produce orders -X linger.ms=20 -X compression.type=zstd < lines.txt")]
pub(crate) struct Produce {
    /// The topic
    pub(crate) topic: String,
    /// To this partition, whatever the key
    #[arg(short, long, value_name = "N")]
    pub(crate) partition: Option<i32>,
    /// What stands between key and value in a line; lines without it have no key
    #[arg(short = 'K', long, value_name = "TEXT")]
    pub(crate) key_separator: Option<String>,
    /// A header for every record
    #[arg(short = 'H', long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    pub(crate) header: Vec<(String, String)>,
    /// What a write waits for: all, 1 or 0
    #[arg(long, value_name = "ACKS")]
    pub(crate) acks: Option<String>,
    /// Insist on idempotence (it is on by default where acks=all)
    #[arg(long)]
    pub(crate) idempotent: bool,
    /// Print partition and offset of every record
    #[arg(short, long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Args)]
#[command(
    after_help = "In a template: %t topic, %p partition, %o offset, %k key, %s value, %K and %S their lengths, %T timestamp
in milliseconds, %e leader epoch, %h headers, %% a percent sign; \\n, \\t, \\r, \\0 and \\\\ as usual.

Examples:
  minikafka consume orders --from beginning --exit-eof
  minikafka consume orders -p 0 --from 100 --to 200 -f '%p:%o %k=%s\\n'
  minikafka consume orders --from @1793612345000 -o json --max 10"
)]
pub(crate) struct Consume {
    /// The topic
    pub(crate) topic: String,
    /// Only this partition; may be repeated (all)
    #[arg(short, long, value_name = "N")]
    pub(crate) partition: Vec<i32>,
    /// Where to begin: beginning, end, an offset, -N for N before the end, or @MS for a time
    #[arg(long, value_name = "PLACE", default_value = "end", value_parser = place, allow_hyphen_values = true)]
    pub(crate) from: Place,
    /// Where to stop, not included: end (as it is now) or an offset
    #[arg(long, value_name = "PLACE", value_parser = place)]
    pub(crate) to: Option<Place>,
    /// Stop once every partition was read to its end
    #[arg(short, long)]
    pub(crate) exit_eof: bool,
    /// Stop after this many records
    #[arg(short = 'c', long, value_name = "N")]
    pub(crate) max: Option<u64>,
    /// How to print a record
    #[arg(short, long, value_name = "TEMPLATE", default_value = "%s\\n")]
    pub(crate) format: String,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// A place in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Beginning,
    End,
    Offset(i64),
    /// So many records before the end.
    BeforeEnd(i64),
    /// Milliseconds since 1970.
    Time(i64),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cluster {
    /// Id, controller and brokers
    Info(ClusterInfo),
}

#[derive(Debug, Args)]
pub(crate) struct ClusterInfo {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Args)]
pub(crate) struct ApiVersions {
    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Log {
    /// Say what stands in a file: batches, index entries, epochs, producers
    Dump(LogDump),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  minikafka log dump minikafka-data/broker-1/orders-0/00000000000000000000.log
  minikafka log dump --json minikafka-data/broker-1/orders-0/leader-epoch-checkpoint")]
pub(crate) struct LogDump {
    /// .log, .index, .timeindex, .txnindex, .snapshot, a checkpoint, partition.metadata, meta.properties
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The records of each batch too
    #[arg(long)]
    pub(crate) records: bool,
    /// JSON: one object a line, for a .log one per batch
    #[arg(long)]
    pub(crate) json: bool,
}

impl Command {
    /// Whether failures are told as JSON too.
    pub(crate) fn output(&self) -> Output {
        let connection = match self {
            Command::Up(_)
            | Command::Broker(_)
            | Command::Controller(_)
            | Command::Node(_)
            | Command::Container(_)
            | Command::Health(_) => {
                return Output::Table;
            }
            Command::Log(Log::Dump(asked)) => {
                return if asked.json { Output::Json } else { Output::Table };
            }
            Command::Topic(Topic::Create(asked)) => &asked.connection,
            Command::Topic(Topic::List(asked)) => &asked.connection,
            Command::Topic(Topic::Describe(asked)) => &asked.connection,
            Command::Topic(Topic::Delete(asked)) => &asked.connection,
            Command::Produce(asked) => &asked.connection,
            Command::Consume(asked) => &asked.connection,
            Command::Cluster(Cluster::Info(asked)) => &asked.connection,
            Command::ApiVersions(asked) => &asked.connection,
        };
        connection.output
    }
}

/// `500ms`, `2s`, `1m`; a bare number is seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("the unit must be ms, s, m or h".to_owned()),
    };
    let number: f64 = digits.parse().map_err(|_| "for example 500ms, 2s or 1m is wanted".to_owned())?;
    let millis = number * f64::from(unit);
    if (1.0..=1e9).contains(&millis) {
        Ok(Duration::from_millis(millis as u64))
    } else {
        Err("between 1 ms and 277 h are wanted".to_owned())
    }
}

fn assignment(text: &str) -> Result<Assignment, String> {
    let partition = |part: &str| part.split(':').map(|id| id.trim().parse()).collect::<Result<Vec<i32>, _>>();
    let partitions = text.split(',').map(partition).collect::<Result<Vec<Vec<i32>>, _>>();
    partitions.map(Assignment).map_err(|_| "broker ids such as 1:2:3,2:3:1 are wanted".to_owned())
}

fn place(text: &str) -> Result<Place, String> {
    let wrong = || "beginning, end, an offset, -N or @MS is wanted".to_owned();
    match text {
        "beginning" | "earliest" | "start" => Ok(Place::Beginning),
        "end" | "latest" => Ok(Place::End),
        _ => match (text.strip_prefix('@'), text.strip_prefix('-')) {
            (Some(time), _) => time.parse().map(Place::Time).map_err(|_| wrong()),
            (_, Some(before)) => before.parse().map(Place::BeforeEnd).map_err(|_| wrong()),
            _ => text.parse().map(Place::Offset).map_err(|_| wrong()),
        },
    }
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
    fn durations_places_and_assignments_are_read() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert!(duration("0s").is_err() && duration("soon").is_err() && duration("1y").is_err());
        assert_eq!(place("-5"), Ok(Place::BeforeEnd(5)));
        assert_eq!(place("@7"), Ok(Place::Time(7)));
        assert_eq!(place("12"), Ok(Place::Offset(12)));
        assert!(place("middle").is_err());
        assert_eq!(assignment("1:2,2:1"), Ok(Assignment(vec![vec![1, 2], vec![2, 1]])));
        assert!(assignment("1:x").is_err());
    }

    #[test]
    fn a_setting_is_split_at_its_first_equals_sign() {
        assert_eq!(key_and_value("a.b = c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        assert!(key_and_value("nothing").is_err());
        assert!(key_and_value("=x").is_err());
    }
}
