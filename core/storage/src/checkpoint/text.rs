//! The common shape of the text checkpoints: a line with the version 0, a line with the number of entries, a line per entry.

use std::path::Path;
use std::str::FromStr;

use crate::error::LogError;

/// The version written, and the newest that is read.
const VERSION: i64 = 0;

pub(crate) fn malformed(path: &Path, line: usize, why: impl Into<String>) -> LogError {
    LogError::Malformed { path: path.to_owned(), line, why: why.into() }
}

/// Reads the two leading lines and hands each entry, with its line number, to `entry`.
pub(crate) fn entries<T>(
    path: &Path,
    text: &str,
    mut entry: impl FnMut(usize, &[&str]) -> Result<T, LogError>,
) -> Result<Vec<T>, LogError> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut number = |what: &str| match lines.next() {
        None => Err(malformed(path, 1, format!("the file ends before its {what}"))),
        Some((line, text)) => {
            text.trim().parse::<i64>().map_err(|_| malformed(path, line, format!("'{text}' is no {what}")))
        }
    };
    let version = number("version")?;
    if version > VERSION {
        return Err(LogError::NewerFormat { path: path.to_owned(), found: version, known: VERSION });
    }
    if version < VERSION {
        return Err(malformed(path, 1, format!("{version} is no version")));
    }
    let count = number("number of entries")?;
    let mut found = Vec::new();
    for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        found.push(entry(line, &fields)?);
    }
    if i64::try_from(found.len()) != Ok(count) {
        return Err(malformed(
            path,
            2,
            format!("{count} entries are announced and {} are there", found.len()),
        ));
    }
    Ok(found)
}

/// One field as a number.
pub(crate) fn numbered<T: FromStr>(path: &Path, line: usize, field: &str, what: &str) -> Result<T, LogError> {
    field.parse().map_err(|_| malformed(path, line, format!("'{field}' is no {what}")))
}

/// The text of a checkpoint.
pub(super) fn text_of(entries: impl ExactSizeIterator<Item = String>) -> String {
    let mut text = format!("{VERSION}\n{}\n", entries.len());
    for entry in entries {
        text.push_str(&entry);
        text.push('\n');
    }
    text
}
