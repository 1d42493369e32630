//! What the keys mean, in our words: for DescribeConfigs and `docs/configuration.md`. Keys without effect say why instead.

use super::effect::{no_effect, topic_no_effect};
use super::key::{Check, KeyDef};
use super::{broker_key, broker_keys, topic_key, topic_keys};

/// In the order of the names; a topic key and a broker key of one name mean the same.
#[rustfmt::skip]
const WORDS: &[(&str, &str)] = &[
    ("advertised.listeners", "The addresses that clients and other brokers are told, NAME://host:port each. Without it: those of the listeners."),
    ("auto.create.topics.enable", "A Metadata request that allows it makes the topic it names."),
    ("auto.leader.rebalance.enable", "The active controller gives leadership back to the first replica of each partition when it is in sync."),
    ("broker.heartbeat.interval.ms", "How often a broker tells the controllers that it lives."),
    ("broker.id", "The old name of node.id."),
    ("broker.rack", "Where the broker stands. New topics spread their replicas over the racks; consumers may be sent to a replica near them."),
    ("broker.session.timeout.ms", "A broker that was not heard of for so long is fenced: it loses its leaderships and its places in the in-sync sets."),
    ("cleanup.policy", "What happens to old records: delete by retention, compact by key, or both with a comma between. Compacted topics refuse records without a key; nothing is compacted yet."),
    ("compression.gzip.level", "How hard gzip tries, 1 to 9, or -1 for its own default."),
    ("compression.lz4.level", "How hard lz4 tries."),
    ("compression.type", "The codec of the stored batches. producer keeps what the producer chose; any other compresses anew what differs."),
    ("compression.zstd.level", "How hard zstd tries."),
    ("connections.max.idle.ms", "A client's connection without a request for so long is closed."),
    ("controlled.shutdown.enable", "A broker that is asked to stop first hands its leaderships over."),
    ("controller.listener.names", "The names of the listeners that controllers use."),
    ("controller.quorum.bootstrap.servers", "Addresses of controllers, host:port each, where brokers ask for the active one."),
    ("controller.quorum.election.backoff.max.ms", "The longest a voter waits after an election without a winner."),
    ("controller.quorum.election.timeout.ms", "How long a candidate waits for votes. Unless it is given, elections are faster than Kafka's."),
    ("controller.quorum.fetch.timeout.ms", "How long a voter does without its leader before it campaigns. Unless it is given, elections are faster than Kafka's."),
    ("controller.quorum.request.timeout.ms", "How long a request between voters may take."),
    ("controller.quorum.voters", "The controllers, id@host:port each; the same on every node."),
    ("default.replication.factor", "Replicas of a topic where the request does not say."),
    ("delete.retention.ms", "How long a tombstone stays in a compacted topic."),
    ("delete.topic.enable", "Topics can be deleted."),
    ("errors.deadletterqueue.group.enable", "The topic may take the failed records of share groups."),
    ("fetch.max.bytes", "The most bytes of records in one answer to a consumer; the first batch is given whole all the same."),
    ("file.delete.delay.ms", "How long the files of deleted segments stay on the disk, for readers that are still at them."),
    ("flush.messages", "After so many records a sync of the log is asked for. Left alone, the operating system writes back when it likes, and replication is what protects."),
    ("flush.ms", "After so long a record is synced. Left alone, the operating system writes back when it likes."),
    ("follower.replication.throttled.replicas", "The followers whose fetching is slowed down, partition:broker each, or * for all."),
    ("index.interval.bytes", "An entry is added to the offset index after so many bytes of records."),
    ("initial.broker.registration.timeout.ms", "How long a starting broker tries to register before it gives up."),
    ("inter.broker.listener.name", "The listener by which brokers reach each other."),
    ("internal.segment.bytes", "segment.bytes without its lower limit, for tests."),
    ("leader.imbalance.check.interval.seconds", "How often the active controller looks for leaderships to give back."),
    ("leader.replication.throttled.replicas", "The leaders whose serving of followers is slowed down, partition:broker each, or * for all."),
    ("listener.security.protocol.map", "What each listener speaks, NAME:PROTOCOL each. Only PLAINTEXT is there so far; another is refused."),
    ("listeners", "Where the node listens, NAME://host:port each. An empty host is every address of the machine; port 0 lets the system choose."),
    ("local.retention.bytes", "Of a tiered log: how many bytes stay on the broker's disk."),
    ("local.retention.ms", "Of a tiered log: how long records stay on the broker's disk."),
    ("log.cleanup.policy", "The default of cleanup.policy."),
    ("log.dir", "The data directory, where log.dirs says nothing."),
    ("log.dirs", "The data directory; one is supported so far."),
    ("log.flush.interval.messages", "The default of flush.messages."),
    ("log.flush.offset.checkpoint.interval.ms", "How often it is written down up to where the logs are synced: there recovery begins after an unclean stop."),
    ("log.index.interval.bytes", "The default of index.interval.bytes."),
    ("log.index.size.max.bytes", "The default of segment.index.bytes."),
    ("log.initial.task.delay.ms", "How long after the start the background tasks begin."),
    ("log.message.timestamp.after.max.ms", "The default of message.timestamp.after.max.ms."),
    ("log.message.timestamp.before.max.ms", "The default of message.timestamp.before.max.ms."),
    ("log.message.timestamp.type", "The default of message.timestamp.type."),
    ("log.preallocate", "The default of preallocate."),
    ("log.retention.bytes", "The default of retention.bytes."),
    ("log.retention.check.interval.ms", "How often it is looked for segments that retention lets go."),
    ("log.retention.hours", "The default of retention.ms in hours, where neither log.retention.ms nor log.retention.minutes is given."),
    ("log.retention.minutes", "The default of retention.ms in minutes, where log.retention.ms is not given."),
    ("log.retention.ms", "The default of retention.ms."),
    ("log.roll.hours", "The default of segment.ms in hours, where log.roll.ms is not given."),
    ("log.roll.jitter.hours", "The default of segment.jitter.ms in hours, where log.roll.jitter.ms is not given."),
    ("log.roll.jitter.ms", "The default of segment.jitter.ms."),
    ("log.roll.ms", "The default of segment.ms."),
    ("log.segment.bytes", "The default of segment.bytes."),
    ("log.segment.delete.delay.ms", "The default of file.delete.delay.ms."),
    ("max.compaction.lag.ms", "The longest a record of a compacted topic stays as it was written."),
    ("max.connections", "Connections that a broker keeps open at a time."),
    ("max.decompressed.message.bytes", "The most bytes that a batch may decompress to."),
    ("max.incremental.fetch.session.cache.slots", "Fetch sessions of clients that a broker remembers; the oldest make room."),
    ("max.message.bytes", "The largest batch, as it is stored: a larger one is answered MESSAGE_TOO_LARGE. Followers and consumers take any size."),
    ("message.max.bytes", "The default of max.message.bytes."),
    ("message.timestamp.after.max.ms", "How far ahead of the broker's clock a producer's timestamp may be."),
    ("message.timestamp.before.max.ms", "How far behind the broker's clock a producer's timestamp may be."),
    ("message.timestamp.type", "Who stamps records: CreateTime is the producer, LogAppendTime the broker."),
    ("metadata.log.dir", "Where a controller keeps its metadata log; without it, the first of log.dirs."),
    ("metadata.log.max.record.bytes.between.snapshots", "A snapshot of the metadata is taken after so many bytes of records."),
    ("metadata.log.max.snapshot.interval.ms", "A snapshot of the metadata is taken after so long, if anything has changed."),
    ("min.cleanable.dirty.ratio", "A compacted log is cleaned when this part of it is not clean."),
    ("min.compaction.lag.ms", "How long a record of a compacted topic is left alone."),
    ("min.insync.replicas", "So many replicas must be in sync for a write with acks=all to be taken, and before its records count as committed; never more than the topic has replicas."),
    ("minikafka.cluster.id", "The cluster this node belongs to (also CLUSTER_ID in the environment). Without it, the data directory or the controllers say."),
    ("minikafka.front.threads", "Threads that serve clients and followers."),
    ("minikafka.http.listen", "host:port of the node's HTTP (health, state, events); without it there is none."),
    ("minikafka.lab.faults.enable", "Opens /v1/faults, by which links are cut or slowed and disks made slow. For learning and tests alone."),
    ("minikafka.log.format", "How log lines look: text is Kafka's style, json one object a line."),
    ("minikafka.ready.file", "A file that is written once the node serves, with its addresses as bound."),
    ("minikafka.replica.fetch.max.outstanding", "How many reads of one partition a follower may have under way; 1 is Kafka's loop."),
    ("minikafka.replica.fetcher.spread", "How partitions go to fetcher threads: even, or by Kafka's hash, which can leave threads without any."),
    ("node.id", "The number of this node, unique in the cluster."),
    ("num.partitions", "Partitions of a topic where the request does not say."),
    ("num.replica.fetchers", "Fetcher threads of a follower for each broker that it follows."),
    ("preallocate", "The space of a segment is reserved when it is made."),
    ("process.roles", "What this process is: broker, controller, or both with a comma between."),
    ("producer.id.expiration.check.interval.ms", "How often it is looked for producers to forget."),
    ("producer.id.expiration.ms", "A partition forgets an idempotent producer that did not write for so long."),
    ("remote.copy.lag.bytes", "Of a tiered log: how many bytes stay before they are copied away."),
    ("remote.copy.lag.ms", "Of a tiered log: how long records stay before they are copied away."),
    ("remote.log.copy.disable", "Of a tiered log: nothing more is copied away."),
    ("remote.log.delete.on.disable", "Of a tiered log: what was copied away goes when tiering ends."),
    ("remote.storage.enable", "The log is tiered."),
    ("replica.fetch.backoff.ms", "How long a follower leaves a partition alone after an error."),
    ("replica.fetch.max.bytes", "The most bytes of one partition in one answer to a follower; the first batch is given whole all the same."),
    ("replica.fetch.response.max.bytes", "The most bytes of records in one answer to a follower; the first batch is given whole all the same."),
    ("replica.fetch.wait.max.ms", "How long a leader keeps a follower's fetch that has nothing new for it."),
    ("replica.high.watermark.checkpoint.interval.ms", "How often the high watermarks are written down."),
    ("replica.lag.time.max.ms", "A follower that has not caught up with its leader for so long leaves the in-sync set."),
    ("request.timeout.ms", "How long a request that is handed on to the controllers may take."),
    ("retention.bytes", "Of each partition, older segments go when it is larger; -1 for no limit."),
    ("retention.ms", "Segments go when their newest record is older; -1 keeps them for ever."),
    ("segment.bytes", "A log goes on in a new file before the present one would grow larger."),
    ("segment.index.bytes", "The space of a segment's index files; a full index ends the segment."),
    ("segment.jitter.ms", "A random part of this is taken off segment.ms, so that segments do not all roll at once."),
    ("segment.ms", "A log goes on in a new file after so long, even if the present one is not full."),
    ("socket.request.max.bytes", "A request that announces more bytes ends its connection."),
    ("unclean.leader.election.enable", "A replica that is not in sync may lead when no other can: the partition serves again, and loses acknowledged records."),
    ("unclean.leader.election.interval.ms", "How often the active controller looks for partitions without a leader that may elect an unclean one."),
];

