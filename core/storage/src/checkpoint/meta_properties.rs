//! `meta.properties`: which cluster, node and directory a log directory belongs to. Java properties, lines in any order, comments
//! allowed.

use std::collections::BTreeMap;
use std::path::Path;

use minikafka_model::{ClusterId, DirectoryId};

use super::text::{malformed, numbered};
use crate::error::LogError;

/// Name of the file.
pub const META_PROPERTIES: &str = "meta.properties";
const VERSION: i64 = 1;

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaProperties {
    /// The cluster.
    pub cluster: ClusterId,
    /// `node.id`.
    pub node: i32,
    /// Id of the directory.
    pub directory: DirectoryId,
}

impl MetaProperties {
    /// Reads the file.
    ///
    /// # Errors
    /// It is malformed, a key is missing, or its version is newer.
    pub fn from_text(path: &Path, text: &str) -> Result<MetaProperties, LogError> {
        let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let (key, value) =
                split(line).ok_or_else(|| malformed(path, index + 1, "key=value is wanted"))?;
            found.insert(key, (index + 1, value));
        }
        let want = |key: &str| {
            found
                .get(key)
                .cloned()
                .ok_or_else(|| malformed(path, text.lines().count().max(1), format!("{key} is missing")))
        };
        let (line, version) = want("version")?;
        let version: i64 = numbered(path, line, &version, "version")?;
        if version > VERSION {
            return Err(LogError::NewerFormat { path: path.to_owned(), found: version, known: VERSION });
        }
        if version < VERSION {
            return Err(malformed(
                path,
                line,
                format!("version {version} was never written by a KRaft broker"),
            ));
        }
        let (line, node) = want("node.id")?;
        let node = numbered(path, line, &node, "node id")?;
        let (line, directory) = want("directory.id")?;
        let directory = directory.parse().map_err(|error| malformed(path, line, format!("{error}")))?;
        let (_, cluster) = want("cluster.id")?;
        Ok(MetaProperties { cluster: ClusterId(cluster), node, directory: DirectoryId(directory) })
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let MetaProperties { cluster, node, directory } = self;
        format!("version={VERSION}\ncluster.id={cluster}\nnode.id={node}\ndirectory.id={directory}\n")
    }
}

/// Key and value of a line: separated by `=`, `:` or blanks; a backslash takes the next character as it is.
fn split(line: &str) -> Option<(String, String)> {
    let mut key = String::new();
    let mut chars = line.chars();
    let rest = loop {
        match chars.next()? {
            '\\' => key.push(chars.next()?),
            '=' | ':' => break chars.as_str(),
            c if c.is_whitespace() => break chars.as_str().trim_start().trim_start_matches(['=', ':']),
            c => key.push(c),
        }
    };
    let mut value = String::new();
    let mut chars = rest.trim_start().chars();
    while let Some(c) = chars.next() {
        value.push(if c == '\\' { chars.next()? } else { c });
    }
    (!key.is_empty()).then_some((key, value))
}
