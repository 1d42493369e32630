//! The one table of configuration keys: Kafka's names with the Java client's defaults (Kafka 4.4).

use std::time::Duration;

use super::address::Address;
use super::value::{Acks, Compression, IsolationLevel, OffsetReset, Value};

/// One configuration key.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKey {
    /// Kafka's name.
    pub name: &'static str,
    /// The default, as text.
    pub default: &'static str,
    /// What it means.
    pub doc: &'static str,
}

macro_rules! keys {
    ($($(#[doc = $doc:literal])+ $field:ident: $kind:ty = $name:literal, $default:literal;)*) => {
        /// The values of all keys. Made by [`ClientBuilder`](crate::ClientBuilder).
        #[derive(Debug, Clone, PartialEq)]
        pub struct ClientConfig { $($(#[doc = $doc])+ pub $field: $kind,)* }

        /// Every key this client knows, with its default.
        pub const KEYS: &[ConfigKey] =
            &[$(ConfigKey { name: $name, default: $default, doc: concat!($($doc,)+).trim_ascii() },)*];

        impl Default for ClientConfig {
            fn default() -> ClientConfig {
                ClientConfig { $($field: <$kind>::parse($default).expect("the table's own defaults are right"),)* }
            }
        }

        impl ClientConfig {
            /// Sets one key; `None` if it is not in the table.
            pub(super) fn set_known(&mut self, name: &str, text: &str) -> Option<Result<(), String>> {
                match name {
                    $($name => Some(<$kind>::parse(text).map(|value| self.$field = value)),)*
                    _ => None,
                }
            }

            /// Every key with its value as text, in the order of the table.
            pub fn entries(&self) -> Vec<(&'static ConfigKey, String)> {
                let values = [$(self.$field.show(),)*];
                KEYS.iter().zip(values).collect()
            }
        }
    };
}

keys! {
    /// Brokers to ask first, `host:port` with commas between; the others are learned from them.
    bootstrap_servers: Vec<Address> = "bootstrap.servers", "";
    /// How this client names itself to brokers.
    client_id: String = "client.id", "minikafka-client";
    /// Rack of this client, for reads from a near replica.
    client_rack: String = "client.rack", "";
    /// Longest wait for the answer to one request.
    request_timeout: Duration = "request.timeout.ms", "30000";
    /// Longest wait of an admin call or a lookup, over all its tries.
    default_api_timeout: Duration = "default.api.timeout.ms", "60000";
    /// Pause before a failed request is tried again, at first.
    retry_backoff: Duration = "retry.backoff.ms", "100";
    /// Pause before a failed request is tried again, at most.
    retry_backoff_max: Duration = "retry.backoff.max.ms", "1000";
    /// Pause before a lost connection is made again, at first.
    reconnect_backoff: Duration = "reconnect.backoff.ms", "50";
    /// Pause before a lost connection is made again, at most.
    reconnect_backoff_max: Duration = "reconnect.backoff.max.ms", "1000";
    /// Longest time to make a connection.
    connection_setup_timeout: Duration = "socket.connection.setup.timeout.ms", "10000";
    /// Age at which metadata is asked for again though nothing failed.
    metadata_max_age: Duration = "metadata.max.age.ms", "300000";
    /// Let the broker create a missing topic when it is first asked for.
    allow_auto_create_topics: bool = "allow.auto.create.topics", "true";
    /// What a delivery waits for: `all`, `1` or `0`.
    acks: Acks = "acks", "all";
    /// Give each record a sequence number, so that a retry is never stored twice.
    enable_idempotence: bool = "enable.idempotence", "true";
    /// Tries after the first one, within the delivery timeout.
    retries: u32 = "retries", "2147483647";
    /// Requests to one broker that wait for their answers.
    max_in_flight: usize = "max.in.flight.requests.per.connection", "5";
    /// From `send` to the verdict: a record is delivered within it or fails.
    delivery_timeout: Duration = "delivery.timeout.ms", "120000";
    /// How long a batch waits for more records.
    linger: Duration = "linger.ms", "5";
    /// Bytes at which a batch is sent without waiting for more.
    batch_size: usize = "batch.size", "16384";
    /// Bytes of records that wait to be delivered; beyond it `send` waits.
    buffer_memory: usize = "buffer.memory", "33554432";
    /// Largest record, and largest request unless it holds a single batch.
    max_request_size: usize = "max.request.size", "1048576";
    /// Longest wait of `send` for metadata and buffer memory.
    max_block: Duration = "max.block.ms", "60000";
    /// How batches are compressed: `none`, `gzip`, `snappy`, `lz4` or `zstd`.
    compression: Compression = "compression.type", "none";
    /// Spread records over partitions as if none had a key.
    partitioner_ignore_keys: bool = "partitioner.ignore.keys", "false";
    /// Refuse to send to a topic that promises fewer in-sync replicas than this (not a key of Kafka's); needs acks=all.
    require_min_insync_replicas: Option<u16> = "require.min.insync.replicas", "";
    /// Fewest bytes worth an answer to a fetch before its wait is over.
    fetch_min_bytes: usize = "fetch.min.bytes", "1";
    /// Longest wait of a fetch at the broker.
    fetch_max_wait: Duration = "fetch.max.wait.ms", "500";
    /// Most bytes in one answer to a fetch (a first larger batch is still given).
    fetch_max_bytes: usize = "fetch.max.bytes", "52428800";
    /// Most bytes of one partition in one answer (a first larger batch is still given).
    max_partition_fetch_bytes: usize = "max.partition.fetch.bytes", "1048576";
    /// Which records are seen: `read_uncommitted` or `read_committed`.
    isolation_level: IsolationLevel = "isolation.level", "read_uncommitted";
    /// Where to go on when a position does not exist: `earliest`, `latest` or `none`.
    auto_offset_reset: OffsetReset = "auto.offset.reset", "latest";
    /// Check the CRC of every batch read.
    check_crcs: bool = "check.crcs", "true";
}

/// Keys of the Java client that this client accepts without effect, each with the reason.
pub(super) const WITHOUT_EFFECT: &[(&str, &str)] = &[
    ("auto.commit.interval.ms", "there are no consumer groups yet"),
    ("auto.include.jmx.reporter", "there is no JMX"),
    ("client.dns.lookup", "every address of a name is tried"),
    ("compression.gzip.level", "the codec's default level is used"),
    ("compression.lz4.level", "the codec's default level is used"),
    ("compression.zstd.level", "the codec's default level is used"),
    ("connections.max.idle.ms", "connections stay open"),
    ("enable.auto.commit", "there are no consumer groups yet"),
    ("enable.metrics.push", "there is no telemetry API"),
    ("exclude.internal.topics", "there are no topic patterns yet"),
    ("group.id", "there are no consumer groups yet: partitions are assigned by hand"),
    ("heartbeat.interval.ms", "there are no consumer groups yet"),
    ("interceptor.classes", "there are no Java classes"),
    ("key.deserializer", "keys and values are bytes"),
    ("key.serializer", "keys and values are bytes"),
    ("max.poll.interval.ms", "there are no consumer groups yet"),
    ("max.poll.records", "records come one by one"),
    ("metadata.max.idle.ms", "topics once asked for stay known"),
    (
        "metadata.recovery.rebootstrap.trigger.ms",
        "the bootstrap servers are asked whenever no known broker answers",
    ),
    ("metadata.recovery.strategy", "the bootstrap servers are asked whenever no known broker answers"),
    ("metric.reporters", "there are no Java classes"),
    ("metrics.num.samples", "there are no metrics yet"),
    ("metrics.recording.level", "there are no metrics yet"),
    ("metrics.sample.window.ms", "there are no metrics yet"),
    (
        "partitioner.adaptive.partitioning.enable",
        "partitions without a leader are left out, others share alike",
    ),
    ("partitioner.availability.timeout.ms", "partitions without a leader are left out, others share alike"),
    ("receive.buffer.bytes", "the kernel sizes its buffers"),
    ("send.buffer.bytes", "the kernel sizes its buffers"),
    ("session.timeout.ms", "there are no consumer groups yet"),
    ("socket.connection.setup.timeout.max.ms", "the setup timeout does not grow"),
    ("value.deserializer", "keys and values are bytes"),
    ("value.serializer", "keys and values are bytes"),
];

impl ClientConfig {
    /// The keys whose values are not the defaults, with their values.
    pub fn diff_from_default(&self) -> Vec<(&'static str, String)> {
        let defaults = ClientConfig::default().entries();
        let entries = self.entries().into_iter().zip(defaults);
        entries
            .filter(|((_, value), (_, default))| value != default)
            .map(|((key, value), _)| (key.name, value))
            .collect()
    }
}
