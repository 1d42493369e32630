//! The names on the disk: as they are, and as they would be after a loss of power.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(usize),
}

#[derive(Debug, Clone)]
enum NameChange {
    Insert(PathBuf, Node),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf, Node),
}

impl NameChange {
    fn touches(&self, dir: &Path) -> bool {
        let inside = |path: &Path| path.parent() == Some(dir);
        match self {
            NameChange::Insert(path, _) | NameChange::Remove(path) => inside(path),
            NameChange::Rename(from, to, _) => inside(from) || inside(to),
        }
    }
}

type Names = BTreeMap<PathBuf, Node>;

#[derive(Debug, Default)]
pub(super) struct Tree {
    live: Names,
    durable: Names,
    pending: Vec<NameChange>,
}

fn below(names: &Names, dir: &Path) -> Vec<PathBuf> {
    names.range(dir.to_owned()..).map(|(path, _)| path).take_while(|p| p.starts_with(dir)).cloned().collect()
}

fn apply(names: &mut Names, change: &NameChange) {
    match change {
        NameChange::Insert(path, node) => {
            names.insert(path.clone(), node.clone());
        }
        NameChange::Remove(path) => {
            for path in below(names, path) {
                names.remove(&path);
            }
        }
        NameChange::Rename(from, to, node) => {
            for path in below(names, to) {
                names.remove(&path);
            }
            names.insert(to.clone(), node.clone());
            for path in below(names, from) {
                let node = names.remove(&path);
                if let (Some(node), Ok(rest)) = (node, path.strip_prefix(from)) {
                    names.insert(if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) }, node);
                }
            }
        }
    }
}

impl Tree {
    pub(super) fn get(&self, path: &Path) -> Option<&Node> {
        if path.parent().is_none() || path.as_os_str().is_empty() {
            Some(&Node::Directory)
        } else {
            self.live.get(path)
        }
    }

    pub(super) fn files(&self) -> impl Iterator<Item = (&Path, usize)> {
        self.live.iter().filter_map(|(path, node)| match node {
            Node::File(id) => Some((path.as_path(), *id)),
            Node::Directory => None,
        })
    }

    pub(super) fn children(&self, dir: &Path) -> impl Iterator<Item = (String, Node)> {
        self.live
            .iter()
            .filter(move |(path, _)| path.parent() == Some(dir))
            .filter_map(|(path, node)| Some((path.file_name()?.to_str()?.to_owned(), node.clone())))
    }

    pub(super) fn require_parent(&self, path: &Path) -> io::Result<()> {
        match path.parent().map(|parent| self.get(parent)) {
            Some(Some(Node::Directory)) | None => Ok(()),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn change(&mut self, change: NameChange) {
        apply(&mut self.live, &change);
        self.pending.push(change);
    }

    pub(super) fn insert(&mut self, path: PathBuf, node: Node) {
        self.change(NameChange::Insert(path, node));
    }

    pub(super) fn create_dirs(&mut self, path: &Path) {
        let mut missing: Vec<&Path> = path.ancestors().take_while(|path| self.get(path).is_none()).collect();
        while let Some(path) = missing.pop() {
            self.insert(path.to_owned(), Node::Directory);
        }
    }

    pub(super) fn remove(&mut self, path: &Path) {
        self.change(NameChange::Remove(path.to_owned()));
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.live.get(from).cloned().ok_or(io::ErrorKind::NotFound)?;
        if from != to {
            self.change(NameChange::Rename(from.to_owned(), to.to_owned(), node));
        }
        Ok(())
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let (done, rest): (Vec<_>, Vec<_>) = self.pending.drain(..).partition(|change| change.touches(dir));
        for change in &done {
            apply(&mut self.durable, change);
        }
        self.pending = rest;
    }

    pub(super) fn sync_all(&mut self) {
        for change in self.pending.drain(..) {
            apply(&mut self.durable, &change);
        }
    }

    /// Keeps as many of the pending changes as `keep` says of their number, the oldest ones: a journal loses its end.
    pub(super) fn power_loss(&mut self, keep: impl FnOnce(usize) -> usize) {
        let keep = keep(self.pending.len());
        for change in self.pending.drain(..).take(keep) {
            apply(&mut self.durable, &change);
        }
        self.pending.clear();
        // What lies in a directory that was lost is lost too.
        let orphans: Vec<PathBuf> = self
            .durable
            .keys()
            .filter(|path| {
                path.ancestors().skip(1).any(|dir| {
                    dir.parent().is_some() && !dir.as_os_str().is_empty() && !self.durable.contains_key(dir)
                })
            })
            .cloned()
            .collect();
        for path in orphans {
            self.durable.remove(&path);
        }
        self.live.clone_from(&self.durable);
    }
}
