//! Configs of topics and brokers, each value with its source.

use std::time::Duration;

use minikafka_model::{BrokerId, ErrorCode};
use minikafka_wire::describe_configs::{self, DescribeConfigsRequest};

use super::{Admin, Repeat};
use crate::client::Shared;
use crate::connection::{Connection, Lane};
use crate::error::{BrokerError, Error};

/// Whose configs are asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigResource {
    /// A topic.
    Topic(String),
    /// A broker, asked itself.
    Broker(BrokerId),
    /// The dynamic defaults of all brokers.
    ClusterDefault,
}

impl ConfigResource {
    fn to_wire(&self) -> (i8, String) {
        match self {
            ConfigResource::Topic(name) => (2, name.clone()),
            ConfigResource::Broker(id) => (4, id.to_string()),
            ConfigResource::ClusterDefault => (4, String::new()),
        }
    }
}

impl std::fmt::Display for ConfigResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ConfigResource::Topic(name) => write!(f, "topic {name}"),
            ConfigResource::Broker(id) => write!(f, "broker {id}"),
            ConfigResource::ClusterDefault => f.write_str("all brokers"),
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigSource {
    /// Set on the topic.
    Topic,
    /// Set on one broker while it runs.
    DynamicBroker,
    /// Set on all brokers while they run.
    DynamicDefaultBroker,
    /// From the broker's configuration file.
    StaticBroker,
    /// Built in.
    Default,
    /// Something newer than this client.
    Other(i8),
}

impl ConfigSource {
    fn from_wire(code: i8) -> ConfigSource {
        match code {
            1 => ConfigSource::Topic,
            2 => ConfigSource::DynamicBroker,
            3 => ConfigSource::DynamicDefaultBroker,
            4 => ConfigSource::StaticBroker,
            5 => ConfigSource::Default,
            other => ConfigSource::Other(other),
        }
    }
}

/// One of the places a value can come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSynonym {
    /// The key in that place.
    pub name: String,
    /// Its value there.
    pub value: Option<String>,
    /// The place.
    pub source: ConfigSource,
}

/// One key with the value in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEntry {
    /// The key.
    pub name: String,
    /// The value; none if it is secret.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: ConfigSource,
    /// Whether it cannot be changed while the broker runs.
    pub read_only: bool,
    /// Whether it is secret.
    pub sensitive: bool,
    /// All places that give a value, the strongest first.
    pub synonyms: Vec<ConfigSynonym>,
}

impl ConfigEntry {
    fn from_wire(entry: describe_configs::ConfigEntry) -> ConfigEntry {
        let synonyms = entry.synonyms.into_iter().map(|synonym| ConfigSynonym {
            name: synonym.name,
            value: synonym.value,
            source: ConfigSource::from_wire(synonym.source),
        });
        ConfigEntry {
            name: entry.name,
            value: entry.value,
            source: ConfigSource::from_wire(entry.config_source),
            read_only: entry.read_only,
            sensitive: entry.is_sensitive,
            synonyms: synonyms.collect(),
        }
    }
}

impl Admin {
    /// The configs of one resource, all keys or the given ones.
    ///
    /// # Errors
    /// Nobody to ask, no answer, or the broker's refusal (3: no such topic).
    pub async fn describe_configs(
        &self,
        resource: &ConfigResource,
        keys: Option<&[String]>,
    ) -> Result<Vec<ConfigEntry>, Error> {
        let shared = self.shared.clone();
        self.any_broker("describing configs", Repeat::Question, |connection, left| {
            let (shared, resource) = (shared.clone(), resource.clone());
            let keys = keys.map(<[String]>::to_vec);
            async move {
                // A broker's own configs are known to itself alone.
                let connection = match resource {
                    ConfigResource::Broker(id) => shared.broker(id, Lane::Control).await?,
                    _ => connection,
                };
                ask(&connection, &resource, keys, left).await
            }
        })
        .await
    }
}

async fn ask(
    connection: &Connection,
    resource: &ConfigResource,
    keys: Option<Vec<String>>,
    wait: Duration,
) -> Result<Vec<ConfigEntry>, Error> {
    let (resource_type, resource_name) = resource.to_wire();
    let asked = describe_configs::ConfigResource { resource_type, resource_name, configuration_keys: keys };
    let request = DescribeConfigsRequest {
        resources: vec![asked],
        include_synonyms: true,
        include_documentation: false,
    };
    let answer = connection.call(&request, wait).await?;
    let result = answer.results.into_iter().next().ok_or_else(|| Error::Protocol {
        address: connection.address().clone(),
        reason: format!("its answer says nothing about {resource}"),
    })?;
    BrokerError::check(result.error_code, result.error_message)
        .map_err(|error| Error::broker(resource, error))?;
    Ok(result.configs.into_iter().map(ConfigEntry::from_wire).collect())
}

/// The `min.insync.replicas` of a topic.
pub(crate) async fn min_insync_replicas(shared: &Shared, topic: &str) -> Result<u16, Error> {
    const KEY: &str = "min.insync.replicas";
    let connection = shared.keeper.any().await?;
    let resource = ConfigResource::Topic(topic.to_owned());
    let entries =
        ask(&connection, &resource, Some(vec![KEY.to_owned()]), shared.config.request_timeout).await?;
    let value = entries.into_iter().find(|entry| entry.name == KEY).and_then(|entry| entry.value);
    value.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let message = Some(format!("the broker does not tell {KEY}"));
        let error = BrokerError::from_wire(ErrorCode::InvalidConfig.code(), message).expect("not zero");
        Error::broker(resource, error)
    })
}
