//! Which of Kafka's keys do something here. The others are accepted, and whoever sets one is told that it has no effect, and why.

/// Keys of the broker or the controller that work.
const WORKS: &[&str] = &[
    "advertised.listeners",
    "auto.create.topics.enable",
    "auto.leader.rebalance.enable",
    "broker.heartbeat.interval.ms",
    "broker.rack",
    "broker.session.timeout.ms",
    "compression.type",
    "connections.max.idle.ms",
    "controlled.shutdown.enable",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.election.backoff.max.ms",
    "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms",
    "controller.quorum.request.timeout.ms",
    "controller.quorum.voters",
    "default.replication.factor",
    "delete.topic.enable",
    "fetch.max.bytes",
    "initial.broker.registration.timeout.ms",
    "inter.broker.listener.name",
    "leader.imbalance.check.interval.seconds",
    "listener.security.protocol.map",
    "listeners",
    "log.cleanup.policy",
    "log.dir",
    "log.dirs",
    "log.flush.interval.messages",
    "log.flush.offset.checkpoint.interval.ms",
    "log.index.interval.bytes",
    "log.index.size.max.bytes",
    "log.initial.task.delay.ms",
    "log.message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.type",
    "log.preallocate",
    "log.retention.bytes",
    "log.retention.check.interval.ms",
    "log.retention.hours",
    "log.retention.minutes",
    "log.retention.ms",
    "log.roll.hours",
    "log.roll.jitter.hours",
    "log.roll.jitter.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "log.segment.delete.delay.ms",
    "max.connections",
    "max.incremental.fetch.session.cache.slots",
    "message.max.bytes",
    "metadata.log.dir",
    "metadata.log.max.record.bytes.between.snapshots",
    "metadata.log.max.snapshot.interval.ms",
    "min.insync.replicas",
    "node.id",
    "num.partitions",
    "num.replica.fetchers",
    "process.roles",
    "producer.id.expiration.check.interval.ms",
    "producer.id.expiration.ms",
    "replica.fetch.backoff.ms",
    "replica.fetch.max.bytes",
    "replica.fetch.response.max.bytes",
    "replica.fetch.wait.max.ms",
    "replica.high.watermark.checkpoint.interval.ms",
    "replica.lag.time.max.ms",
    "request.timeout.ms",
    "socket.request.max.bytes",
    "unclean.leader.election.enable",
    "unclean.leader.election.interval.ms",
];

/// Why a key does nothing, by how its name begins or by a word in it; the first that fits.
const REASONS: &[(&str, &str)] = &[
    ("sasl.", "there is no authentication yet"),
    (".sasl.", "there is no authentication yet"),
    ("ssl.", "there is no TLS yet"),
    (".ssl.", "there is no TLS yet"),
    ("security", "there is no authentication yet"),
    ("authorizer", "there are no access rules yet"),
    ("delegation.token", "there are no delegation tokens"),
    ("principal.builder", "there is no authentication yet"),
    ("group.share", "there are no share groups"),
    ("share.", "there are no share groups"),
    ("group.", "there are no consumer groups yet"),
    ("offsets.", "there are no consumer groups yet"),
    ("offset.metadata", "there are no consumer groups yet"),
    ("errors.deadletterqueue", "there are no share groups"),
    ("transaction", "there are no transactions yet"),
    ("add.partitions.to.txn", "there are no transactions yet"),
    ("remote.", "there is no tiered storage"),
    ("log.remote", "there is no tiered storage"),
    ("log.local", "there is no tiered storage"),
    ("quota", "there are no quotas yet"),
    ("throttle", "there are no quotas yet"),
    ("client.quota", "there are no quotas yet"),
    ("connection.creation.rate", "there are no quotas yet"),
    ("log.cleaner", "there is no compaction yet"),
    ("compression.", "the codec's default level is used"),
    ("metric", "there are no metrics reporters"),
    ("telemetry", "there is no telemetry API"),
    ("cordoned", "a broker has one log directory"),
    ("num.network.threads", "minikafka.front.threads sets the threads of the front door"),
    ("num.io.threads", "requests are handled by the threads of the front door"),
    ("log.flush", "the operating system writes logs back, as by Kafka's default"),
    ("socket.", "the kernel sizes its buffers"),
    ("replica.socket", "followers fetch over gRPC"),
    ("class.name", "there are no Java classes"),
];

const OTHERWISE: &str = "this part of Kafka is not there";

/// `None` for a key that works, else why it does nothing.
pub(super) fn no_effect(key: &str) -> Option<&'static str> {
    if key.starts_with("minikafka.") || WORKS.contains(&key) {
        return None;
    }
    let reason = REASONS.iter().find(|(part, _)| {
        if part.ends_with('.') && !part.starts_with('.') { key.starts_with(part) } else { key.contains(part) }
    });
    Some(reason.map_or(OTHERWISE, |(_, reason)| reason))
}

/// Why a key of topics does nothing.
const TOPIC_REASONS: &[(&str, &str)] = &[
    ("compression.lz4.level", "lz4 has one level here"),
    ("delete.retention.ms", "there is no compaction yet"),
    ("errors.deadletterqueue.group.enable", "there are no share groups"),
    ("flush.ms", "the operating system writes logs back, as by Kafka's default"),
    ("follower.replication.throttled.replicas", "there are no quotas yet"),
    ("leader.replication.throttled.replicas", "there are no quotas yet"),
    ("local.retention.bytes", "there is no tiered storage"),
    ("local.retention.ms", "there is no tiered storage"),
    ("max.compaction.lag.ms", "there is no compaction yet"),
    ("max.decompressed.message.bytes", "the limit is the same for all topics (128 MiB)"),
    ("min.cleanable.dirty.ratio", "there is no compaction yet"),
    ("min.compaction.lag.ms", "there is no compaction yet"),
    ("remote.copy.lag.bytes", "there is no tiered storage"),
    ("remote.copy.lag.ms", "there is no tiered storage"),
    ("remote.log.copy.disable", "there is no tiered storage"),
    ("remote.log.delete.on.disable", "there is no tiered storage"),
    ("remote.storage.enable", "there is no tiered storage"),
];

/// `None` for a key of topics that works, else why it does nothing.
pub fn topic_no_effect(key: &str) -> Option<&'static str> {
    TOPIC_REASONS.iter().find(|(name, _)| *name == key).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{broker_key, topic_key};

    #[test]
    fn what_works_is_a_key() {
        for key in WORKS {
            assert!(broker_key(key).is_some(), "{key}");
        }
        for (key, _) in TOPIC_REASONS {
            assert!(topic_key(key).is_some(), "{key}");
        }
    }

    #[test]
    fn what_does_nothing_says_why() {
        assert_eq!(no_effect("min.insync.replicas"), None);
        assert_eq!(no_effect("minikafka.cluster.id"), None);
        assert_eq!(no_effect("sasl.enabled.mechanisms"), Some("there is no authentication yet"));
        assert_eq!(no_effect("group.share.enable"), Some("there are no share groups"));
        assert_eq!(no_effect("background.threads"), Some(OTHERWISE));
    }
}
