//! What a handler gives back: an answer now, an answer later, none, or the end of the connection.

use std::future::Future;
use std::pin::Pin;

use minikafka_wire::{Frame, Response, WireError, encode_response};

/// What becomes of one request.
pub(crate) enum Answer {
    /// The answer is there.
    Now(Frame),
    /// The request has done its synchronous part and waits; answers leave in the order of the requests.
    Later(Pin<Box<dyn Future<Output = Result<Frame, CloseReason>> + Send>>),
    /// None is wanted (Produce with acks 0).
    Nothing,
}

/// Why the broker closes a connection. Each is told in one log line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CloseReason {
    /// The bytes are not the message they should be.
    #[error("{0}")]
    Malformed(String),
    /// Key or version not served; closing is what Kafka does.
    #[error("{0}")]
    NotServed(String),
    /// Produce with acks 0 failed: closing is the only sign a client can get.
    #[error("a write with acks=0 failed: {0}")]
    AcksZero(String),
    /// An answer does not fit its encoding.
    #[error("an answer could not be written: {0}")]
    Unwritable(String),
}

impl From<WireError> for CloseReason {
    fn from(error: WireError) -> CloseReason {
        CloseReason::Malformed(error.to_string())
    }
}

/// Which request is answered: what an answer's header repeats.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) correlation_id: i32,
    pub(crate) version: i16,
}

impl Asked {
    /// Encodes the answer.
    pub(crate) fn frame<R: Response>(self, response: &R) -> Result<Frame, CloseReason> {
        encode_response(self.correlation_id, self.version, response)
            .map_err(|error| CloseReason::Unwritable(error.to_string()))
    }

    /// An answer that is there already.
    pub(crate) fn now<R: Response>(self, response: &R) -> Result<Answer, CloseReason> {
        self.frame(response).map(Answer::Now)
    }

    /// An answer that waits for something.
    pub(crate) fn later<R, F>(self, response: F) -> Answer
    where
        R: Response + Send,
        F: Future<Output = R> + Send + 'static,
    {
        Answer::Later(Box::pin(async move { self.frame(&response.await) }))
    }
}
