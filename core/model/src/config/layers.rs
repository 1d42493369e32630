//! From what was given in several places to one value per key: defaults < file < environment < command line. Every problem is found,
//! not the first alone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::effect::no_effect;
use super::key::BadValue;
use super::resolved::{Resolved, Value};
use super::topic_keys::SYNONYMS;
use super::{broker_key, broker_keys, topic_key, topic_keys};

/// Where a value comes from, the weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Built in.
    Default,
    /// A line of a file.
    File {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// `-X key=value`.
    CommandLine,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File { path, line } => write!(f, "{path}:{line}"),
            Source::Environment { variable } => f.write_str(variable),
            Source::CommandLine => f.write_str("command line"),
        }
    }
}

/// One setting as somebody gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The key.
    pub key: String,
    /// The text.
    pub value: String,
    /// The place.
    pub source: Source,
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// No such key.
    UnknownKey {
        /// As given.
        key: String,
        /// The place.
        source: Source,
        /// What may have been meant.
        hint: Option<String>,
    },
    /// A text that is not a value of the key.
    BadValue {
        /// Why.
        error: BadValue,
        /// The place.
        source: Source,
    },
    /// Something that is missing, or values that do not go together.
    Conflict(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::UnknownKey { key, source, hint } => {
                write!(f, "{source}: unknown key {key}")?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
            }
            Problem::BadValue { error, source } => write!(f, "{source}: {error}"),
            Problem::Conflict(text) => f.write_str(text),
        }
    }
}

/// Something that whoever gave the configuration should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note(pub String);

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a configuration comes to.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// One value per key.
    pub resolved: Resolved,
    /// Why it cannot be used; empty if it can.
    pub problems: Vec<Problem>,
    /// What should be known about it.
    pub notes: Vec<Note>,
}

/// Keys that Kafka has renamed.
const RENAMED: &[(&str, &str)] = &[("broker.id", "node.id")];
/// Keys of this shape set something for one listener; none of them does anything yet.
const PER_LISTENER: &str = "listener.name.";

/// Takes settings in any order; the stronger place wins, and within one place the later setting.
pub fn resolve(given: impl IntoIterator<Item = Given>) -> Resolution {
    let mut values: BTreeMap<&'static str, Value> =
        broker_keys().map(|key| (key.name, Value::default_of(key))).collect();
    let mut problems = Vec::new();
    let mut notes = Vec::new();
    let mut ids = BTreeMap::new();
    for Given { key, value, source } in given {
        let renamed = RENAMED.iter().find(|(old, _)| *old == key);
        if let Some((old, new)) = renamed {
            notes.push(Note(format!("{source}: {old} is now called {new}")));
        }
        let name = renamed.map_or(key.as_str(), |(_, new)| *new);
        if name == "node.id" {
            ids.insert(key.clone(), value.trim().to_owned());
        }
        let Some(definition) = broker_key(name) else {
            if name.starts_with(PER_LISTENER) {
                notes.push(Note(format!(
                    "{source}: {name} has no effect here: listeners have no settings of their own"
                )));
            } else {
                unknown(key, source, &mut problems, &mut notes);
            }
            continue;
        };
        if let Err(error) = definition.check(&value) {
            problems.push(Problem::BadValue { error, source });
            continue;
        }
        if let Some(reason) = no_effect(definition.name)
            && definition.default != Some(value.trim())
        {
            notes.push(Note(format!("{source}: {} has no effect here: {reason}", definition.name)));
        }
        if let Some(known) = values.get_mut(definition.name)
            && is_stronger(&source, known.source())
        {
            *known = Value::given(value.trim().to_owned(), source);
        }
    }
    let resolved = Resolved::new(values);
    if let (Some(old), Some(new)) = (ids.get("broker.id"), ids.get("node.id"))
        && old != new
    {
        problems.push(Problem::Conflict(format!(
            "broker.id ({old}) and node.id ({new}) are one setting and must not differ; leave broker.id out"
        )));
    }
    if problems.is_empty() {
        problems.extend(resolved.conflicts().into_iter().map(Problem::Conflict));
    }
    Resolution { resolved, problems, notes }
}

fn is_stronger(source: &Source, than: &Source) -> bool {
    let rank = |source: &Source| match source {
        Source::Default => 0,
        Source::File { .. } => 1,
        Source::Environment { .. } => 2,
        Source::CommandLine => 3,
    };
    rank(source) >= rank(than)
}

