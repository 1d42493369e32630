//! Starting and stopping a controller.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::Context as _;
use minikafka_control::{Answer, Command, Control, ControlConfig};
use minikafka_metadata::{Image, decode_snapshot};
use minikafka_model::config::Resolved;
use minikafka_model::{ClusterId, ControllerId, DirectoryId, Uuid};
use minikafka_node::{
    Clock, DirLock, EventRing, HttpServer, OsDisk, ReadyFile, Shutdown, block_on_thread, spawn_named,
};
use minikafka_proto::cluster::cluster_server::ClusterServer;
use minikafka_proto::raft::raft_server::RaftServer;
use minikafka_raft::{Limits, Raft, RaftConfig, RaftLog, Status, Timers};
use minikafka_storage::{Disk, LogDirectory, MetaProperties};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_stream::wrappers::TcpListenerStream;

use crate::cluster_door::ClusterDoor;
use crate::core::{Core, Desk, DeskError, Published, ToCore, first_view};
use crate::event::ControllerEvent;
use crate::metadata_log::MetadataLog;
use crate::peers::{FRAME, Identity, Inbox, MESSAGE_LIMIT, Peers, RaftDoor, WINDOW};
use crate::surface::ControllerSurface;
use crate::vote_file::VoteFile;

/// Messages waiting for the raft thread.
const INBOX: usize = 8192;

/// A controller process, or the controller in a combined one.
#[derive(Debug)]
pub struct Controller;

/// A running controller.
pub struct ControllerHandle {
    address: SocketAddr,
    http: Option<SocketAddr>,
    shutdown: Shutdown,
    inbox: SyncSender<ToCore>,
    door: ClusterDoor,
    published: watch::Receiver<Arc<Published>>,
    core: JoinHandle<anyhow::Result<()>>,
    network: JoinHandle<anyhow::Result<()>>,
    _lock: Option<DirLock>,
}

struct Bound {
    peers: Peers,
    address: SocketAddr,
    http: Option<SocketAddr>,
}

impl Controller {
    /// Starts a controller with this configuration. `lock` is false where the process holds the directory's lock already.
    ///
    /// # Errors
    /// The configuration, the directory or an address cannot be used.
    pub fn start(
        config: &Arc<Resolved>,
        lock: bool,
        shutdown: &Shutdown,
    ) -> anyhow::Result<ControllerHandle> {
        let clock = Clock::new();
        let id = ControllerId(config.node_id().context("node.id is missing")?);
        let voters = config.voters().map_err(anyhow::Error::msg)?;
        let endpoints: BTreeMap<ControllerId, String> = voters
            .iter()
            .map(|voter| (voter.id, voter.to_string().split('@').next_back().unwrap_or_default().to_owned()))
            .collect();
        let dir = PathBuf::from(config.metadata_log_dir());
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        disk.create_dir(&dir).with_context(|| format!("{}", dir.display()))?;
        let lock = if lock { Some(DirLock::take(&dir)?) } else { None };
        let meta = meta_of(&*disk, &dir, config, id)?;
        let log = MetadataLog::open(&disk, &dir, clock.wall())?;
        let vote = VoteFile::new(&disk, &dir);
        let hard = vote.load()?;
        let image = match log.snapshot_image() {
            Some((_, bytes)) => decode_snapshot(&bytes)?,
            None => Image::empty(meta.cluster.clone()),
        };
        let raft_config = RaftConfig {
            id,
            directory: meta.directory,
            voters: endpoints.keys().copied().collect(),
            timers: Timers::default(),
            limits: Limits::default(),
            seed: rand::random(),
        };
        let raft = Raft::new(raft_config, hard.clone(), &log, clock.mono())?;
        tracing::info!("[RaftManager id={id}] metadata log {} to {}", log.start(), log.end());
        let (inbox, incoming) = sync_channel(INBOX);
        let (publisher, published) = watch::channel(Arc::new(first_view(&raft, &log, &image)));
        let events = Arc::new(EventRing::new(EventRing::<ControllerEvent>::CAPACITY));
        let identity = Identity { cluster: meta.cluster.clone(), id, directory: meta.directory };
        let door = ClusterDoor {
            cluster: meta.cluster,
            endpoints: Arc::new(endpoints),
            inbox: inbox.clone(),
            published: published.clone(),
            clock,
            shutdown: shutdown.clone(),
        };
        let surface = ControllerSurface {
            config: Arc::clone(config),
            published: published.clone(),
            events: events.clone(),
        };
        let (bound, network) = open_network(config, identity, door.clone(), surface, shutdown)?;
        let core = Core {
            raft,
            log,
            vote,
            hard,
            image,
            control: Control::new(ControlConfig::of(id, config)),
            clock,
            peers: bound.peers,
            inbox: incoming,
            published: publisher,
            events,
            idle_interval: config.millis("metadata.max.idle.interval.ms"),
            snapshot_bytes: config.size("metadata.log.max.record.bytes.between.snapshots") as u64,
            desk: Desk::default(),
        };
        let stopper = shutdown.clone();
        let core = spawn_named("raft", move || {
            let outcome = core.run();
            if let Err(error) = &outcome {
                tracing::error!("the controller ends: {error:#}");
                stopper.request();
            }
            outcome
        })?;
        let (address, http) = (bound.address, bound.http);
        let shutdown = shutdown.clone();
        Ok(ControllerHandle { address, http, shutdown, inbox, door, published, core, network, _lock: lock })
    }
}

