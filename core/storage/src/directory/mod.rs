//! A log directory: whose it is, which partitions it holds, what its checkpoints say (Kafka semantics 3.5).

mod names;

use names::FolderKind;
pub use names::KAFKA_METADATA_TOPIC;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use minikafka_model::{BrokerEpoch, ClusterId, Offset, PartitionIndex, TopicId, Uuid, WallMs};

use crate::checkpoint::{
    CLEAN_SHUTDOWN_FILE, CheckpointName, CleanShutdown, FileWrite, LOG_START_CHECKPOINT, META_PROPERTIES,
    MetaProperties, PARTITION_METADATA, RECOVERY_POINT_CHECKPOINT, REPLICATION_CHECKPOINT, offsets_from_text,
    offsets_to_text, partition_metadata_from_text, partition_metadata_to_text, read_text, sync_parent,
};
use crate::config::LogConfig;
use crate::disk::{Disk, EntryKind, OpenMode};
use crate::error::{At, DiskOp, LogError};
use crate::log::{Log, Opening, RecoveryReport};

/// A log directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// There is no `meta.properties`.
    #[error("{} is not a log directory: it has no {META_PROPERTIES}", path.display())]
    NotFormatted {
        /// The directory.
        path: PathBuf,
    },
    /// It belongs to another cluster.
    #[error("{} belongs to the cluster {found}, not to {expected}", path.display())]
    WrongCluster {
        /// The directory.
        path: PathBuf,
        /// In the file.
        found: ClusterId,
        /// Of this process.
        expected: ClusterId,
    },
    /// It belongs to another node.
    #[error("{} belongs to the node {found}, not to {expected}", path.display())]
    WrongNode {
        /// The directory.
        path: PathBuf,
        /// In the file.
        found: i32,
        /// `node.id` of this process.
        expected: i32,
    },
    /// It holds the metadata log of a controller of Apache Kafka.
    #[error("{} is the metadata log of Apache Kafka, which is not read here: take another directory", path.display())]
    KafkaMetadataLog {
        /// The folder.
        path: PathBuf,
    },
    /// A file in it cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A partition's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionFolder {
    /// The topic's name.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// The folder.
    pub path: PathBuf,
    /// The topic's id, if `partition.metadata` exists.
    pub topic_id: Option<TopicId>,
}

/// What was found in a log directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The last stop was orderly. The mark of it is gone by now: a crash from here on counts as unclean.
    pub clean: Option<CleanShutdown>,
    /// The partitions, by name.
    pub partitions: Vec<PartitionFolder>,
    /// Folders of deleted partitions, to be removed.
    pub deleted: Vec<PathBuf>,
    /// Folders that were set aside because nobody claimed them.
    pub stray: Vec<PathBuf>,
}

/// One of the three checkpoints of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Checkpoint {
    /// `replication-offset-checkpoint`.
    HighWatermark,
    /// `recovery-point-offset-checkpoint`.
    RecoveryPoint,
    /// `log-start-offset-checkpoint`.
    LogStart,
}

impl Checkpoint {
    const ALL: [Checkpoint; 3] = [Checkpoint::HighWatermark, Checkpoint::RecoveryPoint, Checkpoint::LogStart];

    /// Name of the file.
    pub const fn file_name(self) -> &'static str {
        match self {
            Checkpoint::HighWatermark => REPLICATION_CHECKPOINT,
            Checkpoint::RecoveryPoint => RECOVERY_POINT_CHECKPOINT,
            Checkpoint::LogStart => LOG_START_CHECKPOINT,
        }
    }
}

type Offsets = BTreeMap<CheckpointName, Offset>;

/// An open log directory. Its lock file is the business of `node`.
#[derive(Debug)]
pub struct LogDirectory {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    meta: MetaProperties,
    clean: bool,
    /// As they stand in the files; locked while one is written.
    checkpoints: Mutex<BTreeMap<Checkpoint, Offsets>>,
}

impl LogDirectory {
    /// Whose directory it is; `None` without `meta.properties`.
    ///
    /// # Errors
    /// The file is malformed or of a newer version, or the disk refuses.
    pub fn read_meta(disk: &dyn Disk, path: &Path) -> Result<Option<MetaProperties>, LogError> {
        let file = path.join(META_PROPERTIES);
        read_text(disk, &file)?.map(|text| MetaProperties::from_text(&file, &text)).transpose()
    }

