//! What a node in a container runs with: the image's defaults, completed from what the environment and a mounted file say.
//!
//! The variables are those of the Apache and Bitnami images: `KAFKA_` or `KAFKA_CFG_`, then the key in capitals with `_` for `.`. They
//! are added to the defaults and never replace them, and an empty variable is no variable. Where the environment says one half of
//! something (the advertised listeners, a broker id), the other half follows from it here; the keys themselves reach the node through
//! its own reading of the environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::args::Part;

/// The cluster of containers that were given no id: the one Apache's image uses, so that they find each other.
const CLUSTER_ID: &str = "5L6g3nShT-eMCtK--X86sw";
/// Where the image keeps its data: a volume that any user may write to.
const DATA: &str = "/var/lib/kafka/data";
/// HTTP of a container's node, for its own health check.
pub(crate) const HTTP: &str = "127.0.0.1:9644";
const KAFKA_PORT: &str = "9092";
const CONTROLLER_PORT: &str = "9093";
/// Variables that name the cluster, strongest first.
const CLUSTER_NAMES: [&str; 3] = ["CLUSTER_ID", "KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CLUSTER_ID"];
/// Variables of other images that set up a JVM, or the image itself, and mean nothing here.
const WITHOUT_EFFECT: [&str; 18] = [
    "KAFKA_HEAP_OPTS",
    "KAFKA_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_JMX_PORT",
    "KAFKA_JMX_HOSTNAME",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_LOG4J_LOGGERS",
    "KAFKA_LOG4J_ROOT_LOGLEVEL",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL",
    "KAFKA_DEBUG",
    "KAFKA_HOME",
    "KAFKA_VERSION",
    "KAFKA_VOLUME_DIR",
    "KAFKA_ENABLE_KRAFT",
    "KAFKA_ZOOKEEPER_CONNECT",
    "KAFKA_URL",
];

/// How to run the node of this container.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Which role.
    pub(crate) part: Part,
    /// The text of its `.properties` file, below the environment in strength.
    pub(crate) properties: String,
    /// Variables that must not reach it: they are dealt with here.
    pub(crate) dealt_with: Vec<String>,
    /// What the user should hear, a line each.
    pub(crate) warnings: Vec<String>,
}

/// Completes what was said. `file` is the text of a mounted `.properties` file, if there is one.
///
/// # Errors
/// `process.roles` that name no role, in a sentence.
pub(crate) fn complete(env: &BTreeMap<String, String>, file: Option<&str>) -> Result<Settings, String> {
    let said = Said { env, file: keys_of(file.unwrap_or_default()) };
    let mut lines: Vec<(&str, String)> = Vec::new();
    let roles = said.or("process.roles", "broker,controller", &mut lines);
    let part = part(&roles)?;
    let id = match (said.key("node.id"), said.key("broker.id")) {
        (Some(id), _) => id,
        (None, broker) => {
            let id = broker.unwrap_or_else(|| "1".to_owned());
            lines.push(("node.id", id.clone()));
            id
        }
    };
    let cluster = CLUSTER_NAMES.iter().find_map(|name| said.variable(name));
    if said.key("minikafka.cluster.id").is_none() || cluster.is_some() {
        lines.push(("minikafka.cluster.id", cluster.unwrap_or_else(|| CLUSTER_ID.to_owned())));
    }
    let controllers = said.or("controller.listener.names", "CONTROLLER", &mut lines);
    listeners(&said, part, &controllers, &id, &mut lines);
    if said.key("log.dir").is_none() {
        said.or("log.dirs", DATA, &mut lines);
    }
    said.or("minikafka.http.listen", HTTP, &mut lines);
    let mut properties = String::from("# The image's defaults, completed from the environment.\n");
    for (key, value) in lines {
        writeln!(properties, "{key}={}", value.replace('\\', "\\\\")).expect("a String takes all text");
    }
    if let Some(file) = file {
        properties.push_str("# The mounted file.\n");
        properties.push_str(file);
    }
    let unused: Vec<String> =
        WITHOUT_EFFECT.iter().filter(|name| said.variable(name).is_some()).map(|n| (*n).to_owned()).collect();
    let warnings = match unused.as_slice() {
        [] => Vec::new(),
        names => vec![format!(
            "{} set up a Java process or another image and have no effect here",
            names.join(", ")
        )],
    };
    let empty = env.iter().filter(|(name, value)| name.starts_with("KAFKA_") && value.trim().is_empty());
    let mut dealt_with: BTreeSet<String> = empty.map(|(name, _)| name.clone()).collect();
    dealt_with.extend(unused);
    dealt_with.extend(CLUSTER_NAMES.iter().map(|name| (*name).to_owned()));
    dealt_with.extend(["KAFKA_BROKER_ID", "KAFKA_CFG_BROKER_ID"].map(str::to_owned));
    Ok(Settings { part, properties, dealt_with: dealt_with.into_iter().collect(), warnings })
}

