//! Brokers in this process, with the test's controller.

use std::net::SocketAddr;
use std::time::Duration;

use minikafka_broker::{Broker, BrokerSettings, ControllerAddress, ListenerSettings};
use minikafka_model::BrokerId;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::client::Client;
use crate::controller::{CLUSTER, Controller};

/// How long a condition may take to come true.
const PATIENCE: Duration = Duration::from_secs(20);

/// A controller and some brokers.
pub(crate) struct Cluster {
    pub(crate) controller: Controller,
    brokers: Vec<Option<Broker>>,
    directories: Vec<TempDir>,
    adjust: fn(&mut BrokerSettings),
}

impl Cluster {
    /// Brokers 1 to `count`, unfenced.
    pub(crate) async fn start(count: usize) -> Cluster {
        Cluster::with(count, |_| {}).await
    }

    /// As [`Cluster::start`], with other settings.
    pub(crate) async fn with(count: usize, adjust: fn(&mut BrokerSettings)) -> Cluster {
        minikafka_node::init_telemetry("warn", minikafka_node::LogFormat::Text);
        let controller = Controller::start().await;
        let directories = (0..count).map(|_| tempfile::tempdir().expect("a directory")).collect();
        let mut cluster = Cluster { controller, brokers: Vec::new(), directories, adjust };
        for index in 0..count {
            let broker = cluster.boot(index);
            cluster.brokers.push(Some(broker));
        }
        for broker in cluster.brokers.iter().flatten() {
            timeout(PATIENCE, broker.wait_ready()).await.expect("in time").expect("it starts");
        }
        cluster
            .until("all brokers see each other", |image| {
                image.brokers().values().filter(|broker| !broker.fenced).count() == count
            })
            .await;
        cluster
    }

    fn boot(&self, index: usize) -> Broker {
        let controllers = vec![ControllerAddress { id: None, address: self.controller.address() }];
        let directory = self.directories[index].path().to_owned();
        let mut settings = BrokerSettings::defaults(BrokerId(index as i32 + 1), controllers, directory);
        settings.cluster_id = Some(CLUSTER.to_owned());
        settings.listeners = vec![ListenerSettings {
            name: "PLAINTEXT".to_owned(),
            bind: ("127.0.0.1".to_owned(), 0),
            advertised: None,
        }];
        settings.http = Some("127.0.0.1:0".to_owned());
        settings.faults = true;
        settings.heartbeat_interval = Duration::from_millis(200);
        settings.session_timeout = Duration::from_millis(1500);
        settings.replica_lag_time_max = Duration::from_secs(2);
        settings.replica_fetch_backoff = Duration::from_millis(100);
        settings.request_timeout = Duration::from_secs(5);
        (self.adjust)(&mut settings);
        Broker::start(settings).expect("it starts")
    }

    /// A broker by its id.
    pub(crate) fn broker(&self, id: i32) -> &Broker {
        self.brokers[id as usize - 1].as_ref().expect("it runs")
    }

    /// Its Kafka listener.
    pub(crate) fn address(&self, id: i32) -> SocketAddr {
        self.broker(id).addresses().listeners["PLAINTEXT"]
    }

    /// A connection to it.
    pub(crate) async fn client(&self, id: i32) -> Client {
        Client::connect(self.address(id)).await
    }

    /// Stops one broker in order.
    pub(crate) async fn stop(&mut self, id: i32) {
        let broker = self.brokers[id as usize - 1].take().expect("it runs");
        broker.controlled_shutdown().await;
        tokio::task::spawn_blocking(move || broker.stop()).await.expect("it stops");
    }

    /// Starts a stopped broker again, on its directory.
    pub(crate) async fn restart(&mut self, id: i32) {
        let broker = self.boot(id as usize - 1);
        timeout(PATIENCE, broker.wait_ready()).await.expect("in time").expect("it starts");
        self.brokers[id as usize - 1] = Some(broker);
    }

    /// Waits for the metadata to say something.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&minikafka_metadata::Image) -> bool) {
        until(what, async || holds(&self.controller.image())).await;
    }

    /// A field of a replica as its broker shows it.
    pub(crate) fn replica(&self, id: i32, topic: &str, partition: i32) -> Option<serde_json::Value> {
        let state = self.broker(id).surface().state();
        let replicas = state["replicas"].as_array()?;
        replicas.iter().find(|it| it["topic"] == topic && it["partition"] == partition).cloned()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for broker in self.brokers.drain(..).flatten() {
            // A thread of its own: stopping blocks, and the test's runtime must go on meanwhile.
            let _joined = std::thread::spawn(move || broker.stop()).join();
        }
    }
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let waited = timeout(PATIENCE, async {
        while !holds().await {
            sleep(Duration::from_millis(10)).await;
        }
    });
    assert!(waited.await.is_ok(), "this did not come to be: {what}");
}
