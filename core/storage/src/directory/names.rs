//! Names of the folders in a log directory.

use std::path::{Path, PathBuf};

use minikafka_model::{PartitionIndex, Uuid};

/// The topic of the metadata log. Kafka's own holds records that are not ours.
pub const KAFKA_METADATA_TOPIC: &str = "__cluster_metadata";
/// Longest name of a folder.
const MOST_BYTES: usize = 255;

/// What a folder stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FolderKind {
    Partition(String, PartitionIndex),
    Deleted,
    Stray,
    /// Of a move between directories.
    Future,
    /// A metadata log: ours, or Kafka's own.
    KafkaMetadata,
    /// Not a partition's.
    Other,
}

pub(crate) fn folder_name(topic: &str, partition: PartitionIndex) -> String {
    format!("{topic}-{partition}")
}

pub(crate) fn parse(name: &str) -> FolderKind {
    if let Some((_, suffix)) = name.rsplit_once('.') {
        match suffix.rsplit_once('-') {
            Some((id, "delete")) if is_hex(id) => return FolderKind::Deleted,
            Some((id, "stray")) if is_hex(id) => return FolderKind::Stray,
            Some((id, "future")) if is_hex(id) => return FolderKind::Future,
            _ => {}
        }
    }
    let Some((topic, partition)) = name.rsplit_once('-') else { return FolderKind::Other };
    if topic.is_empty() || !partition.bytes().all(|b| b.is_ascii_digit()) {
        return FolderKind::Other;
    }
    if topic == KAFKA_METADATA_TOPIC {
        return FolderKind::KafkaMetadata;
    }
    match partition.parse() {
        Ok(partition) => FolderKind::Partition(topic.to_owned(), PartitionIndex(partition)),
        Err(_) => FolderKind::Other,
    }
}

fn is_hex(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The name of a folder that is to go, or that nobody claims: `<topic>-<partition>.<32 hex digits>-<suffix>`, the topic shortened to
/// fit.
pub(crate) fn set_aside(
    dir: &Path,
    topic: &str,
    partition: PartitionIndex,
    id: Uuid,
    suffix: &str,
) -> PathBuf {
    let tail = format!("-{partition}.{:032x}-{suffix}", id.0);
    let mut keep = topic.len().min(MOST_BYTES - tail.len());
    while !topic.is_char_boundary(keep) {
        keep -= 1;
    }
    dir.join(format!("{}{tail}", &topic[..keep]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_told_apart() {
        assert_eq!(parse("a-b-12"), FolderKind::Partition("a-b".to_owned(), PartitionIndex(12)));
        assert_eq!(parse("__cluster_metadata-0"), FolderKind::KafkaMetadata);
        assert_eq!(parse("metadata"), FolderKind::Other);
        assert_eq!(parse("-3"), FolderKind::Other);
        let aside = set_aside(Path::new("/d"), &"x".repeat(249), PartitionIndex(7), Uuid(5), "delete");
        let name = aside.file_name().unwrap().to_str().unwrap();
        assert_eq!((name.len(), parse(name)), (255, FolderKind::Deleted));
        assert_eq!(parse("t-0.0000000000000000000000000000000a-stray"), FolderKind::Stray);
    }
}