/// Listeners, what they are advertised as, their protocols, which of them the brokers use, and the voters of a single node.
fn listeners(said: &Said<'_>, part: Part, controllers: &str, id: &str, lines: &mut Vec<(&str, String)>) {
    let is_controller = |name: &str| controllers.split(',').any(|c| c.trim() == name);
    let advertised = said.key("advertised.listeners");
    let listeners = said.key("listeners").unwrap_or_else(|| {
        let mut listeners: Vec<String> = Vec::new();
        match &advertised {
            Some(advertised) => {
                listeners.extend(split(advertised).map(|(name, _, port)| format!("{name}://:{port}")));
            }
            None if part.is_broker() => listeners.push(format!("PLAINTEXT://:{KAFKA_PORT}")),
            None => {}
        }
        if part.is_controller()
            && !advertised.as_deref().is_some_and(|a| split(a).any(|(n, _, _)| is_controller(n)))
        {
            let name = controllers.split(',').next().unwrap_or(controllers).trim();
            listeners.push(format!("{name}://:{CONTROLLER_PORT}"));
        }
        let listeners = listeners.join(",");
        lines.push(("listeners", listeners.clone()));
        listeners
    });
    let of_broker: Vec<&str> =
        split(&listeners).map(|(name, _, _)| name).filter(|name| !is_controller(name)).collect();
    if advertised.is_none() && said.key("listeners").is_none() && part.is_broker() {
        lines.push(("advertised.listeners", format!("PLAINTEXT://localhost:{KAFKA_PORT}")));
    }
    if said.key("listener.security.protocol.map").is_none() {
        let names: BTreeSet<&str> =
            split(&listeners).map(|(name, _, _)| name).chain(controllers.split(',').map(str::trim)).collect();
        let map: Vec<String> = names.into_iter().map(|name| format!("{name}:PLAINTEXT")).collect();
        lines.push(("listener.security.protocol.map", map.join(",")));
    }
    let chosen =
        said.key("inter.broker.listener.name").or_else(|| said.key("security.inter.broker.protocol"));
    if let (true, None, Some(first)) = (part.is_broker(), chosen, of_broker.first()) {
        let name = if of_broker.contains(&"PLAINTEXT") { "PLAINTEXT" } else { first };
        lines.push(("inter.broker.listener.name", name.to_owned()));
    }
    let voters =
        said.key("controller.quorum.voters").or_else(|| said.key("controller.quorum.bootstrap.servers"));
    if voters.is_none() && part == Part::Node {
        let port = split(&listeners)
            .find(|(name, _, _)| is_controller(name))
            .map_or(CONTROLLER_PORT, |(_, _, port)| port);
        lines.push(("controller.quorum.voters", format!("{id}@localhost:{port}")));
    }
}

fn part(roles: &str) -> Result<Part, String> {
    let mut roles: Vec<&str> = roles.split(',').map(str::trim).filter(|role| !role.is_empty()).collect();
    roles.sort_unstable();
    match roles.as_slice() {
        ["broker"] => Ok(Part::Broker),
        ["controller"] => Ok(Part::Controller),
        ["broker", "controller"] => Ok(Part::Node),
        _ => Err(format!(
            "process.roles (KAFKA_PROCESS_ROLES) is {roles:?}; broker, controller, or broker,controller is wanted"
        )),
    }
}

/// `NAME://host:port` entries as (name, host, port).
fn split(listeners: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    listeners.split(',').filter_map(|entry| {
        let (name, address) = entry.trim().split_once("://")?;
        let (host, port) = address.rsplit_once(':')?;
        Some((name, host, port))
    })
}

/// The keys of a `.properties` text and their values, as far as they are needed to complete it.
fn keys_of(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    lines
        .filter_map(|line| line.split_once(['=', ':']))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

struct Said<'a> {
    env: &'a BTreeMap<String, String>,
    file: BTreeMap<String, String>,
}

