//! What a compaction leaves behind when its process dies: `.cleaned` (not finished) and `.swap` (finished, to take the place of the
//! segments it was made of).

use std::collections::BTreeSet;
use std::path::Path;

use minikafka_model::Offset;

use super::removal::remove;
use crate::disk::{Disk, OpenMode};
use crate::error::{At, DiskOp, LogError};
use crate::segment::names::SegmentFile;
use crate::segment::walk::{HeaderWalk, Place};

const CLEANED: &str = ".cleaned";
const SWAP: &str = ".swap";

/// Removes what was not finished and finishes what was.
pub(super) fn resolve(disk: &dyn Disk, dir: &Path) -> Result<(), LogError> {
    let entries = disk.list(dir).at(DiskOp::List, dir)?;
    if !entries.iter().any(|entry| entry.name.ends_with(CLEANED) || entry.name.ends_with(SWAP)) {
        return Ok(());
    }
    let with = |suffix: &'static str| {
        entries.iter().filter_map(move |entry| SegmentFile::parse(entry.name.strip_suffix(suffix)?))
    };
    // A compaction of several segments into several: those of which a part was not finished are all dropped.
    let unfinished = with(CLEANED).map(|(base, _)| base).min();
    let finished: BTreeSet<Offset> = with(SWAP)
        .filter(|(base, kind)| {
            *kind == SegmentFile::Log && unfinished.is_none_or(|unfinished| *base < unfinished)
        })
        .map(|(base, _)| base)
        .collect();
    for entry in &entries {
        let of_finished =
            |name: &str| SegmentFile::parse(name).is_some_and(|(base, _)| finished.contains(&base));
        let keep = entry.name.strip_suffix(SWAP).is_some_and(of_finished);
        if (entry.name.ends_with(CLEANED) || entry.name.ends_with(SWAP)) && !keep {
            remove(disk, &dir.join(&entry.name))?;
        }
    }
    for base in &finished {
        let last = last_offset(disk, dir, *base)?;
        for entry in &entries {
            if let Some((old, kind)) = SegmentFile::parse(&entry.name)
                && kind != SegmentFile::Snapshot
                && old >= *base
                && last.is_some_and(|last| old <= last)
            {
                remove(disk, &dir.join(&entry.name))?;
            }
        }
        for (_, kind) in with(SWAP).filter(|(swap, _)| swap == base) {
            let path = kind.path(dir, *base);
            let from = dir.join(format!("{:020}.{}{SWAP}", base.0, kind.suffix()));
            disk.rename(&from, &path).at(DiskOp::Rename, &path)?;
        }
    }
    disk.sync_dir(dir).at(DiskOp::SyncDir, dir)
}

/// Last offset of a finished segment.
fn last_offset(disk: &dyn Disk, dir: &Path, base: Offset) -> Result<Option<Offset>, LogError> {
    let path = dir.join(format!("{:020}.{}{SWAP}", base.0, SegmentFile::Log.suffix()));
    let file = disk.open(&path, OpenMode::Read).at(DiskOp::Open, &path)?;
    let size = file.size().at(DiskOp::Read, &path)?;
    let mut walk = HeaderWalk::new(&*file, &path, base, size, Place { position: 0, offset: base });
    let mut last = None;
    while let Ok(Some((_, header))) = walk.next() {
        last = Some(header.last_offset());
    }
    Ok(last)
}
