//! The one place that builds a broker, with its start order and its stop order as two lists.
//!
//! Start: data directory (lock, identity, recovery), listeners, front door (Kafka, gRPC, alarms), link to the controllers, HTTP, janitor.
//! Stop: controlled shutdown, front door, fetchers, link, janitor, logs and clean-shutdown marker, HTTP.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use minikafka_metadata::Image;
use minikafka_model::{IncarnationId, Uuid};
use minikafka_node::{
    Clock, EventRing, Faults, HttpServer, ReadyFile, Shutdown, Surface, block_on_thread, spawn_named,
};
use minikafka_proto::cluster::Listener;
use minikafka_replication::{Replica, ShutDown};
use tokio::time::{Instant, sleep_until};

use crate::controller_link::{
    BrokerEpochCell, Controllers, Forwarder, LifeEnd, Link, LinkParts, ProducerIds, Registration, Voter,
};
use crate::event::{BrokerEvent, NodeEvent, reason_of};
use crate::fetcher::{FetcherPool, Identity};
use crate::kafka::{BindError, BoundListener, Dispatch, Door, FetchSessions, accept_all};
use crate::rpc::{CONNECTIONS, ReplicaDoor, serve_grpc};
use crate::service::{ReplicaCell, Service, TopicSettings};
use crate::settings::BrokerSettings;
use crate::store::{LogStore, OpenedStore, StoreError};
use crate::surface::BrokerSurface;

/// The longest that the alarm clock sleeps without an alarm.
const NO_ALARM: Duration = Duration::from_secs(3600);
/// What a controlled shutdown may take over its own limit before the stop goes on without it.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Why a broker does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A listener.
    #[error("{0}")]
    Bind(String),
    /// A configuration that fits no broker.
    #[error("{0}")]
    Settings(String),
    /// The operating system gives no more threads, files or sockets.
    #[error("the broker cannot start: {0}")]
    System(#[from] io::Error),
}

impl From<BindError> for StartError {
    fn from(error: BindError) -> StartError {
        StartError::Bind(error.to_string())
    }
}

/// How a broker's life ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerEnd {
    /// It was asked to.
    Stopped,
    /// It cannot go on: the log directory failed, the controllers did not take it, or the metadata cannot be followed.
    Failed(String),
}

/// Where a broker listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerAddresses {
    /// Each listener by its name.
    pub listeners: BTreeMap<String, SocketAddr>,
    /// HTTP, if it has its own.
    pub http: Option<SocketAddr>,
}

/// A running broker. Several may live in one process.
#[derive(Debug)]
pub struct Broker {
    addresses: BrokerAddresses,
    service: Arc<Service>,
    surface: Arc<BrokerSurface>,
    fetchers: Arc<FetcherPool>,
    epoch: Arc<BrokerEpochCell>,
    link: Link,
    front: JoinHandle<()>,
    janitor: JoinHandle<()>,
    http: Option<JoinHandle<()>>,
    /// Ends the front door; ends the janitor and HTTP.
    stop_front: Shutdown,
    stop_rest: Shutdown,
    stopping: Shutdown,
}

