//! `log dump` on folders that Apache Kafka wrote.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn dump(words: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_minikafka"))
        .args(["log", "dump"])
        .args(words)
        .arg(file)
        .output()
        .expect("the command runs")
}

fn find(folder: &Path, suffix: &str) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().find_map(|path| {
        if path.is_dir() {
            return find(path, suffix);
        }
        let fits = path.to_string_lossy().ends_with(suffix)
            && !path.to_string_lossy().contains("__cluster_metadata")
            && std::fs::metadata(path).is_ok_and(|facts| facts.len() > 0);
        fits.then(|| path.clone())
    })
}

fn disk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/oracle/disk")
}

#[test]
fn a_log_of_kafkas_is_told_in_its_words_and_as_json() {
    let file = find(&disk(), ".log").expect("a log that Kafka wrote");
    let text = dump(&["--records"], &file);
    let stdout = String::from_utf8_lossy(&text.stdout);
    assert!(
        text.status.success()
            && stdout.starts_with(&format!("Dumping {}\nLog starting offset: ", file.display()))
    );
    assert!(stdout.contains(" partitionLeaderEpoch: ") && stdout.contains("\n| offset: "), "{stdout}");
    let json = dump(&["--json"], &file);
    let stdout = String::from_utf8_lossy(&json.stdout);
    let first = stdout.lines().next().expect("a batch");
    let batch: serde_json::Value = serde_json::from_str(first).expect("one object a line");
    assert!(batch["partitionLeaderEpoch"].is_i64() && batch["isvalid"] == true, "{batch}");
}

#[test]
fn what_is_missing_or_unknown_has_its_exit_code() {
    let missing = dump(&[], Path::new("/nowhere/00000000000000000000.log"));
    assert_eq!(missing.status.code(), Some(3), "{}", String::from_utf8_lossy(&missing.stderr));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cat.jpg");
    std::fs::write(&file, "a cat").expect("written");
    let unknown = dump(&[], &file);
    assert_eq!(unknown.status.code(), Some(2), "{}", String::from_utf8_lossy(&unknown.stderr));
}
