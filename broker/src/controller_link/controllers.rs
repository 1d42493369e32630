//! Finds the active controller and keeps a connection to it. Names are resolved anew at every attempt; a controller that is not active
//! says who is.

use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{BrokerId, ClusterId, ControllerId, DirectoryId, ErrorCode};
use minikafka_node::{Direction, FaultKind, Faults};
use minikafka_proto::PROTOCOL_LEVEL;
use minikafka_proto::cluster::cluster_client::ClusterClient;
use minikafka_proto::cluster::{
    AllocateProducerIdsResponse, AlterPartitionResponse, Caller, CreateTopicsResponse, DeleteTopicsResponse,
    HeartbeatResponse, RegisterBrokerResponse, Status,
};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response};

/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(1000);
/// How long to wait before another controller is asked.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// A silent connection is probed after this, and given up after as much again: a stopped process leaves TCP open.
const KEEPALIVE: Duration = Duration::from_secs(1);
/// HTTP/2 windows wide enough for snapshots.
const WINDOW: u32 = 8 << 20;
/// The largest message taken from a controller.
const MESSAGE_LIMIT: usize = 72 << 20;

/// A client of one controller.
pub(crate) type Client = ClusterClient<Channel>;

/// A controller as configured, or as another one named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Voter {
    /// Its id; unknown for a bootstrap address.
    pub(crate) id: Option<ControllerId>,
    /// `host:port`.
    pub(crate) address: String,
}

/// Why a call to the controllers ended without their answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    /// Nothing was heard in time. What was asked for may or may not have been done.
    #[error("no active controller answered in time ({last}); whether the request was carried out is unknown")]
    TimedOut {
        /// What the last attempt said.
        last: String,
    },
    /// The broker stops, or has too much to forward already.
    #[error("the broker is stopping or has too many requests for the controllers under way")]
    Stopping,
}

/// An answer that says whether its sender is active.
pub(crate) trait Answered {
    fn status(&self) -> Option<&Status>;
}

macro_rules! answered {
    ($($type:ty),*) => { $(impl Answered for $type {
        fn status(&self) -> Option<&Status> {
            self.status.as_ref()
        }
    })* };
}
answered!(
    RegisterBrokerResponse,
    HeartbeatResponse,
    AlterPartitionResponse,
    AllocateProducerIdsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse
);

/// The controllers of the cluster, as this broker reaches them.
#[derive(Debug)]
pub(crate) struct Controllers {
    voters: Vec<Voter>,
    caller: Caller,
    faults: Arc<Faults>,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    voter: Voter,
    client: Option<Client>,
    /// Position in `voters` of the next one to try.
    next: usize,
    /// Rises with each change, so that a late failure does not disturb a newer choice.
    generation: u64,
}

/// A connected controller.
#[derive(Debug, Clone)]
pub(crate) struct Reached {
    pub(crate) client: Client,
    pub(crate) voter: Voter,
    generation: u64,
}

impl Controllers {
    /// `voters` from `controller.quorum.voters` or `controller.quorum.bootstrap.servers`; at least one.
    pub(crate) fn new(
        voters: Vec<Voter>,
        cluster: &ClusterId,
        broker: BrokerId,
        directory: DirectoryId,
        faults: Arc<Faults>,
    ) -> Controllers {
        let caller = Caller {
            cluster_id: cluster.0.clone(),
            node_id: broker.0,
            directory_id: directory.0.to_bytes().to_vec().into(),
            protocol_level: PROTOCOL_LEVEL,
            trace_parent: String::new(),
        };
        let voter = voters.first().cloned().unwrap_or(Voter { id: None, address: String::new() });
        let current = Mutex::new(Current { voter, client: None, next: 1, generation: 0 });
        Controllers { voters, caller, faults, current }
    }

    /// Who this broker is, for a request.
    pub(crate) fn caller(&self) -> Option<Caller> {
        Some(self.caller.clone())
    }

    /// A client of the controller believed to be active, connecting if need be.
    pub(crate) async fn reach(&self) -> Result<Reached, String> {
        let (voter, generation) = {
            let current = self.current.lock();
            if let Some(client) = &current.client {
                let (voter, generation) = (current.voter.clone(), current.generation);
                return Ok(Reached { client: client.clone(), voter, generation });
            }
            (current.voter.clone(), current.generation)
        };
        match connect(&voter.address).await {
            Ok(client) => {
                let mut current = self.current.lock();
                if current.generation == generation {
                    current.client = Some(client.clone());
                }
                Ok(Reached { client, voter, generation })
            }
            Err(error) => {
                let told = format!("controller at {}: {error}", voter.address);
                self.give_up(generation);
                Err(told)
            }
        }
    }

