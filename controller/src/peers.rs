//! The transport between voters: one outgoing stream to each peer, opened anew for as long as the process lives, and one incoming stream
//! from each. Messages may be lost (a full queue, a broken connection); Raft expects that. A connection that the peer's process closed is
//! reported at once, since it lets followers of a dead leader start an election without waiting for silence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{ClusterId, ControllerId, DirectoryId};
use minikafka_node::Shutdown;
use minikafka_proto::PROTOCOL_LEVEL;
use minikafka_proto::raft::envelope::Body;
use minikafka_proto::raft::raft_client::RaftClient;
use minikafka_proto::raft::raft_server::Raft;
use minikafka_proto::raft::{Envelope, Hello, Refusal};
use minikafka_raft::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::raft_codec;

/// Messages waiting for one peer's stream. Beyond it the newest is dropped; Raft sends anew.
const QUEUE: usize = 256;
/// How soon a broken connection is tried again.
const RECONNECT: Duration = Duration::from_millis(50);
/// How long one attempt to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// A silent connection is probed after this, and given up after as much again: a stopped peer leaves TCP open.
const KEEPALIVE: Duration = Duration::from_secs(1);
/// HTTP/2 windows and frames wide enough for snapshots (measured: small ones cost a fifth and more).
pub(crate) const WINDOW: u32 = 8 << 20;
pub(crate) const FRAME: u32 = 256 << 10;
/// An append message holds at most 1 MiB of entries, a single one may be larger.
pub(crate) const MESSAGE_LIMIT: usize = 72 << 20;

/// What the transport tells the raft thread.
#[derive(Debug)]
pub(crate) enum FromPeers {
    /// A peer said something.
    Message(ControllerId, Message),
    /// A connection with this peer came to be.
    Opened(ControllerId),
    /// The peer's process closed its connection.
    Closed(ControllerId),
}

/// Where the transport reports to. Must not block.
pub(crate) type Inbox = Arc<dyn Fn(FromPeers) + Send + Sync>;

/// Who this node is, for the handshake.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) cluster: ClusterId,
    pub(crate) id: ControllerId,
    pub(crate) directory: DirectoryId,
}

/// The outgoing side.
#[derive(Debug)]
pub(crate) struct Peers {
    queues: BTreeMap<ControllerId, mpsc::Sender<Envelope>>,
}

impl Peers {
    /// Starts one task for each peer on the current runtime. `endpoints` are `host:port`, resolved anew at every attempt.
    pub(crate) fn start(
        identity: &Identity,
        endpoints: &BTreeMap<ControllerId, String>,
        inbox: &Inbox,
        shutdown: &Shutdown,
    ) -> Peers {
        let mut queues = BTreeMap::new();
        for (&peer, endpoint) in endpoints.iter().filter(|(peer, _)| **peer != identity.id) {
            let (sender, receiver) = mpsc::channel(QUEUE);
            queues.insert(peer, sender);
            let link = Link {
                identity: identity.clone(),
                peer,
                endpoint: endpoint.clone(),
                inbox: inbox.clone(),
                receiver,
            };
            let shutdown = shutdown.clone();
            tokio::spawn(async move {
                tokio::select! { () = link.run() => {} () = shutdown.wait() => {} }
            });
        }
        Peers { queues }
    }

    /// Queues a message for a peer, or drops it where the peer does not keep up.
    pub(crate) fn send(&self, to: ControllerId, message: &Message) {
        if let Some(queue) = self.queues.get(&to) {
            // A full or closed queue is a lost message.
            let _lost = queue.try_send(raft_codec::encode(message));
        }
    }
}

struct Link {
    identity: Identity,
    peer: ControllerId,
    endpoint: String,
    inbox: Inbox,
    receiver: mpsc::Receiver<Envelope>,
}

impl Link {
    async fn run(mut self) {
        let mut told = String::new();
        loop {
            match self.serve_one_connection().await {
                Ok(()) => told.clear(),
                Err(why) => {
                    // Once per reason: a peer that is down would fill the log otherwise.
                    if why != told {
                        tracing::info!(
                            "[RaftManager id={}] no connection to controller {}: {why}",
                            self.identity.id,
                            self.peer
                        );
                        told = why;
                    }
                }
            }
            // What was meant for the old connection is stale.
            while self.receiver.try_recv().is_ok() {}
            tokio::time::sleep(RECONNECT).await;
        }
    }

