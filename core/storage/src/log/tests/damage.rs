//! Every file cut at every byte, and a bit of every byte flipped: what each means is one table. Nothing panics.

use super::*;
use crate::segment::names::SegmentFile;
use crate::testing::raw;
use minikafka_model::ErrorCode;
use minikafka_model::batch::Batch;

const RECOVERY_POINT: i64 = 12;

/// Two segments, closed in order: batches of three records, the second segment from offset 12 on. Idempotent producer 7.
fn closed() -> (SimDisk, Vec<Bytes>) {
    let disk = new_disk();
    let config =
        LogConfig { segment_bytes: 700, index_interval_bytes: 100, segment_index_bytes: 240, ..small() };
    let (mut log, _) = open_with(&disk, config, unclean(0)).unwrap();
    for i in 0..7 {
        let batch = Batch::from_leader(raw(i * 3, i as i32 / 3, 3, 20, Some((7, 0, i as i32 * 3)))).unwrap();
        log.append(&[batch], now()).unwrap();
    }
    assert_eq!((log.segment_count(), log.segments[1].base), (2, Offset(RECOVERY_POINT)));
    let batches = read_all(&log);
    log.close().unwrap();
    (disk, batches)
}

fn log_file(base: i64) -> std::path::PathBuf {
    SegmentFile::Log.path(Path::new(DIR), Offset(base))
}

/// Opens; whatever happens the batches of the log are a prefix of what was written.
fn reopen(disk: &SimDisk, opening: Opening, written: &[Bytes]) -> Result<(Log, RecoveryReport), LogError> {
    let (log, report) = open_with(disk, small(), opening)?;
    let read = read_all(&log);
    assert_eq!(read, written[..read.len()]);
    check_epochs(&log);
    Ok((log, report))
}

#[test]
fn a_cut_above_the_recovery_point_is_a_torn_tail() {
    let (disk, written) = closed();
    let path = log_file(RECOVERY_POINT);
    let content = disk.content(&path).unwrap();
    for cut in 0..content.len() {
        let disk = disk.copy();
        disk.put(&path, &content[..cut]);
        let (log, report) = reopen(&disk, unclean(RECOVERY_POINT), &written).unwrap();
        let whole = content.len() / 3;
        assert_eq!(log.end_offset(), Offset(RECOVERY_POINT + (cut / whole) as i64 * 3));
        match report.torn {
            None => assert_eq!(cut % whole, 0),
            Some(torn) => {
                assert_eq!((torn.position, torn.bytes), ((cut / whole * whole) as u64, (cut % whole) as u64));
                assert!(!torn.batches_follow);
            }
        }
        drop(log);
        let (log, report) = reopen(&disk, unclean(RECOVERY_POINT), &written).unwrap();
        assert!(report.torn.is_none(), "it was cut for good");
        drop(log);
    }
}

#[test]
fn a_cut_below_the_recovery_point_is_damage_and_changes_nothing() {
    let (disk, written) = closed();
    for base in [0, RECOVERY_POINT] {
        let path = log_file(base);
        let content = disk.content(&path).unwrap();
        for cut in 0..content.len() {
            let disk = disk.copy();
            disk.put(&path, &content[..cut]);
            // The recovery point lies in the segment that was cut, and behind the cut.
            let error = reopen(&disk, unclean(if base == 0 { 11 } else { 21 }), &written).unwrap_err();
            assert!(matches!(error, LogError::Damaged { .. }), "{error}");
            assert_eq!(disk.content(&path).unwrap(), content[..cut]);
            assert!(disk.content(&log_file(RECOVERY_POINT)).is_ok());
        }
    }
}

#[test]
fn a_flipped_bit_ends_the_log_above_the_recovery_point_and_is_damage_below() {
    let (disk, written) = closed();
    let path = log_file(RECOVERY_POINT);
    let size = disk.content(&path).unwrap().len();
    let batch = size / 3;
    for byte in 0..size {
        let bit = (byte % 8) as u32;
        let flipped = disk.copy();
        flipped.flip_bit(&path, byte, bit).unwrap();
        // Base offset and leader epoch are not covered by the checksum: a flip there need not be seen, but never by a panic.
        let covered = !(0..8).contains(&(byte % batch)) && !(12..16).contains(&(byte % batch));
        let outcome = open_with(&flipped.copy(), small(), unclean(21));
        if covered {
            let (log, report) = reopen(&flipped, unclean(RECOVERY_POINT), &written).unwrap();
            assert_eq!(log.end_offset(), Offset(RECOVERY_POINT + (byte / batch) as i64 * 3), "byte {byte}");
            assert!(report.torn.is_some());
            assert!(matches!(outcome, Err(LogError::Damaged { .. })), "byte {byte}");
        } else {
            let _ = open_with(&flipped, small(), unclean(RECOVERY_POINT));
        }
    }
}

