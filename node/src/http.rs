//! HTTP of a node: `/health/live`, `/health/ready`, `/v1/state`, `/v1/events`, `/v1/config`, and `/v1/faults` where it was asked for.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{FaultSpec, Faults, Shutdown};

/// What a process shows over HTTP. Called on the HTTP thread; must not wait for the network.
pub trait Surface: Send + Sync + 'static {
    /// Nothing, or why the node is not ready, a sentence each.
    fn not_ready_because(&self) -> Vec<String>;
    /// The body of `/v1/state`.
    fn state(&self) -> Value;
    /// The events after `seq`, at most `most`.
    fn events(&self, after: u64, most: usize) -> Vec<Value>;
    /// The effective configuration, each value with its source.
    fn config(&self) -> Value;
}

/// A bound HTTP server, not serving yet.
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
}

const MOST_EVENTS: usize = 1000;

#[derive(Clone)]
struct Shared {
    surface: Arc<dyn Surface>,
    faults: Option<Arc<Faults>>,
}

#[derive(Deserialize)]
struct After {
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

#[derive(Deserialize)]
struct WhichFault {
    id: Option<u64>,
}

impl HttpServer {
    /// Binds `host:port`; port 0 lets the system choose.
    ///
    /// # Errors
    /// The operating system's, with the address.
    pub async fn bind(address: &str) -> std::io::Result<HttpServer> {
        let named = |e: std::io::Error| {
            std::io::Error::new(
                e.kind(),
                format!("HTTP cannot listen on {address} (minikafka.http.listen): {e}"),
            )
        };
        let listener = TcpListener::bind(address).await.map_err(named)?;
        let address = listener.local_addr()?;
        Ok(HttpServer { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the shutdown is asked for. `faults` is there only where the lab's fault hook is enabled.
    ///
    /// # Errors
    /// The operating system's.
    pub async fn serve(
        self,
        surface: Arc<dyn Surface>,
        faults: Option<Arc<Faults>>,
        shutdown: Shutdown,
    ) -> std::io::Result<()> {
        let mut routes = Router::new()
            .route("/health/live", get(async || "ok\n"))
            .route("/health/ready", get(ready))
            .route("/v1/state", get(async |State(s): State<Shared>| Json(s.surface.state())))
            .route("/v1/config", get(async |State(s): State<Shared>| Json(s.surface.config())))
            .route("/v1/events", get(events));
        if faults.is_some() {
            routes = routes.route("/v1/faults", get(list_faults).post(set_fault).delete(clear_faults));
        }
        let app = routes.with_state(Shared { surface, faults });
        axum::serve(self.listener, app).with_graceful_shutdown(async move { shutdown.wait().await }).await
    }
}

async fn ready(State(shared): State<Shared>) -> (StatusCode, Json<Value>) {
    let reasons = shared.surface.not_ready_because();
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({"ready": reasons.is_empty(), "because": reasons})))
}

async fn events(State(shared): State<Shared>, Query(query): Query<After>) -> Json<Value> {
    let most = query.limit.unwrap_or(MOST_EVENTS).min(MOST_EVENTS);
    Json(json!({"events": shared.surface.events(query.after, most)}))
}

async fn list_faults(State(shared): State<Shared>) -> Json<Value> {
    Json(json!({"faults": shared.faults.map(|f| f.list()).unwrap_or_default()}))
}

async fn set_fault(State(shared): State<Shared>, body: String) -> (StatusCode, Json<Value>) {
    let spec: FaultSpec = match serde_json::from_str(&body) {
        Ok(spec) => spec,
        Err(error) => {
            return (StatusCode::BAD_REQUEST, Json(json!({"error": format!("not a fault: {error}")})));
        }
    };
    match shared.faults.map(|faults| faults.set(spec)) {
        Some(Ok(id)) => (StatusCode::OK, Json(json!({"id": id}))),
        Some(Err(error)) => (StatusCode::BAD_REQUEST, Json(json!({"error": error}))),
        None => (StatusCode::NOT_FOUND, Json(json!({"error": "faults are not enabled"}))),
    }
}

async fn clear_faults(State(shared): State<Shared>, Query(which): Query<WhichFault>) -> Json<Value> {
    Json(json!({"ended": shared.faults.map(|faults| faults.clear(which.id)).unwrap_or_default()}))
}
