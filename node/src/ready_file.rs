//! A file that tells a script which ports were chosen: written once the process serves, whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// The ready file could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the ready file {} could not be written: {source}", path.display())]
pub struct ReadyFileError {
    path: PathBuf,
    source: std::io::Error,
}

/// What a process writes once it serves.
#[derive(Debug, Clone, Serialize)]
pub struct ReadyFile {
    /// `broker`, `controller` or `node`.
    pub role: String,
    /// `node.id`.
    pub id: i32,
    /// Process id.
    pub pid: u32,
    /// Listener name -> `host:port` as bound.
    pub listeners: std::collections::BTreeMap<String, String>,
    /// `host:port` of the HTTP server, if it has one.
    pub http: Option<String>,
}

impl ReadyFile {
    /// Writes the file as JSON: temporary file, then rename.
    ///
    /// # Errors
    /// With the path, where the folder is missing or not writable.
    pub fn write(&self, path: &Path) -> Result<(), ReadyFileError> {
        let fail = |source| ReadyFileError { path: path.to_owned(), source };
        let temporary = path.with_extension("tmp");
        let text = serde_json::to_vec(self).map_err(|e| fail(e.into()))?;
        let mut file = std::fs::File::create(&temporary).map_err(fail)?;
        file.write_all(&text).map_err(fail)?;
        std::fs::rename(&temporary, path).map_err(fail)
    }
}
