//! A disk in memory that knows what was synced, can crash, and fails on request. For tests and the simulation.
//!
//! - A crash of the process keeps what was written; open files are dead afterwards.
//! - A loss of power keeps what was synced; of the rest nothing, or (torn) a random prefix of the changes of each file, the last one
//!   cut at a random byte, and a random prefix of the changes to names. Names are durable only after `sync_dir`.
//! - A sync that fails drops the dirty pages: a later sync reports success and the bytes are gone all the same.

mod fault;
mod tree;

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minikafka_model::WallMs;

use crate::disk::{DirEntry, Disk, EntryKind, File, OpenMode};
use fault::Faults;
pub use fault::{SimFault, SimOp};
use tree::{Node, Tree};

/// What a loss of power leaves of the changes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced {
    /// Nothing.
    Lost,
    /// A random part, drawn from this seed.
    Torn(u64),
}

#[derive(Debug, Clone)]
enum Change {
    Write { at: u64, bytes: Vec<u8> },
    SetLen(u64),
}

/// The bytes of a file; zeros at the end take no memory, so that a preallocated index is cheap.
#[derive(Debug, Clone, Default)]
struct Content {
    bytes: Vec<u8>,
    len: u64,
}

impl Content {
    fn of(bytes: &[u8]) -> Content {
        Content { bytes: bytes.to_vec(), len: bytes.len() as u64 }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write { at, bytes } => {
                let (at, end) = (*at as usize, *at as usize + bytes.len());
                if self.bytes.len() < end {
                    self.bytes.resize(end, 0);
                }
                self.bytes[at..end].copy_from_slice(bytes);
                self.len = self.len.max(end as u64);
            }
            Change::SetLen(len) => {
                self.bytes.truncate(*len as usize);
                self.len = *len;
            }
        }
    }

    fn read(&self, buffer: &mut [u8], at: u64) -> usize {
        let len = self.len.saturating_sub(at).min(buffer.len() as u64) as usize;
        let known = self.bytes.get(at as usize..).unwrap_or_default();
        let known = &known[..known.len().min(len)];
        buffer[..known.len()].copy_from_slice(known);
        buffer[known.len()..len].fill(0);
        len
    }

    fn whole(&self) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        bytes.resize(self.len as usize, 0);
        bytes
    }
}

#[derive(Debug, Default)]
struct Inode {
    live: Content,
    durable: Content,
    pending: Vec<Change>,
}

impl Inode {
    fn change(&mut self, change: Change) {
        self.live.apply(&change);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            self.durable.apply(&change);
        }
    }
}

#[derive(Debug, Default)]
struct State {
    inodes: Vec<Inode>,
    tree: Tree,
    faults: Faults,
    life: u64,
    capacity: Option<u64>,
    short_reads: bool,
    modified: Option<WallMs>,
}

impl State {
    fn used(&self) -> u64 {
        self.tree.files().map(|(_, id)| self.inodes[id].live.bytes.len() as u64).sum()
    }

    fn file(&self, path: &Path) -> io::Result<usize> {
        match self.tree.get(path) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Directory) => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }
}

