//! Small files that are replaced as a whole: Kafka's text checkpoints and properties (Kafka semantics 3.5).

mod clean_shutdown;
mod epochs;
mod meta_properties;
mod offsets;
mod partition_metadata;
mod text;

pub use clean_shutdown::{CLEAN_SHUTDOWN_FILE, CleanShutdown};
pub use epochs::LEADER_EPOCH_CHECKPOINT;
pub(crate) use epochs::{epochs_from_text, epochs_to_text};
pub use meta_properties::{META_PROPERTIES, MetaProperties};
pub use offsets::{CheckpointName, LOG_START_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, REPLICATION_CHECKPOINT};
pub(crate) use offsets::{offsets_from_text, offsets_to_text};
pub use partition_metadata::PARTITION_METADATA;
pub(crate) use partition_metadata::{partition_metadata_from_text, partition_metadata_to_text};
pub(crate) use text::{entries, malformed, numbered};

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, OpenMode};
use crate::error::{At, DiskOp, LogError};

/// Most bytes that a file of this kind may have; a larger one is not read.
const MOST_BYTES: u64 = 64 << 20;

/// A file that is to be replaced in one step: temporary file, sync, rename, sync of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// Its path.
    pub path: PathBuf,
    /// Its whole new content.
    pub bytes: Vec<u8>,
}

impl FileWrite {
    fn temporary(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".tmp");
        PathBuf::from(name)
    }

    /// Writes and syncs the temporary file.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn stage(&self, disk: &dyn Disk) -> Result<(), LogError> {
        let path = self.temporary();
        let file = disk.open(&path, OpenMode::Create).at(DiskOp::Create, &path)?;
        file.write_at(&self.bytes, 0).at(DiskOp::Write, &path)?;
        file.sync().at(DiskOp::Sync, &path)
    }

    /// Puts the staged file in its place. [`Disk::sync_dir`] of the directory makes it durable.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn publish(&self, disk: &dyn Disk) -> Result<(), LogError> {
        disk.rename(&self.temporary(), &self.path).at(DiskOp::Rename, &self.path)
    }

    /// All of it.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn run(&self, disk: &dyn Disk) -> Result<(), LogError> {
        self.stage(disk)?;
        self.publish(disk)?;
        sync_parent(disk, &self.path)
    }
}

pub(crate) fn sync_parent(disk: &dyn Disk, path: &Path) -> Result<(), LogError> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    disk.sync_dir(dir).at(DiskOp::SyncDir, dir)
}

/// The content of a small file, `None` if it does not exist.
pub(crate) fn read_small(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>, LogError> {
    let file = match disk.open(path, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(LogError::Io { op: DiskOp::Open, path: path.to_owned(), source }),
    };
    let size = file.size().at(DiskOp::Read, path)?;
    if size > MOST_BYTES {
        return Err(malformed(path, 1, format!("{size} bytes are more than such a file can have")));
    }
    file.read_bytes_at(0, size as usize).at(DiskOp::Read, path).map(|bytes| Some(bytes.to_vec()))
}

/// The content of a small text file.
pub(crate) fn read_text(disk: &dyn Disk, path: &Path) -> Result<Option<String>, LogError> {
    let Some(bytes) = read_small(disk, path)? else { return Ok(None) };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        malformed(path, line, "the line is not UTF-8")
    })
}
