//! HTTP of a node: `/health/live`, `/health/ready`, `/v1/state`, `/v1/events`, `/v1/config`, and `/v1/faults` where it was asked for.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

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
/// How long a request that is under way may hold up the end of the process.
const GRACE: Duration = Duration::from_secs(1);

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

    /// Serves until the shutdown is asked for, and a second more for what is under way then. `faults` is there only where the lab's fault hook is enabled.
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
        let asked = shutdown.clone();
        let serving =
            axum::serve(self.listener, app).with_graceful_shutdown(async move { asked.wait().await });
        let over = async {
            shutdown.wait().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! { ended = serving => ended, () = over => Ok(()) }
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    struct Shown;

    impl Surface for Shown {
        fn not_ready_because(&self) -> Vec<String> {
            vec!["the broker is fenced".to_owned()]
        }

        fn state(&self) -> Value {
            json!({"replicas": []})
        }

        fn events(&self, after: u64, most: usize) -> Vec<Value> {
            (after + 1..=after + 3).take(most).map(|seq| json!({"seq": seq})).collect()
        }

        fn config(&self) -> Value {
            json!({"node.id": {"value": "1", "source": "default"}})
        }
    }

    async fn ask(address: SocketAddr, request: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(address).await.expect("connected");
        let text = format!(
            "{request} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("answered");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    async fn served(
        faults: Option<Arc<Faults>>,
    ) -> (SocketAddr, Shutdown, tokio::task::JoinHandle<std::io::Result<()>>) {
        let server = HttpServer::bind("127.0.0.1:0").await.expect("bound");
        let (address, shutdown) = (server.address(), Shutdown::new());
        let task = tokio::spawn(server.serve(Arc::new(Shown), faults, shutdown.clone()));
        (address, shutdown, task)
    }

    #[tokio::test]
    async fn what_a_node_shows() {
        let (address, shutdown, task) = served(None).await;
        assert_eq!(ask(address, "GET /health/live", "").await.0, 200);
        let (status, body) = ask(address, "GET /health/ready", "").await;
        assert_eq!((status, &body["because"][0]), (503, &json!("the broker is fenced")));
        assert_eq!(ask(address, "GET /v1/state", "").await, (200, json!({"replicas": []})));
        assert_eq!(ask(address, "GET /v1/config", "").await.1["node.id"]["value"], "1");
        let (_, body) = ask(address, "GET /v1/events?after=5&limit=2", "").await;
        assert_eq!(body, json!({"events": [{"seq": 6}, {"seq": 7}]}));
        assert_eq!(ask(address, "GET /v1/events?after=x", "").await.0, 400);
        assert_eq!(ask(address, "GET /v1/faults", "").await.0, 404, "faults are not enabled");
        assert_eq!(ask(address, "POST /v1/faults", "{}").await.0, 404);
        shutdown.request();
        task.await.expect("the task lives").expect("ended in order");
    }

    #[tokio::test]
    async fn faults_are_set_listed_and_cleared() {
        let faults = Arc::new(Faults::new());
        let (address, ..) = served(Some(faults.clone())).await;
        let spec = r#"{"kind":"replication","peer":"2","direction":"in","action":"drop","for_ms":60000}"#;
        assert_eq!(ask(address, "POST /v1/faults", spec).await, (200, json!({"id": 1})));
        let (_, listed) = ask(address, "GET /v1/faults", "").await;
        assert_eq!(
            (&listed["faults"][0]["kind"], &listed["faults"][0]["bitten"]),
            (&json!("replication"), &json!(0))
        );
        for (bad, word) in [
            ("nonsense", "not a fault"),
            (r#"{"kind":"replication","action":"drop","for_ms":1,"spelling":1}"#, "spelling"),
            (r#"{"kind":"disk","action":"drop","for_ms":1}"#, "slow"),
        ] {
            let (status, body) = ask(address, "POST /v1/faults", bad).await;
            assert!(status == 400 && body["error"].as_str().is_some_and(|e| e.contains(word)), "{body}");
        }
        assert_eq!(ask(address, "DELETE /v1/faults?id=7", "").await.1, json!({"ended": 0}));
        assert_eq!(ask(address, "DELETE /v1/faults", "").await.1, json!({"ended": 1}));
        assert!(faults.list().is_empty());
    }

    #[tokio::test]
    async fn a_client_that_never_finishes_does_not_hold_up_the_end() {
        let (address, shutdown, task) = served(None).await;
        let mut stream = TcpStream::connect(address).await.expect("connected");
        stream.write_all(b"GET /v1/state HTTP/1.1\r\nhost:").await.expect("sent");
        assert_eq!(ask(address, "GET /health/live", "").await.0, 200);
        shutdown.request();
        let ended = tokio::time::timeout(10 * GRACE, task).await.expect("in time");
        ended.expect("the task lives").expect("ended in order");
    }

    #[tokio::test]
    async fn a_port_in_use_is_named() {
        let taken = HttpServer::bind("127.0.0.1:0").await.expect("bound");
        let error = HttpServer::bind(&taken.address().to_string()).await.expect_err("in use").to_string();
        assert!(
            error.contains(&taken.address().to_string()) && error.contains("minikafka.http.listen"),
            "{error}"
        );
    }
}