impl Broker {
    /// Starts a broker: returns once it listens and has begun to register. Whether it serves shows in [`Broker::wait_ready`].
    ///
    /// # Errors
    /// What does not fit, with its name.
    pub fn start(settings: BrokerSettings) -> Result<Broker, StartError> {
        let clock = Clock::new();
        let settings = Arc::new(settings);
        if settings.listeners.iter().all(|it| it.name != settings.inter_broker_listener) {
            return Err(StartError::Settings(format!(
                "inter.broker.listener.name is {}, which is not among the listeners",
                settings.inter_broker_listener
            )));
        }
        let begun = std::time::Instant::now();
        let opened = LogStore::open(&settings, clock.now())?;
        let events = Arc::new(EventRing::<BrokerEvent>::new(EventRing::<BrokerEvent>::CAPACITY));
        let faults = Arc::new(Faults::new());
        let OpenedStore { store, identity, logs, recovered, clean } = opened;
        let image = Image::empty(identity.cluster.clone());
        let service =
            Arc::new(Service::new(Arc::clone(&settings), clock, image, events, Arc::clone(&faults), store));
        adopt_logs(&service, logs);
        service.tell(NodeEvent::Recovery {
            logs: service.replicas.len(),
            recovered,
            clean,
            took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        });

        let epoch = Arc::new(BrokerEpochCell::default());
        let fetcher_identity = Identity {
            cluster: identity.cluster.clone(),
            directory: identity.directory,
            epoch: Arc::clone(&epoch),
        };
        let fetchers = Arc::new(FetcherPool::new(Arc::clone(&service), fetcher_identity));
        let (forwarder, forwards) = Forwarder::pair();
        let producer_ids = Arc::new(ProducerIds::default());
        let (stop_front, stop_rest, stopping) = (Shutdown::new(), Shutdown::new(), Shutdown::new());
        let dispatch = Arc::new(Dispatch {
            service: Arc::clone(&service),
            sessions: Arc::new(FetchSessions::new(settings.fetch_session_slots)),
            forwarder,
            producer_ids: Arc::clone(&producer_ids),
        });
        let (front, listeners) = start_front(&settings, &service, dispatch, &stop_front)?;
        let voters = settings.controllers.iter();
        let controllers = Controllers::new(
            voters.map(|it| Voter { id: it.id, address: it.address.clone() }).collect(),
            &identity.cluster,
            settings.id,
            identity.directory,
            faults,
        );
        let registration = Registration {
            incarnation: incarnation(),
            listeners: advertised(&settings, &listeners),
            rack: settings.rack.clone(),
            directory: identity.directory,
            previous_epoch: identity.previous_epoch,
        };
        let link = Link::start(LinkParts {
            controllers,
            service: Arc::clone(&service),
            registration,
            epoch: Arc::clone(&epoch),
            producer_ids,
            forwards,
            fetchers: Arc::clone(&fetchers),
        })?;
        let surface = Arc::new(BrokerSurface {
            service: Arc::clone(&service),
            fetchers: Arc::clone(&fetchers),
            registered: Arc::clone(&epoch),
            unfenced: link.unfenced.clone(),
            stopping: stopping.clone(),
        });
        let (http, http_address) = start_http(&settings, &surface, &service, &stop_rest)?;
        let janitor = start_janitor(&service, &stop_rest)?;
        let addresses = BrokerAddresses { listeners, http: http_address };
        write_ready_file(&settings, &addresses)?;
        Ok(Broker {
            addresses,
            service,
            surface,
            fetchers,
            epoch,
            link,
            front,
            janitor,
            http,
            stop_front,
            stop_rest,
            stopping,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &BrokerAddresses {
        &self.addresses
    }

    /// What it shows over HTTP, for a process that serves HTTP for several roles.
    pub fn surface(&self) -> Arc<dyn Surface> {
        Arc::clone(&self.surface) as Arc<dyn Surface>
    }

    /// Its faults of the lab.
    pub fn faults(&self) -> Arc<Faults> {
        Arc::clone(&self.service.faults)
    }

    /// Another number of fetcher threads for each source (`num.replica.fetchers`), while it runs.
    pub fn resize_fetchers(&self, per_source: usize) {
        self.fetchers.resize(per_source);
    }

    /// Completes once the controllers have unfenced this broker, or it has ended (then with the reason).
    ///
    /// # Errors
    /// Why it will not become ready.
    pub async fn wait_ready(&self) -> Result<(), String> {
        let mut unfenced = self.link.unfenced.clone();
        tokio::select! {
            ready = unfenced.wait_for(|unfenced| *unfenced) => match ready {
                Ok(_) => Ok(()),
                Err(_) => Err("the link to the controllers has ended".to_owned()),
            },
            why = self.failed() => Err(why),
        }
    }

    /// Completes with the reason when the broker cannot go on.
    pub async fn failed(&self) -> String {
        let mut end = self.link.end.clone();
        let mut broken = self.link.broken.clone();
        tokio::select! {
            () = self.service.directory_failed.notified() => {
                "the log directory is offline, and it is the only one".to_owned()
            }
            Ok(why) = broken.wait_for(Option::is_some) => {
                format!("the metadata can no longer be followed: {}", why.as_deref().unwrap_or_default())
            }
            Ok(end) = end.wait_for(|end| matches!(end, Some(LifeEnd::GiveUp(_)))) => match *end {
                Some(LifeEnd::GiveUp(last)) => format!(
                    "no controller has taken the registration within {:?} (initial.broker.registration.timeout.ms); the last answer was: {}",
                    self.service.settings.registration_timeout,
                    reason_of(last)
                ),
                Some(LifeEnd::ShutDown(_)) | None => String::new(),
            },
        }
    }

    /// Hands over leadership and ISR membership, within bounds. The broker still serves what it is asked.
    pub async fn controlled_shutdown(&self) {
        self.stopping.request();
        if !self.service.settings.controlled_shutdown {
            return;
        }
        tracing::info!("Starting controlled shutdown");
        self.link.shut_down();
        let mut end = self.link.end.clone();
        let most = self.service.settings.shutdown_timeout + SHUTDOWN_GRACE;
        let ended = tokio::time::timeout(most, end.wait_for(Option::is_some)).await;
        let reason = match ended.ok().and_then(Result::ok).and_then(|end| *end) {
            Some(LifeEnd::ShutDown(ShutDown::Granted)) => "Controlled shutdown request returned successfully",
            Some(LifeEnd::ShutDown(ShutDown::NotRegistered)) => "the broker was not registered",
            Some(LifeEnd::ShutDown(ShutDown::NoController)) => {
                "no controller answered: stopping without having handed over"
            }
            Some(LifeEnd::ShutDown(ShutDown::TimedOut)) | Some(LifeEnd::GiveUp(_)) | None => {
                "it took too long: stopping without having handed over"
            }
        };
        self.service.tell(NodeEvent::Shutdown { reason: reason.to_owned() });
    }

    /// Stops in order. Blocks until every thread has ended and the logs are closed.
    pub fn stop(self) {
        let Broker { service, fetchers, epoch, link, front, janitor, http, stop_front, stop_rest, .. } = self;
        stop_front.request();
        join("front-door", front);
        fetchers.stop();
        link.stop();
        stop_rest.request();
        join("janitor", janitor);
        service.store.close(&service.replicas.all(), epoch.get());
        if let Some(http) = http {
            join("http", http);
        }
        tracing::info!("broker {} has shut down completed", service.id);
    }
}

fn join(name: &str, thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("the thread {name} has panicked");
    }
}

fn incarnation() -> IncarnationId {
    let drawn = std::iter::repeat_with(|| Uuid::from_random(rand::random())).flatten().next();
    IncarnationId(drawn.unwrap_or_default())
}

/// Replicas found on the disk: followers of nobody until the metadata gives them a role.
fn adopt_logs(service: &Service, logs: Vec<crate::store::FoundLog>) {
    let image = service.image.load();
    let cells = logs.into_iter().map(|found| {
        let settings = Arc::new(TopicSettings::resolve(&service.settings, &image, found.at.topic));
        let replica = match found.log {
            Ok(log) => Replica::new(
                found.at,
                service.id,
                log,
                found.high_watermark,
                settings.replica(&service.settings),
            ),
            Err(why) => Replica::offline(found.at, why),
        };
        Arc::new(ReplicaCell::new(found.topic, replica, settings))
    });
    service.replicas.add(cells.collect::<Vec<_>>());
}

/// What others are told of the listeners.
fn advertised(settings: &BrokerSettings, bound: &BTreeMap<String, SocketAddr>) -> Vec<Listener> {
    let one = |name: &String, at: &SocketAddr| {
        let configured = settings.listeners.iter().find(|it| it.name == *name);
        let (host, port) = match configured.and_then(|it| it.advertised.clone()) {
            Some((host, port)) => (host, if port == 0 { at.port() } else { port }),
            None => {
                let host = configured
                    .map(|it| it.bind.0.clone())
                    .filter(|host| !host.is_empty() && host != "0.0.0.0");
                (host.unwrap_or_else(|| "127.0.0.1".to_owned()), at.port())
            }
        };
        Listener {
            name: name.clone(),
            host,
            port: u32::from(port),
            security_protocol: "PLAINTEXT".to_owned(),
        }
    };
    bound.iter().map(|(name, at)| one(name, at)).collect()
}

/// The runtime of Kafka and gRPC: one thread on small machines.
fn start_front(
    settings: &Arc<BrokerSettings>,
    service: &Arc<Service>,
    dispatch: Arc<Dispatch>,
    stop: &Shutdown,
) -> Result<(JoinHandle<()>, BTreeMap<String, SocketAddr>), StartError> {
    let runtime = if settings.front_threads <= 1 {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?
    } else {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(settings.front_threads)
            .thread_name("front-door")
            .enable_all()
            .build()?
    };
    let mut bound = Vec::new();
    for listener in &settings.listeners {
        bound.push(BoundListener::bind(listener)?);
    }
    let addresses = bound.iter().map(|it| (it.name.clone(), it.address)).collect();
    let (service, settings, stop) = (Arc::clone(service), Arc::clone(settings), stop.clone());
    let thread = spawn_named("front-door", move || {
        runtime.block_on(serve_front(bound, dispatch, &service, &settings, &stop));
    })?;
    Ok((thread, addresses))
}

async fn serve_front(
    bound: Vec<BoundListener>,
    dispatch: Arc<Dispatch>,
    service: &Arc<Service>,
    settings: &BrokerSettings,
    stop: &Shutdown,
) {
    let open = Arc::new(AtomicUsize::new(0));
    let (grpc, connections) = tokio::sync::mpsc::channel(CONNECTIONS);
    tokio::spawn(serve_grpc(ReplicaDoor::new(Arc::clone(service)), connections, stop.clone()));
    for listener in bound {
        let inter_broker = listener.name == settings.inter_broker_listener;
        let door = Arc::new(Door {
            dispatch: Arc::clone(&dispatch),
            limits: Door::limits(settings),
            grpc: inter_broker.then(|| grpc.clone()),
            open: Arc::clone(&open),
            most: settings.max_connections,
        });
        tracing::info!("Awaiting socket connections on {} ({}).", listener.address, listener.name);
        tokio::spawn(accept_all(listener, door, stop.clone()));
    }
    loop {
        let alarm = service.ring().map(|at| service.clock.instant(at));
        tokio::select! {
            () = sleep_until(alarm.unwrap_or_else(|| Instant::now() + NO_ALARM)) => {}
            () = service.wakeups.earlier() => {}
            () = stop.wait() => return,
        }
    }
}

type Http = (Option<JoinHandle<()>>, Option<SocketAddr>);

fn start_http(
    settings: &BrokerSettings,
    surface: &Arc<BrokerSurface>,
    service: &Arc<Service>,
    stop: &Shutdown,
) -> Result<Http, StartError> {
    let Some(address) = settings.http.clone() else { return Ok((None, None)) };
    let (bound, told) = sync_channel(1);
    let faults = settings.faults.then(|| Arc::clone(&service.faults));
    if settings.faults {
        tracing::warn!(
            "the faults of the lab are enabled (minikafka.lab.faults.enable): POST /v1/faults disturbs this broker"
        );
    }
    let (surface, stop) = (Arc::clone(surface) as Arc<dyn Surface>, stop.clone());
    let thread = block_on_thread("http", move || async move {
        let server = match HttpServer::bind(&address).await {
            Ok(server) => server,
            Err(error) => {
                let _waits = bound.send(Err(error));
                return;
            }
        };
        let _waits = bound.send(Ok(server.address()));
        if let Err(error) = server.serve(surface, faults, stop).await {
            tracing::error!("HTTP has failed: {error}");
        }
    })?;
    match told.recv() {
        Ok(Ok(address)) => Ok((Some(thread), Some(address))),
        Ok(Err(error)) => Err(StartError::Bind(error.to_string())),
        Err(_) => Err(StartError::Bind("the HTTP thread has ended".to_owned())),
    }
}

/// Checkpoints, retention, deletion: what may take its time.
fn start_janitor(service: &Arc<Service>, stop: &Shutdown) -> io::Result<JoinHandle<()>> {
    let (service, stop) = (Arc::clone(service), stop.clone());
    block_on_thread("janitor", move || async move { crate::janitor::clean(service, stop).await })
}

fn write_ready_file(settings: &BrokerSettings, addresses: &BrokerAddresses) -> Result<(), StartError> {
    let Some(path) = &settings.ready_file else { return Ok(()) };
    let listeners = addresses.listeners.iter().map(|(name, at)| (name.clone(), at.to_string())).collect();
    let file = ReadyFile {
        role: "broker".to_owned(),
        id: settings.id.0,
        pid: std::process::id(),
        listeners,
        http: addresses.http.map(|at| at.to_string()),
    };
    file.write(path).map_err(|error| StartError::Settings(error.to_string()))
}
