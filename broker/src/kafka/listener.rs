//! Accepts connections. Every listener speaks Kafka; the inter-broker one also takes gRPC, told apart by the HTTP/2 preface, and no
//! other listener ever does.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use minikafka_node::Shutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::connection::{Client, ConnectionEnd, serve};
use super::dispatch::Dispatch;
use super::frame_reader::{FrameEnd, FrameLimits};
use super::preface::{Opening, Rewound, tell};
use crate::settings::{BrokerSettings, ListenerSettings};

/// How long a connection may take to send its first bytes on the listener that has to look at them.
const FIRST_BYTES: Duration = Duration::from_secs(30);
/// How long the bytes of one frame may take.
const SLOWEST_FRAME: Duration = Duration::from_secs(30);
/// Before accepting again after the system refused (too many open files).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener that is bound and does not accept yet.
#[derive(Debug)]
pub(crate) struct BoundListener {
    /// Its name.
    pub(crate) name: String,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    socket: std::net::TcpListener,
}

/// A listener could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("listener {name} cannot listen on {host}:{port} (listeners): {source}")]
pub(crate) struct BindError {
    name: String,
    host: String,
    port: u16,
    source: io::Error,
}

impl BoundListener {
    /// Binds; port 0 lets the system choose.
    pub(crate) fn bind(settings: &ListenerSettings) -> Result<BoundListener, BindError> {
        let (host, port) = &settings.bind;
        let fail =
            |source| BindError { name: settings.name.clone(), host: host.clone(), port: *port, source };
        let all = if host.is_empty() { "0.0.0.0" } else { host.as_str() };
        let socket = std::net::TcpListener::bind((all, *port)).map_err(fail)?;
        socket.set_nonblocking(true).map_err(fail)?;
        let address = socket.local_addr().map_err(fail)?;
        Ok(BoundListener { name: settings.name.clone(), address, socket })
    }
}

/// What connections of one listener share.
pub(crate) struct Door {
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) limits: FrameLimits,
    /// gRPC connections go here; none: this listener takes no gRPC.
    pub(crate) grpc: Option<mpsc::Sender<io::Result<Rewound>>>,
    /// Connections of all listeners together, and their limit.
    pub(crate) open: Arc<AtomicUsize>,
    pub(crate) most: usize,
}

impl Door {
    /// The limits of connections, from the configuration.
    pub(crate) fn limits(settings: &BrokerSettings) -> FrameLimits {
        FrameLimits {
            max_bytes: settings.request_max_bytes,
            idle: settings.connection_idle,
            slowest_frame: SLOWEST_FRAME,
        }
    }
}

/// Accepts until the stop.
pub(crate) async fn accept_all(listener: BoundListener, door: Arc<Door>, stop: Shutdown) {
    let name: Arc<str> = listener.name.as_str().into();
    let socket = match TcpListener::from_std(listener.socket) {
        Ok(socket) => socket,
        Err(error) => {
            tracing::error!("listener {name} cannot be used: {error}");
            return;
        }
    };
    loop {
        let accepted = tokio::select! {
            accepted = socket.accept() => accepted,
            () = stop.wait() => return,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("listener {name} cannot accept: {error}");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if door.open.load(Ordering::Relaxed) >= door.most {
            tracing::warn!("refused {address}: {} connections are open (max.connections)", door.most);
            continue;
        }
        // Small answers are not held back for more to come.
        let _unusable = stream.set_nodelay(true);
        door.open.fetch_add(1, Ordering::Relaxed);
        let (door, stop) = (Arc::clone(&door), stop.clone());
        let client = Client { address, listener: Arc::clone(&name), software: None };
        tokio::spawn(async move {
            tokio::select! {
                () = one(stream, client, &door) => {}
                () = stop.wait() => {}
            }
            door.open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

async fn one(stream: TcpStream, mut client: Client, door: &Door) {
    let (stream, already) = match &door.grpc {
        None => (stream, None),
        Some(grpc) => match timeout(FIRST_BYTES, tell(stream)).await {
            Ok(Ok(Opening::Http2(stream))) => {
                // The gRPC server is gone only when the broker stops.
                let _stopping = grpc.send(Ok(stream)).await;
                return;
            }
            Ok(Ok(Opening::Kafka(stream, first))) => (stream, Some(first)),
            Ok(Err(_)) | Err(_) => return,
        },
    };
    let already: &[u8] = already.as_ref().map_or(&[], |first| first);
    let end = serve(stream, already, door.limits, &mut client, &*door.dispatch).await;
    match end {
        ConnectionEnd::Frame(FrameEnd::Closed | FrameEnd::Io(_)) | ConnectionEnd::Write(_) => {
            tracing::debug!("{client}: {end}");
        }
        ConnectionEnd::Frame(FrameEnd::Idle(_)) => tracing::info!("closed the connection of {client}: {end}"),
        ConnectionEnd::Frame(FrameEnd::Torn { .. } | FrameEnd::Length { .. } | FrameEnd::Slow { .. })
        | ConnectionEnd::Closed(_) => tracing::warn!("closed the connection of {client}: {end}"),
    }
}
