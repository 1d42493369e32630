use super::*;
use crate::testing::raw;
use minikafka_model::batch::Batch;

#[test]
fn what_was_appended_can_be_read_across_segments() {
    let disk = new_disk();
    let (mut log, report) = open(&disk, unclean(0));
    assert_eq!((report.log_start, report.log_end), (Some(Offset(0)), Some(Offset(0))));
    fill(&mut log, 0, 30, 20);
    assert_eq!(log.end_offset(), Offset(90));
    assert!(log.segment_count() > 3, "{}", log.segment_count());
    let all = read_all(&log);
    assert_eq!(offsets(&all), (0..30).map(|batch| batch * 3).collect::<Vec<_>>());
    assert_eq!(all[7], raw(21, 0, 3, 20, None));
    check_epochs(&log);
}

#[test]
fn a_read_is_bounded_by_bytes_and_by_an_offset() {
    let disk = new_disk();
    let (mut log, _) = open_with(&disk, LogConfig::default(), unclean(0)).unwrap();
    fill(&mut log, 0, 10, 20);
    let size = raw(0, 0, 3, 20, None).len();
    let reader = log.reader();
    let read = |from, max_bytes, upto, at_least_one| {
        reader.read(Offset(from), ReadLimit { max_bytes, upto: Offset(upto), at_least_one }).unwrap()
    };
    assert_eq!(read(0, size * 2 + 1, 30, false).records.len(), size * 2, "whole batches only");
    assert_eq!(read(0, size * 2, 30, false).end, Some(Offset(6)));
    assert_eq!(read(4, size, 30, false).end, Some(Offset(6)), "the batch that holds the offset");
    assert_eq!(read(0, size - 1, 30, false).end, None);
    assert_eq!(read(0, size - 1, 30, true).end, Some(Offset(3)), "at least one");
    assert_eq!(read(0, 10_000, 7, true).end, Some(Offset(6)), "nothing that reaches the limit");
    assert_eq!(read(6, 10_000, 7, true).end, None);
    assert_eq!(read(30, 10_000, 30, true).end, None, "the log end");
    let outside = reader.read(Offset(31), ReadLimit { max_bytes: 1, upto: Offset(30), at_least_one: true });
    assert!(matches!(outside, Err(LogError::OutOfRange { .. })));
    for cut in 0..size * 3 {
        let records = read(0, cut, 30, false).records;
        assert_eq!(records.len() % size, 0);
    }
}

#[test]
fn offsets_may_be_missing_but_never_fall_back() {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    log.append(&[batch(5, 0, 2, 10), batch(20, 1, 3, 10)], now()).unwrap();
    assert_eq!(log.end_offset(), Offset(23));
    assert!(matches!(log.append(&[batch(22, 1, 1, 10)], now()), Err(LogError::NotBehindEnd { .. })));
    assert!(matches!(
        log.append(&[batch(30, 1, 1, 1), batch(30, 1, 1, 1)], now()),
        Err(LogError::NotBehindEnd { .. })
    ));
    assert_eq!(log.end_offset(), Offset(23), "nothing of a bad call is written");
    let read = log
        .reader()
        .read(Offset(8), ReadLimit { max_bytes: 999, upto: Offset(23), at_least_one: true })
        .unwrap();
    assert_eq!(
        BatchHeader::parse(&read.records).unwrap().base_offset,
        Offset(20),
        "the first after the hole"
    );
    assert_eq!(epochs(&log), [(0, 5), (1, 20)]);
}

#[test]
fn an_offset_too_far_from_the_base_begins_a_segment() {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    let far = 1 << 40;
    log.append(&[batch(far, 0, 1, 1)], now()).unwrap();
    assert_eq!((log.first_segment(), log.segment_count()), (Offset(far), 1), "the empty one is replaced");
    log.append(&[batch(far * 2, 0, 1, 1)], now()).unwrap();
    assert_eq!(log.segment_count(), 2);
    assert_eq!(offsets(&read_from(&log, far)), [far]);
}

fn read_from(log: &Log, from: i64) -> Vec<Bytes> {
    let limit = ReadLimit { max_bytes: 9999, upto: log.end_offset(), at_least_one: true };
    let read = log.reader().read(Offset(from), limit).unwrap();
    split_batches(read.records).map(Result::unwrap).collect()
}