    /// Makes the directory and its `meta.properties`.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn format(disk: &dyn Disk, path: &Path, meta: &MetaProperties) -> Result<(), LogError> {
        disk.create_dir(path).at(DiskOp::CreateDir, path)?;
        FileWrite { path: path.join(META_PROPERTIES), bytes: meta.to_text().into_bytes() }.run(disk)?;
        sync_parent(disk, path)
    }

    /// Opens a directory: checks whose it is, takes the mark of an orderly stop away, reads the checkpoints, lists the partitions.
    ///
    /// # Errors
    /// See [`DirectoryError`]. A malformed checkpoint is an error, as it is in Kafka: nothing tells what it said.
    pub fn open(
        disk: &Arc<dyn Disk>,
        path: &Path,
        cluster: Option<&ClusterId>,
        node: i32,
    ) -> Result<(LogDirectory, Contents), DirectoryError> {
        let own = path.to_owned();
        let Some(meta) = LogDirectory::read_meta(&**disk, path)? else {
            return Err(DirectoryError::NotFormatted { path: own });
        };
        if let Some(expected) = cluster.filter(|expected| **expected != meta.cluster) {
            return Err(DirectoryError::WrongCluster {
                path: own,
                found: meta.cluster,
                expected: expected.clone(),
            });
        }
        if meta.node != node {
            return Err(DirectoryError::WrongNode { path: own, found: meta.node, expected: node });
        }
        let mut contents = list(&**disk, path)?;
        let mut checkpoints = BTreeMap::new();
        for checkpoint in Checkpoint::ALL {
            let file = path.join(checkpoint.file_name());
            let text = read_text(&**disk, &file)?;
            checkpoints
                .insert(checkpoint, text.map_or(Ok(Offsets::new()), |text| offsets_from_text(&file, &text))?);
        }
        contents.clean = take_clean_mark(&**disk, path)?;
        let directory = LogDirectory {
            disk: Arc::clone(disk),
            path: own,
            meta,
            clean: contents.clean.is_some(),
            checkpoints: Mutex::new(checkpoints),
        };
        Ok((directory, contents))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whose it is.
    pub fn meta(&self) -> &MetaProperties {
        &self.meta
    }

    /// What stands in a checkpoint.
    pub fn checkpointed(
        &self,
        checkpoint: Checkpoint,
        topic: &str,
        partition: PartitionIndex,
    ) -> Option<Offset> {
        let checkpoints = self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        checkpoints.get(&checkpoint)?.get(&(topic.to_owned(), partition)).copied()
    }

    /// Opens the log of a folder that [`LogDirectory::open`] found. Different folders may be opened at once.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn open_partition(
        &self,
        folder: &PartitionFolder,
        config: LogConfig,
        now: WallMs,
    ) -> Result<(Log, RecoveryReport), LogError> {
        let stands = |checkpoint| self.checkpointed(checkpoint, &folder.topic, folder.partition);
        let opening = Opening {
            clean: self.clean,
            recovery_point: stands(Checkpoint::RecoveryPoint),
            start_offset: stands(Checkpoint::LogStart),
            high_watermark: stands(Checkpoint::HighWatermark),
            now,
        };
        Log::open(&self.disk, &folder.path, config, opening)
    }

    /// Makes a partition's folder with its `partition.metadata` and an empty log. What checkpoints say of an older partition of that
    /// name is dropped before: it must never be taken for the new one's.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn create_partition(
        &self,
        topic: &str,
        partition: PartitionIndex,
        id: TopicId,
        config: LogConfig,
        now: WallMs,
    ) -> Result<Log, LogError> {
        self.forget(topic, partition)?;
        let path = self.path.join(names::folder_name(topic, partition));
        self.disk.create_dir(&path).at(DiskOp::CreateDir, &path)?;
        self.write_topic_id(&path, id)?;
        sync_parent(&*self.disk, &path)?;
        let opening =
            Opening { clean: false, recovery_point: None, start_offset: None, high_watermark: None, now };
        Log::open(&self.disk, &path, config, opening).map(|(log, _)| log)
    }

    /// Writes `partition.metadata` into a folder.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write_topic_id(&self, folder: &Path, id: TopicId) -> Result<(), LogError> {
        let path = folder.join(PARTITION_METADATA);
        FileWrite { path, bytes: partition_metadata_to_text(id).into_bytes() }.run(&*self.disk)
    }

    /// Renames a partition's folder so that it counts as deleted, and drops it from the checkpoints. Returns the folder, which a
    /// janitor removes ([`LogDirectory::remove_folder`]). `id` makes the name unique.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn delete_partition(
        &self,
        topic: &str,
        partition: PartitionIndex,
        id: Uuid,
    ) -> Result<PathBuf, LogError> {
        self.set_aside(topic, partition, id, "delete")
    }

    /// Renames the folder of a partition that nobody claims. It is kept for a person to look at.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn set_stray(&self, topic: &str, partition: PartitionIndex, id: Uuid) -> Result<PathBuf, LogError> {
        self.set_aside(topic, partition, id, "stray")
    }

    fn set_aside(
        &self,
        topic: &str,
        partition: PartitionIndex,
        id: Uuid,
        suffix: &str,
    ) -> Result<PathBuf, LogError> {
        let path = self.path.join(names::folder_name(topic, partition));
        let to = names::set_aside(&self.path, topic, partition, id, suffix);
        self.disk.rename(&path, &to).at(DiskOp::Rename, &path)?;
        self.disk.sync_dir(&self.path).at(DiskOp::SyncDir, &self.path)?;
        self.forget(topic, partition)?;
        Ok(to)
    }

    /// Removes a folder that was set aside.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn remove_folder(&self, folder: &Path) -> Result<(), LogError> {
        match self.disk.remove_dir(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).at(DiskOp::Remove, folder)
            }
            _ => Ok(()),
        }
    }

    /// Writes a checkpoint: the entries given, beside those that stand there already (of replicas that are offline). An entry of
    /// `None` is dropped. Nothing is written if nothing changes.
    ///
    /// # Errors
    /// The disk refuses; the directory is to be taken offline.
    pub fn save(
        &self,
        checkpoint: Checkpoint,
        entries: impl IntoIterator<Item = (CheckpointName, Option<Offset>)>,
    ) -> Result<(), LogError> {
        let mut checkpoints = self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        let known = checkpoints.entry(checkpoint).or_default();
        let mut offsets = known.clone();
        for (name, offset) in entries {
            match offset {
                Some(offset) => offsets.insert(name, offset),
                None => offsets.remove(&name),
            };
        }
        if offsets == *known {
            return Ok(());
        }
        let path = self.path.join(checkpoint.file_name());
        FileWrite { path, bytes: offsets_to_text(&offsets).into_bytes() }.run(&*self.disk)?;
        *known = offsets;
        Ok(())
    }

    fn forget(&self, topic: &str, partition: PartitionIndex) -> Result<(), LogError> {
        Checkpoint::ALL.into_iter().try_for_each(|it| self.save(it, [((topic.to_owned(), partition), None)]))
    }

    /// The very last step of an orderly stop, after every log was closed and every checkpoint written without an error.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn mark_clean(&self, broker_epoch: Option<BrokerEpoch>) -> Result<(), LogError> {
        let path = self.path.join(CLEAN_SHUTDOWN_FILE);
        let file = self.disk.open(&path, OpenMode::Create).at(DiskOp::Create, &path)?;
        let text = CleanShutdown { broker_epoch }.to_text();
        file.write_at(text.as_bytes(), 0).at(DiskOp::Write, &path)?;
        file.sync().at(DiskOp::Sync, &path)?;
        self.disk.sync_dir(&self.path).at(DiskOp::SyncDir, &self.path)
    }
}

