//! How a command ends when it does not end well: one message, perhaps a hint, and an exit code that scripts can rely on.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use minikafka_client::{EnqueueError, Error, GaveUp, ProduceError};
use minikafka_model::ErrorCode;
use serde_json::json;

use crate::args::Output;

/// What every command returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// The kinds of failure and their exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything without a code of its own.
    Error = 1,
    /// The command line or a configuration is wrong (clap's own code too).
    Usage = 2,
    /// A topic or partition that is not there.
    NotFound = 3,
    /// No broker could be reached.
    CannotConnect = 4,
    /// Time ran out.
    TimedOut = 5,
    /// The state of the cluster does not allow it now.
    Refused = 6,
    /// A node is not ready.
    Unhealthy = 10,
    /// Broken off by the user.
    Interrupted = 130,
}

/// A failure as the user hears it.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
    code: Option<ErrorCode>,
    retriable: bool,
}

impl Failure {
    /// A failure with exit code 1.
    pub(crate) fn error(message: impl fmt::Display) -> Failure {
        Failure::of(Kind::Error, message)
    }

    /// A failure with exit code 2.
    pub(crate) fn usage(message: impl fmt::Display) -> Failure {
        Failure::of(Kind::Usage, message)
    }

    /// A failure of this kind.
    pub(crate) fn of(kind: Kind, message: impl fmt::Display) -> Failure {
        Failure { kind, message: message.to_string(), hint: None, code: None, retriable: false }
    }

    /// A failure with a code of Kafka's, which may have an exit code of its own.
    pub(crate) fn kafka(code: ErrorCode, message: impl fmt::Display) -> Failure {
        let kind = kind_of(code).unwrap_or(Kind::Error);
        Failure { code: Some(code), ..Failure::of(kind, message) }
    }

    /// Adds what the user can do about it.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hint = Some(hint.to_string());
        self
    }

    /// The exit code and why.
    #[cfg(test)]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Says it on standard error and gives the exit code.
    pub(crate) fn report(&self, output: Output) -> ExitCode {
        let text = match output {
            Output::Table => self.to_string(),
            Output::Json => json!({"error": {
                "code": self.kind as u8,
                "kafka_code": self.code.map(ErrorCode::code),
                "name": self.code.map(ErrorCode::name),
                "retriable": self.retriable,
                "message": self.message,
                "hint": self.hint,
            }})
            .to_string(),
        };
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(io::stderr(), "{text}");
        ExitCode::from(self.kind as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  {hint}")?;
        }
        Ok(())
    }
}

/// The kind of a refusal that has an exit code of its own.
fn kind_of(code: ErrorCode) -> Option<Kind> {
    match code {
        ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId => Some(Kind::NotFound),
        ErrorCode::NotEnoughReplicas
        | ErrorCode::NotEnoughReplicasAfterAppend
        | ErrorCode::LeaderNotAvailable
        | ErrorCode::PreferredLeaderNotAvailable
        | ErrorCode::EligibleLeadersNotAvailable => Some(Kind::Refused),
        ErrorCode::RequestTimedOut => Some(Kind::TimedOut),
        _ => None,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let kind = match &error {
            Error::Config(_) => Kind::Usage,
            Error::Unreachable { .. } => Kind::CannotConnect,
            Error::TimedOut { last: Some(last), .. } if matches!(**last, Error::Unreachable { .. }) => {
                Kind::CannotConnect
            }
            Error::TimedOut { .. } => error.kafka_code().and_then(kind_of).unwrap_or(Kind::TimedOut),
            _ => error.kafka_code().and_then(kind_of).unwrap_or(Kind::Error),
        };
        let failure = Failure {
            code: error.kafka_code(),
            retriable: error.is_retriable(),
            ..Failure::of(kind, &error)
        };
        match kind {
            Kind::CannotConnect => {
                failure.hint("is the cluster running? `minikafka up` starts one; -b names its brokers")
            }
            _ => failure,
        }
    }
}

impl From<EnqueueError> for Failure {
    fn from(error: EnqueueError) -> Failure {
        let text = error.to_string();
        let retriable = error.is_retriable();
        match error {
            EnqueueError::Metadata { error, .. } => Failure { message: text, ..Failure::from(error) },
            EnqueueError::NoSuchPartition { .. } => Failure::of(Kind::NotFound, text),
            EnqueueError::PromiseTooWeak { .. } => Failure::of(Kind::Refused, text),
            EnqueueError::BufferFull { .. } => Failure { retriable, ..Failure::of(Kind::TimedOut, text) },
            _ => Failure::error(text),
        }
    }
}

impl From<ProduceError> for Failure {
    fn from(error: ProduceError) -> Failure {
        let by_code = error.kafka_code().and_then(kind_of);
        let kind = match error.gave_up() {
            GaveUp::Deadline { .. } => by_code.unwrap_or(Kind::TimedOut),
            _ => by_code.unwrap_or(Kind::Error),
        };
        Failure { code: error.kafka_code(), retriable: error.is_retriable(), ..Failure::of(kind, &error) }
    }
}

/// Standard output was closed: the reader of a pipe has enough. That is no failure.
pub(crate) fn written(result: io::Result<()>) -> Outcome<Written> {
    match result {
        Ok(()) => Ok(Written::Yes),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Written::Enough),
        Err(error) => Err(Failure::error(format!("standard output: {error}"))),
    }
}

/// Whether somebody still reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Yes,
    /// Nobody does: end quietly.
    Enough,
}

/// Writes the answer of a command.
pub(crate) fn answer(text: &str) -> Outcome {
    let mut out = io::stdout().lock();
    written(writeln!(out, "{}", text.trim_end_matches('\n')).and_then(|()| out.flush())).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn unreachable() -> Error {
        let address = "127.0.0.1:1".parse().expect("an address");
        Error::Unreachable { attempts: vec![(address, "connection refused".to_owned())] }
    }

    #[test]
    fn exit_codes_follow_the_cause() {
        assert_eq!(Failure::from(unreachable()).kind(), Kind::CannotConnect);
        let last = Some(Box::new(unreachable()));
        let late = Error::TimedOut { what: "x".to_owned(), after: Duration::from_secs(1), last };
        assert_eq!(Failure::from(late).kind(), Kind::CannotConnect, "the cause, not the clock");
        let late = Error::TimedOut { what: "x".to_owned(), after: Duration::from_secs(1), last: None };
        assert_eq!(Failure::from(late).kind(), Kind::TimedOut);
        assert_eq!(Failure::kafka(ErrorCode::UnknownTopicOrPartition, "x").kind(), Kind::NotFound);
        assert_eq!(Failure::kafka(ErrorCode::NotEnoughReplicas, "x").kind(), Kind::Refused);
        assert_eq!(Failure::kafka(ErrorCode::TopicAlreadyExists, "x").kind(), Kind::Error);
    }
}
