//! Errors of the disk: the nth operation fails, for every n.

use super::*;
use crate::Reach;

fn filled() -> (SimDisk, Log) {
    let disk = new_disk();
    let (mut log, _) = open(&disk, unclean(0));
    fill(&mut log, 0, 3, 20);
    (disk, log)
}

#[test]
fn without_space_the_file_is_cut_back_and_the_log_goes_on() {
    let (disk, mut log) = filled();
    let before = (read_all(&log), log.size(), epochs(&log));
    disk.fail_next(SimOp::Write, SimFault::NoSpace);
    let error = log.append(&[batch(9, 1, 3, 20)], now()).unwrap_err();
    assert!(matches!(error, LogError::OutOfSpace { .. }), "{error}");
    assert_eq!(error.reach(), Reach::Call);
    assert_eq!((read_all(&log), log.size(), epochs(&log)), before);
    let size = disk.content(&Path::new(DIR).join("00000000000000000000.log")).unwrap().len();
    assert_eq!(size as u64, log.size(), "nothing of the batch is left in the file");
    log.append(&[batch(9, 1, 3, 20)], now()).unwrap();
    disk.process_crash();
    let (log, report) = open(&disk, unclean(0));
    assert_eq!((log.end_offset(), report.torn), (Offset(12), None));
}

#[test]
fn a_full_disk_refuses_appends_until_there_is_space() {
    let (disk, mut log) = filled();
    let used: u64 = 9 * 100;
    disk.set_capacity(Some(used));
    let error = log.append(&[batch(9, 0, 3, 200)], now()).unwrap_err();
    assert!(matches!(error, LogError::OutOfSpace { wanted, .. } if wanted > 600), "{error}");
    disk.set_capacity(None);
    log.append(&[batch(9, 0, 3, 200)], now()).unwrap();
    assert_eq!(log.end_offset(), Offset(12));
}

#[test]
fn an_error_of_the_device_takes_the_directory_offline() {
    let (disk, mut log) = filled();
    disk.fail_next(SimOp::Write, SimFault::Io);
    let error = log.append(&[batch(9, 0, 3, 20)], now()).unwrap_err();
    assert_eq!(error.reach(), Reach::Directory);
    assert!(matches!(log.append(&[batch(9, 0, 3, 20)], now()), Err(LogError::Offline { .. })));
    assert!(matches!(log.truncate_to(Offset(3), now()), Err(LogError::Offline { .. })));
    assert_eq!(read_all(&log).len(), 3, "reads go on");
}

#[test]
fn a_failed_sync_is_final() {
    let (disk, mut log) = filled();
    disk.fail_next(SimOp::Sync, SimFault::Io);
    let error = log.sync_plan(SyncUpto::End).unwrap().run().unwrap_err();
    assert_eq!(error.reach(), Reach::Directory);
    assert!(matches!(log.sync(), Err(LogError::Offline { .. })), "it is not retried");
    assert!(matches!(log.append(&[batch(9, 0, 3, 20)], now()), Err(LogError::Offline { .. })));
    assert_eq!(log.recovery_point(), Offset(0));
    assert!(log.close().is_err());
}

#[test]
fn short_reads_are_read_on() {
    let (disk, log) = filled();
    disk.set_short_reads(true);
    assert_eq!(read_all(&log).len(), 3);
    drop(log);
    disk.process_crash();
    assert_eq!(open(&disk, unclean(0)).0.end_offset(), Offset(9));
}