#[test]
fn a_bad_batch_in_front_of_good_ones_is_told_apart_from_a_torn_tail() {
    let (disk, written) = closed();
    let path = log_file(RECOVERY_POINT);
    disk.flip_bit(&path, 70, 0).unwrap();
    let (_, report) = reopen(&disk, unclean(RECOVERY_POINT), &written).unwrap();
    assert!(report.torn.unwrap().batches_follow);

    let (disk, written) = closed();
    disk.flip_bit(&log_file(0), 70, 0).unwrap();
    let (log, report) = reopen(&disk, unclean(0), &written).unwrap();
    let torn = report.torn.unwrap();
    assert_eq!((log.end_offset(), torn.later_segments.len(), log.segment_count()), (Offset(0), 1, 1));
    assert!(report.removal.paths.iter().any(|path| path.ends_with("00000000000000000012.log.deleted")));
}

#[test]
fn indexes_are_rebuilt_whatever_they_hold() {
    let (disk, written) = closed();
    let find = |log: &Log| -> Vec<i64> {
        let reader = log.reader();
        (0..21).map(|it| reader.lookup_time(WallMs(EPOCH_MS + it)).unwrap().unwrap().offset.0).collect()
    };
    let expected: Vec<i64> = (0..21).collect();
    for base in [0, RECOVERY_POINT] {
        for kind in [SegmentFile::Index, SegmentFile::TimeIndex] {
            let path = kind.path(Path::new(DIR), Offset(base));
            let content = disk.content(&path).unwrap();
            assert!(!content.is_empty(), "{}", path.display());
            let mut variants: Vec<Vec<u8>> = (0..content.len()).map(|cut| content[..cut].to_vec()).collect();
            for bit in 0..content.len() * 8 {
                let mut flipped = content.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                variants.push(flipped);
            }
            variants.push(b"garbage, and more of it".to_vec());
            for variant in variants {
                let disk = disk.copy();
                disk.put(&path, &variant);
                let (log, _) = reopen(&disk, clean(21), &written).unwrap();
                assert_eq!(log.end_offset(), Offset(21));
                assert_eq!(find(&log), expected, "{} as {variant:?}", path.display());
            }
            let disk = disk.copy();
            disk.remove_file(&path).unwrap();
            let (log, _) = reopen(&disk, clean(21), &written).unwrap();
            assert_eq!(find(&log), expected);
            log.close().unwrap();
            assert_eq!(disk.content(&path).unwrap(), content, "{}", path.display());
        }
    }
}

#[test]
fn the_epoch_file_is_rebuilt_or_refused() {
    let (disk, written) = closed();
    let path = Path::new(DIR).join("leader-epoch-checkpoint");
    let content = disk.content(&path).unwrap();
    assert_eq!(content, b"0\n3\n0 0\n1 9\n2 18\n");
    for opening in [unclean(RECOVERY_POINT), clean(21)] {
        for cut in 0..content.len() {
            let disk = disk.copy();
            disk.put(&path, &content[..cut]);
            let (log, report) = reopen(&disk, opening, &written).unwrap();
            let told = report.epochs_rebuilt.is_some() || cut == content.len() - 1;
            assert!(told, "cut at {cut}: {report:?}");
            assert_eq!(epochs(&log), [(0, 0), (1, 9), (2, 18)]);
        }
        let disk = disk.copy();
        disk.remove_file(&path).unwrap();
        assert!(reopen(&disk, opening, &written).unwrap().1.epochs_rebuilt.is_some());
        disk.put(&path, b"1\n0\n");
        let error = reopen(&disk, opening, &written).unwrap_err();
        assert!(matches!(error, LogError::NewerFormat { found: 1, .. }), "{error}");
    }
    for bit in 0..content.len() * 8 {
        let disk = disk.copy();
        disk.flip_bit(&path, bit / 8, (bit % 8) as u32).unwrap();
        // Text has no checksum: a flip may give another history. It must not panic, and what is scanned must fit.
        let _ = open_with(&disk, small(), unclean(0));
    }
}

