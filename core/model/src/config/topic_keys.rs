//! Every key of a topic's configuration in Kafka 4.4, and the broker keys that give a topic its default (Kafka semantics 6.9).

use super::key::Check::{Any, AtLeast, Between, EachOf, Fraction, GzipLevel, OneOf, Throttled};
use super::key::Kind::{Boolean, Double, Int, List, Long, String};
use super::key::{Check, KeyDef, Kind, Update};

const fn key(name: &'static str, kind: Kind, default: Option<&'static str>, check: Check) -> KeyDef {
    KeyDef { name, kind, default, check, update: Update::ClusterWide }
}

/// In the order of the names.
#[rustfmt::skip]
pub(super) const TOPIC_KEYS: &[KeyDef] = &[
    key("cleanup.policy", List, Some("delete"), EachOf(&["compact", "delete"])),
    key("compression.gzip.level", Int, Some("-1"), GzipLevel),
    key("compression.lz4.level", Int, Some("9"), Between(1, 17)),
    key("compression.type", String, Some("producer"), OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"])),
    key("compression.zstd.level", Int, Some("3"), Between(-131_072, 22)),
    key("delete.retention.ms", Long, Some("86400000"), AtLeast(0)),
    key("errors.deadletterqueue.group.enable", Boolean, Some("false"), Any),
    key("file.delete.delay.ms", Long, Some("60000"), AtLeast(0)),
    key("flush.messages", Long, Some("9223372036854775807"), AtLeast(1)),
    key("flush.ms", Long, Some("9223372036854775807"), AtLeast(0)),
    key("follower.replication.throttled.replicas", List, Some(""), Throttled),
    key("index.interval.bytes", Int, Some("4096"), AtLeast(0)),
    key("internal.segment.bytes", Int, None, Any),
    key("leader.replication.throttled.replicas", List, Some(""), Throttled),
    key("local.retention.bytes", Long, Some("-2"), AtLeast(-2)),
    key("local.retention.ms", Long, Some("-2"), AtLeast(-2)),
    key("max.compaction.lag.ms", Long, Some("9223372036854775807"), AtLeast(1)),
    key("max.decompressed.message.bytes", Int, Some("2147483639"), Between(1, 2_147_483_639)),
    key("max.message.bytes", Int, Some("1048588"), AtLeast(0)),
    key("message.timestamp.after.max.ms", Long, Some("3600000"), AtLeast(0)),
    key("message.timestamp.before.max.ms", Long, Some("9223372036854775807"), AtLeast(0)),
    key("message.timestamp.type", String, Some("CreateTime"), OneOf(&["CreateTime", "LogAppendTime"])),
    key("min.cleanable.dirty.ratio", Double, Some("0.5"), Fraction(0.0, 1.0)),
    key("min.compaction.lag.ms", Long, Some("0"), AtLeast(0)),
    key("min.insync.replicas", Int, Some("1"), AtLeast(1)),
    key("preallocate", Boolean, Some("false"), Any),
    key("remote.copy.lag.bytes", Long, Some("-1"), AtLeast(-1)),
    key("remote.copy.lag.ms", Long, Some("0"), AtLeast(-1)),
    key("remote.log.copy.disable", Boolean, Some("false"), Any),
    key("remote.log.delete.on.disable", Boolean, Some("false"), Any),
    key("remote.storage.enable", Boolean, Some("false"), Any),
    key("retention.bytes", Long, Some("-1"), Any),
    key("retention.ms", Long, Some("604800000"), AtLeast(-1)),
    key("segment.bytes", Int, Some("1073741824"), AtLeast(1_048_576)),
    key("segment.index.bytes", Int, Some("10485760"), AtLeast(4)),
    key("segment.jitter.ms", Long, Some("0"), AtLeast(0)),
    key("segment.ms", Long, Some("604800000"), AtLeast(1)),
    key("unclean.leader.election.enable", Boolean, Some("false"), Any),
];

/// In which unit a broker key gives what the topic key counts in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Same,
    Minutes,
    Hours,
}
use Unit::{Hours, Minutes, Same};

/// Broker keys by topic key, the strongest first.
#[rustfmt::skip]
pub(super) const SYNONYMS: &[(&str, &[(&str, Unit)])] = &[
    ("cleanup.policy", &[("log.cleanup.policy", Same)]),
    ("compression.gzip.level", &[("compression.gzip.level", Same)]),
    ("compression.lz4.level", &[("compression.lz4.level", Same)]),
    ("compression.type", &[("compression.type", Same)]),
    ("compression.zstd.level", &[("compression.zstd.level", Same)]),
    ("delete.retention.ms", &[("log.cleaner.delete.retention.ms", Same)]),
    ("file.delete.delay.ms", &[("log.segment.delete.delay.ms", Same)]),
    ("flush.messages", &[("log.flush.interval.messages", Same)]),
    ("flush.ms", &[("log.flush.interval.ms", Same), ("log.flush.scheduler.interval.ms", Same)]),
    ("index.interval.bytes", &[("log.index.interval.bytes", Same)]),
    ("local.retention.bytes", &[("log.local.retention.bytes", Same)]),
    ("local.retention.ms", &[("log.local.retention.ms", Same)]),
    ("max.compaction.lag.ms", &[("log.cleaner.max.compaction.lag.ms", Same)]),
    ("max.decompressed.message.bytes", &[("max.decompressed.message.bytes", Same)]),
    ("max.message.bytes", &[("message.max.bytes", Same)]),
    ("message.timestamp.after.max.ms", &[("log.message.timestamp.after.max.ms", Same)]),
    ("message.timestamp.before.max.ms", &[("log.message.timestamp.before.max.ms", Same)]),
    ("message.timestamp.type", &[("log.message.timestamp.type", Same)]),
    ("min.cleanable.dirty.ratio", &[("log.cleaner.min.cleanable.ratio", Same)]),
    ("min.compaction.lag.ms", &[("log.cleaner.min.compaction.lag.ms", Same)]),
    ("min.insync.replicas", &[("min.insync.replicas", Same)]),
    ("preallocate", &[("log.preallocate", Same)]),
    ("remote.copy.lag.bytes", &[("log.remote.copy.lag.bytes", Same)]),
    ("remote.copy.lag.ms", &[("log.remote.copy.lag.ms", Same)]),
    ("retention.bytes", &[("log.retention.bytes", Same)]),
    ("retention.ms", &[("log.retention.ms", Same), ("log.retention.minutes", Minutes), ("log.retention.hours", Hours)]),
    ("segment.bytes", &[("log.segment.bytes", Same)]),
    ("segment.index.bytes", &[("log.index.size.max.bytes", Same)]),
    ("segment.jitter.ms", &[("log.roll.jitter.ms", Same), ("log.roll.jitter.hours", Hours)]),
    ("segment.ms", &[("log.roll.ms", Same), ("log.roll.hours", Hours)]),
    ("unclean.leader.election.enable", &[("unclean.leader.election.enable", Same)]),
];
