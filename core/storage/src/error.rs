//! What can go wrong with a log, and whom it hits.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use minikafka_model::Offset;

/// What was asked of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DiskOp {
    Open,
    Create,
    Read,
    Write,
    SetLen,
    Sync,
    SyncDir,
    List,
    Rename,
    Remove,
    CreateDir,
}

impl fmt::Display for DiskOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DiskOp::Open => "open",
            DiskOp::Create => "create",
            DiskOp::Read => "read",
            DiskOp::Write => "write",
            DiskOp::SetLen => "resize",
            DiskOp::Sync => "sync",
            DiskOp::SyncDir => "sync the directory",
            DiskOp::List => "list",
            DiskOp::Rename => "rename",
            DiskOp::Remove => "remove",
            DiskOp::CreateDir => "create the directory",
        })
    }
}

/// Where and why bytes of a log are not what was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why} at byte {position}, where offset {offset} is expected", path.display())]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// Byte in the file from which it is not readable.
    pub position: u64,
    /// The offset expected there.
    pub offset: Offset,
    /// What does not fit.
    pub why: String,
}

/// Whom an error hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The one call: the log is as it was.
    Call,
    /// The replica: it goes offline, others in the directory stay.
    Replica,
    /// The log directory: all its replicas go offline; if it was the last one, the process ends.
    Directory,
}

/// An operation on a log failed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The disk refused. The log directory is not to be trusted any more.
    #[error("cannot {op} {}: {source}", path.display())]
    Io {
        /// What was tried.
        op: DiskOp,
        /// With which file.
        path: PathBuf,
        /// As the system said it.
        source: io::Error,
    },
    /// No space is left. The file was cut back to its previous end; the log is as it was before the batch.
    #[error("no space left for {wanted} bytes in {}", path.display())]
    OutOfSpace {
        /// The file.
        path: PathBuf,
        /// Bytes that were to be written.
        wanted: u64,
    },
    /// Bytes below the recovery point are damaged or missing: the replica must get them from elsewhere.
    #[error("the log is damaged below its recovery point {recovery_point}: {damage}")]
    Damaged {
        /// Everything below had been synced.
        recovery_point: Offset,
        /// Where and why.
        damage: Damage,
    },
    /// A read met bytes that are no batch.
    #[error("unreadable log: {0}")]
    Unreadable(Damage),
    /// The offset asked for is not in the log.
    #[error("offset {asked} is outside of {start} to {end}")]
    OutOfRange {
        /// As asked.
        asked: Offset,
        /// First offset in the log.
        start: Offset,
        /// Log end offset.
        end: Offset,
    },
    /// A batch does not lie at or after the log end.
    #[error("a batch at offset {base} does not fit behind the log end {end}")]
    NotBehindEnd {
        /// Its base offset.
        base: Offset,
        /// Log end offset.
        end: Offset,
    },
    /// A batch with a header that no log can hold.
    #[error("a batch at offset {base} cannot be stored: {why}")]
    BadBatch {
        /// Its base offset.
        base: Offset,
        /// What does not fit.
        why: &'static str,
    },
    /// The log was truncated while a reader without the lock was at work. Ask the log for a new reader.
    #[error("the log was truncated during the read")]
    Truncated,
    /// A file has a newer format than this version knows.
    #[error("{} has format version {found}; this version reads up to {known}", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// A text file of the directory cannot be understood.
    #[error("{}, line {line}: {why}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What does not fit.
        why: String,
    },
    /// An earlier write or sync failed; nothing more is done with this log.
    #[error("the log in {} is offline after an earlier error of the disk", dir.display())]
    Offline {
        /// Its directory.
        dir: PathBuf,
    },
}

impl LogError {
    /// Whom the error hits. A failed sync is never retried: it takes the directory offline, as any other error of the disk does.
    pub fn reach(&self) -> Reach {
        match self {
            LogError::Io { .. } | LogError::Offline { .. } => Reach::Directory,
            LogError::Damaged { .. }
            | LogError::Unreadable(_)
            | LogError::NewerFormat { .. }
            | LogError::Malformed { .. } => Reach::Replica,
            LogError::OutOfSpace { .. }
            | LogError::OutOfRange { .. }
            | LogError::NotBehindEnd { .. }
            | LogError::BadBatch { .. }
            | LogError::Truncated => Reach::Call,
        }
    }
}

/// Gives an error of the disk its place.
pub(crate) trait At<T> {
    fn at(self, op: DiskOp, path: &Path) -> Result<T, LogError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, op: DiskOp, path: &Path) -> Result<T, LogError> {
        self.map_err(|source| LogError::Io { op, path: path.to_owned(), source })
    }
}
