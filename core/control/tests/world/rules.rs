//! A few configuration keys, with Kafka's words for what is wrong.

use std::collections::BTreeMap;

use minikafka_control::{ConfigEntry, ConfigRefusal, ConfigRules};
use minikafka_model::ErrorCode;
use minikafka_model::config::ConfigSource;

/// Topic keys with their defaults.
const TOPIC_KEYS: [(&str, &str); 4] = [
    ("cleanup.policy", "delete"),
    ("min.insync.replicas", "1"),
    ("retention.ms", "604800000"),
    ("unclean.leader.election.enable", "false"),
];

#[derive(Debug)]
pub struct TestRules;

impl ConfigRules for TestRules {
    fn check_topic(&self, key: &str, value: &str) -> Result<(), ConfigRefusal> {
        let refused = |message: String| Err(ConfigRefusal { code: ErrorCode::InvalidConfig, message });
        let wrong = |why: &str| refused(format!("Invalid value {value} for configuration {key}: {why}"));
        match key {
            "cleanup.policy" if value.split(',').any(|policy| !matches!(policy, "delete" | "compact")) => {
                wrong("String must be one of: compact, delete")
            }
            "min.insync.replicas" => match value.parse::<i32>() {
                Ok(number) if number >= 1 => Ok(()),
                Ok(_) => wrong("Value must be at least 1"),
                Err(_) => wrong("Not a number of type INT"),
            },
            "retention.ms" if value.parse::<i64>().is_err() => wrong("Not a number of type LONG"),
            _ if TOPIC_KEYS.iter().any(|(known, _)| *known == key) => Ok(()),
            _ => refused(format!("Unknown topic config name: {key}")),
        }
    }

    fn check_broker(&self, key: &str, _: Option<&str>, _: bool) -> Result<(), ConfigRefusal> {
        if key == "node.id" {
            let message = "Cannot update these configs dynamically: [node.id]".to_owned();
            return Err(ConfigRefusal { code: ErrorCode::InvalidRequest, message });
        }
        Ok(())
    }

    fn is_list(&self, key: &str) -> bool {
        key == "cleanup.policy"
    }

    fn topic_value(
        &self,
        key: &str,
        topic: &BTreeMap<String, String>,
        cluster: &BTreeMap<String, String>,
    ) -> Option<String> {
        let default =
            TOPIC_KEYS.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned());
        topic.get(key).or_else(|| cluster.get(key)).cloned().or(default)
    }

    fn topic_entries(
        &self,
        topic: &BTreeMap<String, String>,
        cluster: &BTreeMap<String, String>,
    ) -> Vec<ConfigEntry> {
        TOPIC_KEYS
            .iter()
            .map(|(name, _)| ConfigEntry {
                name: (*name).to_owned(),
                value: self.topic_value(name, topic, cluster),
                read_only: false,
                source: if topic.contains_key(*name) { ConfigSource::Topic } else { ConfigSource::Default },
                sensitive: false,
            })
            .collect()
    }
}
