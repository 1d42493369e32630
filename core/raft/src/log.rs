//! The log as Raft reads it. Writing goes through effects.

use bytes::Bytes;
use minikafka_model::{MetadataOffset, Term};

use crate::{Entry, VoterSet};

/// The log or a snapshot could not be read. Raft halts: a controller without its log is no voter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the metadata log cannot be read: {0}")]
pub struct LogReadError(pub String);

/// Read-only view of the log on disk, given to every [`crate::Raft::step`].
pub trait RaftLog {
    /// Offset of the first entry still there; entries before it live in the snapshot.
    fn start(&self) -> MetadataOffset;

    /// Offset after the last entry written (synced or not).
    fn end(&self) -> MetadataOffset;

    /// Entries from `from` on, at least one if there is one, then as many as fit in `max_bytes` of content.
    ///
    /// # Errors
    /// The log cannot be read or `from` is before its start.
    fn entries(&self, from: MetadataOffset, max_bytes: usize) -> Result<Vec<Entry>, LogReadError>;

    /// The newest snapshot. Must exist whenever `start` is above zero, and end at or after it.
    fn snapshot(&self) -> Option<SnapshotInfo>;

    /// Bytes of the snapshot that ends at `end`, from `position` on, at most `max_bytes`.
    ///
    /// # Errors
    /// There is no such snapshot (any more) or it cannot be read.
    fn snapshot_chunk(
        &self,
        end: MetadataOffset,
        position: u64,
        max_bytes: usize,
    ) -> Result<Bytes, LogReadError>;
}

/// Facts of a snapshot of the state after all entries before `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Offset after the last entry it contains.
    pub end: MetadataOffset,
    /// Term of the last entry it contains.
    pub last_term: Term,
    /// Bytes.
    pub size: u64,
    /// The voter set as of `end`, with its offset.
    pub voters: crate::VotersAt,
}

impl SnapshotInfo {
    /// The voters it carries.
    pub fn voter_set(&self) -> &VoterSet {
        &self.voters.voters
    }
}