    /// The connection of this generation is of no use: another controller comes next.
    pub(crate) fn give_up(&self, generation: u64) {
        let mut current = self.current.lock();
        if current.generation != generation {
            return;
        }
        let voter = self.voters[current.next % self.voters.len()].clone();
        current.next = (current.next + 1) % self.voters.len();
        current.point_at(voter);
    }

    /// As [`Controllers::give_up`], for the controller that was reached.
    pub(crate) fn give_up_on(&self, reached: &Reached) {
        self.give_up(reached.generation);
    }

    /// A controller said who is active.
    pub(crate) fn redirected(&self, reached: &Reached, status: &Status) {
        let named = status.active_controller.map(ControllerId);
        let known = named.and_then(|id| self.voters.iter().find(|voter| voter.id == Some(id)));
        let address = match known {
            Some(voter) => voter.address.clone(),
            None => status.active_endpoint.clone(),
        };
        if address.is_empty() || address == reached.voter.address {
            self.give_up(reached.generation);
            return;
        }
        let mut current = self.current.lock();
        if current.generation == reached.generation {
            current.point_at(Voter { id: named, address });
        }
    }

    /// Asks the active controller, looking for it until the deadline. `call` may be made several times.
    pub(crate) async fn ask<T, C>(
        &self,
        kind: Option<FaultKind>,
        deadline: Instant,
        call: C,
    ) -> Result<T, CallError>
    where
        T: Answered,
        C: AsyncFn(Client) -> Result<Response<T>, tonic::Status>,
    {
        let mut last = "none was reached".to_owned();
        loop {
            let attempt = timeout_at(deadline, self.attempt(kind, &call)).await;
            match attempt {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) => last = error,
                Err(_) => return Err(CallError::TimedOut { last }),
            }
            if timeout_at(deadline, sleep(RETRY_PAUSE)).await.is_err() {
                return Err(CallError::TimedOut { last });
            }
        }
    }

    async fn attempt<T, C>(&self, kind: Option<FaultKind>, call: &C) -> Result<T, String>
    where
        T: Answered,
        C: AsyncFn(Client) -> Result<Response<T>, tonic::Status>,
    {
        let reached = self.reach().await?;
        let peer = reached.voter.id.map_or(-1, |id| id.0);
        let blocked = |_| "dropped by a fault of the lab".to_owned();
        if let Some(kind) = kind {
            self.faults.pass(kind, peer, Direction::Out).await.map_err(blocked)?;
        }
        let answer = match call(reached.client.clone()).await {
            Ok(answer) => answer.into_inner(),
            Err(status) => {
                self.give_up_on(&reached);
                return Err(format!("controller at {}: {}", reached.voter.address, status.message()));
            }
        };
        if let Some(kind) = kind {
            self.faults.pass(kind, peer, Direction::In).await.map_err(blocked)?;
        }
        match answer.status() {
            Some(status) if status.error_code == i32::from(ErrorCode::NotController.code()) => {
                self.redirected(&reached, status);
                Err(format!("controller at {} is not active", reached.voter.address))
            }
            _ => Ok(answer),
        }
    }
}

impl Current {
    fn point_at(&mut self, voter: Voter) {
        self.voter = voter;
        self.client = None;
        self.generation += 1;
    }
}

async fn connect(address: &str) -> Result<Client, String> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|error| format!("'{address}' is no address: {error}"))?
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .tcp_nodelay(true);
    let connected = timeout(CONNECT_TIMEOUT, endpoint.connect()).await;
    let channel = connected
        .map_err(|_| format!("no connection within {CONNECT_TIMEOUT:?}"))?
        .map_err(|error| root_cause(&error))?;
    Ok(ClusterClient::new(channel)
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT))
}

/// The innermost error says what happened ("Connection refused"); the outer ones only "transport error".
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// A request with its deadline on the wire.
pub(crate) fn with_deadline<T>(message: T, within: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(within);
    request
}
