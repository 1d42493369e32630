//! What can be wrong with bytes.

use std::fmt::{self, Write};

/// Bytes that are not the message they should be, or a message that does not fit its encoding: which message, which
/// field, at which byte, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError(Box<Detail>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Detail {
    message: Option<(&'static str, i16)>,
    /// Innermost first: the error grows its path on the way out, so that good bytes pay nothing for it.
    path: Vec<Step>,
    at: usize,
    problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Field(&'static str),
    Element(usize),
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The bytes end before the value does.
    #[error("{wanted} more bytes wanted, {left} left")]
    Truncated {
        /// Bytes the value needs.
        wanted: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// A null where this version allows none.
    #[error("null where no null is allowed")]
    UnexpectedNull,
    /// A length or count below -1.
    #[error("negative length {0}")]
    NegativeLength(i64),
    /// More elements announced than the bytes left could hold.
    #[error("{count} elements announced, but {left} bytes left hold at most {most}")]
    TooManyElements {
        /// Elements announced.
        count: usize,
        /// Bytes left.
        left: usize,
        /// Elements of least size that would fit.
        most: usize,
    },
    /// The message would take far more memory than its bytes: refused before memory is reserved.
    #[error("decoding would take more than {limit} bytes of memory for a message of {len} bytes")]
    TooMuchMemory {
        /// The limit, see [`crate::MEMORY_PER_BYTE`].
        limit: usize,
        /// Length of the message.
        len: usize,
    },
    /// A variable-length number of more than five bytes or above 2^32 - 1.
    #[error("variable-length number too long")]
    VarintTooLong,
    /// A text, byte string or array too long for its length field (when encoding).
    #[error("{len} {what} where at most {most} can be written")]
    TooLong {
        /// What is counted.
        what: &'static str,
        /// Its length.
        len: usize,
        /// The most this encoding can say.
        most: usize,
    },
    /// A message that this codec does not read or write in this version.
    #[error("version not supported, only {0}")]
    UnsupportedVersion(crate::Versions),
    /// A number of an API that this codec does not know.
    #[error("unknown API key {0}")]
    UnknownApiKey(i16),
    /// An answer with another correlation id than the question.
    #[error("correlation id {found} where {expected} was awaited")]
    Correlation {
        /// Id of the question.
        expected: i32,
        /// Id in the answer.
        found: i32,
    },
}

impl WireError {
    #[cold]
    pub(crate) fn new(at: usize, problem: Problem) -> WireError {
        WireError(Box::new(Detail { message: None, path: Vec::new(), at, problem }))
    }

    #[cold]
    pub(crate) fn in_field(mut self, name: &'static str) -> WireError {
        self.0.path.push(Step::Field(name));
        self
    }

    #[cold]
    pub(crate) fn in_element(mut self, index: usize) -> WireError {
        self.0.path.push(Step::Element(index));
        self
    }

    #[cold]
    pub(crate) fn in_message(mut self, name: &'static str, version: i16) -> WireError {
        self.0.message.get_or_insert((name, version));
        self
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// The message and version that was read or written, once known.
    pub fn message(&self) -> Option<(&'static str, i16)> {
        self.0.message
    }

    /// Byte position in the frame (after its four length bytes) where the trouble began.
    pub fn position(&self) -> usize {
        self.0.at
    }

    /// The field, for example `TopicData[3].PartitionData[0].Records`; empty before the first field.
    pub fn field_path(&self) -> String {
        let mut text = String::new();
        for step in self.0.path.iter().rev() {
            match step {
                Step::Field(name) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(name);
                }
                Step::Element(index) => write!(text, "[{index}]").expect("a String takes all text"),
            }
        }
        text
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, version)) = self.0.message {
            write!(f, "{name} version {version}, ")?;
        }
        let path = self.field_path();
        if !path.is_empty() {
            write!(f, "field {path}, ")?;
        }
        write!(f, "byte {}: {}", self.0.at, self.0.problem)
    }
}

impl std::error::Error for WireError {}
