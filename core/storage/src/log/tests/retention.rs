use super::*;

fn config() -> LogConfig {
    LogConfig { retention_ms: None, ..small() }
}

fn filled(config: LogConfig) -> (SimDisk, Log) {
    let disk = new_disk();
    let (mut log, _) = open_with(&disk, config, unclean(0)).unwrap();
    fill(&mut log, 1, 40, 20);
    (disk, log)
}

fn bases(log: &Log) -> Vec<i64> {
    log.segments.iter().map(|segment| segment.base.0).collect()
}

#[test]
fn old_segments_go_but_none_that_reaches_the_high_watermark() {
    // All records are older than a second.
    let later = WallMs(EPOCH_MS + 5000);
    let (disk, mut log) = filled(LogConfig { retention_ms: Some(1000), ..small() });
    let before = bases(&log);
    assert!(log.retain(WallMs(EPOCH_MS + 900), log.end_offset()).unwrap().deleted.is_empty());
    let retained = log.retain(later, Offset(before[2])).unwrap();
    assert_eq!(retained.deleted.iter().map(|it| it.base.0).collect::<Vec<_>>(), before[..2]);
    assert!(matches!(retained.deleted[0].reason, DeletionReason::Time { .. }));
    assert_eq!((bases(&log), log.start_offset()), (before[2..].to_vec(), Offset(before[2])));
    assert_eq!(epochs(&log), [(1, before[2])]);
    assert!(retained.removal.paths.iter().all(|path| disk.exists(path).unwrap()));
    retained.removal.run(&disk).unwrap();
    assert!(disk.files().iter().all(|(path, _)| path.extension().is_none_or(|e| e != "deleted")));
    check_epochs(&log);
    // Wholly expired: even the newest one goes, after a roll.
    let retained = log.retain(later, log.end_offset()).unwrap();
    assert_eq!((log.segment_count(), log.start_offset(), log.end_offset()), (1, Offset(120), Offset(120)));
    assert_eq!(retained.deleted.len(), before.len() - 2);
    assert!(log.retain(later, log.end_offset()).unwrap().deleted.is_empty(), "an empty one stays");
}

#[test]
fn a_log_that_is_too_large_loses_whole_segments() {
    let (_, mut log) = filled(config());
    let (sizes, before): (Vec<u64>, _) =
        (log.segments.iter().map(|segment| segment.size()).collect(), bases(&log));
    let limit = log.size() - sizes[0] - sizes[1] - 1;
    log.set_config(LogConfig { retention_bytes: Some(limit), ..config() });
    let retained = log.retain(now(), log.end_offset()).unwrap();
    assert_eq!(retained.deleted.len(), 2, "a third would take the log below the limit");
    assert!(matches!(retained.deleted[1].reason, DeletionReason::Size { .. }));
    assert_eq!(bases(&log), before[2..]);
}

#[test]
fn segments_below_the_log_start_go_whatever_the_policy() {
    let (disk, mut log) = filled(LogConfig { delete: false, ..small() });
    let before = bases(&log);
    let _ = log.advance_start(Offset(before[2] + 1)).unwrap();
    assert_eq!(log.start_to_checkpoint(), Some(Offset(before[2] + 1)));
    let retained = log.retain(WallMs(i64::MAX), log.end_offset()).unwrap();
    assert_eq!(
        retained.deleted.iter().map(|it| it.reason).collect::<Vec<_>>(),
        [DeletionReason::LogStart; 2]
    );
    assert_eq!((bases(&log)[0], log.start_offset()), (before[2], Offset(before[2] + 1)));
    assert!(log.advance_start(Offset(999)).is_err());
    let snapshots =
        disk.files().into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "snapshot"));
    assert!(snapshots.into_iter().all(|(path, _)| {
        crate::segment::names::SegmentFile::parse(path.file_name().unwrap().to_str().unwrap()).unwrap().0
            >= Offset(before[2])
    }));
}

#[test]
fn records_without_a_time_age_by_their_file() {
    let disk = new_disk();
    let config = LogConfig { retention_ms: Some(1000), ..small() };
    let (mut log, _) = open_with(&disk, config, unclean(0)).unwrap();
    let mut bytes = batch(0, 0, 3, 10).into_bytes().to_vec();
    bytes[35..43].copy_from_slice(&(-1i64).to_be_bytes());
    let crc = minikafka_model::batch::crc_of(&bytes);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    log.append(&[minikafka_model::batch::Batch::from_leader(Bytes::from(bytes)).unwrap()], now()).unwrap();
    assert!(log.retain(now(), Offset(3)).unwrap().deleted.is_empty(), "nothing is known");
    disk.set_modified(Some(WallMs(now().0 - 1001)));
    assert_eq!(log.retain(now(), Offset(3)).unwrap().deleted.len(), 1);
}

#[test]
fn a_reader_goes_on_reading_deleted_segments() {
    let (disk, mut log) = filled(LogConfig { retention_ms: Some(1000), ..small() });
    let reader = log.reader();
    log.retain(WallMs(EPOCH_MS + 5000), log.end_offset()).unwrap().removal.run(&disk).unwrap();
    let limit = ReadLimit { max_bytes: 100, upto: Offset(90), at_least_one: true };
    assert_eq!(reader.read(Offset(0), limit).unwrap().end, Some(Offset(3)));
}