/// Reads the mark of an orderly stop and takes it away before anything else happens. One that cannot be read counts as none.
fn take_clean_mark(disk: &dyn Disk, dir: &Path) -> Result<Option<CleanShutdown>, LogError> {
    let path = dir.join(CLEAN_SHUTDOWN_FILE);
    let text = match read_text(disk, &path) {
        Ok(None) => return Ok(None),
        Ok(text) => text,
        Err(LogError::Malformed { .. }) => None,
        Err(error) => return Err(error),
    };
    let mark = match text.map(|text| CleanShutdown::from_text(&path, &text)) {
        Some(Ok(mark)) => Some(mark),
        Some(Err(error @ LogError::NewerFormat { .. })) => return Err(error),
        Some(Err(_)) | None => None,
    };
    disk.remove_file(&path).at(DiskOp::Remove, &path)?;
    disk.sync_dir(dir).at(DiskOp::SyncDir, dir)?;
    Ok(mark)
}

/// Whether a folder is the metadata log of Apache Kafka: it has the name and, unlike ours, the file `partition.metadata`.
///
/// # Errors
/// The disk refuses.
pub fn is_kafka_metadata(disk: &dyn Disk, folder: &Path) -> Result<bool, LogError> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if names::parse(name) != FolderKind::KafkaMetadata {
        return Ok(false);
    }
    let path = folder.join(PARTITION_METADATA);
    disk.exists(&path).at(DiskOp::List, &path)
}

fn list(disk: &dyn Disk, dir: &Path) -> Result<Contents, DirectoryError> {
    let mut contents = Contents::default();
    for entry in disk.list(dir).at(DiskOp::List, dir)? {
        let path = dir.join(&entry.name);
        if entry.kind != EntryKind::Directory {
            if entry.name.ends_with(".tmp") {
                disk.remove_file(&path).at(DiskOp::Remove, &path)?;
            }
            continue;
        }
        match names::parse(&entry.name) {
            FolderKind::Partition(topic, partition) => {
                let file = path.join(PARTITION_METADATA);
                let text = read_text(disk, &file)?;
                let topic_id = text.map(|text| partition_metadata_from_text(&file, &text)).transpose()?;
                contents.partitions.push(PartitionFolder { topic, partition, path, topic_id });
            }
            // What a move between directories left behind has no claim: the move begins anew.
            FolderKind::Deleted | FolderKind::Future => contents.deleted.push(path),
            FolderKind::Stray => contents.stray.push(path),
            FolderKind::KafkaMetadata if is_kafka_metadata(disk, &path)? => {
                return Err(DirectoryError::KafkaMetadataLog { path });
            }
            FolderKind::KafkaMetadata | FolderKind::Other => {}
        }
    }
    Ok(contents)
}