impl Said<'_> {
    /// A variable that is set and not empty.
    fn variable(&self, name: &str) -> Option<String> {
        self.env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty()).map(str::to_owned)
    }

    /// The value of a key, from the environment or the file.
    fn key(&self, key: &str) -> Option<String> {
        let name = key.to_uppercase().replace('-', "___").replace('_', "__").replace('.', "_");
        self.variable(&format!("KAFKA_{name}"))
            .or_else(|| self.variable(&format!("KAFKA_CFG_{name}")))
            .or_else(|| self.file.get(key).cloned())
    }

    /// The value of a key; where nobody says one, the default, which becomes a line.
    fn or<'k>(&self, key: &'k str, default: &str, lines: &mut Vec<(&'k str, String)>) -> String {
        self.key(key).unwrap_or_else(|| {
            lines.push((key, default.to_owned()));
            default.to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(env: &[(&str, &str)], file: Option<&str>) -> Settings {
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        complete(&env, file).expect("complete")
    }

    fn line<'a>(settings: &'a Settings, key: &str) -> Option<&'a str> {
        settings.properties.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    #[test]
    fn nothing_said_is_one_node_that_is_everything() {
        let settings = completed(&[], None);
        assert_eq!(settings.part, Part::Node);
        assert_eq!(line(&settings, "listeners"), Some("PLAINTEXT://:9092,CONTROLLER://:9093"));
        assert_eq!(line(&settings, "advertised.listeners"), Some("PLAINTEXT://localhost:9092"));
        assert_eq!(line(&settings, "controller.quorum.voters"), Some("1@localhost:9093"));
        assert_eq!(line(&settings, "minikafka.cluster.id"), Some(CLUSTER_ID));
        assert_eq!(line(&settings, "log.dirs"), Some(DATA));
        assert!(settings.warnings.is_empty());
    }

    #[test]
    fn what_is_said_is_not_said_again_and_the_rest_follows_from_it() {
        let settings = completed(
            &[
                ("KAFKA_PROCESS_ROLES", "broker"),
                ("KAFKA_BROKER_ID", "3"),
                ("KAFKA_ADVERTISED_LISTENERS", "INSIDE://kafka3:19092,HOST://127.0.0.1:9096"),
                ("KAFKA_CFG_CONTROLLER_QUORUM_VOTERS", "101@controller1:9093"),
                ("CLUSTER_ID", "c"),
                ("KAFKA_HEAP_OPTS", "-Xmx1g"),
                ("KAFKA_RACK", " "),
            ],
            None,
        );
        assert_eq!(settings.part, Part::Broker);
        assert_eq!(line(&settings, "node.id"), Some("3"));
        assert_eq!(line(&settings, "listeners"), Some("INSIDE://:19092,HOST://:9096"));
        assert_eq!(line(&settings, "inter.broker.listener.name"), Some("INSIDE"));
        assert_eq!(
            line(&settings, "listener.security.protocol.map"),
            Some("CONTROLLER:PLAINTEXT,HOST:PLAINTEXT,INSIDE:PLAINTEXT")
        );
        assert_eq!(line(&settings, "minikafka.cluster.id"), Some("c"));
        for key in ["process.roles", "advertised.listeners", "controller.quorum.voters"] {
            assert_eq!(line(&settings, key), None, "{key}");
        }
        assert_eq!(settings.warnings.len(), 1);
        assert!(settings.warnings[0].starts_with("KAFKA_HEAP_OPTS "), "{:?}", settings.warnings);
        for name in ["KAFKA_HEAP_OPTS", "KAFKA_BROKER_ID", "KAFKA_RACK", "CLUSTER_ID"] {
            assert!(settings.dealt_with.contains(&name.to_owned()), "{name}");
        }
    }

    #[test]
    fn a_mounted_file_stands_below_the_environment_and_above_the_defaults() {
        let file = "process.roles=controller\nnode.id = 101\nlisteners=C://:1\ncontroller.listener.names=C\n";
        let settings = completed(&[("KAFKA_NODE_ID", "102")], Some(file));
        assert_eq!(settings.part, Part::Controller);
        assert!(settings.properties.ends_with(file));
        assert_eq!(settings.properties.matches("node.id").count(), 1);
        assert_eq!(line(&settings, "listener.security.protocol.map"), Some("C:PLAINTEXT"));
        assert_eq!(line(&settings, "advertised.listeners"), None);
    }

    #[test]
    fn a_controller_advertises_nothing_and_listens_on_its_own_name() {
        let env = [("KAFKA_PROCESS_ROLES", "controller"), ("KAFKA_CONTROLLER_LISTENER_NAMES", "QUORUM")];
        let settings = completed(&env, None);
        assert_eq!(line(&settings, "listeners"), Some("QUORUM://:9093"));
        assert_eq!(line(&settings, "advertised.listeners"), None);
        assert_eq!(line(&settings, "inter.broker.listener.name"), None);
        assert_eq!(line(&settings, "controller.quorum.voters"), None);
    }

    #[test]
    fn roles_that_are_none_are_refused() {
        let env = BTreeMap::from([("KAFKA_PROCESS_ROLES".to_owned(), "zookeeper".to_owned())]);
        let refusal = complete(&env, None).expect_err("no role");
        assert!(refusal.contains("zookeeper") && refusal.contains("KAFKA_PROCESS_ROLES"), "{refusal}");
    }
}
