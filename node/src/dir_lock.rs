//! The lock file of a directory (`.lock`, as in Kafka): one process at a time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// Name of the lock file.
pub const LOCK_FILE: &str = ".lock";

/// A directory cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum DirLockError {
    /// Another process has it.
    #[error("{} is in use by another process{}", dir.display(), holder.map_or_else(String::new, |pid| format!(" (pid {pid})")))]
    Held {
        /// The directory.
        dir: PathBuf,
        /// Whose it is, if that process wrote it down.
        holder: Option<u32>,
    },
    /// The operating system refuses.
    #[error("{} cannot be locked: {source}", dir.display())]
    Failed {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A locked directory; the lock ends with this value, and with the process whatever ends that.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

impl DirLock {
    /// Takes the lock of a directory that exists.
    ///
    /// # Errors
    /// Another process has it, or the operating system refuses.
    pub fn take(dir: &Path) -> Result<DirLock, DirLockError> {
        let failed = |source| DirLockError::Failed { dir: dir.to_owned(), source };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(dir.join(LOCK_FILE)).map_err(failed)?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut text = String::new();
            let holder = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(DirLockError::Held { dir: dir.to_owned(), holder });
        }
        let written = file.set_len(0).and_then(|()| file.rewind());
        written.and_then(|()| writeln!(file, "{}", std::process::id())).map_err(failed)?;
        Ok(DirLock { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = DirLock::take(folder.path()).expect("free");
        let refusal = DirLock::take(folder.path()).expect_err("held").to_string();
        assert!(refusal.contains(&format!("pid {}", std::process::id())), "{refusal}");
        drop(first);
        DirLock::take(folder.path()).expect("free again");
        let missing = folder.path().join("missing");
        assert!(matches!(DirLock::take(&missing), Err(DirLockError::Failed { .. })));
    }
}
