//! Names of the files of a partition: twenty digits and a suffix.

use std::path::{Path, PathBuf};

use minikafka_model::Offset;

/// Kinds of files that carry an offset in their name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SegmentFile {
    /// The batches.
    Log,
    /// Offset to position.
    Index,
    /// Timestamp to offset.
    TimeIndex,
    /// Aborted transactions.
    TransactionIndex,
    /// State of the producers at that offset.
    Snapshot,
}

impl SegmentFile {
    const ALL: [SegmentFile; 5] = [
        SegmentFile::Log,
        SegmentFile::Index,
        SegmentFile::TimeIndex,
        SegmentFile::TransactionIndex,
        SegmentFile::Snapshot,
    ];

    /// The suffix, without the dot.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            SegmentFile::Log => "log",
            SegmentFile::Index => "index",
            SegmentFile::TimeIndex => "timeindex",
            SegmentFile::TransactionIndex => "txnindex",
            SegmentFile::Snapshot => "snapshot",
        }
    }

    /// The path of such a file in the folder of a partition.
    pub(crate) fn path(self, dir: &Path, offset: Offset) -> PathBuf {
        dir.join(format!("{:020}.{}", offset.0, self.suffix()))
    }

    /// What a name stands for; `None` if it is not one of these.
    pub(crate) fn parse(name: &str) -> Option<(Offset, SegmentFile)> {
        let (digits, suffix) = name.split_once('.')?;
        if digits.len() != 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let kind = SegmentFile::ALL.into_iter().find(|kind| kind.suffix() == suffix)?;
        Some((Offset(digits.parse().ok()?), kind))
    }
}

/// Suffix of files that wait for their removal.
pub(crate) const DELETED: &str = ".deleted";

/// The path with the suffix that marks it for removal.
pub(crate) fn deleted(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(DELETED);
    PathBuf::from(name)
}
