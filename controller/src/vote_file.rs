//! What a voter must remember beside its log: the file `quorum-state`, JSON, replaced in one step.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use minikafka_model::{ControllerId, DirectoryId, MetadataOffset, Term};
use minikafka_raft::{HardState, VoterSet, VotersAt};
use minikafka_storage::{Disk, FileWrite};
use serde::{Deserialize, Serialize};

use crate::metadata_log::{MetadataLogError, read_file};

const VERSION: u16 = 1;
/// Its name.
pub const VOTE_FILE: &str = "quorum-state";

#[derive(Debug, Serialize, Deserialize)]
struct Written {
    version: u16,
    term: Term,
    voted_for: Option<ControllerId>,
    voters: Option<WrittenVoters>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WrittenVoters {
    offset: MetadataOffset,
    directories: BTreeMap<i32, DirectoryId>,
}

/// The vote file of one metadata directory.
#[derive(Debug)]
pub struct VoteFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
}

impl VoteFile {
    /// In this directory.
    pub fn new(disk: &Arc<dyn Disk>, directory: &Path) -> VoteFile {
        VoteFile { disk: Arc::clone(disk), path: directory.join(VOTE_FILE) }
    }

    /// What it says; the state of a new voter if there is none.
    ///
    /// # Errors
    /// It cannot be read, is malformed, or was written by a newer version.
    pub fn load(&self) -> Result<HardState, MetadataLogError> {
        let failed = |source| MetadataLogError::File { path: self.path.clone(), source };
        if !self.disk.exists(&self.path).map_err(failed)? {
            return Ok(HardState::default());
        }
        let bytes = read_file(&*self.disk, &self.path).map_err(failed)?;
        let malformed = |what: String| MetadataLogError::Malformed { path: self.path.clone(), what };
        let written: Written = serde_json::from_slice(&bytes).map_err(|e| malformed(e.to_string()))?;
        if written.version != VERSION {
            let version = written.version;
            return Err(malformed(format!("version {version} is not known, this program reads {VERSION}")));
        }
        let voters = written.voters.map(|set| VotersAt {
            offset: set.offset,
            voters: VoterSet(set.directories.into_iter().map(|(id, dir)| (ControllerId(id), dir)).collect()),
        });
        Ok(HardState { term: written.term, voted_for: written.voted_for, voters })
    }

    /// Makes this state durable.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn save(&self, state: &HardState) -> Result<(), MetadataLogError> {
        let voters = state.voters.as_ref().map(|set| WrittenVoters {
            offset: set.offset,
            directories: set.voters.0.iter().map(|(id, dir)| (id.0, *dir)).collect(),
        });
        let written = Written { version: VERSION, term: state.term, voted_for: state.voted_for, voters };
        let bytes = serde_json::to_vec(&written)
            .map_err(|e| MetadataLogError::Malformed { path: self.path.clone(), what: e.to_string() })?;
        Ok(FileWrite { path: self.path.clone(), bytes }.run(&*self.disk)?)
    }
}