    async fn serve_one_connection(&mut self) -> Result<(), String> {
        let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", self.endpoint))
            .map_err(|e| format!("'{}' is not an address: {e}", self.endpoint))?
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(2 * WINDOW)
            .connect()
            .await
            .map_err(|e| root_cause(&e))?;
        let mut client = RaftClient::new(channel).max_encoding_message_size(MESSAGE_LIMIT);
        let (sender, receiver) = mpsc::channel(QUEUE);
        let hello = Hello {
            cluster_id: self.identity.cluster.0.clone(),
            node_id: self.identity.id.0,
            directory_id: bytes::Bytes::copy_from_slice(&self.identity.directory.0.to_bytes()),
            protocol_level: PROTOCOL_LEVEL,
            to: self.peer.0,
        };
        let hello = Envelope { trace_parent: String::new(), body: Some(Body::Hello(hello)) };
        sender.try_send(hello).map_err(|_| "the stream did not open".to_owned())?;
        let answer =
            client.exchange(ReceiverStream::new(receiver)).await.map_err(|e| e.message().to_owned())?;
        let mut refusals = answer.into_inner();
        (self.inbox)(FromPeers::Opened(self.peer));
        let ended = loop {
            tokio::select! {
                envelope = self.receiver.recv() => match envelope {
                    // The stream's own queue is as long as ours: if it is full the connection is stuck, and the message is lost.
                    Some(envelope) => { let _lost = sender.try_send(envelope); }
                    None => return Ok(()),
                },
                refusal = refusals.message() => break match refusal {
                    Ok(Some(refusal)) => Err(refusal.reason),
                    Ok(None) => Ok(()),
                    Err(status) => Err(status.message().to_owned()),
                },
            }
        };
        (self.inbox)(FromPeers::Closed(self.peer));
        ended
    }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// The incoming side: the gRPC service.
pub(crate) struct RaftDoor {
    identity: Identity,
    voters: Vec<ControllerId>,
    inbox: Inbox,
    shutdown: Shutdown,
}

impl RaftDoor {
    pub(crate) fn new(
        identity: Identity,
        voters: Vec<ControllerId>,
        inbox: Inbox,
        shutdown: Shutdown,
    ) -> RaftDoor {
        RaftDoor { identity, voters, inbox, shutdown }
    }

    /// Who is there, or a sentence that names both sides.
    fn check(&self, hello: &Hello) -> Result<ControllerId, String> {
        let ours = &self.identity;
        let (them, us) = (hello.node_id, ours.id);
        if hello.protocol_level != PROTOCOL_LEVEL {
            let theirs = hello.protocol_level;
            return Err(format!(
                "controller {them} speaks protocol level {theirs}, controller {us} speaks {PROTOCOL_LEVEL}"
            ));
        }
        if hello.cluster_id != ours.cluster.0 {
            return Err(format!(
                "controller {them} belongs to cluster '{}', controller {us} to cluster '{}'",
                hello.cluster_id, ours.cluster
            ));
        }
        if hello.to != us.0 {
            return Err(format!(
                "controller {them} looks for controller {}, but this is controller {us}",
                hello.to
            ));
        }
        let id = ControllerId(them);
        if id == us || !self.voters.contains(&id) {
            return Err(format!(
                "controller {them} is not another voter of controller {us} (controller.quorum.voters)"
            ));
        }
        Ok(id)
    }
}

#[tonic::async_trait]
impl Raft for RaftDoor {
    type ExchangeStream = ReceiverStream<Result<Refusal, Status>>;

    async fn exchange(
        &self,
        request: Request<Streaming<Envelope>>,
    ) -> Result<Response<Self::ExchangeStream>, Status> {
        let mut incoming = request.into_inner();
        let (refusals, outgoing) = mpsc::channel(1);
        let Some(Envelope { body: Some(Body::Hello(hello)), .. }) = incoming.message().await? else {
            return Err(Status::failed_precondition("a Raft stream begins with a handshake"));
        };
        let peer = self.check(&hello).map_err(|reason| {
            tracing::warn!("[RaftManager id={}] refused a connection: {reason}", self.identity.id);
            Status::failed_precondition(reason)
        })?;
        let (inbox, shutdown) = (self.inbox.clone(), self.shutdown.clone());
        tokio::spawn(async move {
            let listening = async {
                loop {
                    match incoming.message().await {
                        Ok(Some(envelope)) => match raft_codec::decode(envelope) {
                            Ok(Some(message)) => inbox(FromPeers::Message(peer, message)),
                            Ok(None) => return Some("a second handshake on one stream".to_owned()),
                            Err(error) => return Some(error.to_string()),
                        },
                        // The end of the stream and a broken one alike: the process on the other side is gone or wants no more.
                        Ok(None) | Err(_) => return None,
                    }
                }
            };
            let ended = tokio::select! { reason = listening => reason, () = shutdown.wait() => None };
            inbox(FromPeers::Closed(peer));
            if let Some(reason) = ended {
                tracing::warn!("controller {peer} sent nonsense, its stream is closed: {reason}");
                // Nobody listens any more where this fails.
                let _gone = refusals.send(Ok(Refusal { reason })).await;
            }
        });
        Ok(Response::new(ReceiverStream::new(outgoing)))
    }
}
