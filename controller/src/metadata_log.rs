//! The metadata log on disk: entries over `storage::Log`, snapshots and the vote beside it.
//!
//! One entry is one record batch with one record, so that an entry's offset is the record's and its term the batch's leader epoch. The
//! record's value is the entry's kind (one byte) and content. Snapshots are `<offset>-<term>.checkpoint`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use minikafka_model::batch::{Batch, BatchBuilder, CompressionType, Records, Replicated, split_batches};
use minikafka_model::{MetadataOffset, Offset, Term, WallMs};
use minikafka_raft::{Entry, LogReadError, Payload, RaftLog, SnapshotInfo, VoterSet, VotersAt};
use minikafka_storage::{
    Disk, FileWrite, KAFKA_METADATA_TOPIC, Log, LogConfig, LogError, LogReader, OpenMode, Opening, ReadLimit,
};

/// Size of a segment.
const SEGMENT_BYTES: u32 = 64 << 20;
/// Size of its indexes.
const INDEX_BYTES: u32 = 1 << 20;
/// First bytes of a snapshot file; the last one is the format's version.
const SNAPSHOT_MAGIC: &[u8; 8] = b"mkquor\n\x01";

/// The metadata log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MetadataLogError {
    /// The log's files.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Another file.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is not what its name says.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// The log of the quorum with its newest snapshot.
#[derive(Debug)]
pub struct MetadataLog {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    log: Log,
    snapshot: Option<(SnapshotInfo, Bytes)>,
}

impl MetadataLog {
    /// Opens the log in a metadata directory, making it if need be. A snapshot that reaches beyond the log replaces it.
    ///
    /// # Errors
    /// The disk refuses, or files are damaged.
    pub fn open(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        now: WallMs,
    ) -> Result<MetadataLog, MetadataLogError> {
        let dir = directory.join(format!("{KAFKA_METADATA_TOPIC}-0"));
        disk.create_dir(&dir).map_err(|source| MetadataLogError::File { path: dir.clone(), source })?;
        let snapshot = newest_snapshot(&**disk, &dir)?;
        let start = snapshot.as_ref().map(|(info, _)| Offset(info.end.0));
        let config = LogConfig {
            segment_bytes: SEGMENT_BYTES,
            segment_index_bytes: INDEX_BYTES,
            retention_ms: None,
            retention_bytes: None,
            ..LogConfig::default()
        };
        let opening =
            Opening { clean: false, recovery_point: None, start_offset: start, high_watermark: start, now };
        let (mut log, _report) = Log::open(disk, &dir, config, opening)?;
        if let Some(start) = start {
            if log.end_offset() < start {
                log.truncate_fully_at(start, now)?.removal.run(&**disk)?;
            } else if log.start_offset() < start {
                log.advance_start(start)?;
            }
        }
        log.sync()?;
        Ok(MetadataLog { disk: Arc::clone(disk), dir, log, snapshot })
    }

    /// Writes entries at the end; they are durable after [`MetadataLog::sync`].
    ///
    /// # Errors
    /// The disk refuses.
    pub fn append(&mut self, entries: &[Entry], now: WallMs) -> Result<(), MetadataLogError> {
        let batches = entries.iter().map(|entry| self.batch(entry, now)).collect::<Result<Vec<_>, _>>()?;
        if self.log.append(&batches, now)?.is_some_and(|appended| appended.epochs_changed) {
            self.log.epoch_checkpoint().run()?;
        }
        Ok(())
    }

    fn batch(&self, entry: &Entry, now: WallMs) -> Result<Batch<Replicated>, MetadataLogError> {
        let content = entry.payload.content();
        let mut value = BytesMut::with_capacity(1 + content.len());
        value.put_u8(entry.payload.kind());
        value.put_slice(&content);
        let malformed = |what: String| MetadataLogError::Malformed { path: self.dir.clone(), what };
        let mut builder = BatchBuilder::new();
        builder.push(now.0, None, Some(&value), &[]);
        let batch = builder.finish(CompressionType::None, None).map_err(|e| malformed(e.to_string()))?;
        let mut batch = batch.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        // Base offset and leader epoch stand outside of what the checksum covers.
        batch[0..8].copy_from_slice(&entry.offset.0.to_be_bytes());
        batch[12..16].copy_from_slice(&entry.term.0.to_be_bytes());
        Batch::from_leader(batch.freeze()).map_err(|e| malformed(e.to_string()))
    }