#[test]
fn an_empty_follower_takes_a_batch_that_begins_before_its_end() {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    let _ = log.truncate_fully_at(Offset(7), now()).unwrap();
    log.append(&[batch(0, 2, 10, 1)], now()).unwrap();
    assert_eq!((log.start_offset(), log.end_offset()), (Offset(0), Offset(10)));
    let _ = log.advance_start(Offset(7)).unwrap();
    assert_eq!(epochs(&log), [(2, 7)]);
    assert_eq!(offsets(&read_all(&log)), [0]);
}

#[test]
fn segments_roll_by_time_and_when_an_index_is_full() {
    let disk = new_disk();
    let config = LogConfig { segment_ms: 10, ..LogConfig::default() };
    let (mut log, _) = open_with(&disk, config, unclean(0)).unwrap();
    // Each record is a millisecond later than the one before.
    fill(&mut log, 0, 4, 1);
    assert_eq!(log.segment_count(), 1);
    fill(&mut log, 0, 1, 1);
    assert_eq!(log.segment_count(), 2);

    let disk = new_disk();
    let config = LogConfig { index_interval_bytes: 0, segment_index_bytes: 48, ..LogConfig::default() };
    let (mut log, _) = open_with(&disk, config, unclean(0)).unwrap();
    fill(&mut log, 0, 12, 1);
    assert!(log.segment_count() >= 3);
}

#[test]
fn a_prepared_segment_is_used_by_the_roll() {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    assert!(!log.needs_next_segment());
    fill(&mut log, 0, 4, 20);
    assert!(log.needs_next_segment());
    let prepared = log.next_segment().run().unwrap();
    log.install_next(prepared);
    assert!(!log.needs_next_segment());
    fill(&mut log, 0, 10, 20);
    assert!(log.segment_count() > 1);
    assert!(disk.files().iter().all(|(path, _)| !path.to_string_lossy().contains("prepared")));
    assert_eq!(read_all(&log).len(), 14);
}

#[test]
fn records_are_found_by_their_time() {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    fill(&mut log, 3, 20, 20);
    let reader = log.reader();
    let at = |offset: i64| WallMs(EPOCH_MS + offset);
    for offset in 0..60 {
        let hit = reader.lookup_time(at(offset)).unwrap().unwrap();
        assert_eq!(
            (hit.offset, hit.timestamp, hit.leader_epoch),
            (Offset(offset), at(offset), Some(LeaderEpoch(3)))
        );
    }
    assert_eq!(reader.lookup_time(at(60)).unwrap(), None);
    assert_eq!(reader.lookup_time(WallMs(0)).unwrap().unwrap().offset, Offset(0));
    assert_eq!(reader.max_timestamp().unwrap().unwrap().offset, Offset(59));
    let _ = log.advance_start(Offset(31)).unwrap();
    let reader = log.reader();
    assert_eq!(reader.lookup_time(at(3)).unwrap().unwrap().offset, Offset(31), "not below the log start");
}

#[test]
fn a_batch_in_the_past_does_not_move_the_largest_timestamp() {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    fill(&mut log, 0, 2, 1);
    let mut late = raw(0, 0, 1, 1, None).to_vec();
    late[0..8].copy_from_slice(&6i64.to_be_bytes());
    let late = Batch::from_leader(Bytes::from(late)).unwrap();
    log.append(&[late], now()).unwrap();
    let reader = log.reader();
    assert_eq!(reader.max_timestamp().unwrap().unwrap().offset, Offset(5));
    assert_eq!(reader.lookup_time(WallMs(EPOCH_MS + 1)).unwrap().unwrap().offset, Offset(1));
}

#[test]
fn an_append_is_one_write() {
    let disk = new_disk();
    let (mut log, _) = open_with(&disk, LogConfig::default(), unclean(0)).unwrap();
    let before = disk.ops();
    fill(&mut log, 0, 10, 500);
    assert_eq!(disk.ops() - before, 10);
    let many: Vec<_> = (0..5).map(|i| batch(30 + i, 0, 1, 10)).collect();
    log.append(&many, now()).unwrap();
    assert_eq!(disk.ops() - before, 11, "several batches of a call too");
}
