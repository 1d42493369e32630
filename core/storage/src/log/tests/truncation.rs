use super::*;
use crate::testing::raw;
use minikafka_model::batch::Batch;
use minikafka_model::{ProducerId, Sequence};

fn filled() -> (SimDisk, Log) {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    fill(&mut log, 1, 10, 20);
    fill(&mut log, 2, 10, 20);
    fill(&mut log, 5, 10, 20);
    (disk, log)
}

#[test]
fn the_end_is_cut_at_a_batch_and_the_rest_goes_on() {
    for to in (0..90).rev() {
        let (disk, mut log) = filled();
        let before = read_all(&log);
        let truncated = log.truncate_to(Offset(to), now()).unwrap();
        let end = to / 3 * 3;
        assert_eq!((truncated.from, truncated.end, log.end_offset()), (Offset(90), Offset(end), Offset(end)));
        assert_eq!(read_all(&log), before[..(end / 3) as usize]);
        check_epochs(&log);
        assert!(log.epochs().entries().iter().all(|entry| entry.start < Offset(end)), "to {to}");
        let largest = log.reader().max_timestamp().unwrap().map(|hit| hit.offset.0);
        assert_eq!(largest, (end > 0).then_some(end - 1));
        truncated.removal.run(&disk).unwrap();
        fill(&mut log, 7, 5, 20);
        assert_eq!(read_all(&log).len() as i64, end / 3 + 5);
        disk.process_crash();
        let (log, report) = open(&disk, unclean(0));
        assert_eq!((log.end_offset(), report.torn), (Offset(end + 15), None));
        check_epochs(&log);
    }
}

#[test]
fn nothing_is_cut_at_or_behind_the_end() {
    let (_, mut log) = filled();
    let truncated = log.truncate_to(Offset(90), now()).unwrap();
    assert!(truncated.removal.is_empty() && truncated.bytes == 0 && truncated.epochs.is_none());
    let reader = log.reader();
    assert!(!reader.is_stale());
}

#[test]
fn a_reader_of_a_truncated_log_says_so() {
    let (_, mut log) = filled();
    let reader = log.reader();
    let _ = log.truncate_to(Offset(50), now()).unwrap();
    let limit = ReadLimit { max_bytes: 100, upto: Offset(90), at_least_one: true };
    assert!(matches!(reader.read(Offset(80), limit), Err(LogError::Truncated)));
    assert!(matches!(reader.read(Offset(0), limit), Err(LogError::Truncated)));
    assert!(log.reader().read(Offset(0), limit).unwrap().end.is_some());
}

#[test]
fn a_log_can_begin_anew_elsewhere() {
    let (disk, mut log) = filled();
    let truncated = log.truncate_fully_at(Offset(500), now()).unwrap();
    assert_eq!((log.start_offset(), log.end_offset()), (Offset(500), Offset(500)));
    assert!(log.epochs().is_empty() && log.producers().entries().is_empty());
    truncated.removal.run(&disk).unwrap();
    log.append(&[batch(510, 9, 2, 5)], now()).unwrap();
    disk.process_crash();
    let (log, _) = open(&disk, unclean(0));
    assert_eq!(
        (log.start_offset(), log.end_offset(), epochs(&log)),
        (Offset(500), Offset(512), vec![(9, 510)])
    );
}

#[test]
fn a_cut_below_the_oldest_segment_begins_the_log_anew() {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    let _ = log.truncate_fully_at(Offset(100), now()).unwrap();
    fill(&mut log, 1, 3, 5);
    let truncated = log.truncate_to(Offset(60), now()).unwrap();
    assert_eq!((truncated.end, log.start_offset(), log.end_offset()), (Offset(60), Offset(60), Offset(60)));
}

#[test]
fn a_cut_below_the_recovery_point_is_no_loss_after_a_crash() {
    let (disk, mut log) = filled();
    log.sync().unwrap();
    assert_eq!(log.recovery_point(), Offset(90));
    let _ = log.truncate_to(Offset(30), now()).unwrap();
    assert_eq!(log.recovery_point(), Offset(30));
    disk.process_crash();
    // The checkpoint still says 90.
    let (mut log, report) = open(&disk, unclean(90));
    assert_eq!((log.end_offset(), log.recovery_point(), report.torn), (Offset(30), Offset(30), None));
    // Once a lower one is checkpointed the note goes, and a later loss is a loss.
    log.recovery_point_saved(log.recovery_point()).unwrap();
    disk.process_crash();
    let error = open_with(&disk, small(), unclean(90)).unwrap_err();
    assert!(matches!(error, LogError::Damaged { .. }), "{error}");
    assert_eq!(error.reach(), crate::Reach::Replica);
}

#[test]
fn a_sync_planned_before_a_cut_raises_no_recovery_point() {
    let (_, mut log) = filled();
    let plan = log.sync_plan(SyncUpto::End).unwrap();
    let _ = log.truncate_to(Offset(30), now()).unwrap();
    fill(&mut log, 6, 30, 20);
    let synced = plan.run().unwrap();
    log.synced(synced);
    assert!(log.recovery_point() <= Offset(30));
}

#[test]
fn producers_are_what_the_remaining_batches_say() {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    for i in 0..20 {
        let batch = Batch::from_leader(raw(i * 2, 0, 2, 30, Some((7, 0, i as i32 * 2)))).unwrap();
        log.append(&[batch], now()).unwrap();
    }
    let last =
        |log: &Log| log.producers().entries().get(&ProducerId(7)).and_then(|entry| entry.last_sequence());
    assert_eq!(last(&log), Some(Sequence(39)));
    for (to, sequence) in [(31, Some(29)), (14, Some(13)), (1, None)] {
        let _ = log.truncate_to(Offset(to), now()).unwrap();
        assert_eq!(last(&log), sequence.map(Sequence));
        disk.process_crash();
        log = open(&disk, unclean(0)).0;
        assert_eq!(last(&log), sequence.map(Sequence), "after a restart");
    }
}

#[test]
fn the_epoch_file_is_never_set_back() {
    let (disk, mut log) = filled();
    let old = log.epoch_checkpoint();
    let new = log.assign_epoch(LeaderEpoch(8), log.end_offset()).unwrap();
    assert!(log.assign_epoch(LeaderEpoch(8), log.end_offset()).is_none());
    assert!(!log.epoch_checkpoint_is_current());
    new.run().unwrap();
    old.run().unwrap();
    assert!(log.epoch_checkpoint_is_current());
    let text = disk.content(&Path::new(DIR).join("leader-epoch-checkpoint")).unwrap();
    assert_eq!(text, b"0\n4\n1 0\n2 30\n5 60\n8 90\n");
}
