//! Which names a topic may have, in Kafka's words (Kafka semantics 6.8).

/// The longest name of a topic.
pub const MAX_TOPIC_NAME: usize = 249;
/// Kafka's topic of the metadata quorum: no user creates it.
pub(crate) const METADATA_TOPIC: &str = "__cluster_metadata";

/// Whether a topic may have this name.
///
/// # Errors
/// What is wrong with it, as Kafka says it.
pub fn check_topic_name(name: &str) -> Result<(), String> {
    let problem = if name.is_empty() {
        "the empty string is not allowed".to_owned()
    } else if name == "." || name == ".." {
        format!("'{name}' is not allowed")
    } else if name.chars().count() > MAX_TOPIC_NAME {
        format!("the length of '{name}' is longer than the max allowed length {MAX_TOPIC_NAME}")
    } else if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-')) {
        format!("'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'")
    } else {
        return Ok(());
    };
    Err(format!("Topic name is invalid: {problem}"))
}

/// Names that differ only in `.` and `_` would share the names of their metrics: what they have in common. None for a name that has
/// neither.
pub(crate) fn collision_key(name: &str) -> Option<String> {
    name.contains(['.', '_']).then(|| name.replace('.', "_"))
}
