//! The three checkpoints of a log directory that hold an offset per partition: `topic partition offset`, in no order.

use std::collections::BTreeMap;
use std::path::Path;

use minikafka_model::{Offset, PartitionIndex};

use super::text::{entries, malformed, numbered, text_of};
use crate::error::LogError;

/// High watermarks.
pub const REPLICATION_CHECKPOINT: &str = "replication-offset-checkpoint";
/// Recovery points: everything below was synced.
pub const RECOVERY_POINT_CHECKPOINT: &str = "recovery-point-offset-checkpoint";
/// Log start offsets above the first segment's base.
pub const LOG_START_CHECKPOINT: &str = "log-start-offset-checkpoint";

/// Topic and partition, as the checkpoints and the folders name them.
pub type CheckpointName = (String, PartitionIndex);

/// Reads one of the files.
///
/// # Errors
/// It is malformed, or of a newer version.
pub(crate) fn offsets_from_text(
    path: &Path,
    text: &str,
) -> Result<BTreeMap<CheckpointName, Offset>, LogError> {
    let entries = entries(path, text, |line, fields| {
        let [topic, partition, offset] = fields else {
            return Err(malformed(path, line, "an entry is a topic, a partition and an offset"));
        };
        let partition = PartitionIndex(numbered(path, line, partition, "partition")?);
        let offset: i64 = numbered(path, line, offset, "offset")?;
        if offset < 0 || partition.0 < 0 {
            return Err(malformed(path, line, "partition and offset must not be negative"));
        }
        Ok((line, ((*topic).to_owned(), partition), Offset(offset)))
    })?;
    let mut offsets = BTreeMap::new();
    for (line, name, offset) in entries {
        if offsets.insert(name, offset).is_some() {
            return Err(malformed(path, line, "the partition stands there twice"));
        }
    }
    Ok(offsets)
}

/// The text of one of the files.
pub(crate) fn offsets_to_text(offsets: &BTreeMap<CheckpointName, Offset>) -> String {
    text_of(offsets.iter().map(|((topic, partition), offset)| format!("{topic} {partition} {offset}")))
}