/// What the key means; of a key without effect, why it has none.
pub fn documentation(key: &KeyDef) -> String {
    let known = WORDS.binary_search_by(|(name, _)| name.cmp(&key.name)).ok().map(|index| WORDS[index].1);
    let reason = broker_key(key.name).and_then(|key| no_effect(key.name));
    match (known, reason) {
        (Some(words), _) => words.to_owned(),
        (None, Some(reason)) => format!("A key of Kafka's without effect here: {reason}."),
        (None, None) => "A key of Kafka's without effect here.".to_owned(),
    }
}

/// The page `docs/configuration.md`.
pub fn reference() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Generated from the tables in `core/model/src/config`: `cargo run -p minikafka-model --example configuration > docs/configuration.md`.\n\n\
         Keys are Kafka's. A value comes from the strongest place that gives one: the built-in default, a `.properties` file, the environment\n\
         (`KAFKA_NUM_PARTITIONS` or `KAFKA_CFG_NUM_PARTITIONS` for `num.partitions`; `__` stands for `_`, `___` for `-`; `CLUSTER_ID`), the command\n\
         line (`-X key=value`). A key that Kafka 4.4 does not know either is an error in a file or on the command line, and a remark in the\n\
         environment. Every problem is told at once, with file and line. `/v1/config` shows each value with its source.\n",
    );
    page.push_str("\n## Keys of minikafka alone\n\n");
    rows(&mut page, broker_keys().filter(|key| key.name.starts_with("minikafka.")));
    page.push_str("\n## Keys of brokers and controllers\n\n");
    let works = |key: &&KeyDef| !key.name.starts_with("minikafka.") && no_effect(key.name).is_none();
    rows(&mut page, broker_keys().filter(works));
    page.push_str("\n## Keys of topics\n\nSet when a topic is created; without a value of its own, a topic takes the brokers'.\n\n");
    rows(&mut page, topic_keys().filter(|key| !key.name.starts_with("internal.")));
    page.push_str("\n## Kafka's keys without effect\n\nAccepted; whoever sets one to something else than its default is told why it does nothing.\n\n");
    for key in broker_keys() {
        if let Some(reason) = no_effect(key.name).filter(|_| !key.name.starts_with("internal.")) {
            page.push_str(&format!("- `{}`: {reason}\n", key.name));
        }
    }
    page
}

