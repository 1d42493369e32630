//! The controller's settings, and what it needs to know of configuration keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use minikafka_model::config::{ConfigSource, Resolved};
use minikafka_model::{ControllerId, ErrorCode};

use crate::key_rules::KeyRules;
use crate::seeded::Faults;

/// One effective configuration value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The key.
    pub name: String,
    /// The value; none where there is none or it is secret.
    pub value: Option<String>,
    /// It cannot be changed while the cluster runs.
    pub read_only: bool,
    /// Where it comes from.
    pub source: ConfigSource,
    /// It is secret.
    pub sensitive: bool,
}

/// Why a value is not taken: Kafka's code and words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigRefusal {
    /// `INVALID_CONFIG` or `INVALID_REQUEST`.
    pub code: ErrorCode,
    /// The text.
    pub message: String,
}

/// What the table of configuration keys, together with this node's static configuration, knows.
pub trait ConfigRules: fmt::Debug + Send + Sync {
    /// Whether a topic may have this value.
    ///
    /// # Errors
    /// An unknown key or a bad value.
    fn check_topic(&self, key: &str, value: &str) -> Result<(), ConfigRefusal>;

    /// Whether a broker, or all of them (`one_broker` false), may have this dynamic value; none deletes it.
    ///
    /// # Errors
    /// A key that cannot be changed while running, or a bad value. Unknown keys are taken.
    fn check_broker(&self, key: &str, value: Option<&str>, one_broker: bool) -> Result<(), ConfigRefusal>;

    /// Whether the key's value is a list, so that it can be appended to.
    fn is_list(&self, key: &str) -> bool;

    /// The effective value of a topic's key: the topic's own, else the cluster's dynamic default under the broker's name of the key,
    /// else this node's static value, else the default.
    fn topic_value(
        &self,
        key: &str,
        topic: &BTreeMap<String, String>,
        cluster: &BTreeMap<String, String>,
    ) -> Option<String>;

    /// All effective values of a topic, in the order of their names, for the answer to CreateTopics.
    fn topic_entries(
        &self,
        topic: &BTreeMap<String, String>,
        cluster: &BTreeMap<String, String>,
    ) -> Vec<ConfigEntry>;
}

/// The controller's settings.
#[derive(Debug, Clone)]
pub struct ControlConfig {
    /// This controller.
    pub id: ControllerId,
    /// `broker.session.timeout.ms`. Sessions are looked at every eighth of it.
    pub session_timeout: Duration,
    /// `num.partitions`.
    pub default_partitions: i32,
    /// `default.replication.factor`.
    pub default_replication_factor: i32,
    /// `delete.topic.enable`.
    pub delete_topic_enable: bool,
    /// `unclean.leader.election.interval.ms`.
    pub unclean_interval: Duration,
    /// `auto.leader.rebalance.enable`.
    pub auto_rebalance: bool,
    /// `leader.imbalance.check.interval.seconds`.
    pub rebalance_interval: Duration,
    /// The level of `eligible.leader.replicas.version` that a new cluster gets; an old one keeps its own.
    pub elr_of_new_cluster: u16,
    /// The configuration keys.
    pub rules: Arc<dyn ConfigRules>,
    /// Faults planted for a test of the tests: none.
    pub faults: Faults,
}

impl ControlConfig {
    /// The settings of the controller with this configuration.
    pub fn of(id: ControllerId, config: &Arc<Resolved>) -> ControlConfig {
        let int = |key| i32::try_from(config.int(key)).unwrap_or(i32::MAX);
        ControlConfig {
            session_timeout: config.millis("broker.session.timeout.ms"),
            default_partitions: int("num.partitions"),
            default_replication_factor: int("default.replication.factor"),
            delete_topic_enable: config.flag("delete.topic.enable"),
            unclean_interval: config.millis("unclean.leader.election.interval.ms"),
            auto_rebalance: config.flag("auto.leader.rebalance.enable"),
            rebalance_interval: config.seconds("leader.imbalance.check.interval.seconds"),
            ..ControlConfig::new(id, Arc::new(KeyRules::new(Arc::clone(config))))
        }
    }

    /// Kafka's defaults.
    pub fn new(id: ControllerId, rules: Arc<dyn ConfigRules>) -> ControlConfig {
        ControlConfig {
            id,
            session_timeout: Duration::from_secs(9),
            default_partitions: 1,
            default_replication_factor: 1,
            delete_topic_enable: true,
            unclean_interval: Duration::from_secs(300),
            auto_rebalance: true,
            rebalance_interval: Duration::from_secs(300),
            elr_of_new_cluster: 0,
            rules,
            faults: Faults::default(),
        }
    }
}
