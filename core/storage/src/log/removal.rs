//! Files that were taken out of a log and wait for their removal.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::error::{At, DiskOp, LogError};
use crate::segment::names::{SegmentFile, deleted};

/// Files, already renamed, for a janitor to remove after `file.delete.delay.ms`. A start removes what is left of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "files stay on the disk until they are removed"]
pub struct Removal {
    /// The files.
    pub paths: Vec<PathBuf>,
}

impl Removal {
    /// Nothing to do?
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Takes up another's files.
    pub fn join(&mut self, other: Removal) {
        self.paths.extend(other.paths);
    }

    /// Removes the files; one that is gone already is no error.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn run(&self, disk: &dyn Disk) -> Result<(), LogError> {
        self.paths.iter().try_for_each(|path| remove(disk, path))
    }

    /// Renames the files of a segment: the batches last, so that no index is found without them.
    pub(super) fn take_segment(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        base: minikafka_model::Offset,
    ) -> Result<(), LogError> {
        for kind in
            [SegmentFile::Index, SegmentFile::TimeIndex, SegmentFile::TransactionIndex, SegmentFile::Log]
        {
            let path = kind.path(dir, base);
            let to = deleted(&path);
            match disk.rename(&path, &to) {
                Ok(()) => self.paths.push(to),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(LogError::Io { op: DiskOp::Rename, path, source }),
            }
        }
        Ok(())
    }
}

/// Removes a file; one that is gone already is no error.
pub(super) fn remove(disk: &dyn Disk, path: &Path) -> Result<(), LogError> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at(DiskOp::Remove, path),
        _ => Ok(()),
    }
}
