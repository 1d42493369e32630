//! `leader-epoch-checkpoint` of a partition: `epoch start-offset`, rising.

use std::path::Path;

use minikafka_model::{LeaderEpoch, Offset};

use super::text::{entries, malformed, numbered, text_of};
use crate::epoch_history::{EpochEntry, EpochHistory};
use crate::error::LogError;

/// Name of the file.
pub const LEADER_EPOCH_CHECKPOINT: &str = "leader-epoch-checkpoint";

/// Reads the file.
///
/// # Errors
/// It is malformed, of a newer version, or its entries do not rise.
pub(crate) fn epochs_from_text(path: &Path, text: &str) -> Result<EpochHistory, LogError> {
    let mut last: Option<EpochEntry> = None;
    let entries = entries(path, text, |line, fields| {
        let [epoch, start] = fields else {
            return Err(malformed(path, line, "an entry is an epoch and an offset"));
        };
        let entry = EpochEntry {
            epoch: LeaderEpoch(numbered(path, line, epoch, "epoch")?),
            start: Offset(numbered(path, line, start, "offset")?),
        };
        let rises = last.is_none_or(|last| entry.epoch > last.epoch && entry.start >= last.start);
        if !rises || entry.epoch.0 < 0 || entry.start.0 < 0 {
            return Err(malformed(path, line, "epochs and offsets must rise"));
        }
        last = Some(entry);
        Ok(entry)
    })?;
    Ok(EpochHistory::from_entries(entries))
}

/// The text of the file.
pub(crate) fn epochs_to_text(history: &EpochHistory) -> String {
    text_of(history.entries().iter().map(|entry| format!("{} {}", entry.epoch, entry.start)))
}
