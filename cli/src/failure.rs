//! How a command ends when it does not end well: one message, perhaps a hint, and an exit code that scripts can rely on.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// What every command returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// The kinds of failure and their exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything without a code of its own.
    Error = 1,
    /// The command line or a configuration is wrong (clap's own code too).
    Usage = 2,
    /// Broken off by the user.
    Interrupted = 130,
}

/// A failure as the user hears it.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
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
        Failure { kind, message: message.to_string(), hint: None }
    }

    /// Adds what the user can do about it.
    pub(crate) fn hint(mut self, hint: impl fmt::Display) -> Failure {
        self.hint = Some(hint.to_string());
        self
    }

    /// Says it on standard error and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(io::stderr(), "{self}");
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
