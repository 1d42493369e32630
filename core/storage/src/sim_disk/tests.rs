use super::*;

fn write(disk: &SimDisk, path: &str, bytes: &[u8]) -> Arc<dyn File> {
    let file = disk.open(Path::new(path), OpenMode::Create).unwrap();
    file.write_at(bytes, 0).unwrap();
    file
}

#[test]
fn a_process_crash_keeps_what_was_written_and_a_power_loss_what_was_synced() {
    let disk = SimDisk::new();
    disk.create_dir(Path::new("/d")).unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    let file = write(&disk, "/d/a", b"one");
    file.sync().unwrap();
    disk.sync_dir(Path::new("/d")).unwrap();
    file.write_at(b"two", 3).unwrap();
    disk.process_crash();
    assert!(file.write_at(b"x", 0).is_err(), "a file of a dead process is dead");
    assert_eq!(disk.content(Path::new("/d/a")).unwrap(), b"onetwo");
    disk.power_loss(Unsynced::Lost);
    assert_eq!(disk.content(Path::new("/d/a")).unwrap(), b"one");
}

#[test]
fn a_name_is_durable_only_after_its_directory_was_synced() {
    let disk = SimDisk::new();
    write(&disk, "/a", b"one").sync().unwrap();
    disk.power_loss(Unsynced::Lost);
    assert!(!disk.exists(Path::new("/a")).unwrap());

    write(&disk, "/a", b"one").sync().unwrap();
    disk.sync_dir(Path::new("/")).unwrap();
    disk.rename(Path::new("/a"), Path::new("/b")).unwrap();
    disk.power_loss(Unsynced::Lost);
    assert!(disk.exists(Path::new("/a")).unwrap() && !disk.exists(Path::new("/b")).unwrap());
}

#[test]
fn a_failed_sync_loses_the_pages_for_good() {
    let disk = SimDisk::new();
    let file = write(&disk, "/a", b"one");
    disk.sync_dir(Path::new("/")).unwrap();
    disk.fail_next(SimOp::Sync, SimFault::Io);
    assert!(file.sync().is_err());
    file.sync().unwrap();
    disk.power_loss(Unsynced::Lost);
    assert_eq!(disk.content(Path::new("/a")).unwrap(), b"");
}

#[test]
fn the_nth_operation_fails_and_a_crash_ends_all() {
    let disk = SimDisk::new();
    let file = write(&disk, "/a", b"");
    disk.fail_op(2, SimFault::NoSpace);
    file.write_at(b"one", 0).unwrap();
    assert_eq!(file.write_at(b"four", 3).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.content(Path::new("/a")).unwrap(), b"onefo", "half was written");
    disk.fail_op(1, SimFault::Crash);
    assert!(file.sync().is_err() && file.sync().is_err());
    disk.process_crash();
    assert!(disk.open(Path::new("/a"), OpenMode::Read).is_ok());
}

#[test]
fn a_torn_power_loss_keeps_a_prefix() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..64 {
        let disk = SimDisk::new();
        let file = write(&disk, "/a", b"");
        disk.sync_dir(Path::new("/")).unwrap();
        file.write_at(b"one", 0).unwrap();
        file.write_at(b"two", 3).unwrap();
        disk.power_loss(Unsynced::Torn(seed));
        let content = disk.content(Path::new("/a")).unwrap();
        assert!(b"onetwo".starts_with(&content));
        seen.insert(content);
    }
    assert!(seen.len() >= 5, "many prefixes occur: {seen:?}");
}

#[test]
fn reads_may_be_short_and_space_may_run_out() {
    let disk = SimDisk::new();
    let file = write(&disk, "/a", b"abcdef");
    disk.set_short_reads(true);
    assert_eq!(file.read_at(&mut [0; 6], 0).unwrap(), 3);
    assert_eq!(&file.read_bytes_at(1, 10).unwrap()[..], b"bcdef");
    disk.set_capacity(Some(8));
    assert_eq!(file.write_at(b"xyz", 6).unwrap_err().kind(), io::ErrorKind::StorageFull);
}
