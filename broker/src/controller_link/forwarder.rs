//! Carries requests of clients to the active controller: the doors ask here, the link's thread calls.

use std::sync::Arc;
use std::time::Duration;

use minikafka_proto::cluster::{
    CreateTopic, CreateTopicsRequest, CreateTopicsResponse, DeleteTopic, DeleteTopicsRequest,
    DeleteTopicsResponse,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::controllers::{CallError, Controllers, with_deadline};
use crate::event::NodeEvent;
use crate::service::Service;

/// Requests that wait for the link's thread.
const QUEUE: usize = 1024;

/// A request for the controllers.
#[derive(Debug)]
pub(crate) enum Forward {
    CreateTopics {
        topics: Vec<CreateTopic>,
        validate_only: bool,
        within: Duration,
        answer: oneshot::Sender<Result<CreateTopicsResponse, CallError>>,
    },
    DeleteTopics {
        topics: Vec<DeleteTopic>,
        within: Duration,
        answer: oneshot::Sender<Result<DeleteTopicsResponse, CallError>>,
    },
}

/// The doors' end.
#[derive(Debug, Clone)]
pub(crate) struct Forwarder {
    queue: mpsc::Sender<Forward>,
}

/// The link's end.
pub(crate) type ForwardQueue = mpsc::Receiver<Forward>;

impl Forwarder {
    /// Both ends.
    pub(crate) fn pair() -> (Forwarder, ForwardQueue) {
        let (queue, receiver) = mpsc::channel(QUEUE);
        (Forwarder { queue }, receiver)
    }

    /// Creates topics.
    pub(crate) async fn create_topics(
        &self,
        topics: Vec<CreateTopic>,
        validate_only: bool,
        within: Duration,
    ) -> Result<CreateTopicsResponse, CallError> {
        let (answer, answered) = oneshot::channel();
        self.send(Forward::CreateTopics { topics, validate_only, within, answer })?;
        answered.await.map_err(|_| CallError::Stopping)?
    }

    /// Deletes topics.
    pub(crate) async fn delete_topics(
        &self,
        topics: Vec<DeleteTopic>,
        within: Duration,
    ) -> Result<DeleteTopicsResponse, CallError> {
        let (answer, answered) = oneshot::channel();
        self.send(Forward::DeleteTopics { topics, within, answer })?;
        answered.await.map_err(|_| CallError::Stopping)?
    }

    /// Topics that a client's Metadata request asks to be made. Nobody waits for them; the client asks again.
    pub(crate) fn create_in_background(&self, topics: Vec<CreateTopic>, within: Duration) {
        let (answer, _nobody_waits) = oneshot::channel();
        // With a full queue the client's next Metadata request tries again.
        let _full = self.send(Forward::CreateTopics { topics, validate_only: false, within, answer });
    }

    fn send(&self, request: Forward) -> Result<(), CallError> {
        self.queue.try_send(request).map_err(|_| CallError::Stopping)
    }
}

/// Carries out requests until the doors are gone. Each runs by itself, so that a slow one holds up no other.
pub(crate) async fn forward_all(
    mut queue: ForwardQueue,
    controllers: Arc<Controllers>,
    service: Arc<Service>,
) {
    while let Some(request) = queue.recv().await {
        let (controllers, service) = (Arc::clone(&controllers), Arc::clone(&service));
        tokio::task::spawn_local(async move { forward(request, &controllers, &service).await });
    }
}

async fn forward(request: Forward, controllers: &Controllers, service: &Service) {
    match request {
        Forward::CreateTopics { topics, validate_only, within, answer } => {
            let message = CreateTopicsRequest {
                caller: controllers.caller(),
                topics,
                validate_only,
                timeout_ms: millis(within),
            };
            let call = async |mut client: super::controllers::Client| {
                client.create_topics(with_deadline(message.clone(), within)).await
            };
            let outcome = controllers.ask(None, Instant::now() + within, call).await;
            tell_timeout(service, "CreateTopics", outcome.as_ref().err());
            let _client_gone = answer.send(outcome);
        }
        Forward::DeleteTopics { topics, within, answer } => {
            let message =
                DeleteTopicsRequest { caller: controllers.caller(), topics, timeout_ms: millis(within) };
            let call = async |mut client: super::controllers::Client| {
                client.delete_topics(with_deadline(message.clone(), within)).await
            };
            let outcome = controllers.ask(None, Instant::now() + within, call).await;
            tell_timeout(service, "DeleteTopics", outcome.as_ref().err());
            let _client_gone = answer.send(outcome);
        }
    }
}

fn tell_timeout(service: &Service, request: &'static str, error: Option<&CallError>) {
    if let Some(CallError::TimedOut { last }) = error {
        service.tell(NodeEvent::ForwardTimeout { request, reason: last.clone() });
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
