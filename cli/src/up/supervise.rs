//! The life of a cluster under `up`: start, wait until all serve, watch, stop brokers before controllers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::child;
use super::data_dir::{DataDir, Record};
use super::health::{self, Health};
use super::layout::{HOST, NodePlan, Role};
use super::tell::{News, Process, Teller};
use crate::failure::{Failure, Kind, Outcome};

/// How often a node is asked whether it is ready: often at first, as a fresh cluster takes less than a second.
const ASK_EVERY: Duration = Duration::from_millis(10);
const ASK_LATER_EVERY: Duration = Duration::from_millis(100);
const ASK_OFTEN_FOR: Duration = Duration::from_secs(3);
/// A reason is told once it has stood for this long.
const TELL_REASON_AFTER: Duration = Duration::from_millis(700);
/// A node that has not ended this long after it was asked to is killed.
const STOP_LIMIT: Duration = Duration::from_secs(60);
/// Happenings that wait to be handled.
const QUEUE: usize = 256;

/// Something that happened to the cluster.
#[derive(Debug)]
enum Happening {
    Ended(usize, std::io::Result<ExitStatus>),
    Ready(usize),
    NotReady(usize, Vec<String>),
    Stop,
    TooSlow,
}

/// One node and, while it runs, its process id.
#[derive(Debug)]
struct Running {
    node: NodePlan,
    pid: Option<u32>,
    ready: bool,
}

/// The cluster and what watches over it.
#[derive(Debug)]
pub(crate) struct Cluster {
    nodes: Vec<NodePlan>,
    record: Record,
    data: DataDir,
    teller: Teller,
    begun: Instant,
}

impl Cluster {
    pub(crate) fn new(
        nodes: Vec<NodePlan>,
        record: Record,
        data: DataDir,
        json: bool,
        begun: Instant,
    ) -> Cluster {
        Cluster { nodes, record, data, teller: Teller::new(json), begun }
    }

    /// Starts everything, watches it, and stops it in order once asked to.
    ///
    /// # Errors
    /// The cluster could not be started; everything that was started is stopped again.
    pub(crate) async fn run(self) -> Outcome {
        let (sender, receiver) = mpsc::channel(QUEUE);
        watch_signals(&sender)?;
        let program = std::env::current_exe().map_err(Failure::error)?;
        let mut watch =
            Watch { running: Vec::new(), happenings: receiver, sender, teller: self.teller, program };
        for node in &self.nodes {
            if let Err(failure) = watch.start(node.clone()) {
                watch.stop_all().await;
                return Err(failure);
            }
        }
        let processes = watch.processes();
        self.teller.tell(&News::Starting {
            cluster_id: &self.record.cluster_id.0,
            shape: self.record.shape,
            data: self.data.path(),
            processes: &processes,
        });
        match watch.until_ready().await {
            Ok(Begun::Serving) => {
                let ready_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
                let bootstrap = bootstrap(&self.nodes);
                let data = self.data.path();
                self.teller.tell(&News::Ready {
                    ready_ms,
                    bootstrap: &bootstrap,
                    data,
                    processes: &processes,
                });
                watch.until_told_to_stop().await;
                watch.stop_in_order().await
            }
            Ok(Begun::ToldToStop) => watch.stop_in_order().await,
            Err(failure) => {
                watch.stop_all().await;
                Err(failure)
            }
        }
    }
}

fn bootstrap(nodes: &[NodePlan]) -> String {
    let addresses: Vec<String> =
        nodes.iter().filter_map(|node| node.kafka).map(|port| format!("{HOST}:{port}")).collect();
    addresses.join(",")
}

/// How the start went.
enum Begun {
    Serving,
    ToldToStop,
}

/// The processes and the queue of what happens to them.
struct Watch {
    running: Vec<Running>,
    happenings: mpsc::Receiver<Happening>,
    /// Kept, so that the queue never closes.
    sender: mpsc::Sender<Happening>,
    teller: Teller,
    program: PathBuf,
}

impl Watch {
    fn start(&mut self, node: NodePlan) -> Outcome {
        let child = child::start(&self.program, &node)?;
        let (index, pid) = (self.running.len(), child.id());
        tokio::spawn(await_end(index, child, self.sender.clone()));
        tokio::spawn(await_ready(index, node.http, self.sender.clone()));
        self.running.push(Running { node, pid, ready: false });
        Ok(())
    }

    fn processes(&self) -> Vec<Process> {
        self.running.iter().map(|r| Process::new(&r.node, r.pid.unwrap_or_default())).collect()
    }

    async fn next(&mut self) -> Happening {
        self.happenings.recv().await.expect("this struct holds a sender")
    }

    /// Waits until every node says it is ready.
    async fn until_ready(&mut self) -> Outcome<Begun> {
        while self.running.iter().any(|r| !r.ready) {
            match self.next().await {
                Happening::Ready(index) => self.running[index].ready = true,
                Happening::NotReady(index, because) => {
                    let node = &self.running[index].node;
                    let (role, id) = (node.role.name(), node.id);
                    self.teller.tell(&News::Waiting { role, id, because: &because });
                }
                Happening::Ended(index, status) => return Err(self.died_at_start(index, status)),
                Happening::Stop => return Ok(Begun::ToldToStop),
                Happening::TooSlow => {}
            }
        }
        Ok(Begun::Serving)
    }

