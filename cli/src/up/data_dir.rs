//! The data directory of a cluster: who uses it, whose it is, and what shape its cluster has.
//!
//! It holds `minikafka-up.json` (cluster id and shape), `config/` (the generated `.properties` files) and one folder per node.
//! Anything else in it was put there by somebody else and is never touched.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use minikafka_model::{ClusterId, Uuid};
use minikafka_node::{DirLock, LOCK_FILE};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::layout::{Role, Shape};
use crate::failure::{Failure, Outcome};

const RECORD: &str = "minikafka-up.json";
const LOCK: &str = "minikafka-up.lock";
const CONFIG: &str = "config";
/// Format of the record; a newer one is refused.
const FORMAT: u32 = 1;

/// What the directory says about its cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    format: u32,
    /// Drawn at the first start.
    pub(crate) cluster_id: ClusterId,
    /// As it was first started.
    #[serde(flatten)]
    pub(crate) shape: Shape,
}

/// A data directory that this process holds; the lock ends with it.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// What stands in a directory, before anything is changed.
#[derive(Debug)]
pub(crate) enum Found {
    /// Nothing: missing or empty.
    Nothing,
    /// A cluster of ours.
    Cluster(Record),
}

/// Looks at a directory without changing anything.
///
/// # Errors
/// A directory of somebody else, a record of a newer format, a record that cannot be read.
pub(crate) fn look(path: &Path) -> Outcome<Found> {
    let names = match names(path) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(Failure::error(format!("data directory {}: {error}", path.display()))),
    };
    if names.iter().any(|name| name == RECORD) {
        return read_record(&path.join(RECORD)).map(Found::Cluster);
    }
    match names.iter().find(|name| *name != LOCK) {
        None => Ok(Found::Nothing),
        Some(stranger) => Err(Failure::error(format!(
            "data directory {} is not a cluster of `minikafka up`: it has no {RECORD}, but holds {stranger}",
            path.display()
        ))
        .hint("choose an empty or a new directory with --data-dir")),
    }
}

fn names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()))
        .collect::<io::Result<Vec<String>>>()?;
    names.sort();
    Ok(names)
}

fn read_record(path: &Path) -> Outcome<Record> {
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    let broken = |error: &dyn std::fmt::Display| {
        Failure::error(format!("{} cannot be read: {error}", path.display()))
            .hint("restore it, or start anew in another --data-dir")
    };
    let text = fs::read_to_string(path).map_err(|error| broken(&error))?;
    let Format { format } = serde_json::from_str(&text).map_err(|error| broken(&error))?;
    if format > FORMAT {
        return Err(Failure::error(format!(
            "{} has format {format}, written by a newer minikafka; this one reads up to {FORMAT}",
            path.display()
        )));
    }
    serde_json::from_str(&text).map_err(|error| broken(&error))
}

