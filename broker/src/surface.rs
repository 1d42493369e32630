//! What a broker shows over HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use minikafka_node::Surface;
use minikafka_replication::{ReplicaStatus, RoleName};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::fetcher::FetcherPool;
use crate::service::{ReplicaCell, Service};

/// The broker's side of the node's HTTP server.
#[derive(Debug)]
pub(crate) struct BrokerSurface {
    pub(crate) service: Arc<Service>,
    pub(crate) fetchers: Arc<FetcherPool>,
    pub(crate) registered: Arc<crate::controller_link::BrokerEpochCell>,
    pub(crate) unfenced: watch::Receiver<bool>,
    pub(crate) stopping: minikafka_node::Shutdown,
}

impl Surface for BrokerSurface {
    fn not_ready_because(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.stopping.requested() {
            reasons.push(format!("broker {} is stopping", self.service.id));
        } else if self.registered.get().is_none() {
            reasons.push(format!(
                "broker {} is not registered yet: no active controller has taken its registration",
                self.service.id
            ));
        } else if !*self.unfenced.borrow() {
            reasons.push(format!(
                "broker {} is fenced: it has not caught up with the metadata, or the controllers do not hear it",
                self.service.id
            ));
        }
        if self.service.store.has_failed() {
            reasons.push("the log directory is offline".to_owned());
        }
        reasons
    }

    fn state(&self) -> Value {
        let replicas: Vec<Value> =
            self.service.replicas.all().iter().map(|cell| self.replica(cell)).collect();
        let fetchers: Vec<Value> = self
            .fetchers
            .shown()
            .into_iter()
            .map(|(source, index, partitions)| {
                json!({"thread": format!("fetcher-{source}-{index}"), "source": source.0, "partitions": partitions})
            })
            .collect();
        let image = self.service.image.load();
        json!({
            "broker": {
                "id": self.service.id.0,
                "cluster_id": image.cluster().0,
                "broker_epoch": self.registered.get().map(|epoch| epoch.0),
                "fenced": !*self.unfenced.borrow(),
                "metadata_offset": image.offset().map(|offset| offset.0),
                "waiting_writes": self.service.waiting.writes_waiting(),
            },
            "replicas": replicas,
            "fetchers": fetchers,
        })
    }

    fn events(&self, after: u64, most: usize) -> Vec<Value> {
        let told = self.service.events.after(after, most);
        told.iter().filter_map(|event| serde_json::to_value(event).ok()).collect()
    }

    fn config(&self) -> Value {
        let given: BTreeMap<&String, &String> = self.service.settings.given.iter().collect();
        json!({ "config": given })
    }
}

impl BrokerSurface {
    fn replica(&self, cell: &ReplicaCell) -> Value {
        let status: ReplicaStatus = cell.lock().replica.status();
        let now = self.service.clock.mono();
        let followers: Vec<Value> = status
            .followers
            .iter()
            .map(|(broker, progress)| {
                json!({
                    "broker": broker.0,
                    "log_end_offset": progress.acknowledged.map(|end| end.0),
                    "caught_up_ms_ago": progress.caught_up.map(|at| now.since(at).as_millis() as u64),
                    "asked_ms_ago": progress.asked.map(|at| now.since(at).as_millis() as u64),
                })
            })
            .collect();
        // A leader's ISR is its own; a follower shows what the metadata says.
        let isr: Vec<i32> = match status.role {
            RoleName::Leader => status.isr.iter().map(|id| id.0).collect(),
            RoleName::Follower | RoleName::Offline => {
                let image = self.service.image.load();
                image
                    .partition(cell.at)
                    .map(|state| state.isr.iter().map(|id| id.0).collect())
                    .unwrap_or_default()
            }
        };
        json!({
            "topic": &*cell.topic,
            "topic_id": cell.at.topic.to_string(),
            "partition": cell.at.partition.0,
            "role": status.role,
            "leader": status.leader.map(|id| id.0),
            "log_start_offset": status.bounds.map(|bounds| bounds.log_start.0),
            "log_end_offset": status.bounds.map(|bounds| bounds.log_end.0),
            "high_watermark": status.bounds.map(|bounds| bounds.high_watermark.0),
            "leader_epoch": status.leader_epoch.map(|epoch| epoch.0),
            "partition_epoch": status.partition_epoch.map(|epoch| epoch.0),
            "isr": isr,
            "isr_change_in_flight": status.isr_change_in_flight,
            "waiting_writes": status.waiting_writes,
            "not_fetching": status.not_fetching,
            "offline_reason": status.offline_reason,
            "followers": followers,
        })
    }
}
