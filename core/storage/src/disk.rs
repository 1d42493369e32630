//! What a log needs of a disk, and nothing more. `node` fulfils it with the operating system, [`SimDisk`](crate::SimDisk) in memory.

use std::fmt;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

/// How a file is opened. All modes but `Read` also allow writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, to read.
    Read,
    /// An existing file.
    ReadWrite,
    /// A file that is emptied if it exists and made if not.
    Create,
    /// A file that must not exist yet.
    CreateNew,
}

/// What a name in a directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A plain file.
    File,
    /// A directory.
    Directory,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, without its directory. Names that are not UTF-8 are left out of listings.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// A disk. Errors are the operating system's; running out of space must come as [`io::ErrorKind::StorageFull`].
///
/// A new, renamed or removed name is only sure to survive a loss of power after [`Disk::sync_dir`] of its directory, the content of
/// a file only after [`File::sync`].
pub trait Disk: Send + Sync + fmt::Debug {
    /// Opens a file.
    ///
    /// # Errors
    /// As the operating system says.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;

    /// The names in a directory, in order.
    ///
    /// # Errors
    /// As the operating system says.
    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>>;

    /// Whether there is a file or directory of that name.
    ///
    /// # Errors
    /// As the operating system says.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Renames a file or directory; a file of the new name is replaced in one step.
    ///
    /// # Errors
    /// As the operating system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory and those above it that are missing; an existing one is no error.
    ///
    /// # Errors
    /// As the operating system says.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes a directory with all that is in it.
    ///
    /// # Errors
    /// As the operating system says.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory durable.
    ///
    /// # Errors
    /// As the operating system says. A failure must never be retried.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Wall-clock time of the last change of a file in milliseconds since 1970, where it is known. Only retention asks, for segments
    /// whose records carry no timestamp.
    ///
    /// # Errors
    /// As the operating system says.
    fn modified(&self, path: &Path) -> io::Result<Option<minikafka_model::WallMs>>;
}

/// An open file. All positions are bytes from its start; several threads may use it at once.
pub trait File: Send + Sync + fmt::Debug {
    /// Its size in bytes.
    ///
    /// # Errors
    /// As the operating system says.
    fn size(&self) -> io::Result<u64>;

    /// Reads up to `buffer.len()` bytes; fewer only at the end of the file or as the operating system likes, 0 at the end.
    ///
    /// # Errors
    /// As the operating system says.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// Reads up to `len` bytes into a buffer of its own; fewer only at the end of the file. An implementation may spare the zeroing
    /// of the buffer.
    ///
    /// # Errors
    /// As the operating system says.
    fn read_bytes_at(&self, at: u64, len: usize) -> io::Result<Bytes> {
        let mut buffer = vec![0; len];
        let filled = read_full(self, &mut buffer, at)?;
        buffer.truncate(filled);
        Ok(Bytes::from(buffer))
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// As the operating system says; a part of the bytes may have been written.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Writes all parts one behind the other, in one call where the system can. The slices are used up.
    ///
    /// # Errors
    /// As the operating system says; a part of the bytes may have been written.
    fn write_vectored_at(&self, parts: &mut [IoSlice<'_>], at: u64) -> io::Result<()>;

    /// Cuts the file, or lengthens it with zeros (without taking space, where the file system can).
    ///
    /// # Errors
    /// As the operating system says.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Reserves space up to `len` bytes without changing the size. A hint: a disk that cannot do it does nothing.
    ///
    /// # Errors
    /// As the operating system says.
    fn allocate(&self, len: u64) -> io::Result<()>;

    /// Makes content and size durable.
    ///
    /// # Errors
    /// As the operating system says. A failure must never be retried: the dirty pages may be gone.
    fn sync(&self) -> io::Result<()>;
}

/// Fills `buffer` as far as the file goes; the number of bytes read.
///
/// # Errors
/// As the operating system says.
pub fn read_full<F: File + ?Sized>(file: &F, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