/// The disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process dies: written data stays, open files are dead, faults are cleared.
    pub fn process_crash(&self) {
        let state = &mut *self.state();
        state.life += 1;
        state.faults.clear();
    }

    /// The power fails: only what was synced stays, and of the rest what `unsynced` says.
    pub fn power_loss(&self, unsynced: Unsynced) {
        let state = &mut *self.state();
        state.life += 1;
        state.faults.clear();
        let mut random = match unsynced {
            Unsynced::Lost => None,
            Unsynced::Torn(seed) => Some(Random(seed)),
        };
        for inode in &mut state.inodes {
            let keep =
                random.as_mut().map_or(0, |random| random.below(inode.pending.len() as u64 + 1)) as usize;
            let torn = random.as_mut().is_some_and(|random| random.below(2) == 1);
            for (place, change) in inode.pending.drain(..).enumerate().take(keep) {
                match (change, &mut random) {
                    (Change::Write { at, mut bytes }, Some(random)) if torn && place + 1 == keep => {
                        bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
                        inode.durable.apply(&Change::Write { at, bytes });
                    }
                    (change, _) => inode.durable.apply(&change),
                }
            }
            inode.pending.clear();
            inode.live.clone_from(&inode.durable);
        }
        state.tree.power_loss(|pending| {
            random.as_mut().map_or(0, |random| random.below(pending as u64 + 1)) as usize
        });
    }

    /// Lets the `nth` of the coming operations (1 is the next) fail; with [`SimFault::Crash`] all later ones too.
    pub fn fail_op(&self, nth: u64, fault: SimFault) {
        self.state().faults.at(nth, fault);
    }

    /// Lets the next operation of this kind fail.
    pub fn fail_next(&self, op: SimOp, fault: SimFault) {
        self.state().faults.next(op, fault);
    }

    /// Takes back every fault that was asked for.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Number of operations so far.
    pub fn ops(&self) -> u64 {
        self.state().faults.count()
    }

    /// Bytes that the files may take; `None` is no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Lets every read return fewer bytes than asked for.
    pub fn set_short_reads(&self, short: bool) {
        self.state().short_reads = short;
    }

    /// What [`Disk::modified`] says of every file.
    pub fn set_modified(&self, at: Option<WallMs>) {
        self.state().modified = at;
    }

    /// The content of a file.
    ///
    /// # Errors
    /// There is none.
    pub fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state();
        Ok(state.inodes[state.file(path)?].live.whole())
    }

    /// Puts a durable file (and the directories above it) on the disk.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let state = &mut *self.state();
        if let Some(parent) = path.parent() {
            state.tree.create_dirs(parent);
        }
        state.inodes.push(Inode {
            live: Content::of(bytes),
            durable: Content::of(bytes),
            pending: Vec::new(),
        });
        state.tree.insert(path.to_owned(), Node::File(state.inodes.len() - 1));
        state.tree.sync_all();
    }

    /// All files with their sizes, in order.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        let state = self.state();
        state.tree.files().map(|(path, id)| (path.to_owned(), state.inodes[id].live.len)).collect()
    }

    /// A disk with the same content, all of it durable. What was opened here does not reach it.
    pub fn copy(&self) -> SimDisk {
        let copy = SimDisk::new();
        for (path, _) in self.files() {
            copy.put(&path, &self.content(&path).unwrap_or_default());
        }
        copy
    }

    /// Flips one bit of a file: rot.
    ///
    /// # Errors
    /// There is no such file or byte.
    pub fn flip_bit(&self, path: &Path, byte: usize, bit: u32) -> io::Result<()> {
        let state = &mut *self.state();
        let inode = state.file(path)?;
        let inode = &mut state.inodes[inode];
        for content in [&mut inode.live, &mut inode.durable] {
            let byte = content.bytes.get_mut(byte).ok_or(io::ErrorKind::UnexpectedEof)?;
            *byte ^= 1 << (bit % 8);
        }
        Ok(())
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let state = &mut *self.state();
        let create = matches!(mode, OpenMode::Create | OpenMode::CreateNew);
        state.faults.check(if create { SimOp::Create } else { SimOp::Open })?;
        let id = match (state.file(path), mode) {
            (Ok(_), OpenMode::CreateNew) => return Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            (Ok(id), OpenMode::Create) => {
                state.inodes[id].change(Change::SetLen(0));
                id
            }
            (Ok(id), _) => id,
            (Err(error), _) if error.kind() == io::ErrorKind::NotFound && create => {
                state.tree.require_parent(path)?;
                state.inodes.push(Inode::default());
                let id = state.inodes.len() - 1;
                state.tree.insert(path.to_owned(), Node::File(id));
                id
            }
            (Err(error), _) => return Err(error),
        };
        Ok(Arc::new(SimFile { disk: self.clone(), id, life: state.life, writable: mode != OpenMode::Read }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<DirEntry>> {
        let state = &mut *self.state();
        state.faults.check(SimOp::List)?;
        if !matches!(state.tree.get(dir), Some(Node::Directory)) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        let entry = |(name, node): (String, Node)| DirEntry {
            name,
            kind: if matches!(node, Node::Directory) { EntryKind::Directory } else { EntryKind::File },
        };
        Ok(state.tree.children(dir).map(entry).collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let state = &mut *self.state();
        state.faults.check(SimOp::List)?;
        Ok(state.tree.get(path).is_some())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.faults.check(SimOp::Rename)?;
        state.tree.require_parent(to)?;
        state.tree.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.faults.check(SimOp::Remove)?;
        state.file(path)?;
        state.tree.remove(path);
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.faults.check(SimOp::Create)?;
        state.tree.create_dirs(path);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.faults.check(SimOp::Remove)?;
        if !matches!(state.tree.get(path), Some(Node::Directory)) {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        }
        state.tree.remove(path);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let state = &mut *self.state();
        state.faults.check(SimOp::SyncDir)?;
        state.tree.sync_dir(dir);
        Ok(())
    }

    fn modified(&self, path: &Path) -> io::Result<Option<WallMs>> {
        let state = self.state();
        state.file(path)?;
        Ok(state.modified)
    }
}

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    id: usize,
    life: u64,
    writable: bool,
}

impl SimFile {
    fn with<T>(&self, op: SimOp, act: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let state = &mut *self.disk.state();
        if state.life != self.life {
            return Err(io::Error::other("the process that opened this file is dead"));
        }
        if !self.writable && matches!(op, SimOp::Write | SimOp::SetLen) {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied));
        }
        act(state)
    }

    fn write(&self, state: &mut State, bytes: &[u8], at: u64) -> io::Result<()> {
        let inode = &state.inodes[self.id];
        let grows = (at + bytes.len() as u64).saturating_sub(inode.live.bytes.len() as u64);
        let full = state.capacity.is_some_and(|capacity| grows > 0 && state.used() + grows > capacity);
        let outcome = state.faults.check(SimOp::Write);
        let half = Change::Write { at, bytes: bytes[..bytes.len() / 2].to_vec() };
        match outcome {
            Ok(()) if !full => {
                state.inodes[self.id].change(Change::Write { at, bytes: bytes.to_vec() });
                Ok(())
            }
            Ok(()) => {
                state.inodes[self.id].change(half);
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            Err(error) => {
                state.inodes[self.id].change(half);
                Err(error)
            }
        }
    }
}

impl File for SimFile {
    fn size(&self) -> io::Result<u64> {
        self.with(SimOp::Read, |state| Ok(state.inodes[self.id].live.len))
    }

    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.with(SimOp::Read, |state| {
            state.faults.check(SimOp::Read)?;
            let wanted = if state.short_reads { buffer.len().div_ceil(2) } else { buffer.len() };
            Ok(state.inodes[self.id].live.read(&mut buffer[..wanted], at))
        })
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.with(SimOp::Write, |state| self.write(state, bytes, at))
    }

    fn write_vectored_at(&self, parts: &mut [IoSlice<'_>], at: u64) -> io::Result<()> {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.with(SimOp::Write, |state| self.write(state, &bytes, at))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(SimOp::SetLen, |state| {
            state.faults.check(SimOp::SetLen)?;
            state.inodes[self.id].change(Change::SetLen(len));
            Ok(())
        })
    }

    fn allocate(&self, _len: u64) -> io::Result<()> {
        self.with(SimOp::Allocate, |state| state.faults.check(SimOp::Allocate))
    }

    fn sync(&self) -> io::Result<()> {
        self.with(SimOp::Sync, |state| match state.faults.check(SimOp::Sync) {
            Ok(()) => {
                state.inodes[self.id].sync();
                Ok(())
            }
            Err(error) => {
                // A dead process asked for no sync: its pages stay dirty.
                if !state.faults.dead() {
                    state.inodes[self.id].pending.clear();
                }
                Err(error)
            }
        })
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

#[cfg(test)]
mod tests;
