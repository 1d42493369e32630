//! The house keeps its own rules: arrows between rooms, no forbidden crates in the quiet rooms, lists in the docs that are true.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which rooms a room may name in its dependencies. Transitive arrows are included: a room may only use what stands here.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("wire", &["model"]),
    ("storage", &["model"]),
    ("metadata", &["model"]),
    ("raft", &["model"]),
    ("control", &["model", "metadata"]),
    ("replication", &["model", "storage", "metadata"]),
    ("node", &["model", "storage"]),
    ("proto", &["model", "metadata"]),
    ("broker", &["model", "proto", "node", "wire", "storage", "metadata", "replication"]),
    ("controller", &["model", "proto", "node", "storage", "metadata", "control", "raft"]),
    ("client", &["model", "wire"]),
    ("cli", &["model", "client", "broker", "controller", "node", "wire", "storage", "metadata"]),
    ("sim", &["model", "storage", "metadata", "control", "raft", "replication"]),
    ("tests", &["client", "model", "wire"]),
];

/// Crates that the quiet rooms must not use.
const LOUD: &[&str] =
    &["tokio", "tonic", "axum", "hyper", "socket2", "rustix", "libc", "rand", "tracing", "parking_lot"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_owned()
}

fn rooms() -> BTreeMap<String, PathBuf> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace manifest");
    let members = manifest
        .split_once("members = [")
        .and_then(|(_, rest)| rest.split_once(']'))
        .expect("a list of members")
        .0;
    members
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|path| (path.rsplit('/').next().unwrap_or(path).to_owned(), root().join(path)))
        .collect()
}

/// Names in `[dependencies]` (and `[dev-dependencies]` where `dev`) of a manifest.
fn dependencies(manifest: &Path, dev: bool) -> BTreeSet<String> {
    let text = std::fs::read_to_string(manifest).expect("a manifest");
    let mut section = String::new();
    let mut names = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
        } else if (section == "dependencies" || (dev && section == "dev-dependencies"))
            && !line.starts_with('#')
        {
            let name: String =
                line.chars().take_while(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect();
            if !name.is_empty() {
                names.insert(name);
            }
        }
    }
    names
}

#[test]
fn arrows_point_down() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        ARROWS.iter().map(|(room, to)| (*room, to.iter().copied().collect())).collect();
    let mut wrong = Vec::new();
    for (room, path) in rooms() {
        let Some(allowed) = allowed.get(room.as_str()) else {
            wrong.push(format!("{room} is not in the table of arrows"));
            continue;
        };
        for name in dependencies(&path.join("Cargo.toml"), false) {
            if let Some(other) = name.strip_prefix("minikafka-")
                && !allowed.contains(other)
            {
                wrong.push(format!("{room} -> {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "arrows that are not allowed: {wrong:?}");
}

#[test]
fn the_table_of_arrows_is_closed() {
    let table: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    // cli runs both roles and tests look at everything: what those rooms use is not cli's business.
    for (room, direct) in ARROWS.iter().filter(|(room, _)| !["cli", "tests"].contains(room)) {
        for middle in *direct {
            for far in table[middle] {
                assert!(direct.contains(far), "{room} -> {middle} -> {far}, but {room} may not use {far}");
            }
        }
    }
}

#[test]
fn quiet_rooms_use_no_loud_crates() {
    for (room, path) in rooms() {
        if path.parent().is_some_and(|p| p.ends_with("core")) {
            for name in dependencies(&path.join("Cargo.toml"), false) {
                assert!(!LOUD.contains(&name.as_str()), "{room} is a quiet room and may not use {name}");
            }
        }
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn names_say_something() {
    for (_, path) in rooms() {
        let mut files = Vec::new();
        sources(&path.join("src"), &mut files);
        for file in files {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            for word in ["util", "utils", "common", "helper", "helpers", "misc", "manager"] {
                assert!(
                    stem != word && !stem.ends_with(&format!("_{word}")),
                    "{} says nothing",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn nothing_is_left_unfinished() {
    for (_, path) in rooms() {
        let mut files = Vec::new();
        sources(&path, &mut files);
        for file in files.iter().filter(|f| !f.ends_with("house.rs")) {
            let text = std::fs::read_to_string(file).expect("a source file");
            for word in ["todo!(", "unimplemented!(", "#[ignore"] {
                assert!(!text.contains(word), "{} has {word}", file.display());
            }
        }
    }
}

#[test]
fn every_accepted_difference_has_a_reason_and_stands_in_the_docs() {
    let list = std::fs::read_to_string(root().join("tests/oracle/accepted.json"))
        .expect("the list of accepted differences");
    let list: BTreeMap<String, String> = serde_json::from_str(&list).expect("case name -> reason");
    let docs = std::fs::read_to_string(root().join("docs/differences.md")).expect("docs/differences.md");
    for (case, reason) in list {
        assert!(reason.len() > 20, "{case} needs a reason");
        assert!(
            docs.contains(&format!("| `{case}` | {reason} |")),
            "docs/differences.md does not show {case}: run tests/differences"
        );
    }
}
