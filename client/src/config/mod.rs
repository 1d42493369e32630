//! Configuration: Kafka's key names, the Java client's defaults, and an answer for a key that is not known.

mod address;
mod keys;
mod properties;
mod value;

use std::collections::BTreeSet;

pub use address::Address;
pub use keys::{ClientConfig, ConfigKey, KEYS};
pub use value::{Acks, Compression, IsolationLevel, OffsetReset};

use keys::WITHOUT_EFFECT;
pub(crate) use value::Value;

/// A configuration that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No such key.
    #[error("unknown key {key}{}", did_you_mean(nearest.as_deref()))]
    UnknownKey {
        /// As given.
        key: String,
        /// The known key that looks most like it, if one does.
        nearest: Option<String>,
    },
    /// A value that the key does not take.
    #[error("{key}={value}: {problem}")]
    BadValue {
        /// The key.
        key: String,
        /// As given.
        value: String,
        /// What would be right.
        problem: String,
    },
    /// Values that do not go together.
    #[error("{0}")]
    Conflict(String),
    /// A file that cannot be read, or a line of it that is not `key=value`.
    #[error("{0}")]
    File(String),
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"))
}

/// Collects settings, remembers which were given, and checks them together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    config: ClientConfig,
    given: BTreeSet<String>,
}

impl Settings {
    /// Sets one key by its Kafka name.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        match self.config.set_known(key, value.trim()) {
            Some(Ok(())) => {
                self.given.insert(key.to_owned());
                Ok(())
            }
            Some(Err(problem)) => {
                Err(ConfigError::BadValue { key: key.to_owned(), value: value.to_owned(), problem })
            }
            None => self.set_other(key, value.trim()),
        }
    }

    fn set_other(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
        if key == "security.protocol" {
            return if value == "PLAINTEXT" {
                Ok(())
            } else {
                let problem = "only PLAINTEXT is there so far".to_owned();
                Err(ConfigError::BadValue { key: key.to_owned(), value: value.to_owned(), problem })
            };
        }
        if let Some((_, reason)) = WITHOUT_EFFECT.iter().find(|(known, _)| *known == key) {
            tracing::warn!("{key} has no effect here: {reason}");
            return Ok(());
        }
        Err(ConfigError::UnknownKey { key: key.to_owned(), nearest: nearest(key) })
    }

    /// Takes every `key=value` of a `.properties` file.
    pub(crate) fn read(&mut self, path: &std::path::Path) -> Result<(), ConfigError> {
        for (line, key, value) in properties::read(path)? {
            let named = |error: ConfigError| ConfigError::File(format!("{}:{line}: {error}", path.display()));
            self.set(&key, &value).map_err(named)?;
        }
        Ok(())
    }

    /// Checks what can only be judged together.
    pub(crate) fn finish(mut self) -> Result<ClientConfig, ConfigError> {
        let conflict = |text: String| Err(ConfigError::Conflict(text));
        let config = &self.config;
        if config.bootstrap_servers.is_empty() {
            return conflict("bootstrap.servers is missing: at least one host:port is needed".to_owned());
        }
        for (key, value) in [
            ("max.in.flight.requests.per.connection", config.max_in_flight),
            ("batch.size", config.batch_size),
            ("buffer.memory", config.buffer_memory),
            ("max.request.size", config.max_request_size),
            ("fetch.max.bytes", config.fetch_max_bytes),
            ("max.partition.fetch.bytes", config.max_partition_fetch_bytes),
        ] {
            if value == 0 || i32::try_from(value).is_err() {
                let problem = format!("a number from 1 to {} is wanted", i32::MAX);
                return Err(ConfigError::BadValue { key: key.to_owned(), value: value.to_string(), problem });
            }
        }
        let shortest = config.linger + config.request_timeout;
        if config.delivery_timeout < shortest {
            if self.given.contains("delivery.timeout.ms") && self.given.contains("request.timeout.ms") {
                return conflict(format!(
                    "delivery.timeout.ms ({}) must not be less than linger.ms + request.timeout.ms ({})",
                    config.delivery_timeout.show(),
                    shortest.show()
                ));
            }
            // Only one of the two was asked for: the other follows.
            if self.given.contains("delivery.timeout.ms") {
                self.config.request_timeout = config.delivery_timeout.saturating_sub(config.linger);
            } else {
                self.config.delivery_timeout = shortest;
            }
        }
        self.settle_idempotence()?;
        let config = self.config;
        if config.require_min_insync_replicas.is_some() && config.acks != Acks::All {
            return conflict(format!("require.min.insync.replicas needs acks=all, not acks={}", config.acks));
        }
        Ok(config)
    }

    /// As in the Java client: asked for explicitly, idempotence insists; by default, it gives way (Kafka semantics 11.3).
    fn settle_idempotence(&mut self) -> Result<(), ConfigError> {
        let config = &self.config;
        if !config.enable_idempotence {
            return Ok(());
        }
        let against = if config.acks != Acks::All {
            format!("acks={}", config.acks)
        } else if config.retries == 0 {
            "retries=0".to_owned()
        } else if config.max_in_flight > 5 {
            format!("max.in.flight.requests.per.connection={} (at most 5)", config.max_in_flight)
        } else {
            return Ok(());
        };
        if self.given.contains("enable.idempotence") {
            return Err(ConfigError::Conflict(format!("enable.idempotence=true does not go with {against}")));
        }
        self.config.enable_idempotence = false;
        Ok(())
    }
}