fn meta_of(
    disk: &dyn Disk,
    dir: &Path,
    config: &Resolved,
    id: ControllerId,
) -> anyhow::Result<MetaProperties> {
    let wanted = config.text("minikafka.cluster.id").map(|text| ClusterId(text.to_owned()));
    if let Some(meta) = LogDirectory::read_meta(disk, dir)? {
        anyhow::ensure!(
            meta.node == id.0,
            "{} belongs to node {}, this is node {id}",
            dir.display(),
            meta.node
        );
        anyhow::ensure!(
            wanted.is_none_or(|wanted| wanted == meta.cluster),
            "{} belongs to cluster '{}', minikafka.cluster.id says otherwise",
            dir.display(),
            meta.cluster
        );
        return Ok(meta);
    }
    let cluster =
        wanted.context("minikafka.cluster.id is missing, and the directory does not know its cluster")?;
    let directory = loop {
        if let Some(uuid) = Uuid::from_random(rand::random()) {
            break DirectoryId(uuid);
        }
    };
    let meta = MetaProperties { cluster, node: id.0, directory };
    LogDirectory::format(disk, dir, &meta)?;
    Ok(meta)
}

/// Binds the addresses and serves them on a thread of their own.
fn open_network(
    config: &Arc<Resolved>,
    identity: Identity,
    door: ClusterDoor,
    surface: ControllerSurface,
    shutdown: &Shutdown,
) -> anyhow::Result<(Bound, JoinHandle<anyhow::Result<()>>)> {
    let names = config.list("controller.listener.names");
    let listeners = config.listeners().map_err(anyhow::Error::msg)?;
    let listener = listeners
        .into_iter()
        .find(|l| names.iter().any(|name| name.eq_ignore_ascii_case(&l.name)))
        .context("listeners names none of controller.listener.names")?;
    let host = if listener.host.is_empty() { "0.0.0.0".to_owned() } else { listener.host.clone() };
    let port = listener.port;
    let http = config.text("minikafka.http.listen").filter(|_| !config.roles().broker).map(str::to_owned);
    let shutdown = shutdown.clone();
    let (tell, told) = sync_channel(1);
    let network = block_on_thread("controller-io", move || async move {
        let opened = async {
            let tcp = TcpListener::bind((host.as_str(), port))
                .await
                .with_context(|| format!("cannot listen on {host}:{port} (listeners)"))?;
            let http = match &http {
                Some(address) => Some(HttpServer::bind(address).await?),
                None => None,
            };
            anyhow::Ok((tcp.local_addr()?, tcp, http))
        };
        let (address, tcp, http) = match opened.await {
            Ok(opened) => opened,
            Err(error) => {
                // The starter waits for this.
                let _gone = tell.send(Err(error));
                return Ok(());
            }
        };
        let sender = Mutex::new(door.inbox.clone());
        let inbox: Inbox = Arc::new(move |message| {
            // A full inbox loses the message; Raft sends anew.
            let _lost =
                sender.lock().unwrap_or_else(PoisonError::into_inner).try_send(ToCore::Peers(message));
        });
        let peers = Peers::start(&identity, &door.endpoints, &inbox, &shutdown);
        let voters = door.endpoints.keys().copied().collect();
        let raft = RaftServer::new(RaftDoor::new(identity, voters, inbox, shutdown.clone()))
            .max_decoding_message_size(MESSAGE_LIMIT);
        let bound = Bound { peers, address, http: http.as_ref().map(HttpServer::address) };
        let _gone = tell.send(Ok(bound));
        if let Some(http) = http {
            tokio::spawn(http.serve(Arc::new(surface), None, shutdown.clone()));
        }
        let serving = tonic::transport::Server::builder()
            .tcp_nodelay(true)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(2 * WINDOW)
            .max_frame_size(FRAME)
            .add_service(raft)
            .add_service(ClusterServer::new(door).max_decoding_message_size(MESSAGE_LIMIT))
            .serve_with_incoming(TcpListenerStream::new(tcp));
        tokio::select! {
            served = serving => served.context("the controller's listener"),
            () = shutdown.wait() => Ok(()),
        }
    })?;
    let bound = told.recv().context("the controller's network thread ended")??;
    Ok((bound, network))
}