/// A day in the life of a log. What was acknowledged is kept in `acked`, what was made durable in `durable`.
fn live(disk: &SimDisk, acked: &mut Offset, durable: &mut Offset) -> Result<(), LogError> {
    let (mut log, _) = open_with(disk, small(), unclean(0))?;
    let append = |log: &mut Log, epoch, acked: &mut Offset| {
        let batch = batch(log.end_offset().0, epoch, 3, 20);
        log.append(&[batch], now()).map(|appended| *acked = Offset(appended.unwrap().last_offset.0 + 1))
    };
    for _ in 0..6 {
        append(&mut log, 0, acked)?;
    }
    if let Some(epochs) = log.assign_epoch(LeaderEpoch(2), log.end_offset()) {
        epochs.run()?;
    }
    log.install_next(log.next_segment().run()?);
    for _ in 0..6 {
        append(&mut log, 2, acked)?;
    }
    if let Some(plan) = log.sync_plan(SyncUpto::Sealed) {
        let synced = plan.run()?;
        log.synced(synced);
        *durable = log.recovery_point();
    }
    *acked = Offset(27);
    *durable = (*durable).min(Offset(27));
    log.truncate_to(Offset(27), now())?.removal.run(disk)?;
    for _ in 0..3 {
        append(&mut log, 3, acked)?;
    }
    log.sync()?;
    *durable = log.recovery_point();
    log.recovery_point_saved(*durable)?;
    *durable = log.close()?;
    Ok(())
}

#[test]
fn whichever_operation_fails_nothing_acknowledged_is_lost() {
    for fault in [SimFault::Io, SimFault::NoSpace, SimFault::Crash] {
        for nth in 1.. {
            let disk = new_disk();
            let start = disk.ops();
            disk.fail_op(nth, fault);
            let (mut acked, mut durable) = (Offset(0), Offset(0));
            let outcome = live(&disk, &mut acked, &mut durable);
            let finished = disk.ops() - start < nth;
            if finished {
                outcome.unwrap();
                assert!(nth > 50, "only {nth} operations");
                break;
            }
            let crashed = disk.clone();
            crashed.process_crash();
            let (log, _) = open_with(&crashed, small(), unclean(durable.0))
                .unwrap_or_else(|error| panic!("{fault:?} at operation {nth}: {error}"));
            assert!(
                log.end_offset() >= acked,
                "{fault:?} at operation {nth}: {} < {acked}",
                log.end_offset()
            );
            read_all(&log);
            check_epochs(&log);
        }
    }
}

#[test]
fn whichever_operation_fails_nothing_synced_is_lost_with_the_power() {
    for nth in 1.. {
        for unsynced in [Unsynced::Lost, Unsynced::Torn(nth), Unsynced::Torn(nth + 1000)] {
            let disk = new_disk();
            let start = disk.ops();
            disk.fail_op(nth, SimFault::Crash);
            let (mut acked, mut durable) = (Offset(0), Offset(0));
            let _ = live(&disk, &mut acked, &mut durable);
            if disk.ops() - start < nth {
                return;
            }
            disk.power_loss(unsynced);
            let (log, _) = open_with(&disk, small(), unclean(durable.0))
                .unwrap_or_else(|error| panic!("{unsynced:?} at operation {nth}: {error}"));
            assert!(log.end_offset() >= durable, "operation {nth}: {} < {durable}", log.end_offset());
            read_all(&log);
            check_epochs(&log);
        }
    }
}

/// A log that was synced to 27, cut to 9 and gone on with in a new segment whose name became durable while the cut did not.
#[test]
fn batches_of_a_time_before_a_cut_do_not_come_back_below_a_newer_segment() {
    let disk = new_disk();
    let config = LogConfig { segment_bytes: 1 << 20, ..small() };
    let (mut log, _) = open_with(&disk, config.clone(), unclean(0)).unwrap();
    fill(&mut log, 0, 9, 20);
    log.sync().unwrap();
    let durable = log.recovery_point();
    assert_eq!(durable, Offset(27));
    let _ = log.truncate_to(Offset(9), now()).unwrap();
    log.set_config(LogConfig { segment_bytes: 300, ..small() });
    fill(&mut log, 1, 2, 20);
    assert_eq!((log.segment_count(), log.newest().base), (2, Offset(9)));
    log.epoch_checkpoint().run().unwrap();
    disk.power_loss(Unsynced::Lost);
    let (log, report) = open_with(&disk, config, unclean(durable.0)).unwrap();
    assert_eq!((log.end_offset(), log.segment_count()), (Offset(9), 2));
    assert!(report.stale_bytes > 0);
    assert_eq!(offsets(&read_all(&log)), [0, 3, 6]);
    check_epochs(&log);
}
