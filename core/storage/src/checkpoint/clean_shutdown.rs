//! `.kafka_cleanshutdown`: the last thing an orderly stop writes, and the first thing a start takes away.

use std::path::Path;

use minikafka_model::BrokerEpoch;
use serde::{Deserialize, Serialize};

use super::text::malformed;
use crate::error::LogError;

/// Name of the file.
pub const CLEAN_SHUTDOWN_FILE: &str = ".kafka_cleanshutdown";
const VERSION: i64 = 0;

/// The content of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanShutdown {
    /// Epoch of the broker's last life, if it had one.
    pub broker_epoch: Option<BrokerEpoch>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json {
    version: i64,
    broker_epoch: i64,
}

impl CleanShutdown {
    /// Reads the file.
    ///
    /// # Errors
    /// It is malformed, or of a newer version.
    pub fn from_text(path: &Path, text: &str) -> Result<CleanShutdown, LogError> {
        let json: Json =
            serde_json::from_str(text).map_err(|error| malformed(path, error.line(), error.to_string()))?;
        if json.version > VERSION {
            return Err(LogError::NewerFormat { path: path.to_owned(), found: json.version, known: VERSION });
        }
        Ok(CleanShutdown { broker_epoch: (json.broker_epoch >= 0).then_some(BrokerEpoch(json.broker_epoch)) })
    }

    /// The text of the file; without a line end, as Kafka writes it.
    pub fn to_text(self) -> String {
        format!(r#"{{"version":{VERSION},"brokerEpoch":{}}}"#, self.broker_epoch.map_or(-1, |epoch| epoch.0))
    }
}
