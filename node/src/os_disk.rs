//! The machine's disk, as the quiet rooms want it: positional reads and writes, explicit syncs, nothing cached.

use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use minikafka_model::WallMs;
use minikafka_storage::{DirEntry, Disk, EntryKind, File, OpenMode};
use rustix::buffer::spare_capacity;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// Parts that one call writes (`IOV_MAX` on Linux).
const MAX_PARTS: usize = 1024;

/// The operating system's file systems. A value of its own, so that tests can put another [`Disk`] in its place.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsDisk;

impl Disk for OsDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => &mut options,
            OpenMode::ReadWrite => options.write(true),
            OpenMode::Create => options.write(true).create(true).truncate(true),
            OpenMode::CreateNew => options.write(true).create_new(true),
        };
        Ok(Arc::new(OsFile(options.open(path)?)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // A link counts as what it leads to; one that leads nowhere is a file that cannot be opened.
            let is_dir = fs::metadata(entry.path()).is_ok_and(|facts| facts.is_dir());
            let kind = if is_dir { EntryKind::Directory } else { EntryKind::File };
            found.push(DirEntry { name, kind });
        }
        found.sort();
        Ok(found)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(dir)?.sync_all()
    }

    fn modified(&self, path: &Path) -> io::Result<Option<WallMs>> {
        let modified = fs::metadata(path)?.modified()?;
        let since = modified.duration_since(UNIX_EPOCH).ok();
        Ok(since.and_then(|since| i64::try_from(since.as_millis()).ok()).map(WallMs))
    }
}

#[derive(Debug)]
struct OsFile(fs::File);

impl File for OsFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_at(buffer, at)
    }

    fn read_bytes_at(&self, at: u64, len: usize) -> io::Result<Bytes> {
        let mut buffer: Vec<u8> = Vec::with_capacity(len);
        // The vector may have got more room than it asked for; no more than `len` is wanted.
        while buffer.len() < len {
            let from = at + buffer.len() as u64;
            match rustix::io::pread(&self.0, spare_capacity(&mut buffer), from) {
                Ok(0) => break,
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        buffer.truncate(len);
        Ok(Bytes::from(buffer))
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn write_vectored_at(&self, mut parts: &mut [IoSlice<'_>], mut at: u64) -> io::Result<()> {
        // Parts without bytes at the front would look like a write of nothing.
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let now = parts.len().min(MAX_PARTS);
            match rustix::io::pwritev(&self.0, &parts[..now], at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    at += written as u64;
                    IoSlice::advance_slices(&mut parts, written);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        match rustix::fs::fallocate(&self.0, FallocateFlags::KEEP_SIZE, 0, len) {
            // Not every file system can; the space is only a hint.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let (disk, dir) = (OsDisk, folder.path().join("a").join("b"));
        disk.create_dir(&dir).expect("made");
        disk.create_dir(&dir).expect("there already");
        let path = dir.join("file");
        assert!(!disk.exists(&path).expect("known"));
        let file = disk.open(&path, OpenMode::CreateNew).expect("made");
        disk.open(&path, OpenMode::CreateNew).expect_err("there already");
        file.write_at(b"hello world", 0).expect("written");
        let mut parts = [IoSlice::new(b""), IoSlice::new(b"W"), IoSlice::new(b""), IoSlice::new(b"ORLD!")];
        file.write_vectored_at(&mut parts, 6).expect("written");
        file.sync().expect("synced");
        disk.sync_dir(&dir).expect("synced");
        assert_eq!(&file.read_bytes_at(6, 100).expect("read")[..], b"WORLD!");
        assert_eq!(&file.read_bytes_at(6, 3).expect("read")[..], b"WOR");
        assert_eq!(file.read_at(&mut [0; 4], 100).expect("the end"), 0);
        file.allocate(1 << 16).expect("a hint");
        assert_eq!(file.size().expect("a size"), 12);
        file.set_len(5).expect("cut");
        assert_eq!(&file.read_bytes_at(0, 100).expect("read")[..], b"hello");
        disk.rename(&path, &dir.join("other")).expect("renamed");
        let entry = DirEntry { name: "other".to_owned(), kind: EntryKind::File };
        assert_eq!(disk.list(&dir).expect("listed"), [entry]);
        assert!(disk.modified(&dir.join("other")).expect("known").is_some_and(|at| at.0 > 1_600_000_000_000));
        assert_eq!(disk.open(&path, OpenMode::Read).expect_err("gone").kind(), io::ErrorKind::NotFound);
        disk.remove_file(&dir.join("other")).expect("removed");
        disk.remove_dir(&folder.path().join("a")).expect("removed");
        assert!(!disk.exists(&dir).expect("known"));
    }

    #[test]
    fn more_parts_than_one_call_takes() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = OsDisk.open(&folder.path().join("f"), OpenMode::Create).expect("made");
        let bytes: Vec<u8> = (0..3000_u32).map(|n| n as u8).collect();
        let mut parts: Vec<IoSlice<'_>> = bytes.chunks(1).map(IoSlice::new).collect();
        file.write_vectored_at(&mut parts, 7).expect("written");
        assert_eq!(&file.read_bytes_at(7, 3000).expect("read")[..], &bytes[..]);
    }
}
