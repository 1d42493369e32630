//! One connection: a writing and a reading task, joined by the queue of questions that wait for their answers.

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use minikafka_model::ErrorCode;
use minikafka_wire::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use minikafka_wire::{
    ApiKey, Frame, Request, Versions, decode_response, encode_request, peek_correlation_id,
};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};
use tokio_util::sync::CancellationToken;

use super::socket;
use super::versions::OfferedVersions;
use crate::config::{Address, ClientConfig};
use crate::error::{BrokerError, Error};

/// Requests handed to a connection but not answered yet; more callers wait.
const MAX_PIPELINED: usize = 256;
/// Largest answer that is read; a broker that announces more is not speaking Kafka's protocol.
const MAX_ANSWER_BYTES: usize = 256 << 20;
/// Requests written without looking at the queue again.
const WRITE_BURST: usize = 32;

/// What this client calls itself in ApiVersions.
const SOFTWARE_NAME: &str = "minikafka";

/// A question on its way.
struct Outgoing {
    frame: Frame,
    correlation_id: i32,
    answer: Answer,
}

enum Answer {
    /// The broker answers.
    Awaited(oneshot::Sender<Bytes>),
    /// The broker stays silent (acks=0): told once it is written.
    None(oneshot::Sender<()>),
}

/// A question that was written and waits for its answer.
struct Pending {
    correlation_id: i32,
    answer: oneshot::Sender<Bytes>,
}

/// The state shared with the two tasks.
struct Shared {
    address: Address,
    /// Why the connection ended; set once.
    ended: OnceLock<String>,
    stop: CancellationToken,
}

impl Shared {
    fn end(&self, reason: impl FnOnce() -> String) {
        self.ended.get_or_init(reason);
        self.stop.cancel();
    }

    fn lost(&self) -> Error {
        let reason = self.ended.get().cloned().unwrap_or_else(|| "closed".to_owned());
        Error::Disconnected { address: self.address.clone(), reason }
    }
}

/// A connection to a broker whose offered versions are known.
pub(crate) struct Connection {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Outgoing>,
    next_correlation_id: AtomicI32,
    client_id: String,
    offered: OfferedVersions,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.end(|| "closed by this client".to_owned());
    }
}

impl Connection {
    /// Connects and asks what the broker offers.
    pub(crate) async fn open(address: &Address, config: &ClientConfig) -> Result<Connection, Error> {
        let unreachable = |reason| Error::Unreachable { attempts: vec![(address.clone(), reason)] };
        let stream = socket::open(address, config.connection_setup_timeout).await.map_err(unreachable)?;
        let (read, write) = stream.into_split();
        let (requests, queue) = mpsc::channel(MAX_PIPELINED);
        let (pending, waiting) = mpsc::channel(MAX_PIPELINED);
        let shared = Arc::new(Shared {
            address: address.clone(),
            ended: OnceLock::new(),
            stop: CancellationToken::new(),
        });
        tokio::spawn(write_all(shared.clone(), write, queue, pending));
        tokio::spawn(read_all(shared.clone(), read, waiting));
        let mut connection = Connection {
            shared,
            requests,
            next_correlation_id: AtomicI32::new(0),
            client_id: config.client_id.clone(),
            offered: OfferedVersions::default(),
        };
        connection.offered =
            connection.ask_versions(config.request_timeout.min(config.connection_setup_timeout)).await?;
        Ok(connection)
    }

    /// ApiVersions in our highest version; an older broker answers 35 and names its own (users reference 2.3).
    async fn ask_versions(&self, wait: Duration) -> Result<OfferedVersions, Error> {
        let api = ApiKey::ApiVersions.api();
        let request = ApiVersionsRequest {
            client_software_name: SOFTWARE_NAME.to_owned(),
            client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
            ..ApiVersionsRequest::default()
        };
        let answer = self.exchange(api.versions.max, &request, wait).await?;
        let answer = if answer.error_code == ErrorCode::UnsupportedVersion.code() {
            let theirs = answer.api_keys.iter().find(|row| row.api_key == api.key.code());
            let theirs = theirs
                .map_or(Versions::between(0, 0), |row| Versions::between(row.min_version, row.max_version));
            let version = api.common_version(theirs).unwrap_or(0);
            self.exchange(version, &request, wait).await?
        } else {
            answer
        };
        let ApiVersionsResponse { error_code, .. } = &answer;
        BrokerError::check(*error_code, None)
            .map_err(|error| Error::broker(format!("ApiVersions at {}", self.address()), error))?;
        Ok(OfferedVersions::from_wire(&answer))
    }

    /// Where the broker is.
    pub(crate) fn address(&self) -> &Address {
        &self.shared.address
    }

    /// What the broker offers.
    pub(crate) fn offered(&self) -> &OfferedVersions {
        &self.offered
    }

