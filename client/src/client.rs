//! The client: configuration, connections and metadata that producer, consumer and admin share.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{BrokerId, PartitionIndex};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::admin::Admin;
use crate::config::{ClientConfig, ConfigError, Settings};
use crate::connection::{Connection, Lane, Pool};
use crate::consumer::ConsumerBuilder;
use crate::error::{BrokerError, Error};
use crate::metadata::{Broker, ClusterView, Keeper, PartitionView};
use crate::producer::Producer;

/// A client of one cluster. Clones share connections and metadata; the last one closes them.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use minikafka_client::{Client, Record};
///
/// let client = Client::builder().bootstrap("127.0.0.1:9092").set("linger.ms", "2")?.build()?;
/// let producer = client.producer();
/// let delivery = producer.send(Record::to("orders").key("k").value("v")).await?;
/// let stored = delivery.await?;
/// println!("partition {} offset {:?}", stored.partition, stored.offset);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

/// What every part of a client holds.
pub(crate) struct Shared {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) keeper: Arc<Keeper>,
    _stop_on_drop: DropGuard,
}

/// Collects settings by typed methods or by Kafka's names.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ClientBuilder {
    settings: Settings,
    problem: Option<ConfigError>,
}

impl ClientBuilder {
    /// `bootstrap.servers`: `host:port`, with commas between. A wrong address is told by [`ClientBuilder::build`].
    pub fn bootstrap(self, servers: impl AsRef<str>) -> ClientBuilder {
        self.keep("bootstrap.servers", servers.as_ref())
    }

    /// `client.id`: how this client names itself to brokers.
    pub fn client_id(self, id: impl AsRef<str>) -> ClientBuilder {
        self.keep("client.id", id.as_ref())
    }

    /// Any key by Kafka's name.
    ///
    /// # Errors
    /// A key that is not known (with the nearest one that is), a value that it does not take.
    pub fn set(mut self, key: &str, value: impl AsRef<str>) -> Result<ClientBuilder, ConfigError> {
        self.settings.set(key, value.as_ref())?;
        Ok(self)
    }

    /// Every key of a `.properties` file.
    ///
    /// # Errors
    /// A file that cannot be read; a line that is wrong, with its number.
    pub fn from_properties(mut self, path: impl AsRef<Path>) -> Result<ClientBuilder, ConfigError> {
        self.settings.read(path.as_ref())?;
        Ok(self)
    }

    /// Keys of the environment: with the prefix `KAFKA_`, `KAFKA_LINGER_MS=2` is `linger.ms=2`. Empty variables are left out.
    ///
    /// # Errors
    /// As [`ClientBuilder::set`], naming the variable.
    pub fn from_env(mut self, prefix: &str) -> Result<ClientBuilder, ConfigError> {
        for (name, value) in std::env::vars() {
            if let Some(rest) = name.strip_prefix(prefix)
                && !value.is_empty()
            {
                let key = rest.to_ascii_lowercase().replace('_', ".");
                let named = |error: ConfigError| ConfigError::Conflict(format!("{name}: {error}"));
                self.settings.set(&key, &value).map_err(named)?;
            }
        }
        Ok(self)
    }

    /// The client. Nothing is connected yet: the first call connects. Must be called inside a tokio runtime, which then runs the
    /// client's tasks.
    ///
    /// # Errors
    /// Settings that are missing or do not go together.
    pub fn build(self) -> Result<Client, ConfigError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let config = Arc::new(self.settings.finish()?);
        let pool = Arc::new(Pool::new(config.clone()));
        let keeper = Keeper::new(config.clone(), pool.clone());
        let stop = CancellationToken::new();
        tokio::spawn(keeper.clone().keep(stop.clone()));
        let guard = stop.drop_guard();
        Ok(Client { shared: Arc::new(Shared { config, pool, keeper, _stop_on_drop: guard }) })
    }

    fn keep(mut self, key: &str, value: &str) -> ClientBuilder {
        if let Err(problem) = self.settings.set(key, value) {
            self.problem.get_or_insert(problem);
        }
        self
    }
}

impl Client {
    /// Begins to configure a client.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// The configuration in force.
    pub fn config(&self) -> &ClientConfig {
        &self.shared.config
    }

    /// Tries every bootstrap server once, so that a cluster that is not there is told at once.
    ///
    /// # Errors
    /// [`Error::Unreachable`] with the reason for every address.
    pub async fn connect(&self) -> Result<(), Error> {
        self.shared.keeper.any().await.map(|_| ())
    }

    /// Topics, configs and nodes of the cluster.
    pub fn admin(&self) -> Admin {
        Admin::new(self.shared.clone())
    }

    /// A producer with the configuration of this client.
    pub fn producer(&self) -> Producer {
        Producer::start(self.shared.clone())
    }

    /// Begins to configure a consumer of assigned partitions.
    pub fn consumer(&self) -> ConsumerBuilder {
        ConsumerBuilder::new(self.shared.clone())
    }

    #[cfg(test)]
    pub(crate) fn refresh(&self) {
        self.shared.keeper.refresh();
    }

    /// What this client believes about the cluster now; empty before the first call.
    pub fn view(&self) -> Arc<ClusterView> {
        self.shared.keeper.view()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("config", &self.shared.config.diff_from_default())
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Connects to a broker by id, as the picture of the cluster has it.
    pub(crate) async fn broker(&self, id: BrokerId, lane: Lane) -> Result<Arc<Connection>, Error> {
        let view = self.keeper.view();
        let broker = view.brokers.get(&id).ok_or_else(|| gone(id))?;
        self.pool.broker(id, &broker.address, lane).await
    }

    /// Waits for the leader of a partition.
    pub(crate) async fn leader(
        &self,
        topic: &str,
        partition: PartitionIndex,
        within: Duration,
    ) -> Result<(Broker, PartitionView), Error> {
        self.keeper.want(topic);
        let what = || format!("finding the leader of {topic}-{partition}");
        self.keeper
            .find(what, within, |view| {
                known_topic(view, topic)?;
                let found = view.partition(topic, partition).ok_or_else(|| {
                    let error = BrokerError::from_wire(3, None);
                    error.map(|error| Error::broker(format!("partition {topic}-{partition}"), error))
                })?;
                let broker = view.leader(topic, partition).ok_or_else(|| {
                    let error = BrokerError::from_wire(5, None);
                    error.map(|error| Error::broker(format!("partition {topic}-{partition}"), error))
                })?;
                Ok((broker.clone(), found.clone()))
            })
            .await
    }
}

fn gone(id: BrokerId) -> Error {
    let message = Some(format!("broker {id} is not in the metadata"));
    let error = BrokerError::from_wire(minikafka_model::ErrorCode::BrokerNotAvailable.code(), message);
    Error::broker("connecting", error.expect("not zero"))
}

/// The topic, or why there is none (`None`: it was not asked for yet).
pub(crate) fn known_topic<'a>(
    view: &'a ClusterView,
    topic: &str,
) -> Result<&'a crate::metadata::TopicView, Option<Error>> {
    let found = view.topics.get(topic).ok_or(None)?;
    match found.error {
        None if !found.partitions.is_empty() => Ok(found),
        None => Err(None),
        Some(code) => Err(BrokerError::from_wire(code.code(), None)
            .map(|error| Error::broker(format!("topic {topic}"), error))),
    }
}
