//! Writing `leader-epoch-checkpoint` without the lock of the log, and never an older text over a newer one.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::Log;
use crate::checkpoint::{FileWrite, LEADER_EPOCH_CHECKPOINT, epochs_to_text};
use crate::disk::Disk;
use crate::error::{LogError, Reach};

#[derive(Debug, Default)]
pub(super) struct EpochFile {
    /// Counts the changes of the history.
    version: AtomicU64,
    /// The newest version on the disk; held while one is written.
    written: Mutex<u64>,
}

impl EpochFile {
    pub(super) fn changed(&self) {
        self.version.fetch_add(1, Ordering::AcqRel);
    }

    fn is_current(&self) -> bool {
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) == self.version.load(Ordering::Acquire)
    }
}

/// The epoch history of one moment, to be written to its file. Run it without the lock of the log; several may be in flight.
#[derive(Debug)]
pub struct EpochCheckpoint {
    disk: Arc<dyn Disk>,
    file: Arc<EpochFile>,
    failed: Arc<std::sync::atomic::AtomicBool>,
    version: u64,
    write: FileWrite,
}

impl EpochCheckpoint {
    /// The file and its content, for those who write many at once ([`EpochCheckpoint::run`] does it alone).
    pub fn write(&self) -> &FileWrite {
        &self.write
    }

    /// Writes, syncs, renames, and syncs the folder; nothing if a newer one was written meanwhile.
    ///
    /// # Errors
    /// The disk refuses. The directory is to be taken offline.
    pub fn run(&self) -> Result<(), LogError> {
        let mut written = self.file.written.lock().unwrap_or_else(PoisonError::into_inner);
        if *written >= self.version {
            return Ok(());
        }
        let outcome = self.write.run(&*self.disk);
        match &outcome {
            Ok(()) => *written = self.version,
            Err(error) if error.reach() == Reach::Directory => self.failed.store(true, Ordering::Release),
            Err(_) => {}
        }
        outcome
    }
}

impl Log {
    /// The history as it is now, to be written to its file.
    pub fn epoch_checkpoint(&self) -> EpochCheckpoint {
        EpochCheckpoint {
            disk: Arc::clone(&self.disk),
            file: Arc::clone(&self.epoch_file),
            failed: Arc::clone(&self.failed),
            version: self.epoch_file.version.load(Ordering::Acquire),
            write: FileWrite {
                path: epoch_path(&self.dir),
                bytes: epochs_to_text(&self.epochs).into_bytes(),
            },
        }
    }

    /// Whether the file has the history as it is now.
    pub fn epoch_checkpoint_is_current(&self) -> bool {
        self.epoch_file.is_current()
    }
}

pub(super) fn epoch_path(dir: &Path) -> std::path::PathBuf {
    dir.join(LEADER_EPOCH_CHECKPOINT)
}
