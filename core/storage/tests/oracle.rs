//! The folders that Apache Kafka 4.4.0 itself wrote (`tests/oracle/disk`): stopped in order, killed, torn by hand, and as Kafka left
//! them after its own recovery. What we find in them, and what we make of them, must be the same.
#![allow(clippy::disallowed_methods, reason = "the recorded files are read from the disk")]

mod oracle_texts;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use minikafka_model::batch::{Batch, BatchHeader, split_batches};
use minikafka_model::{BrokerEpoch, ClusterId, Offset, PartitionIndex, WallMs};
use minikafka_storage::dump::{self, DumpError, Facts};
use minikafka_storage::{
    Checkpoint, Contents, DirectoryError, Disk, Log, LogConfig, LogDirectory, LogError, ReadLimit,
    RecoveryReport, SimDisk, SnapshotEntry, snapshot_from_bytes, snapshot_to_bytes,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle/disk");
const CLUSTER: &str = "4L6g3nShT-eMCtK--X86sw";
/// Shortly after the last stop, so that only producers with records of 2023 have expired.
const NOW: WallMs = WallMs(1_796_073_400_000);
const PARTITIONS: [&str; 5] = ["appendtime", "compacted", "golden", "trimmed", "untouched"];

fn recorded(path: &str) -> Vec<u8> {
    std::fs::read(Path::new(ROOT).join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The folder on a disk in memory, without what the recorder added and without Kafka's metadata log.
fn load(disk: &SimDisk, folder: &str) {
    let root = Path::new(ROOT).join(folder);
    for path in files_below(&root) {
        let inside = path.strip_prefix(&root).unwrap();
        if path.extension().is_some_and(|e| e == "txt") || inside.starts_with("__cluster_metadata-0") {
            continue;
        }
        disk.put(&Path::new("/data").join(inside), &std::fs::read(&path).unwrap());
    }
}

fn disk_with(folder: &str) -> SimDisk {
    let disk = SimDisk::new();
    load(&disk, folder);
    disk
}

fn open_directory(disk: &SimDisk) -> (LogDirectory, Contents) {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    LogDirectory::open(&disk, Path::new("/data"), Some(&ClusterId(CLUSTER.to_owned())), 1).unwrap()
}

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 16384,
        index_interval_bytes: 1024,
        segment_index_bytes: 4096,
        ..LogConfig::default()
    }
}

fn open(directory: &LogDirectory, contents: &Contents, topic: &str) -> (Log, RecoveryReport) {
    let folder = contents.partitions.iter().find(|folder| folder.topic == topic).unwrap();
    directory.open_partition(folder, config(), NOW).unwrap()
}

fn epochs(log: &Log) -> Vec<(i32, i64)> {
    log.epochs().entries().iter().map(|entry| (entry.epoch.0, entry.start.0)).collect()
}

fn sorted(mut entries: Vec<SnapshotEntry>) -> Vec<SnapshotEntry> {
    entries.sort_by_key(|entry| entry.producer);
    entries
}

fn producers(path: &str) -> Vec<SnapshotEntry> {
    sorted(snapshot_from_bytes(&recorded(path)).unwrap())
}

fn content(disk: &SimDisk, path: &str) -> Vec<u8> {
    disk.content(&Path::new("/data").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read_all(log: &Log) -> Vec<Bytes> {
    let (reader, mut batches) = (log.reader(), Vec::new());
    let mut from = reader.start_offset();
    let limit = ReadLimit { max_bytes: 1 << 20, upto: reader.end_offset(), at_least_one: true };
    loop {
        let read = reader.read(from, limit).unwrap();
        batches.extend(split_batches(read.records).map(Result::unwrap));
        match read.end {
            Some(end) => from = end,
            None => return batches,
        }
    }
}

#[test]
fn every_file_has_the_facts_that_kafkas_dump_tool_printed() {
    let mut compared = 0;
    for text in files_below(Path::new(ROOT)) {
        let name = text.to_string_lossy().into_owned();
        let Some(file) = name.strip_suffix(".dump.txt") else { continue };
        if file.contains("__cluster_metadata-0") {
            continue;
        }
        let disk = SimDisk::new();
        disk.put(Path::new(file), &std::fs::read(file).unwrap());
        let facts = dump::dump_file(&disk, Path::new(file), true).unwrap_or_else(|error| panic!("{error}"));
        let kafkas = std::fs::read_to_string(&text).unwrap();
        oracle_texts::compare(Path::new(file), &facts, &kafkas);
        compared += 1;
    }
    assert!(compared > 70, "only {compared} files were compared");
}

#[test]
fn kafkas_own_metadata_log_is_refused_by_name() {
    let disk = disk_with("clean");
    let path = Path::new("/data/__cluster_metadata-0/00000000000000000000.log");
    disk.put(path, &recorded("clean/__cluster_metadata-0/00000000000000000000.log"));
    let mark = path.with_file_name("partition.metadata");
    disk.put(&mark, &recorded("clean/__cluster_metadata-0/partition.metadata"));
    assert!(matches!(dump::dump_file(&disk, path, false), Err(DumpError::KafkaMetadataLog { .. })));
    let own: Arc<dyn Disk> = Arc::new(disk.clone());
    let refused = LogDirectory::open(&own, Path::new("/data"), None, 1).unwrap_err();
    assert!(matches!(refused, DirectoryError::KafkaMetadataLog { .. }), "{refused}");
    assert!(disk.exists(Path::new("/data/.kafka_cleanshutdown")).unwrap(), "and nothing was touched");
    disk.remove_file(&mark).unwrap();
    let (_, contents) = LogDirectory::open(&own, Path::new("/data"), None, 1).unwrap();
    assert_eq!(contents.partitions.len(), 5, "one of ours is passed over");
}

#[test]
fn a_folder_that_was_stopped_in_order_is_trusted_and_stays_as_it_is() {
    let disk = disk_with("clean");
    let before = disk.copy();
    let (directory, contents) = open_directory(&disk);
    assert_eq!(contents.clean.unwrap().broker_epoch, Some(BrokerEpoch(446)));
    assert!(!disk.exists(Path::new("/data/.kafka_cleanshutdown")).unwrap());
    assert_eq!(
        contents.partitions.iter().map(|folder| folder.topic.as_str()).collect::<Vec<_>>(),
        PARTITIONS
    );
    let golden = contents.partitions.iter().find(|folder| folder.topic == "golden").unwrap();
    assert_eq!(golden.topic_id.unwrap().to_string(), "svtsuzFzTkePIdsjic5ieQ");

    type Expected = (&'static str, i64, i64, &'static [(i32, i64)]);
    let expected: [Expected; 5] = [
        ("appendtime", 0, 3, &[(1, 0)]),
        ("compacted", 0, 96, &[(1, 0)]),
        ("golden", 0, 232, &[(0, 0), (1, 181), (2, 193), (3, 205), (4, 217)]),
        ("trimmed", 7, 10, &[(1, 7)]),
        ("untouched", 0, 0, &[]),
    ];
    for (topic, start, end, history) in expected {
        let (log, report) = open(&directory, &contents, topic);
        assert_eq!(report.scanned_segments, 0, "{topic} is trusted");
        assert_eq!(report.epochs_rebuilt, None, "{topic}");
        assert_eq!((log.start_offset(), log.end_offset()), (Offset(start), Offset(end)), "{topic}");
        assert_eq!(epochs(&log), history, "{topic}");
        assert_eq!(report.high_watermark, Some(Offset(end)), "{topic}");
        assert_eq!(log.recovery_point(), Offset(end), "{topic}");
        if topic == "golden" {
            let known = log.producers().to_snapshot();
            assert_eq!(known, producers("clean/golden-0/00000000000000000232.snapshot"));
        }
        assert_eq!(log.close().unwrap(), Offset(end), "{topic}");
    }
    // Closed again, every file of the partitions is what Kafka wrote, but for the snapshot of a stop that no start needs any more.
    for (path, _) in before.files() {
        let kept = !path.ends_with(".kafka_cleanshutdown")
            && !path.ends_with("golden-0/00000000000000000205.snapshot");
        if kept {
            assert_eq!(disk.content(&path).unwrap(), before.content(&path).unwrap(), "{}", path.display());
        }
    }
    directory.mark_clean(Some(BrokerEpoch(446))).unwrap();
    assert_eq!(content(&disk, ".kafka_cleanshutdown"), recorded("clean/.kafka_cleanshutdown"));
}

#[test]
fn a_folder_that_was_killed_is_recovered_to_what_was_written() {
    let disk = disk_with("killed");
    let (directory, contents) = open_directory(&disk);
    assert_eq!(contents.clean, None);
    let recovery_point = directory.checkpointed(Checkpoint::RecoveryPoint, "golden", PartitionIndex(0));
    assert_eq!(recovery_point, Some(Offset(232)));
    type Expected = (&'static str, i64, i64, &'static [(i32, i64)]);
    let expected: [Expected; 5] = [
        ("appendtime", 0, 3, &[(1, 0)]),
        ("compacted", 0, 96, &[(1, 0)]),
        ("golden", 0, 259, &[(0, 0), (1, 181), (2, 193), (3, 205), (4, 217), (6, 232)]),
        ("trimmed", 7, 10, &[(1, 7)]),
        ("untouched", 0, 0, &[]),
    ];
    for (topic, start, end, history) in expected {
        let (log, report) = open(&directory, &contents, topic);
        assert_eq!((log.start_offset(), log.end_offset()), (Offset(start), Offset(end)), "{topic}");
        assert_eq!(epochs(&log), history, "{topic}");
        assert_eq!(report.torn, None, "{topic}");
        assert_eq!(report.scanned_segments, 1, "{topic}: from the recovery point on");
        assert_eq!(report.epochs_rebuilt, None, "{topic}");
        if topic == "golden" {
            assert_eq!(report.high_watermark, Some(Offset(232)), "as checkpointed");
            // The last batches carry no producer id: Kafka's snapshot of 253 says the same.
            // A snapshot keeps one timestamp of a producer.
            let known = snapshot_from_bytes(&snapshot_to_bytes(&log.producers().to_snapshot())).unwrap();
            assert_eq!(known, producers("torn-after/golden-0/00000000000000000253.snapshot"));
        }
        log.close().unwrap();
    }
    let log = "golden-0/00000000000000000175.log";
    assert_eq!(content(&disk, log), recorded(&format!("killed/{log}")), "no batch was touched");
    let index = Path::new("/data/golden-0/00000000000000000175.index");
    let Facts::Index(index) = dump::dump_file(&disk, index, false).unwrap() else { panic!("an index") };
    let entries: Vec<(i64, u32)> = index.entries.iter().map(|entry| (entry.offset, entry.position)).collect();
    assert_eq!(entries, [(204, 4540), (228, 8955), (239, 10135), (246, 11449), (258, 13011)], "rebuilt");
}

#[test]
fn a_torn_folder_is_recovered_as_kafka_did_it() {
    let disk = disk_with("killed");
    for (path, _) in disk.files() {
        if path.starts_with("/data/golden-0") {
            disk.remove_file(&path).unwrap();
        }
    }
    load(&disk, "torn");
    let (directory, contents) = open_directory(&disk);
    let (mut log, report) = open(&directory, &contents, "golden");
    let torn = report.torn.unwrap();
    assert_eq!((torn.position, torn.offset, torn.bytes), (13011, Offset(253), 137));
    assert!(!torn.batches_follow && torn.later_segments.is_empty());
    assert_eq!(log.end_offset(), Offset(253));
    assert_eq!(report.high_watermark, Some(Offset(232)));
    assert_eq!(epochs(&log), [(0, 0), (1, 181), (2, 193), (3, 205), (4, 217), (6, 232)]);
    let after = |name: &str| recorded(&format!("torn-after/golden-0/{name}"));
    let snapshot = "00000000000000000253.snapshot";
    let written = snapshot_from_bytes(&content(&disk, &format!("golden-0/{snapshot}"))).unwrap();
    assert_eq!(sorted(written), producers(&format!("torn-after/golden-0/{snapshot}")));
    assert!(
        !disk.exists(Path::new("/data/golden-0/00000000000000000232.snapshot")).unwrap(),
        "it is rebuilt"
    );

    // The leader sends again what was torn.
    let lost = Bytes::from(recorded("killed/golden-0/00000000000000000175.log")[13011..].to_vec());
    log.append(&[Batch::from_leader(lost).unwrap()], NOW).unwrap();
    log.close().unwrap();
    for suffix in ["log", "index", "timeindex", "txnindex"] {
        let name = format!("00000000000000000175.{suffix}");
        assert_eq!(content(&disk, &format!("golden-0/{name}")), after(&name), "{name}");
    }
    assert_eq!(content(&disk, "golden-0/leader-epoch-checkpoint"), after("leader-epoch-checkpoint"));
}

#[test]
fn damage_below_the_recovery_point_is_an_error_and_nothing_is_cut() {
    let disk = disk_with("killed");
    let path = Path::new("/data/golden-0/00000000000000000175.log");
    disk.flip_bit(path, 9300, 3).unwrap();
    let before = disk.content(path).unwrap();
    let (directory, contents) = open_directory(&disk);
    let folder = contents.partitions.iter().find(|folder| folder.topic == "golden").unwrap();
    let error = directory.open_partition(folder, config(), NOW).unwrap_err();
    let LogError::Damaged { recovery_point, damage } = &error else { panic!("{error}") };
    assert!(damage.offset < *recovery_point && *recovery_point == Offset(232), "{error}");
    assert_eq!(disk.content(path).unwrap(), before);
    assert_eq!(open(&directory, &contents, "trimmed").0.end_offset(), Offset(10), "the others open");
}

#[test]
fn kafkas_batches_can_be_read_with_holes_and_by_time() {
    let disk = disk_with("clean");
    let (directory, contents) = open_directory(&disk);
    let (log, _) = open(&directory, &contents, "compacted");
    let batches = read_all(&log);
    let first = BatchHeader::parse(&batches[0]).unwrap();
    assert_eq!((batches.len(), first.base_offset, first.last_offset()), (5, Offset(56), Offset(63)));
    let hit = log.reader().lookup_time(WallMs(0)).unwrap().unwrap();
    assert_eq!(
        (hit.offset, hit.timestamp),
        (Offset(60), WallMs(1_700_000_000_704)),
        "the first that is left"
    );

    let (log, _) = open(&directory, &contents, "golden");
    let time = |millis| log.reader().lookup_time(WallMs(millis)).unwrap().unwrap().offset.0;
    assert_eq!(time(1_699_999_995_000), 0);
    assert_eq!(time(1_700_000_000_001), 1);
    assert_eq!(time(1_700_000_000_004), 4);
    assert_eq!(time(1_700_000_010_010), 16, "inside of a batch");
    assert_eq!(log.reader().max_timestamp().unwrap().unwrap().offset, Offset(231));
    let (log, _) = open(&directory, &contents, "appendtime");
    let hit = log.reader().max_timestamp().unwrap().unwrap();
    assert_eq!(hit.offset, Offset(0), "all records carry the time of the append");
}