/// The known key most like `key`, if it is like it at all.
fn nearest(key: &str) -> Option<String> {
    let known = KEYS.iter().map(|key| key.name).chain(WITHOUT_EFFECT.iter().map(|(name, _)| *name));
    known
        .map(|name| (distance(key, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 2 + name.len() / 6)
        .map(|(_, name)| name.to_owned())
}

/// How many letters must be added, removed or exchanged (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Result<ClientConfig, ConfigError> {
        let mut settings = Settings::default();
        settings.set("bootstrap.servers", "localhost:9092")?;
        for (key, value) in pairs {
            settings.set(key, value)?;
        }
        settings.finish()
    }

    #[test]
    fn the_defaults_are_the_java_clients() {
        let config = settings(&[]).expect("defaults");
        assert_eq!(config.acks, Acks::All);
        assert!(config.enable_idempotence);
        assert_eq!(config.linger, Duration::from_millis(5));
        assert_eq!(config.batch_size, 16384);
        assert_eq!(config.delivery_timeout, Duration::from_secs(120));
        assert_eq!(config.fetch_max_bytes, 52_428_800);
    }

    #[test]
    fn an_unknown_key_is_answered_with_its_neighbour() {
        let error = settings(&[("linger.msec", "1")]).expect_err("unknown");
        assert_eq!(error.to_string(), "unknown key linger.msec; did you mean linger.ms?");
        let error = settings(&[("colour", "red")]).expect_err("unknown");
        assert_eq!(error.to_string(), "unknown key colour");
    }

    #[test]
    fn a_bad_value_names_key_value_and_what_is_right() {
        let error = settings(&[("acks", "2")]).expect_err("no such acks");
        assert_eq!(error.to_string(), "acks=2: one of all, 1, 0 is wanted");
        settings(&[("security.protocol", "SSL")]).expect_err("not there");
        settings(&[("batch.size", "0")]).expect_err("nothing fits");
    }

    #[test]
    fn idempotence_gives_way_unless_it_was_asked_for() {
        assert!(!settings(&[("acks", "1")]).expect("gives way").enable_idempotence);
        let error = settings(&[("acks", "1"), ("enable.idempotence", "true")]).expect_err("insists");
        assert!(error.to_string().contains("acks=1"), "{error}");
        settings(&[("enable.idempotence", "true"), ("max.in.flight.requests.per.connection", "6")])
            .expect_err("six in flight");
    }

    #[test]
    fn the_delivery_timeout_covers_a_request() {
        let config = settings(&[("delivery.timeout.ms", "5000")]).expect("the request timeout follows");
        assert_eq!(config.request_timeout, Duration::from_millis(4995));
        let both = [("delivery.timeout.ms", "5000"), ("request.timeout.ms", "5000")];
        settings(&both).expect_err("no room for linger");
    }

    #[test]
    fn what_differs_from_the_defaults_can_be_listed() {
        let config = settings(&[("linger.ms", "0"), ("acks", "-1")]).expect("good");
        let differs = config.diff_from_default();
        assert_eq!(
            differs,
            [("bootstrap.servers", "localhost:9092".to_owned()), ("linger.ms", "0".to_owned())]
        );
    }
}
