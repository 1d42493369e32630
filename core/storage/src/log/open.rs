//! Opening a log: after an orderly end its files are trusted, else everything from the recovery point on is verified.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minikafka_model::{Offset, WallMs};

use super::recovery::{RecoveryReport, Scanned, TornTail, read_epochs, scan};
use super::removal::{Removal, remove};
use super::truncate::{cut_segment, read_truncation_note};
use super::{EpochFile, Log};
use crate::checkpoint::sync_parent;
use crate::config::LogConfig;
use crate::disk::{Disk, EntryKind, OpenMode};
use crate::epoch_history::EpochHistory;
use crate::error::{At, Damage, DiskOp, LogError};
use crate::producer::ProducerStates;
use crate::segment::Segment;
use crate::segment::index::Indexes;
use crate::segment::names::{DELETED, SegmentFile};
use crate::segment::tail::{Tail, is_prepared};
use crate::segment::walk::{Place, WalkError};

/// What the checkpoints and the last stop say of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The last stop was orderly: the files are trusted.
    pub clean: bool,
    /// Everything below is known to be durable; damage below it is an error, above it the end of the log.
    pub recovery_point: Option<Offset>,
    /// Checkpointed log start offset.
    pub start_offset: Option<Offset>,
    /// Checkpointed high watermark.
    pub high_watermark: Option<Offset>,
    /// The time.
    pub now: WallMs,
}

impl Log {
    /// Opens the log in a folder, making both if need be.
    ///
    /// # Errors
    /// [`LogError::Damaged`] if bytes below the recovery point are not what was written: the replica is offline, nothing was changed.
    /// [`LogError::NewerFormat`] for files of a newer version. The disk's.
    pub fn open(
        disk: &Arc<dyn Disk>,
        dir: &Path,
        config: LogConfig,
        opening: Opening,
    ) -> Result<(Log, RecoveryReport), LogError> {
        if !disk.exists(dir).at(DiskOp::List, dir)? {
            disk.create_dir(dir).at(DiskOp::CreateDir, dir)?;
            sync_parent(&**disk, dir)?;
        }
        let dir: Arc<Path> = Arc::from(dir);
        let mut report = RecoveryReport { clean: opening.clean, ..RecoveryReport::default() };
        let found = Found { segments: open_segments(disk, &dir, &config)? };
        let note = read_truncation_note(&**disk, &dir)?;
        let claimed = opening.recovery_point.unwrap_or(Offset::ZERO);
        let recovery_point = note.map_or(claimed, |note| note.min(claimed));
        let checked = found.check(&config, &opening, recovery_point, &mut report)?;
        let mut log = Log::assemble(disk, &dir, config, checked, &opening)?;
        log.truncation_noted = note.is_some();
        if opening.clean {
            log.drop_truncation_note()?;
        }
        log.recovery_point = if opening.clean { log.end } else { recovery_point.min(log.end) };
        log.take_up_start(&opening, &mut report)?;
        log.take_up_producers(&opening, &mut report)?;
        report.log_start = Some(log.start);
        report.log_end = Some(log.end);
        report.high_watermark =
            Some(opening.high_watermark.unwrap_or(Offset::ZERO).max(log.start).min(log.end));
        Ok((log, report))
    }

    fn assemble(
        disk: &Arc<dyn Disk>,
        dir: &Arc<Path>,
        config: LogConfig,
        checked: Checked,
        opening: &Opening,
    ) -> Result<Log, LogError> {
        let Checked { mut segments, end, epochs, epochs_changed } = checked;
        let (tail, end, made) = match segments.last() {
            Some(newest) => (Tail::reopen(newest, &config, opening.now)?, end, false),
            None => {
                let base = opening.start_offset.unwrap_or(Offset::ZERO);
                let (segment, tail) = Tail::create(disk, dir, base, &config, None, opening.now)?;
                segments.push(Arc::new(segment));
                (tail, base, true)
            }
        };
        let epoch_file = EpochFile::default();
        if epochs_changed {
            epoch_file.changed();
        }
        Ok(Log {
            disk: Arc::clone(disk),
            dir: Arc::clone(dir),
            config,
            start: segments[0].base,
            segments: Arc::new(segments),
            tail,
            prepared: None,
            end,
            recovery_point: Offset::ZERO,
            epochs,
            epoch_file: Arc::new(epoch_file),
            producers: ProducerStates::default(),
            generation: Arc::new(AtomicU64::new(0)),
            failed: Arc::new(AtomicBool::new(false)),
            // What the dead process did to the names may not be durable.
            names_changed: u64::from(made || !opening.clean),
            names_durable: 0,
            unsynced_records: 0,
            truncation_noted: false,
        })
    }