    /// Whether no request can be sent any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.ended.get().is_some()
    }

    /// The version of `R` to speak here, not above `most`.
    pub(crate) fn version_of<R: Request>(&self, most: i16) -> Result<i16, Error> {
        self.offered.common(R::KEY, most).ok_or_else(|| Error::Unsupported {
            address: self.address().clone(),
            api: R::KEY,
            ours: R::KEY.api().versions,
            theirs: self.offered.of(R::KEY),
        })
    }

    /// Asks in the highest common version.
    pub(crate) async fn call<R: Request>(&self, request: &R, wait: Duration) -> Result<R::Response, Error> {
        let version = self.version_of::<R>(i16::MAX)?;
        self.exchange(version, request, wait).await
    }

    /// Asks in this version. An answer that does not come within `wait` ends the connection: answers come in order, so none behind it
    /// could be had either.
    pub(crate) async fn exchange<R: Request>(
        &self,
        version: i16,
        request: &R,
        wait: Duration,
    ) -> Result<R::Response, Error> {
        self.begin(version, request).await?.finish(wait).await
    }

    /// Puts a question on its way. Questions are asked in the order of these calls.
    pub(crate) async fn begin<R: Request>(&self, version: i16, request: &R) -> Result<Begun<R>, Error> {
        let (answer, receiver) = oneshot::channel();
        let correlation_id = self.send(version, request, Answer::Awaited(answer)).await?;
        Ok(Begun { shared: self.shared.clone(), receiver, correlation_id, version, request: PhantomData })
    }

    /// Sends a request that the broker does not answer; returns once it is written.
    pub(crate) async fn tell<R: Request>(&self, version: i16, request: &R) -> Result<(), Error> {
        let (written, receiver) = oneshot::channel();
        self.send(version, request, Answer::None(written)).await?;
        receiver.await.map_err(|_| self.shared.lost())
    }

    async fn send<R: Request>(&self, version: i16, request: &R, answer: Answer) -> Result<i32, Error> {
        let correlation_id = self.next_correlation_id.fetch_add(1, Ordering::Relaxed) & i32::MAX;
        let frame =
            encode_request(correlation_id, Some(&self.client_id), version, request).map_err(|error| {
                Error::Protocol {
                    address: self.address().clone(),
                    reason: format!("cannot be asked: {error}"),
                }
            })?;
        if self.is_closed() {
            return Err(self.shared.lost());
        }
        let outgoing = Outgoing { frame, correlation_id, answer };
        self.requests.send(outgoing).await.map_err(|_| self.shared.lost())?;
        Ok(correlation_id)
    }
}

/// A question that was asked.
pub(crate) struct Begun<R> {
    shared: Arc<Shared>,
    receiver: oneshot::Receiver<Bytes>,
    correlation_id: i32,
    version: i16,
    request: PhantomData<fn() -> R>,
}

impl<R: Request> Begun<R> {
    /// Waits for the answer; see [`Connection::exchange`].
    pub(crate) async fn finish(self, wait: Duration) -> Result<R::Response, Error> {
        let frame = match tokio::time::timeout(wait, self.receiver).await {
            Ok(Ok(frame)) => frame,
            Ok(Err(_)) => return Err(self.shared.lost()),
            Err(_) => {
                self.shared.end(|| format!("no answer to {} within {} ms", R::KEY, wait.as_millis()));
                return Err(self.shared.lost());
            }
        };
        decode_response::<R>(&frame, self.correlation_id, self.version).map_err(|error| {
            self.shared.end(|| format!("its answer to {} cannot be understood", R::KEY));
            Error::Protocol { address: self.shared.address.clone(), reason: error.to_string() }
        })
    }
}

async fn write_all(
    shared: Arc<Shared>,
    mut socket: OwnedWriteHalf,
    mut queue: mpsc::Receiver<Outgoing>,
    pending: mpsc::Sender<Pending>,
) {
    let work = async {
        let mut burst = Vec::with_capacity(WRITE_BURST);
        while queue.recv_many(&mut burst, WRITE_BURST).await > 0 {
            for Outgoing { mut frame, correlation_id, answer } in burst.drain(..) {
                // The question is in the queue before its answer can come.
                let written = match answer {
                    Answer::Awaited(answer) => {
                        if pending.send(Pending { correlation_id, answer }).await.is_err() {
                            return Ok(());
                        }
                        None
                    }
                    Answer::None(written) => Some(written),
                };
                socket.write_all_buf(&mut frame).await?;
                if let Some(written) = written {
                    // Nobody may be waiting any more.
                    let _ = written.send(());
                }
            }
        }
        io::Result::Ok(())
    };
    tokio::select! {
        result = work => if let Err(error) = result {
            shared.end(|| format!("writing failed: {error}"));
        },
        () = shared.stop.cancelled() => {}
    }
    // What is still in the queue is dropped with it: its callers hear of the lost connection.
}

async fn read_all(shared: Arc<Shared>, socket: OwnedReadHalf, mut waiting: mpsc::Receiver<Pending>) {
    let codec = LengthDelimitedCodec::builder().max_frame_length(MAX_ANSWER_BYTES).new_codec();
    let mut frames = FramedRead::new(socket, codec);
    let work = async {
        while let Some(frame) = frames.next().await {
            let frame = match frame {
                Ok(frame) => frame.freeze(),
                Err(error) => return format!("reading failed: {error}"),
            };
            let Ok(question) = waiting.try_recv() else {
                return "an answer came that nobody asked for".to_owned();
            };
            match peek_correlation_id(&frame) {
                Ok(found) if found == question.correlation_id => {
                    // Whoever asked may have given up.
                    let _ = question.answer.send(frame);
                }
                Ok(found) => {
                    let expected = question.correlation_id;
                    return format!("the answer to question {found} came in the place of {expected}");
                }
                Err(error) => return error.to_string(),
            }
        }
        "the broker has closed it".to_owned()
    };
    tokio::select! {
        reason = work => shared.end(|| reason),
        () = shared.stop.cancelled() => {}
    }
    // Dropping the queue drops the waiting questions: their callers hear why the connection ended.
}