    fn died_at_start(&mut self, index: usize, status: std::io::Result<ExitStatus>) -> Failure {
        self.running[index].pid = None;
        let node = &self.running[index].node;
        let mut text = format!("the cluster did not start: {node} {}", child::how(status));
        for line in child::last_lines(&node.log()) {
            text.push_str("\n  | ");
            text.push_str(&line);
        }
        Failure::error(text).hint(format!("its whole log is {}", node.log().display()))
    }

    /// Tells of every process that ends by itself, until the user wants all of them to.
    async fn until_told_to_stop(&mut self) {
        loop {
            match self.next().await {
                Happening::Ended(index, status) => self.tell_of_end(index, status),
                Happening::Stop => return,
                Happening::Ready(_) | Happening::NotReady(..) | Happening::TooSlow => {}
            }
        }
    }

    fn tell_of_end(&mut self, index: usize, status: std::io::Result<ExitStatus>) {
        let running = &mut self.running[index];
        let pid = running.pid.take().unwrap_or_default();
        let node = &running.node;
        let restart = restart_command(&self.program, node);
        let log = child::last_lines(&node.log());
        let how = child::how(status);
        let (role, id) = (node.role.name(), node.id);
        self.teller.tell(&News::Ended { role, id, pid, how: &how, log: &log, restart: &restart });
    }

    /// Brokers first, so that controllers are there to move their leaders; then controllers.
    async fn stop_in_order(&mut self) -> Outcome {
        let begun = Instant::now();
        for roles in [[Role::Broker, Role::Node].as_slice(), &[Role::Controller]] {
            let asked: BTreeSet<usize> = (0..self.running.len())
                .filter(|&i| self.running[i].pid.is_some() && roles.contains(&self.running[i].node.role))
                .collect();
            if let Some(&first) = asked.first() {
                let ids: Vec<u16> = asked.iter().map(|&i| self.running[i].node.id).collect();
                let role = self.running[first].node.role.name();
                self.teller.tell(&News::Stopping { role, ids: &ids });
                self.stop(asked).await?;
            }
        }
        let after_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.teller.tell(&News::Stopped { after_ms });
        Ok(())
    }

    /// SIGTERM, then wait. A second wish to stop, or the time limit, kills.
    async fn stop(&mut self, mut left: BTreeSet<usize>) -> Outcome {
        left.iter().filter_map(|&i| self.running[i].pid).for_each(|pid| child::signal(pid, Signal::TERM));
        let sender = self.sender.clone();
        let limit = tokio::spawn(async move {
            tokio::time::sleep(STOP_LIMIT).await;
            let _ = sender.send(Happening::TooSlow).await;
        });
        while !left.is_empty() {
            match self.next().await {
                Happening::Ended(index, _) => {
                    self.running[index].pid = None;
                    left.remove(&index);
                }
                Happening::Stop => {
                    self.kill();
                    return Err(Failure::of(
                        Kind::Interrupted,
                        "killed before everything was stopped in order",
                    ));
                }
                Happening::TooSlow => self.kill(),
                Happening::Ready(_) | Happening::NotReady(..) => {}
            }
        }
        limit.abort();
        Ok(())
    }

    fn kill(&self) {
        for running in &self.running {
            if let Some(pid) = running.pid {
                self.teller.tell(&News::Killed { role: running.node.role.name(), id: running.node.id });
                child::signal(pid, Signal::KILL);
            }
        }
    }

    /// After a start that failed: everything ends at once, in any order, and nothing is said but the failure.
    async fn stop_all(&mut self) {
        let left: BTreeSet<usize> =
            (0..self.running.len()).filter(|&i| self.running[i].pid.is_some()).collect();
        // A second Ctrl-C has killed them; the failure that led here is the one to report.
        let _ = self.stop(left).await;
    }
}

fn restart_command(program: &Path, node: &NodePlan) -> String {
    format!("{} {} --config {}", program.display(), node.role, node.config.display())
}

async fn await_end(index: usize, mut child: Child, sender: mpsc::Sender<Happening>) {
    let status = child.wait().await;
    let _ = sender.send(Happening::Ended(index, status)).await;
}

/// Asks until the node is ready, and passes on why it is not, each reason once.
async fn await_ready(index: usize, port: u16, sender: mpsc::Sender<Happening>) {
    let begun = Instant::now();
    let mut told: Vec<String> = Vec::new();
    let mut standing: (Vec<String>, Instant) = (Vec::new(), begun);
    loop {
        match health::ask(port).await {
            Health::Ready => break,
            Health::NotReady(because) if !because.is_empty() => {
                if standing.0 != because {
                    standing = (because.clone(), Instant::now());
                } else if standing.1.elapsed() >= TELL_REASON_AFTER && told != because {
                    told.clone_from(&because);
                    if sender.send(Happening::NotReady(index, because)).await.is_err() {
                        return;
                    }
                }
            }
            Health::NotReady(_) | Health::Silent => {}
        }
        let pause = if begun.elapsed() < ASK_OFTEN_FOR { ASK_EVERY } else { ASK_LATER_EVERY };
        tokio::time::sleep(pause).await;
    }
    let _ = sender.send(Happening::Ready(index)).await;
}

/// SIGINT, SIGTERM and SIGHUP all ask for an orderly stop.
fn watch_signals(sender: &mpsc::Sender<Happening>) -> Outcome {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let mut signals = signal(kind).map_err(Failure::error)?;
        let sender = sender.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if sender.send(Happening::Stop).await.is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}
