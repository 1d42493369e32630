//! `partition.metadata`: which topic, by id, a partition folder belongs to. No line end after the id.

use std::path::Path;

use minikafka_model::TopicId;

use super::text::malformed;
use crate::error::LogError;

/// Name of the file.
pub const PARTITION_METADATA: &str = "partition.metadata";
const VERSION: i64 = 0;

/// Reads the file.
///
/// # Errors
/// It is malformed, or of a newer version.
pub(crate) fn partition_metadata_from_text(path: &Path, text: &str) -> Result<TopicId, LogError> {
    let mut version = None;
    let mut topic = None;
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        match line.split_once(':').map(|(key, value)| (key.trim(), value.trim())) {
            Some(("version", value)) => {
                let value = value
                    .parse()
                    .map_err(|_| malformed(path, line_number, format!("'{value}' is no version")))?;
                if value > VERSION {
                    return Err(LogError::NewerFormat {
                        path: path.to_owned(),
                        found: value,
                        known: VERSION,
                    });
                }
                version = Some(value);
            }
            Some(("topic_id", value)) => {
                let id = value.parse().map_err(|error| malformed(path, line_number, format!("{error}")))?;
                topic = Some(TopicId(id));
            }
            _ => {
                return Err(malformed(
                    path,
                    line_number,
                    format!("'{line}' is neither version nor topic_id"),
                ));
            }
        }
    }
    match (version, topic) {
        (Some(VERSION), Some(topic)) => Ok(topic),
        _ => Err(malformed(path, 1, "version 0 and topic_id are wanted")),
    }
}

/// The text of the file.
pub(crate) fn partition_metadata_to_text(topic: TopicId) -> String {
    format!("version: {VERSION}\ntopic_id: {topic}")
}
