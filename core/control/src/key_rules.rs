//! The rules of configuration keys by the table of keys and this node's static configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use minikafka_model::ErrorCode;
use minikafka_model::config::{Dynamic, Kind, Resolved, Update, broker_key, check_topic, topic_key};

use crate::config::{ConfigEntry, ConfigRefusal, ConfigRules};

/// [`ConfigRules`] over `model`'s table. Texts and codes are those that Kafka 4.4 gave the oracle's probe.
#[derive(Debug, Clone)]
pub struct KeyRules {
    config: Arc<Resolved>,
}

impl KeyRules {
    /// The rules of the node with this configuration.
    pub fn new(config: Arc<Resolved>) -> KeyRules {
        KeyRules { config }
    }
}

impl ConfigRules for KeyRules {
    fn check_topic(&self, key: &str, value: &str) -> Result<(), ConfigRefusal> {
        check_topic(key, value)
            .map_err(|refusal| ConfigRefusal { code: ErrorCode::InvalidConfig, message: refusal.to_string() })
    }

    fn check_broker(&self, key: &str, value: Option<&str>, one_broker: bool) -> Result<(), ConfigRefusal> {
        let refused = |message: String| Err(ConfigRefusal { code: ErrorCode::InvalidRequest, message });
        // Kafka keeps keys that it does not know.
        let Some(definition) = broker_key(key) else { return Ok(()) };
        let Some(value) = value else { return Ok(()) };
        match definition.update {
            Update::ReadOnly => return refused(format!("Cannot update these configs dynamically: [{key}]")),
            Update::PerBroker if !one_broker => {
                return refused(format!(
                    "Cannot update these configs at default cluster level, broker id must be specified: [{key}]"
                ));
            }
            Update::PerBroker | Update::ClusterWide => {}
        }
        definition.check(value).or_else(|bad| refused(bad.to_string()))
    }

    fn is_list(&self, key: &str) -> bool {
        topic_key(key).or_else(|| broker_key(key)).is_some_and(|definition| definition.kind == Kind::List)
    }

    fn topic_value(
        &self,
        key: &str,
        topic: &BTreeMap<String, String>,
        cluster: &BTreeMap<String, String>,
    ) -> Option<String> {
        let dynamic = Dynamic { broker: None, all: Some(cluster) };
        self.config.topic_value(key, topic, dynamic)?.value
    }

    fn topic_entries(
        &self,
        topic: &BTreeMap<String, String>,
        cluster: &BTreeMap<String, String>,
    ) -> Vec<ConfigEntry> {
        let dynamic = Dynamic { broker: None, all: Some(cluster) };
        self.config
            .topic_values(topic, dynamic)
            .into_iter()
            .map(|value| ConfigEntry {
                name: value.key.name.to_owned(),
                value: value.value.filter(|_| !value.key.is_secret()),
                read_only: false,
                source: value.source,
                sensitive: value.key.is_secret(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use minikafka_model::config::{ConfigSource, Given, Source, resolve};

    use super::*;

    fn rules(settings: &[(&str, &str)]) -> KeyRules {
        let given = settings.iter().map(|(key, value)| Given {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            source: Source::CommandLine,
        });
        KeyRules::new(Arc::new(resolve(given).resolved))
    }

    fn text(result: Result<(), ConfigRefusal>) -> (i16, String) {
        result.map_or_else(|refusal| (refusal.code.code(), refusal.message), |()| (0, String::new()))
    }

    /// The answers of cases create.config.* and configs.inc.* of the oracle's probe.
    #[test]
    fn refusals_are_kafkas() {
        let rules = rules(&[]);
        let topic = |key, value| text(rules.check_topic(key, value));
        assert_eq!(topic("no.such.key", "1"), (40, "Unknown topic config name: no.such.key".into()));
        assert_eq!(
            topic("log.retention.ms", "1"),
            (40, "Unknown topic config name: log.retention.ms".into())
        );
        assert_eq!(
            topic("retention.ms", "soon"),
            (40, "Invalid value soon for configuration retention.ms: Not a number of type LONG".into())
        );
        assert_eq!(
            topic("min.insync.replicas", "0"),
            (40, "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1".into())
        );
        assert_eq!(
            topic("unclean.leader.election.enable", "maybe"),
            (
                40,
                "Invalid value maybe for configuration unclean.leader.election.enable: Expected value to be either true or false"
                    .into()
            )
        );
        assert_eq!(
            topic("segment.bytes", "13"),
            (40, "Invalid value 13 for configuration segment.bytes: Value must be at least 1048576".into())
        );
        assert_eq!(
            topic("compression.type", "rar"),
            (
                40,
                "Invalid value rar for configuration compression.type: String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"
                    .into()
            )
        );
        let broker = |key, value, one| text(rules.check_broker(key, Some(value), one));
        assert_eq!(
            broker("node.id", "5", true),
            (42, "Cannot update these configs dynamically: [node.id]".into())
        );
        assert_eq!(
            broker("listeners", "x", false),
            (
                42,
                "Cannot update these configs at default cluster level, broker id must be specified: [listeners]"
                    .into()
            )
        );
        assert_eq!(
            broker("message.max.bytes", "abc", false),
            (42, "Invalid value abc for configuration message.max.bytes: Not a number of type INT".into())
        );
        assert_eq!(broker("no.such", "x", true), (0, String::new()));
    }

    #[test]
    fn the_controllers_own_file_counts() {
        let rules = rules(&[("min.insync.replicas", "2")]);
        let none = BTreeMap::new();
        assert_eq!(rules.topic_value("min.insync.replicas", &none, &none).as_deref(), Some("2"));
        let entries = rules.topic_entries(&none, &none);
        assert_eq!(entries.len(), 37, "as many as Kafka 4.4 answers");
        let entry = entries.iter().find(|entry| entry.name == "min.insync.replicas").expect("a topic key");
        assert_eq!(entry.source, ConfigSource::StaticBroker);
        assert!(rules.is_list("cleanup.policy") && !rules.is_list("retention.ms"));
    }
}
