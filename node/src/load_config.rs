//! The configuration of a node: a file, the environment and the command line, merged over the defaults.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use minikafka_model::config::{Given, Note, Problem, Resolved, Source, resolve};

use crate::properties;

/// A configuration that can be used.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    /// One value per key.
    pub resolved: Resolved,
    /// What whoever gave it should know: keys without effect, unknown variables of the environment.
    pub notes: Vec<Note>,
}

/// Why a configuration cannot be used: everything that is wrong with it, not the first thing alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<String>);

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigProblems {}

/// Variables that the official image and its scripts know, but that are no configuration keys.
const NOT_KEYS: &[&str] = &[
    "KAFKA_DEBUG",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_HEAP_OPTS",
    "KAFKA_HOME",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_OPTS",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_VERSION",
];

/// Reads `file`, takes the variables `KAFKA_*`, `KAFKA_CFG_*` and `CLUSTER_ID` of `environment`, and `-X key=value` of the command
/// line; the later is the stronger.
///
/// # Errors
/// All problems, each with its place (file and line, variable, command line).
pub fn load_config(
    file: Option<&Path>,
    environment: impl IntoIterator<Item = (String, String)>,
    command_line: &[(String, String)],
) -> Result<LoadedConfig, ConfigProblems> {
    let Some(file) = file else { return load_config_text("", "", environment, command_line) };
    let text = std::fs::read_to_string(file)
        .map_err(|error| ConfigProblems(vec![format!("{} cannot be read: {error}", file.display())]))?;
    load_config_text(&file.display().to_string(), &text, environment, command_line)
}

/// As [`load_config`], with the text of a file that need not exist.
///
/// # Errors
/// All problems, each with its place.
pub fn load_config_text(
    name: &str,
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
    command_line: &[(String, String)],
) -> Result<LoadedConfig, ConfigProblems> {
    let path: Arc<str> = name.into();
    let mut given: Vec<Given> = properties::parse(text)
        .into_iter()
        .map(|(line, key, value)| Given { key, value, source: Source::File { path: path.clone(), line } })
        .collect();
    given.extend(environment.into_iter().filter_map(|(variable, value)| {
        let key = key_of(&variable).filter(|_| !value.is_empty())?;
        Some(Given { key, value, source: Source::Environment { variable } })
    }));
    given.extend(command_line.iter().map(|(key, value)| Given {
        key: key.clone(),
        value: value.clone(),
        source: Source::CommandLine,
    }));
    let found = resolve(given);
    if found.problems.is_empty() {
        Ok(LoadedConfig { resolved: found.resolved, notes: found.notes })
    } else {
        Err(ConfigProblems(found.problems.iter().map(Problem::to_string).collect()))
    }
}

/// The key that a variable sets, if it sets one: `_` is a dot, `__` an underscore, `___` a dash.
fn key_of(variable: &str) -> Option<String> {
    if variable == "CLUSTER_ID" {
        return Some("minikafka.cluster.id".to_owned());
    }
    if NOT_KEYS.contains(&variable) {
        return None;
    }
    let name = variable.strip_prefix("KAFKA_CFG_").or_else(|| variable.strip_prefix("KAFKA_"))?;
    let key = name.to_ascii_lowercase().replace("___", "-").replace("__", "\0").replace('_', ".");
    Some(key.replace('\0', "_")).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        file
    }

    const BROKER: &str = "process.roles=broker\nnode.id=1\nlisteners=PLAINTEXT://127.0.0.1:9092\n\
        controller.listener.names=CONTROLLER\ncontroller.quorum.voters=101@127.0.0.1:9093\n";

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn file_environment_and_command_line_are_merged() {
        let file =
            file(&format!("{BROKER}num.partitions=2\nnum.replica.fetchers=2\nmin.insync.replicas=2\n"));
        let environment = [
            pair("KAFKA_NUM_PARTITIONS", "3"),
            pair("KAFKA_CFG_NUM_REPLICA_FETCHERS", "3"),
            pair("KAFKA_HEAP_OPTS", "-Xmx1g"),
            pair("KAFKA_MESSAGE_MAX_BYTES", ""),
            pair("HOME", "/root"),
        ];
        let loaded =
            load_config(Some(file.path()), environment, &[pair("num.partitions", "4")]).expect("good");
        assert_eq!(loaded.resolved.int("num.partitions"), 4);
        assert_eq!(loaded.resolved.int("num.replica.fetchers"), 3);
        assert_eq!(loaded.resolved.int("min.insync.replicas"), 2);
        assert_eq!(loaded.resolved.int("message.max.bytes"), 1_048_588, "an empty variable is not set");
        assert_eq!(loaded.notes, []);
    }

    #[test]
    fn all_problems_come_with_their_places() {
        let file = file(&format!("{BROKER}\nmin.insync.replica=2\n"));
        let problems =
            load_config(Some(file.path()), [], &[pair("num.partitions", "x")]).expect_err("two problems");
        assert_eq!(problems.0.len(), 2);
        assert!(problems.0[0].contains(&format!("{}:7: unknown key", file.path().display())), "{problems}");
        assert!(problems.0[1].starts_with("command line: Invalid value x"), "{problems}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let problems = load_config(Some(Path::new("/no/such.properties")), [], &[]).expect_err("missing");
        assert!(problems.to_string().contains("/no/such.properties"));
    }

    #[test]
    fn variables_become_keys() {
        assert_eq!(key_of("KAFKA_LISTENER_NAME_A__B_X___Y").as_deref(), Some("listener.name.a_b.x-y"));
        assert_eq!(key_of("CLUSTER_ID").as_deref(), Some("minikafka.cluster.id"));
        assert_eq!(key_of("KAFKA_OPTS"), None);
        assert_eq!(key_of("PATH"), None);
    }
}
