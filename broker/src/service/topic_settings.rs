//! The settings of one topic as this broker has them: the topic's own values over the cluster's and the broker's.

use std::collections::BTreeMap;
use std::time::Duration;

use minikafka_metadata::{ConfigResource, Image};
use minikafka_model::TopicId;
use minikafka_replication::ReplicaConfig;

use crate::settings::BrokerSettings;

/// The settings of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicSettings {
    /// `max.message.bytes`.
    pub(crate) max_message_bytes: usize,
    /// `segment.bytes`.
    pub(crate) segment_bytes: usize,
    /// `min.insync.replicas`.
    pub(crate) min_insync_replicas: usize,
    /// `message.timestamp.type=LogAppendTime`.
    pub(crate) log_append_time: bool,
    /// `message.timestamp.before.max.ms`.
    pub(crate) timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`.
    pub(crate) timestamp_after_max_ms: i64,
    /// `compression.type`; none is `producer`.
    pub(crate) compression: Option<String>,
    /// `cleanup.policy` holds `compact`.
    pub(crate) compacted: bool,
    /// Every value that is not the built-in default, by topic key.
    pub(crate) values: BTreeMap<String, String>,
}

/// Topic keys with the broker keys that give their default, the strongest first (Kafka semantics 6.9).
const SYNONYMS: &[(&str, &[(&str, i64)])] = &[
    ("max.message.bytes", &[("message.max.bytes", 1)]),
    ("segment.bytes", &[("log.segment.bytes", 1)]),
    ("min.insync.replicas", &[("min.insync.replicas", 1)]),
    ("message.timestamp.type", &[("log.message.timestamp.type", 1)]),
    ("message.timestamp.before.max.ms", &[("log.message.timestamp.before.max.ms", 1)]),
    ("message.timestamp.after.max.ms", &[("log.message.timestamp.after.max.ms", 1)]),
    ("compression.type", &[("compression.type", 1)]),
    ("cleanup.policy", &[("log.cleanup.policy", 1)]),
    (
        "retention.ms",
        &[("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000)],
    ),
    ("retention.bytes", &[("log.retention.bytes", 1)]),
    ("segment.ms", &[("log.roll.ms", 1), ("log.roll.hours", 3_600_000)]),
    ("segment.jitter.ms", &[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)]),
    ("segment.index.bytes", &[("log.index.size.max.bytes", 1)]),
    ("index.interval.bytes", &[("log.index.interval.bytes", 1)]),
    ("file.delete.delay.ms", &[("log.segment.delete.delay.ms", 1)]),
    ("flush.messages", &[("log.flush.interval.messages", 1)]),
    ("flush.ms", &[("log.flush.interval.ms", 1)]),
    ("preallocate", &[("log.preallocate", 1)]),
];

impl TopicSettings {
    /// The settings that `image` and the broker's own configuration give the topic.
    pub(crate) fn resolve(broker: &BrokerSettings, image: &Image, topic: TopicId) -> TopicSettings {
        let own = image.configs(ConfigResource::Topic(topic));
        let find = |key: &str| -> Option<String> {
            if let Some(value) = own.and_then(|own| own.get(key)) {
                return Some(value.clone());
            }
            let synonyms = SYNONYMS.iter().find(|(topic_key, _)| *topic_key == key).map(|(_, s)| *s)?;
            [ConfigResource::Broker(broker.id), ConfigResource::ClusterDefault]
                .into_iter()
                .flat_map(|resource| synonyms.iter().map(move |synonym| (Some(resource), synonym)))
                .chain(synonyms.iter().map(|synonym| (None, synonym)))
                .find_map(|(resource, (name, factor))| {
                    let value = match resource {
                        Some(resource) => image.config(resource, name).map(str::to_owned),
                        None => broker.given.get(*name).cloned(),
                    }?;
                    Some(scaled(value, *factor))
                })
        };
        let mut values = BTreeMap::new();
        for (key, _) in SYNONYMS {
            if let Some(value) = find(key) {
                values.insert((*key).to_owned(), value);
            }
        }
        for (key, value) in own.into_iter().flat_map(|own| own.iter()) {
            values.insert(key.clone(), value.clone());
        }
        TopicSettings::of(values)
    }

    fn of(values: BTreeMap<String, String>) -> TopicSettings {
        let number = |key: &str, default: i64| {
            values.get(key).and_then(|value| value.parse::<i64>().ok()).unwrap_or(default)
        };
        let size = |key: &str, default: i64| usize::try_from(number(key, default)).unwrap_or_default();
        let text = |key: &str| values.get(key).map(String::as_str);
        TopicSettings {
            max_message_bytes: size("max.message.bytes", 1_048_588),
            segment_bytes: size("segment.bytes", 1 << 30),
            min_insync_replicas: size("min.insync.replicas", 1),
            log_append_time: text("message.timestamp.type") == Some("LogAppendTime"),
            timestamp_before_max_ms: number("message.timestamp.before.max.ms", i64::MAX),
            timestamp_after_max_ms: number("message.timestamp.after.max.ms", 3_600_000),
            compression: text("compression.type").filter(|name| *name != "producer").map(str::to_owned),
            compacted: text("cleanup.policy")
                .is_some_and(|policy| policy.split(',').any(|word| word.trim() == "compact")),
            values,
        }
    }

    /// What the replica has to know of it.
    pub(crate) fn replica(&self, broker: &BrokerSettings) -> ReplicaConfig {
        ReplicaConfig {
            min_insync_replicas: self.min_insync_replicas,
            lag_time_max: broker.replica_lag_time_max,
            fetch_backoff: broker.replica_fetch_backoff,
            segment_bytes: self.segment_bytes,
            log_append_time: self.log_append_time,
        }
    }

    /// `file.delete.delay.ms`.
    pub(crate) fn delete_delay(&self) -> Duration {
        let ms = self.values.get("file.delete.delay.ms").and_then(|value| value.parse().ok());
        Duration::from_millis(ms.unwrap_or(60_000))
    }
}

/// `log.retention.hours` and its like are written in their own unit; -1 stays -1.
fn scaled(value: String, factor: i64) -> String {
    match value.parse::<i64>() {
        Ok(number) if factor != 1 && number >= 0 => number.saturating_mul(factor).to_string(),
        _ => value,
    }
}