    /// Removes all entries from `to` on.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn truncate(&mut self, to: MetadataOffset, now: WallMs) -> Result<(), MetadataLogError> {
        let truncated = self.log.truncate_to(Offset(to.0), now)?;
        truncated.removal.run(&*self.disk)?;
        if let Some(epochs) = truncated.epochs {
            epochs.run()?;
        }
        Ok(())
    }

    /// Makes everything written durable.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn sync(&mut self) -> Result<(), MetadataLogError> {
        Ok(self.log.sync()?)
    }

    /// Term of the last entry, or of the snapshot.
    pub fn last_term(&self) -> Term {
        let snapshot = self.snapshot.as_ref().map_or(Term(0), |(info, _)| info.last_term);
        self.log.last_epoch().map_or(snapshot, |epoch| Term(epoch.0).max(snapshot))
    }

    /// For reading beside the owner.
    pub fn reader(&self) -> LogReader {
        self.log.reader()
    }

    /// The image in the newest snapshot, encoded, and the snapshot's facts.
    pub fn snapshot_image(&self) -> Option<(&SnapshotInfo, Bytes)> {
        let (info, bytes) = self.snapshot.as_ref()?;
        Some((info, split_snapshot(bytes).ok()?.1))
    }

    /// Writes a snapshot of the state before `end` and drops the entries in it from the log.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn take_snapshot(
        &mut self,
        end: MetadataOffset,
        last_term: Term,
        voters: &VotersAt,
        image: &Bytes,
        now: WallMs,
    ) -> Result<(), MetadataLogError> {
        let bytes = join_snapshot(voters, image);
        let info = SnapshotInfo { end, last_term, size: bytes.len() as u64, voters: voters.clone() };
        self.write_snapshot(&info, bytes)?;
        if let Some(epochs) = self.log.advance_start(Offset(end.0))? {
            epochs.run()?;
        }
        self.log.retain(now, Offset(end.0))?.removal.run(&*self.disk)?;
        Ok(())
    }

    /// Replaces log and snapshot by a snapshot that the leader sent. `None` if it does not pass its checks; the image otherwise.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn install_snapshot(
        &mut self,
        info: &SnapshotInfo,
        bytes: Bytes,
        now: WallMs,
    ) -> Result<Option<minikafka_metadata::Image>, MetadataLogError> {
        let Ok((voters, image)) = split_snapshot(&bytes) else { return Ok(None) };
        let Ok(image) = minikafka_metadata::decode_snapshot(&image) else { return Ok(None) };
        if voters != info.voters || bytes.len() as u64 != info.size {
            return Ok(None);
        }
        self.write_snapshot(info, bytes)?;
        self.log.truncate_fully_at(Offset(info.end.0), now)?.removal.run(&*self.disk)?;
        self.log.sync()?;
        Ok(Some(image))
    }

    fn write_snapshot(&mut self, info: &SnapshotInfo, bytes: Bytes) -> Result<(), MetadataLogError> {
        let path = self.dir.join(snapshot_name(info.end, info.last_term));
        FileWrite { path, bytes: bytes.to_vec() }.run(&*self.disk)?;
        let old = self.snapshot.replace((info.clone(), bytes));
        if let Some((old, _)) = old.filter(|(old, _)| old.end != info.end) {
            let path = self.dir.join(snapshot_name(old.end, old.last_term));
            self.disk.remove_file(&path).map_err(|source| MetadataLogError::File { path, source })?;
        }
        Ok(())
    }
}

impl RaftLog for MetadataLog {
    fn start(&self) -> MetadataOffset {
        MetadataOffset(self.log.start_offset().0)
    }

    fn end(&self) -> MetadataOffset {
        MetadataOffset(self.log.end_offset().0)
    }

    fn entries(&self, from: MetadataOffset, max_bytes: usize) -> Result<Vec<Entry>, LogReadError> {
        read_entries(&self.log.reader(), from, self.end(), max_bytes)
    }

    fn snapshot(&self) -> Option<SnapshotInfo> {
        self.snapshot.as_ref().map(|(info, _)| info.clone())
    }

    fn snapshot_chunk(
        &self,
        end: MetadataOffset,
        position: u64,
        max_bytes: usize,
    ) -> Result<Bytes, LogReadError> {
        let held = self.snapshot.as_ref().filter(|(info, _)| info.end == end);
        let (_, bytes) = held.ok_or_else(|| LogReadError(format!("there is no snapshot up to {end}")))?;
        let from = usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes.slice(from..bytes.len().min(from.saturating_add(max_bytes))))
    }
}