    /// The log start: as checkpointed, but within the log. A log that ends below it begins anew there.
    fn take_up_start(&mut self, opening: &Opening, report: &mut RecoveryReport) -> Result<(), LogError> {
        let start = opening.start_offset.unwrap_or(Offset::ZERO).max(self.first_segment());
        if start > self.end {
            let truncated = self.truncate_fully_at(start, opening.now)?;
            report.removal.join(truncated.removal);
            report.began_anew = Some(start);
            return Ok(());
        }
        self.start = start;
        let mut changed = self.epochs.truncate_start(start);
        changed |= self.fill_history()?;
        changed |= self.epochs.truncate_end(self.end);
        if changed {
            self.epoch_file.changed();
        }
        Ok(())
    }

    /// Producer state. After a scan the snapshots behind the first scanned segment's base are not trusted, and one of the log end is
    /// written.
    fn take_up_producers(&mut self, opening: &Opening, report: &mut RecoveryReport) -> Result<(), LogError> {
        if report.scanned_segments > 0 {
            let first = self.segments[self.segments.len().saturating_sub(report.scanned_segments)].base;
            for entry in self.disk.list(&self.dir).at(DiskOp::List, &self.dir)? {
                if matches!(SegmentFile::parse(&entry.name), Some((at, SegmentFile::Snapshot)) if at > first)
                {
                    remove(&*self.disk, &self.dir.join(&entry.name))?;
                }
            }
        }
        report.bad_snapshots = self.rebuild_producers(opening.now)?;
        if report.scanned_segments > 0 && self.end > self.newest().base {
            self.write_snapshot(self.end)?;
        }
        Ok(())
    }
}

struct Found {
    segments: Vec<Arc<Segment>>,
}

struct Checked {
    segments: Vec<Arc<Segment>>,
    end: Offset,
    epochs: EpochHistory,
    epochs_changed: bool,
}

impl Found {
    /// Finds the log end and the epoch history, verifying what is not trusted. Only after everything was verified anything is
    /// changed on the disk.
    fn check(
        mut self,
        config: &LogConfig,
        opening: &Opening,
        recovery_point: Offset,
        report: &mut RecoveryReport,
    ) -> Result<Checked, LogError> {
        let Some(newest) = self.segments.last() else {
            return self.nothing_found(opening, recovery_point);
        };
        let trusted = opening.clean && trust(newest)?;
        let mut first = match trusted {
            true => self.segments.len(),
            false if opening.clean => self.segments.len() - 1,
            // The segment that holds the recovery point, and all later ones.
            false => {
                self.segments.partition_point(|segment| segment.base <= recovery_point).saturating_sub(1)
            }
        };
        if !opening.clean && first > 0 && overlaps(&self.segments[first - 1], self.segments[first].base)? {
            first -= 1;
        }
        if let Some(below) = first.checked_sub(1).filter(|_| !opening.clean) {
            // It may have been cut where the recovery point is, by a process that died before it could sync.
            self.segments[below].cuts.fetch_add(1, Ordering::AcqRel);
        }
        let mut scans: Vec<Scanned> = Vec::new();
        let mut end = Offset::ZERO;
        for (at, segment) in self.segments.iter().enumerate().skip(first) {
            if let Some(last) = scans.last_mut()
                && segment.base > end
                && !config.compact
            {
                gap(last, &self.segments[at - 1], segment.base, recovery_point)?;
                break;
            }
            let next = self.segments.get(at + 1).map(|next| next.base);
            let scanned = scan(segment, config.index_interval_bytes, end, next, recovery_point)?;
            report.scanned_segments += 1;
            report.scanned_bytes += scanned.end.position;
            end = scanned.end.offset;
            let torn = scanned.torn.is_some();
            scans.push(scanned);
            if torn {
                break;
            }
        }
        if trusted {
            let newest = &self.segments[self.segments.len() - 1];
            end = newest.offset_at(newest.size())?;
        }
        if end < recovery_point {
            let newest = &self.segments[self.segments.len() - 1];
            let damage = Damage {
                path: newest.path.clone(),
                position: newest.size(),
                offset: end,
                why: "the file ends".to_owned(),
            };
            return Err(LogError::Damaged { recovery_point, damage });
        }
        let torn = self.repair(first, &scans, report)?;
        report.torn = torn;
        let (epochs, epochs_changed) = self.epochs(first, &scans, report)?;
        Ok(Checked { segments: self.segments, end, epochs, epochs_changed })
    }