/// An error where a person wrote it, a remark where the environment may hold it for somebody else.
fn unknown(key: String, source: Source, problems: &mut Vec<Problem>, notes: &mut Vec<Note>) {
    let hint = match topic_key(&key) {
        Some(_) => {
            let synonym = SYNONYMS.iter().find(|(topic, _)| *topic == key);
            synonym
                .and_then(|(_, brokers)| brokers.first())
                .map(|(broker, _)| format!("it is a key of topics, whose default is set by {broker}"))
        }
        None => nearest_key(&key).map(|nearest| format!("did you mean {nearest}?")),
    };
    let problem = Problem::UnknownKey { key, source, hint };
    match &problem {
        Problem::UnknownKey { source: Source::Environment { .. }, .. } => {
            notes.push(Note(format!("{problem} (ignored)")));
        }
        _ => problems.push(problem),
    }
}

/// The key of brokers or topics whose name is most like this one, if one is like it at all.
pub fn nearest_key(name: &str) -> Option<&'static str> {
    broker_keys()
        .chain(topic_keys())
        .map(|key| (distance(name, key.name), key.name))
        .min()
        .filter(|(distance, known)| *distance <= 2 + known.len() / 8)
        .map(|(_, known)| known)
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
    use super::*;

    fn given(settings: &[(&str, &str, Source)]) -> Resolution {
        let base = [
            ("process.roles", "broker"),
            ("node.id", "1"),
            ("controller.listener.names", "CONTROLLER"),
            ("controller.quorum.voters", "101@h:9093"),
        ];
        let base = base.iter().map(|(key, value)| (*key, *value, file(1)));
        resolve(base.chain(settings.iter().cloned()).map(|(key, value, source)| Given {
            key: key.to_owned(),
            value: value.to_owned(),
            source,
        }))
    }

    fn file(line: usize) -> Source {
        Source::File { path: "b.properties".into(), line }
    }

    fn environment() -> Source {
        Source::Environment { variable: "KAFKA_X".to_owned() }
    }

    #[test]
    fn the_stronger_place_wins() {
        let found = given(&[
            ("num.partitions", "9", Source::CommandLine),
            ("num.partitions", "7", environment()),
            ("num.partitions", "5", file(3)),
        ]);
        assert_eq!(found.problems, []);
        assert_eq!(found.resolved.int("num.partitions"), 9);
        assert_eq!(found.resolved.source("num.partitions"), &Source::CommandLine);
        assert_eq!(found.resolved.int("num.replica.fetchers"), 1);
    }

    #[test]
    fn every_problem_is_told_with_its_place() {
        let found = given(&[
            ("min.insync.replica", "2", file(4)),
            ("num.partitions", "many", file(5)),
            ("retention.ms", "5", Source::CommandLine),
        ]);
        let texts: Vec<String> = found.problems.iter().map(Problem::to_string).collect();
        assert_eq!(
            texts,
            [
                "b.properties:4: unknown key min.insync.replica; did you mean min.insync.replicas?",
                "b.properties:5: Invalid value many for configuration num.partitions: Not a number of type INT",
                "command line: unknown key retention.ms; it is a key of topics, whose default is set by log.retention.ms",
            ]
        );
    }

    #[test]
    fn an_unknown_key_of_the_environment_is_only_noted() {
        let found = given(&[("url", "http://x", environment())]);
        assert_eq!(found.problems, []);
        assert_eq!(found.notes, [Note("KAFKA_X: unknown key url (ignored)".to_owned())]);
    }

    #[test]
    fn keys_without_effect_and_old_names_are_noted() {
        let found = given(&[
            ("num.io.threads", "4", file(2)),
            ("broker.id", "1", file(3)),
            ("num.io.threads", "8", file(4)),
        ]);
        assert_eq!(found.problems, []);
        assert_eq!(found.notes.len(), 2, "the default value is nothing to talk about: {:?}", found.notes);
        assert_eq!(found.resolved.int("node.id"), 1);
        let found = given(&[("broker.id", "7", file(3))]);
        assert!(
            found.problems[0].to_string().contains("broker.id (7) and node.id (1)"),
            "{:?}",
            found.problems
        );
    }
}