#[test]
fn a_bad_snapshot_is_replaced_by_an_older_one_or_by_the_batches() {
    let (disk, written) = closed();
    let path = SegmentFile::Snapshot.path(Path::new(DIR), Offset(21));
    let content = disk.content(&path).unwrap();
    let check = |disk: &SimDisk, bad: usize| {
        let (log, report) = reopen(disk, clean(21), &written).unwrap();
        assert_eq!(report.bad_snapshots, bad);
        let next = BatchHeader::parse(&raw(21, 0, 3, 1, Some((7, 0, 21)))).unwrap();
        assert_eq!(log.producers().validate(&next), crate::ProducerVerdict::Accept);
        let gap = BatchHeader::parse(&raw(21, 0, 3, 1, Some((7, 0, 24)))).unwrap();
        let crate::ProducerVerdict::Refuse(refusal) = log.producers().validate(&gap) else { panic!("a gap") };
        assert_eq!(refusal.code(), ErrorCode::OutOfOrderSequenceNumber);
    };
    for at in 0..content.len() {
        let cut = disk.copy();
        cut.put(&path, &content[..at]);
        check(&cut, 1);
        let flipped = disk.copy();
        flipped.flip_bit(&path, at, (at % 8) as u32).unwrap();
        check(&flipped, 1);
    }
    let older = SegmentFile::Snapshot.path(Path::new(DIR), Offset(RECOVERY_POINT));
    disk.flip_bit(&path, 3, 0).unwrap();
    disk.flip_bit(&older, 3, 0).unwrap();
    check(&disk, 2);
}

#[test]
fn the_note_of_a_truncation_is_versioned() {
    let (disk, written) = closed();
    let path = Path::new(DIR).join(truncate::TRUNCATION_NOTE);
    disk.put(&path, b"0\n1\n15\n");
    assert_eq!(reopen(&disk.copy(), unclean(21), &written).unwrap().0.recovery_point(), Offset(15));
    disk.put(&path, b"1\n1\n15\n");
    assert!(matches!(reopen(&disk, unclean(21), &written), Err(LogError::NewerFormat { .. })));
    disk.put(&path, b"0\n0\n");
    assert!(matches!(reopen(&disk, unclean(21), &written), Err(LogError::Malformed { .. })));
}

#[test]
fn leftovers_of_all_kinds_are_tidied_away() {
    let (disk, written) = closed();
    let dir = Path::new(DIR);
    for name in
        ["00000000000000000099.log.deleted", "prepared.log", "prepared.index", "leader-epoch-checkpoint.tmp"]
    {
        disk.put(&dir.join(name), b"x");
    }
    for name in
        ["00000000000000000077.index", "00000000000000000000.log.cleaned", "00000000000000000003.index.swap"]
    {
        disk.put(&dir.join(name), b"x");
    }
    disk.put(&dir.join("a file of the user's"), b"x");
    let (log, _) = reopen(&disk, clean(21), &written).unwrap();
    let known = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        SegmentFile::parse(name).is_some()
            || ["leader-epoch-checkpoint", "a file of the user's"].contains(&name)
    };
    assert!(disk.files().iter().all(|(path, _)| known(path)), "{:?}", disk.files());
    assert!(!disk.exists(&dir.join("00000000000000000077.index")).unwrap());
    drop(log);
}

#[test]
fn a_finished_compaction_takes_the_place_of_its_segments() {
    let (disk, written) = closed();
    let compacted = raw(18, 2, 3, 20, Some((7, 0, 18)));
    assert_eq!(compacted, written[6]);
    disk.put(&Path::new(DIR).join("00000000000000000000.log.swap"), &compacted);
    let config = LogConfig { compact: true, ..small() };
    let (log, _) = open_with(&disk, config, clean(21)).unwrap();
    assert_eq!((log.segment_count(), log.end_offset()), (1, Offset(21)));
    assert_eq!(offsets(&read_all(&log)), [18]);
}