    fn nothing_found(self, opening: &Opening, recovery_point: Offset) -> Result<Checked, LogError> {
        let end = opening.start_offset.unwrap_or(Offset::ZERO);
        if end < recovery_point {
            let damage = Damage {
                path: SegmentFile::Log.path(Path::new(""), end),
                position: 0,
                offset: end,
                why: "the folder holds no segment".to_owned(),
            };
            return Err(LogError::Damaged { recovery_point, damage });
        }
        Ok(Checked { segments: Vec::new(), end, epochs: EpochHistory::default(), epochs_changed: false })
    }

    /// Cuts what is torn and replaces the indexes of what was scanned.
    fn repair(
        &mut self,
        first: usize,
        scans: &[Scanned],
        report: &mut RecoveryReport,
    ) -> Result<Option<TornTail>, LogError> {
        let mut found = None;
        for (segment, scanned) in self.segments[first..].iter().zip(scans) {
            segment.set_indexes(scanned.indexes.clone());
            if scanned.stale > 0 {
                report.stale_bytes += scanned.stale;
                cut_segment(segment, scanned.end.position, scanned.end.offset)?;
                segment.change_indexes(Indexes::close_times);
            }
            if let Some(torn) = &scanned.torn {
                found = Some(torn.clone());
            }
        }
        if let Some(torn) = &mut found {
            let keep = first + scans.len();
            for segment in self.segments.drain(keep..).rev() {
                torn.later_segments.push((segment.base, segment.size()));
                let mut removal = Removal::default();
                removal.take_segment(&*segment.disk, &segment.dir, segment.base)?;
                report.removal.join(removal);
            }
            torn.later_segments.reverse();
            let newest = &self.segments[keep - 1];
            newest.disk.sync_dir(&newest.dir).at(DiskOp::SyncDir, &newest.dir)?;
            cut_segment(newest, torn.position, torn.offset)?;
            newest.change_indexes(Indexes::close_times);
        }
        // Those of the newest one are written when it is taken up.
        for segment in
            &self.segments[first.min(self.segments.len())..self.segments.len().saturating_sub(1).max(first)]
        {
            let indexes = segment.with_indexes(Clone::clone)?;
            segment.write_indexes(&indexes)?;
        }
        Ok(found)
    }

    /// The history of the file, completed by what was scanned; from all batches if the file cannot be used or contradicts them.
    fn epochs(
        &self,
        first: usize,
        scans: &[Scanned],
        report: &mut RecoveryReport,
    ) -> Result<(EpochHistory, bool), LogError> {
        let empty = self.segments.iter().all(|segment| segment.size() == 0);
        let some = &self.segments[0];
        let why = match read_epochs(&*some.disk, &some.dir)? {
            Ok(mut history) => match self.complete(&mut history, first, scans)? {
                Ok(changed) => return Ok((history, changed)),
                Err(why) => why,
            },
            Err(_) if empty => return Ok((EpochHistory::default(), false)),
            Err(why) => why,
        };
        report.epochs_rebuilt = Some(why);
        Ok((Log::epochs_of_batches(&self.segments)?, true))
    }

