//! What the log and the vote file hold.

use std::collections::BTreeMap;
use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use minikafka_model::{ControllerId, DirectoryId, MetadataOffset, Term, Uuid};

/// One entry of the metadata log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its position.
    pub offset: MetadataOffset,
    /// The term of the leader that wrote it.
    pub term: Term,
    /// What it says.
    pub payload: Payload,
}

/// What an entry says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Written by a new leader at the start of its term; commits what earlier terms left.
    NoOp,
    /// The voters with the ids of their directories. The first entry of every log is one of these.
    Voters(VoterSet),
    /// A decision of the controller; Raft does not look inside.
    Command(Bytes),
}

/// Stored bytes that are not a payload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// A kind this version does not know.
    #[error("a metadata log entry of the unknown kind {0}: it was written by a newer version")]
    UnknownKind(u8),
    /// A voter set that does not decode.
    #[error("a voter set of {0} bytes does not decode")]
    BadVoterSet(usize),
    /// A no-op with content.
    #[error("a no-op entry with {0} bytes of content")]
    BadNoOp(usize),
}

impl Payload {
    /// Number of this kind on disk and on the wire.
    pub const fn kind(&self) -> u8 {
        match self {
            Payload::NoOp => 0,
            Payload::Voters(_) => 1,
            Payload::Command(_) => 2,
        }
    }

    /// The content, to be stored beside [`Payload::kind`].
    pub fn content(&self) -> Bytes {
        match self {
            Payload::NoOp => Bytes::new(),
            Payload::Voters(voters) => voters.encode(),
            Payload::Command(bytes) => bytes.clone(),
        }
    }

    /// Back from kind and content.
    ///
    /// # Errors
    /// The kind is unknown or the content does not fit it.
    pub fn from_parts(kind: u8, content: Bytes) -> Result<Payload, PayloadError> {
        match kind {
            0 if content.is_empty() => Ok(Payload::NoOp),
            0 => Err(PayloadError::BadNoOp(content.len())),
            1 => VoterSet::decode(&content).map(Payload::Voters),
            2 => Ok(Payload::Command(content)),
            other => Err(PayloadError::UnknownKind(other)),
        }
    }

    /// Bytes of content, for bounds.
    pub fn len(&self) -> usize {
        match self {
            Payload::NoOp => 0,
            Payload::Voters(voters) => voters.0.len() * VOTER_BYTES,
            Payload::Command(bytes) => bytes.len(),
        }
    }

    /// Whether there is no content.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

const VOTER_BYTES: usize = 20;
const VOTER_SET_VERSION: u8 = 1;

/// The voters and the directory id of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VoterSet(pub BTreeMap<ControllerId, DirectoryId>);

impl VoterSet {
    /// Version byte, then id (big endian) and directory id of each voter.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(1 + self.0.len() * VOTER_BYTES);
        out.put_u8(VOTER_SET_VERSION);
        for (id, directory) in &self.0 {
            out.put_i32(id.0);
            out.put_slice(&directory.0.to_bytes());
        }
        out.freeze()
    }

    /// Back from [`VoterSet::encode`].
    ///
    /// # Errors
    /// Another version, or a length that does not fit.
    pub fn decode(bytes: &[u8]) -> Result<VoterSet, PayloadError> {
        let bad = || PayloadError::BadVoterSet(bytes.len());
        let (version, rest) = bytes.split_first().ok_or_else(bad)?;
        if *version != VOTER_SET_VERSION || rest.len() % VOTER_BYTES != 0 {
            return Err(bad());
        }
        let mut voters = BTreeMap::new();
        for voter in rest.chunks_exact(VOTER_BYTES) {
            let (id, directory) = voter.split_at(4);
            let id = i32::from_be_bytes(id.try_into().map_err(|_| bad())?);
            let directory = Uuid::from_bytes(directory.try_into().map_err(|_| bad())?);
            voters.insert(ControllerId(id), DirectoryId(directory));
        }
        if voters.is_empty() { Err(bad()) } else { Ok(VoterSet(voters)) }
    }

    /// The directory of one voter.
    pub fn directory(&self, id: ControllerId) -> Option<DirectoryId> {
        self.0.get(&id).copied()
    }
}

impl fmt::Display for VoterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (id, directory)) in self.0.iter().enumerate() {
            write!(f, "{}{id}={directory}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// A voter set and where in the log it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VotersAt {
    /// Offset of its entry.
    pub offset: MetadataOffset,
    /// The voters.
    pub voters: VoterSet,
}

/// What must survive a crash beside the log: durable before any message that follows from it leaves (reliability C5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardState {
    /// The newest term this node has heard of.
    pub term: Term,
    /// Whom it voted for in that term.
    pub voted_for: Option<ControllerId>,
    /// The newest voter set that this node knows to be committed.
    pub voters: Option<VotersAt>,
}

impl Default for HardState {
    fn default() -> HardState {
        HardState { term: Term(0), voted_for: None, voters: None }
    }
}