fn rows(page: &mut String, keys: impl Iterator<Item = &'static KeyDef>) {
    page.push_str("| Key | Type | Default | Values | Meaning |\n|---|---|---|---|---|\n");
    for key in keys {
        let default = match key.default {
            None => "none".to_owned(),
            Some("") => "empty".to_owned(),
            Some(default) => format!("`{default}`"),
        };
        let kind = key.kind.name().to_ascii_lowercase();
        page.push_str(&format!(
            "| `{}` | {kind} | {default} | {} | {} |\n",
            key.name,
            values(key.check),
            meaning(key)
        ));
    }
}

fn meaning(key: &KeyDef) -> String {
    let words = documentation(key);
    match topic_no_effect(key.name).filter(|_| topic_key(key.name) == Some(key)) {
        Some(reason) => format!("{words} *No effect here: {reason}.*"),
        None => words,
    }
}

fn values(check: Check) -> String {
    match check {
        Check::Any => String::new(),
        Check::AtLeast(least) => format!("from {least}"),
        Check::Between(least, most) => format!("{least} to {most}"),
        Check::Fraction(least, most) => format!("{least} to {most}"),
        Check::OneOf(words) | Check::OneOfIgnoringCase(words) => words.join(", "),
        Check::EachOf(words) => format!("a list of {}", words.join(", ")),
        Check::NonEmpty => "not empty".to_owned(),
        Check::GzipLevel => "1 to 9, or -1".to_owned(),
        Check::Throttled => "`*` or `partition:broker`, ...".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_that_works_has_its_words() {
        assert!(WORDS.is_sorted_by(|a, b| a.0 < b.0));
        let works = broker_keys().filter(|key| no_effect(key.name).is_none());
        for key in works.chain(topic_keys()) {
            assert!(WORDS.iter().any(|(name, _)| *name == key.name), "{}", key.name);
        }
        for (name, _) in WORDS {
            assert!(broker_keys().chain(topic_keys()).any(|key| key.name == *name), "{name} is no key");
        }
        let key = broker_key("sasl.enabled.mechanisms").expect("a key");
        assert_eq!(
            documentation(key),
            "A key of Kafka's without effect here: there is no authentication yet."
        );
    }
}
