//! What a controller shows over HTTP.

use std::sync::Arc;

use minikafka_model::config::Resolved;
use minikafka_node::{EventRing, Surface};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::core::Published;
use crate::event::ControllerEvent;

pub(crate) struct ControllerSurface {
    pub(crate) config: Arc<Resolved>,
    pub(crate) published: watch::Receiver<Arc<Published>>,
    pub(crate) events: Arc<EventRing<ControllerEvent>>,
}

impl Surface for ControllerSurface {
    fn not_ready_because(&self) -> Vec<String> {
        let view = self.published.borrow().clone();
        if view.status.leader.is_some() {
            return Vec::new();
        }
        let why = view.status.waiting.as_ref().map_or_else(|| "no leader".to_owned(), ToString::to_string);
        vec![why]
    }

    fn state(&self) -> Value {
        let view = self.published.borrow().clone();
        let status = &view.status;
        let voters: Vec<Value> = status
            .voters
            .iter()
            .map(|v| json!({"id": v.id, "log_end": v.match_end, "counts": v.counts, "snapshot": v.snapshot}))
            .collect();
        json!({"raft": {
            "id": status.id,
            "role": status.role.word(),
            "leader": status.leader,
            "term": status.term,
            "commit": status.committed,
            "applied": view.applied,
            "log_start": status.log_start,
            "log_end": status.log_end,
            "durable": status.durable,
            "voters": voters,
            "waiting": status.waiting.as_ref().map(ToString::to_string),
        }, "brokers": view.image.brokers().values().map(|b| json!({
            "id": b.id, "epoch": b.epoch, "fenced": b.fenced,
            "in_controlled_shutdown": b.in_controlled_shutdown,
        })).collect::<Vec<_>>()})
    }

    fn events(&self, after: u64, most: usize) -> Vec<Value> {
        let told = self.events.after(after, most);
        told.iter().map(|event| serde_json::to_value(event).unwrap_or_default()).collect()
    }

    fn config(&self) -> Value {
        json!(self.config.lines())
    }
}