/// Entries from `from` on and below `upto`: at least one if there is one, then as many as fit.
///
/// # Errors
/// The log cannot be read there.
pub fn read_entries(
    log: &LogReader,
    from: MetadataOffset,
    upto: MetadataOffset,
    max_bytes: usize,
) -> Result<Vec<Entry>, LogReadError> {
    let named = |what: &dyn std::fmt::Display| LogReadError(format!("at offset {from}: {what}"));
    let limit = ReadLimit { max_bytes, upto: Offset(upto.0), at_least_one: true };
    let read = log.read(Offset(from.0), limit).map_err(|e| named(&e))?;
    let mut entries = Vec::new();
    for batch in split_batches(read.records) {
        let batch = batch.map_err(|e| named(&e))?;
        let header = minikafka_model::batch::BatchHeader::parse(&batch).map_err(|e| named(&e))?;
        let term = header.leader_epoch.ok_or_else(|| named(&"an entry without a term"))?;
        for record in Records::of(&batch).map_err(|e| named(&e))? {
            let record = record.map_err(|e| named(&e))?;
            let mut value = record.value.unwrap_or_default();
            if value.is_empty() {
                return Err(named(&"an empty entry"));
            }
            let kind = value.get_u8();
            let payload = Payload::from_parts(kind, value).map_err(|e| named(&e))?;
            entries.push(Entry { offset: MetadataOffset(record.offset.0), term: Term(term.0), payload });
        }
    }
    Ok(entries)
}

fn snapshot_name(end: MetadataOffset, term: Term) -> String {
    format!("{:020}-{:010}.checkpoint", end.0, term.0)
}

fn join_snapshot(voters: &VotersAt, image: &Bytes) -> Bytes {
    let set = voters.voters.encode();
    let mut out = BytesMut::with_capacity(SNAPSHOT_MAGIC.len() + 16 + set.len() + image.len());
    out.put_slice(SNAPSHOT_MAGIC);
    out.put_i64(voters.offset.0);
    out.put_u32(u32::try_from(set.len()).unwrap_or(u32::MAX));
    out.put_slice(&set);
    out.put_slice(image);
    let checksum = crc32fast::hash(&out);
    out.put_u32(checksum);
    out.freeze()
}

fn split_snapshot(bytes: &Bytes) -> Result<(VotersAt, Bytes), String> {
    let cut = || "it is cut".to_owned();
    let head = SNAPSHOT_MAGIC.len() + 12;
    if !bytes.starts_with(SNAPSHOT_MAGIC) {
        return Err("it is not a metadata snapshot that this version reads".to_owned());
    }
    let body = bytes.len().checked_sub(4).filter(|body| *body >= head).ok_or_else(cut)?;
    let (covered, mut checksum) = bytes.split_at(body);
    if crc32fast::hash(covered) != checksum.get_u32() {
        return Err("its checksum does not match".to_owned());
    }
    let mut fixed = &covered[SNAPSHOT_MAGIC.len()..head];
    let (offset, length) = (MetadataOffset(fixed.get_i64()), fixed.get_u32() as usize);
    let set_end = head.checked_add(length).filter(|end| *end <= body).ok_or_else(cut)?;
    let voters = VoterSet::decode(&covered[head..set_end]).map_err(|e| e.to_string())?;
    Ok((VotersAt { offset, voters }, bytes.slice(set_end..body)))
}

fn newest_snapshot(disk: &dyn Disk, dir: &Path) -> Result<Option<(SnapshotInfo, Bytes)>, MetadataLogError> {
    let failed = |path: &Path, source| MetadataLogError::File { path: path.to_owned(), source };
    let mut found = None;
    for entry in disk.list(dir).map_err(|e| failed(dir, e))? {
        let name = entry.name.to_string();
        let parsed = name.strip_suffix(".checkpoint").and_then(|stem| stem.split_once('-'));
        let Some((end, term)) = parsed else { continue };
        if let (Ok(end), Ok(term)) = (end.parse::<i64>(), term.parse::<i32>()) {
            found = found.max(Some((MetadataOffset(end), Term(term))));
        }
    }
    let Some((end, last_term)) = found else { return Ok(None) };
    let path = dir.join(snapshot_name(end, last_term));
    let bytes = read_file(disk, &path).map_err(|e| failed(&path, e))?;
    let (voters, _) =
        split_snapshot(&bytes).map_err(|what| MetadataLogError::Malformed { path: path.clone(), what })?;
    Ok(Some((SnapshotInfo { end, last_term, size: bytes.len() as u64, voters }, bytes)))
}

/// A file as a whole.
pub(crate) fn read_file(disk: &dyn Disk, path: &Path) -> std::io::Result<Bytes> {
    let file = disk.open(path, OpenMode::Read)?;
    let size = usize::try_from(file.size()?).map_err(std::io::Error::other)?;
    file.read_bytes_at(0, size)
}
