//! One log on a disk in memory.

mod append;
mod damage;
mod faults;
mod model;
mod retention;
mod truncation;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use minikafka_model::batch::{BatchHeader, split_batches};
use minikafka_model::{LeaderEpoch, Offset, WallMs};

use super::*;
use crate::testing::{EPOCH_MS, batch};
use crate::{SimDisk, SimFault, SimOp, Unsynced};

const DIR: &str = "/data/t-0";

fn new_disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("/data")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk
}

fn now() -> WallMs {
    WallMs(EPOCH_MS + 1000)
}

/// Small segments and indexes, so that everything happens soon.
fn small() -> LogConfig {
    LogConfig {
        segment_bytes: 1000,
        index_interval_bytes: 100,
        segment_index_bytes: 480,
        ..LogConfig::default()
    }
}

fn unclean(recovery_point: i64) -> Opening {
    Opening {
        clean: false,
        recovery_point: Some(Offset(recovery_point)),
        start_offset: None,
        high_watermark: None,
        now: now(),
    }
}

fn clean(recovery_point: i64) -> Opening {
    Opening { clean: true, ..unclean(recovery_point) }
}

fn open_with(disk: &SimDisk, config: LogConfig, opening: Opening) -> Result<(Log, RecoveryReport), LogError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    Log::open(&disk, Path::new(DIR), config, opening)
}

fn open(disk: &SimDisk, opening: Opening) -> (Log, RecoveryReport) {
    open_with(disk, small(), opening).unwrap()
}

/// Appends `count` batches of three records with values of `value` bytes.
fn fill(log: &mut Log, epoch: i32, count: usize, value: usize) {
    for _ in 0..count {
        log.append(&[batch(log.end_offset().0, epoch, 3, value)], now()).unwrap();
    }
}

fn read_all(log: &Log) -> Vec<Bytes> {
    let reader = log.reader();
    let mut from = reader.start_offset();
    let mut batches = Vec::new();
    let limit = ReadLimit { max_bytes: 500, upto: reader.end_offset(), at_least_one: true };
    loop {
        let read = reader.read(from, limit).unwrap();
        let Some(end) = read.end else { break };
        batches.extend(split_batches(read.records).map(Result::unwrap));
        from = end;
    }
    let layout: Vec<_> =
        log.segments.iter().map(|it| (it.base, it.size(), it.with_indexes(Clone::clone))).collect();
    assert_eq!(from, reader.end_offset(), "the whole log can be read: {layout:?}");
    batches
}

fn offsets(batches: &[Bytes]) -> Vec<i64> {
    batches.iter().map(|batch| BatchHeader::parse(batch).unwrap().base_offset.0).collect()
}

fn epochs(log: &Log) -> Vec<(i32, i64)> {
    log.epochs().entries().iter().map(|entry| (entry.epoch.0, entry.start.0)).collect()
}

/// The history must be what a scan of the batches gives, but for one epoch at the end that has no batch yet.
fn check_epochs(log: &Log) {
    let mut scanned = Log::epochs_of_batches(&log.segments).unwrap();
    scanned.truncate_start(log.start_offset());
    scanned.truncate_end(log.end_offset());
    let known = log.epochs().entries();
    let scanned = scanned.entries();
    let extra = known.len() - scanned.len().min(known.len());
    assert!(extra <= 1, "{known:?} against {scanned:?}");
    assert_eq!(&known[..known.len() - extra], scanned);
    assert!(known.windows(2).all(|w| w[0].epoch < w[1].epoch && w[0].start <= w[1].start));
    if let (Some(first), Some(last)) = (known.first(), known.last()) {
        assert!(first.start >= log.start_offset() && last.start <= log.end_offset());
    }
}
