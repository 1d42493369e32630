//! What a broker is told by its configuration, as plain values: everything below `server` takes these and never a key.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use minikafka_model::{BrokerId, ControllerId};

/// One listener of the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerSettings {
    /// Its name (`listeners`, before `://`).
    pub name: String,
    /// Where it binds, `host:port`; an empty host binds all addresses, port 0 lets the system choose.
    pub bind: (String, u16),
    /// What others are told (`advertised.listeners`); none: as bound.
    pub advertised: Option<(String, u16)>,
}

/// A controller as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerAddress {
    /// Its id (`controller.quorum.voters`); unknown for `controller.quorum.bootstrap.servers`.
    pub id: Option<ControllerId>,
    /// `host:port`.
    pub address: String,
}

/// How the partitions of one source are spread over its fetcher threads (`minikafka.replica.fetcher.spread`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Each new partition goes to the thread with the fewest.
    Even,
    /// Kafka's hash of topic and partition, which can leave threads empty.
    Kafka,
}

/// The settings of one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerSettings {
    /// `node.id`.
    pub id: BrokerId,
    /// The cluster it belongs to, where the configuration names one; else the directory says, or the controllers.
    pub cluster_id: Option<String>,
    /// `broker.rack`.
    pub rack: Option<String>,
    /// The listeners.
    pub listeners: Vec<ListenerSettings>,
    /// `inter.broker.listener.name`.
    pub inter_broker_listener: String,
    /// The controllers.
    pub controllers: Vec<ControllerAddress>,
    /// The data directory (`log.dirs`).
    pub log_dir: PathBuf,
    /// `minikafka.http.listen`; none: no HTTP.
    pub http: Option<String>,
    /// `minikafka.lab.faults.enable`.
    pub faults: bool,
    /// Where to tell the chosen ports (`minikafka.ready.file`).
    pub ready_file: Option<PathBuf>,
    /// Threads of the front door (Kafka and gRPC).
    pub front_threads: usize,
    /// `socket.request.max.bytes`.
    pub request_max_bytes: usize,
    /// `connections.max.idle.ms`.
    pub connection_idle: Duration,
    /// `max.connections`.
    pub max_connections: usize,
    /// `fetch.max.bytes`.
    pub fetch_max_bytes: usize,
    /// `max.incremental.fetch.session.cache.slots`.
    pub fetch_session_slots: usize,
    /// `auto.create.topics.enable`.
    pub auto_create_topics: bool,
    /// `num.partitions`.
    pub num_partitions: i32,
    /// `default.replication.factor`.
    pub default_replication_factor: i16,
    /// `num.replica.fetchers`.
    pub replica_fetchers: usize,
    /// `minikafka.replica.fetcher.spread`.
    pub fetcher_spread: Spread,
    /// `replica.fetch.wait.max.ms`.
    pub replica_fetch_wait: Duration,
    /// `replica.fetch.response.max.bytes`.
    pub replica_fetch_response_max_bytes: usize,
    /// `replica.fetch.max.bytes`.
    pub replica_fetch_max_bytes: usize,
    /// `minikafka.replica.fetch.max.outstanding`.
    pub replica_fetch_outstanding: usize,
    /// `replica.fetch.backoff.ms`.
    pub replica_fetch_backoff: Duration,
    /// `replica.lag.time.max.ms`.
    pub replica_lag_time_max: Duration,
    /// `broker.heartbeat.interval.ms`.
    pub heartbeat_interval: Duration,
    /// `broker.session.timeout.ms`.
    pub session_timeout: Duration,
    /// `initial.broker.registration.timeout.ms`.
    pub registration_timeout: Duration,
    /// `controlled.shutdown.enable`.
    pub controlled_shutdown: bool,
    /// The longest a controlled shutdown may take.
    pub shutdown_timeout: Duration,
    /// `request.timeout.ms`: how long a forwarded request may take at most.
    pub request_timeout: Duration,
    /// `replica.high.watermark.checkpoint.interval.ms`.
    pub high_watermark_checkpoint_interval: Duration,
    /// `log.flush.offset.checkpoint.interval.ms`.
    pub recovery_point_checkpoint_interval: Duration,
    /// `log.retention.check.interval.ms`.
    pub retention_check_interval: Duration,
    /// `producer.id.expiration.ms`.
    pub producer_id_expiration: Duration,
    /// `producer.id.expiration.check.interval.ms`.
    pub producer_id_expiration_interval: Duration,
    /// Values of the file, the environment and the command line, by key: for DescribeConfigs and topic defaults.
    pub given: BTreeMap<String, String>,
}

impl BrokerSettings {
    /// Kafka's defaults for a broker with this id, these controllers and this directory.
    pub fn defaults(id: BrokerId, controllers: Vec<ControllerAddress>, log_dir: PathBuf) -> BrokerSettings {
        let seconds = Duration::from_secs;
        BrokerSettings {
            id,
            cluster_id: None,
            rack: None,
            listeners: vec![ListenerSettings {
                name: "PLAINTEXT".to_owned(),
                bind: (String::new(), 9092),
                advertised: None,
            }],
            inter_broker_listener: "PLAINTEXT".to_owned(),
            controllers,
            log_dir,
            http: None,
            faults: false,
            ready_file: None,
            front_threads: 1,
            request_max_bytes: 104_857_600,
            connection_idle: seconds(600),
            max_connections: 10_000,
            fetch_max_bytes: 57_671_680,
            fetch_session_slots: 1000,
            auto_create_topics: true,
            num_partitions: 1,
            default_replication_factor: 1,
            replica_fetchers: 1,
            fetcher_spread: Spread::Even,
            replica_fetch_wait: Duration::from_millis(500),
            replica_fetch_response_max_bytes: 10_485_760,
            replica_fetch_max_bytes: 1_048_576,
            replica_fetch_outstanding: 1,
            replica_fetch_backoff: seconds(1),
            replica_lag_time_max: seconds(30),
            heartbeat_interval: seconds(2),
            session_timeout: seconds(9),
            registration_timeout: seconds(60),
            controlled_shutdown: true,
            shutdown_timeout: seconds(300),
            request_timeout: seconds(30),
            high_watermark_checkpoint_interval: seconds(5),
            recovery_point_checkpoint_interval: seconds(60),
            retention_check_interval: seconds(300),
            producer_id_expiration: seconds(86_400),
            producer_id_expiration_interval: seconds(600),
            given: BTreeMap::new(),
        }
    }
}