    fn complete(
        &self,
        history: &mut EpochHistory,
        first: usize,
        scans: &[Scanned],
    ) -> Result<Result<bool, String>, LogError> {
        let mut changed = false;
        if first == self.segments.len() {
            // Nothing was scanned: at least the newest batch must agree.
            let newest = &self.segments[first - 1];
            let largest = newest.place_at(newest.size()).map_err(WalkError::unreadable)?;
            if let Some((_, header)) = newest.locate(Offset(largest.offset.0 - 1))?
                && header.leader_epoch.is_some_and(|epoch| !history.knows(epoch, header.base_offset))
            {
                return Ok(Err("it does not know the epoch of the newest batch".to_owned()));
            }
        }
        if let Some(first) = self.segments.get(first) {
            // Of what was scanned the batches alone tell: the file may be of a time before or after a cut.
            let before = history.clone();
            history.truncate_end(first.base);
            for (epoch, base) in scans.iter().flat_map(|scanned| &scanned.epochs) {
                if history.last_epoch().is_some_and(|last| last > *epoch) {
                    return Ok(Err(format!("it contradicts the batch of epoch {epoch} at offset {base}")));
                }
                history.assign(*epoch, *base);
            }
            changed = *history != before;
        }
        Ok(Ok(changed))
    }
}

/// The end of a segment that was not synced is missing while a later segment is there: what follows is cut off. (Kafka takes such a
/// log as it is; only compaction leaves gaps, and what is compacted was synced.)
fn gap(
    scanned: &mut Scanned,
    segment: &Segment,
    next: Offset,
    recovery_point: Offset,
) -> Result<(), LogError> {
    let Place { position, offset } = scanned.end;
    let why = format!("the segment ends and the next one begins at offset {next}");
    if offset < recovery_point {
        let damage = Damage { path: segment.path.clone(), position, offset, why };
        return Err(LogError::Damaged { recovery_point, damage });
    }
    scanned.torn = Some(TornTail {
        path: segment.path.clone(),
        position,
        offset,
        bytes: 0,
        why,
        batches_follow: true,
        later_segments: Vec::new(),
    });
    Ok(())
}

/// Whether a segment that need not be scanned reaches beyond the base of the next one: it was cut there, and the cut was not durable.
/// One that cannot be read is scanned too, to say where.
fn overlaps(segment: &Segment, next: Offset) -> Result<bool, LogError> {
    match segment.place_at(segment.size()) {
        Ok(place) => Ok(place.offset > next),
        Err(WalkError::Invalid(_)) | Err(WalkError::Disk(LogError::Unreadable(_))) => Ok(true),
        Err(WalkError::Disk(error)) => Err(error),
    }
}

/// Whether the indexes and the batches behind the last index entry of the newest segment hold together.
fn trust(newest: &Segment) -> Result<bool, LogError> {
    let Some(indexes) = newest.load()? else { return Ok(false) };
    newest.set_indexes(indexes);
    match newest.place_at(newest.size()) {
        Ok(_) => newest.find_largest().map(|()| true),
        Err(WalkError::Invalid(_)) => Ok(false),
        Err(WalkError::Disk(error)) => Err(error),
    }
}

/// Tidies the folder and opens its segments.
fn open_segments(
    disk: &Arc<dyn Disk>,
    dir: &Arc<Path>,
    config: &LogConfig,
) -> Result<Vec<Arc<Segment>>, LogError> {
    let mut bases = BTreeSet::new();
    let mut others = Vec::new();
    super::swap::resolve(&**disk, dir)?;
    for entry in disk.list(dir).at(DiskOp::List, dir)? {
        let leftover =
            entry.name.ends_with(DELETED) || entry.name.ends_with(".tmp") || is_prepared(&entry.name);
        match SegmentFile::parse(&entry.name) {
            _ if entry.kind == EntryKind::Directory => {}
            _ if leftover => remove(&**disk, &dir.join(&entry.name))?,
            Some((base, SegmentFile::Log)) => {
                bases.insert(base);
            }
            Some((_, SegmentFile::Snapshot)) | None => {}
            Some((base, kind)) => others.push((base, kind)),
        }
    }
    for (base, kind) in &others {
        if !bases.contains(base) {
            remove(&**disk, &kind.path(dir, *base))?;
        }
    }
    let mut segments = Vec::with_capacity(bases.len());
    for base in bases {
        let path = SegmentFile::Log.path(dir, base);
        let file = disk.open(&path, OpenMode::ReadWrite).at(DiskOp::Open, &path)?;
        let size = file.size().at(DiskOp::Read, &path)?;
        segments.push(Arc::new(Segment::new(disk, dir, base, file, size, config.index_interval_bytes, None)));
    }
    Ok(segments)
}