impl DataDir {
    /// Makes the directory where it is missing and takes its lock.
    ///
    /// # Errors
    /// Another process holds the lock, or a node of an earlier `up` still runs; the operating system's.
    pub(crate) fn hold(path: &Path) -> Outcome<DataDir> {
        let fail = |error: io::Error| Failure::error(format!("data directory {}: {error}", path.display()));
        fs::create_dir_all(path).map_err(fail)?;
        let path = path.canonicalize().map_err(fail)?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK))
            .map_err(fail)?;
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut holder = String::new();
            lock.read_to_string(&mut holder).map_err(fail)?;
            return Err(Failure::error(format!(
                "data directory {} is in use by another `minikafka up`{}",
                path.display(),
                if holder.trim().is_empty() { String::new() } else { format!(" (pid {})", holder.trim()) }
            ))
            .hint("stop it, or choose another --data-dir and --base-port"));
        }
        let written = lock
            .set_len(0)
            .and_then(|()| lock.rewind())
            .and_then(|()| writeln!(lock, "{}", std::process::id()));
        written.map_err(fail)?;
        Ok(DataDir { path, _lock: lock })
    }

    /// Makes sure that no node of an earlier cluster still runs here.
    ///
    /// # Errors
    /// One does; the operating system's.
    pub(crate) fn check_idle(&self) -> Outcome {
        for name in names(&self.path).map_err(|error| self.failed(&error))? {
            let folder = self.path.join(&name);
            if of_node(&name) && folder.join(LOCK_FILE).exists() {
                DirLock::take(&folder).map_err(|error| {
                    Failure::error(format!("a node of an earlier cluster still runs: {error}"))
                        .hint("wait until it has ended, or end it")
                })?;
            }
        }
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::error(format!("data directory {}: {error}", self.path.display()))
    }

    /// Where it is, absolute.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what earlier clusters left here, and only that.
    ///
    /// # Errors
    /// Files of somebody else between ours (nothing is removed then); the operating system's.
    pub(crate) fn clear(&self) -> Outcome {
        let fail =
            |error: io::Error| Failure::error(format!("data directory {}: {error}", self.path.display()));
        let names = names(&self.path).map_err(fail)?;
        if let Some(stranger) = names.iter().find(|name| !is_ours(name)) {
            return Err(Failure::error(format!(
                "--fresh removes nothing: {} was not made by `minikafka up`",
                self.path.join(stranger).display()
            ))
            .hint("move it away, or choose another --data-dir"));
        }
        // The record goes last: a removal that is broken off leaves a directory that is still known as ours.
        for name in names.iter().filter(|name| *name != LOCK && *name != RECORD) {
            fs::remove_dir_all(self.path.join(name)).map_err(fail)?;
        }
        match fs::remove_file(self.path.join(RECORD)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fail(error)),
            _ => Ok(()),
        }
    }

    /// Writes down whose cluster this is: a new id, and the shape it keeps.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn found(&self, shape: Shape) -> Outcome<Record> {
        let cluster_id = std::iter::repeat_with(|| Uuid::from_random(rand::random()))
            .flatten()
            .next()
            .map(|uuid| ClusterId(uuid.to_string()))
            .expect("an endless draw");
        let record = Record { format: FORMAT, cluster_id, shape };
        let text = serde_json::to_string_pretty(&record).map_err(Failure::error)? + "\n";
        self.replace(RECORD, &text)?;
        Ok(record)
    }

    /// Writes a node's `.properties` file.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn write_config(&self, name: &str, text: &str) -> Outcome {
        self.make_dir(Path::new(CONFIG))?;
        self.replace(&format!("{CONFIG}/{name}"), text)
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// The operating system's.
    pub(crate) fn make_dir(&self, name: &Path) -> Outcome {
        let path = self.path.join(name);
        fs::create_dir_all(&path).map_err(|error| Failure::error(format!("{}: {error}", path.display())))
    }

    /// Temporary file, sync, rename: whole or not at all.
    fn replace(&self, name: &str, text: &str) -> Outcome {
        let path = self.path.join(name);
        let temporary = path.with_extension("tmp");
        let write = || -> io::Result<()> {
            let mut file = File::create(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, &path)
        };
        write().map_err(|error| Failure::error(format!("{} cannot be written: {error}", path.display())))
    }
}

fn is_ours(name: &str) -> bool {
    of_node(name) || [RECORD, LOCK, CONFIG].contains(&name)
}

/// Whether a folder of this name is a node's.
fn of_node(name: &str) -> bool {
    [Role::Broker, Role::Controller, Role::Node].iter().any(|role| {
        name.strip_prefix(role.name())
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { brokers: 3, controllers: 3, combined: false };

    #[test]
    fn a_cluster_is_found_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("data");
        assert!(matches!(look(&path), Ok(Found::Nothing)));
        let held = DataDir::hold(&path).expect("a new directory");
        assert!(matches!(look(&path), Ok(Found::Nothing)), "a lock alone is nothing");
        let record = held.found(SHAPE).expect("written");
        match look(&path) {
            Ok(Found::Cluster(again)) => assert_eq!(again, record),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_one_may_hold_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = DataDir::hold(folder.path()).expect("free");
        let second = DataDir::hold(folder.path()).expect_err("held").to_string();
        assert!(second.contains(&format!("pid {}", std::process::id())), "{second}");
        drop(first);
        DataDir::hold(folder.path()).expect("free again");
    }

    #[test]
    fn nothing_of_somebody_else_is_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("cat.jpg"), "a cat").expect("a picture");
        let refusal = look(folder.path()).expect_err("foreign").to_string();
        assert!(refusal.contains("cat.jpg"), "{refusal}");
        let held = DataDir::hold(folder.path()).expect("the lock is free");
        held.found(SHAPE).expect("written");
        fs::create_dir(folder.path().join("broker-1")).expect("a folder");
        held.clear().expect_err("a cat lies between our files");
        assert!(folder.path().join("cat.jpg").exists() && folder.path().join("broker-1").exists());
        fs::remove_file(folder.path().join("cat.jpg")).expect("the cat leaves");
        held.clear().expect("ours alone");
        assert!(!folder.path().join("broker-1").exists() && !folder.path().join(RECORD).exists());
    }

    #[test]
    fn a_node_that_still_runs_is_in_the_way() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = DataDir::hold(folder.path()).expect("free");
        let node = folder.path().join("broker-1");
        fs::create_dir(&node).expect("a folder");
        held.check_idle().expect("nobody was ever there");
        let running = DirLock::take(&node).expect("free");
        let refusal = held.check_idle().expect_err("it runs").to_string();
        assert!(refusal.contains(&format!("pid {}", std::process::id())), "{refusal}");
        drop(running);
        held.check_idle().expect("it has ended");
    }

    #[test]
    fn a_newer_record_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(RECORD), r#"{"format": 2, "shape": "round"}"#).expect("written");
        let refusal = look(folder.path()).expect_err("newer").to_string();
        assert!(refusal.contains("newer"), "{refusal}");
    }
}