impl ControllerHandle {
    /// Where the controller's listener is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where its HTTP is.
    pub fn http(&self) -> Option<SocketAddr> {
        self.http
    }

    /// What Raft says of itself.
    pub fn status(&self) -> Status {
        self.published.borrow().status.clone()
    }

    /// The committed metadata as this controller knows it.
    pub fn image(&self) -> Image {
        self.published.borrow().image.clone()
    }

    /// Waits until the status and the image fulfil a condition.
    pub async fn until(&self, condition: impl Fn(&Status, &Image) -> bool) {
        let mut published = self.published.clone();
        // Fails only where the raft thread has ended: then nothing changes any more.
        let _ended = published.wait_for(|view| condition(&view.status, &view.image)).await;
    }

    /// Asks the desk; answered when the decision is committed.
    ///
    /// # Errors
    /// See [`DeskError`].
    pub async fn ask(&self, command: Command) -> Result<Answer, DeskError> {
        self.door.ask(command, 0).await
    }

    /// Stops in order and waits for the threads.
    ///
    /// # Errors
    /// What went wrong while it ran.
    pub fn stop(self) -> anyhow::Result<()> {
        // Where the inbox is full or closed the thread ends through its error or the process.
        let _gone = self.inbox.send(ToCore::Stop);
        let core = self.core.join().map_err(|_| anyhow::anyhow!("the raft thread panicked"))?;
        self.shutdown.request();
        let network = self.network.join().map_err(|_| anyhow::anyhow!("the network thread panicked"))?;
        core.and(network)
    }
}

/// Runs a controller in the foreground until a signal, or until it fails.
///
/// # Errors
/// It could not start, or failed.
pub fn run(config: Resolved) -> anyhow::Result<()> {
    let (config, shutdown) = (Arc::new(config), Shutdown::new());
    let handle = Controller::start(&config, true, &shutdown)?;
    if let Some(path) = config.text("minikafka.ready.file") {
        let listeners = [("CONTROLLER".to_owned(), handle.address().to_string())].into();
        let http = handle.http().map(|address| address.to_string());
        let id = config.node_id().unwrap_or_default();
        ReadyFile { role: "controller".to_owned(), id, pid: std::process::id(), listeners, http }
            .write(Path::new(path))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::select! {
            watched = shutdown.clone().watch_signals() => watched,
            () = shutdown.wait() => Ok(()),
        }
    })?;
    handle.stop()
}
