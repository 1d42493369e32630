//! The shape of a cluster under `up`: which nodes there are, where they listen, and the `.properties` file of each.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use minikafka_model::ClusterId;
use serde::{Deserialize, Serialize};

/// All nodes of `up` live on this address.
pub(crate) const HOST: &str = "127.0.0.1";
/// Id of the first controller, where controllers are processes of their own: brokers keep 1, 2, 3.
const FIRST_CONTROLLER: u16 = 101;
/// Where the ranges of ports begin, counted from the base port.
const CONTROLLERS_AT: u16 = 100;
const BROKERS_HTTP_AT: u16 = 200;
const CONTROLLERS_HTTP_AT: u16 = 300;

/// What a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// A broker.
    Broker,
    /// A controller.
    Controller,
    /// Both in one process.
    Node,
}

impl Role {
    /// The subcommand that runs it, and the first half of its folder's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Role::Broker => "broker",
            Role::Controller => "controller",
            Role::Node => "node",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How many nodes of which kind. Written into the data directory: a cluster keeps its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shape {
    /// Brokers (combined: nodes).
    pub(crate) brokers: u16,
    /// Controllers (combined: the same nodes).
    pub(crate) controllers: u16,
    /// Both roles in one process.
    pub(crate) combined: bool,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |n: u16| if n == 1 { "" } else { "s" };
        if self.combined {
            write!(f, "{} combined node{}", self.brokers, plural(self.brokers))
        } else {
            let Shape { brokers, controllers, .. } = self;
            write!(
                f,
                "{controllers} controller{} and {brokers} broker{}",
                plural(*controllers),
                plural(*brokers)
            )
        }
    }
}

/// One process of the cluster.
#[derive(Debug, Clone)]
pub(crate) struct NodePlan {
    /// What it is.
    pub(crate) role: Role,
    /// `node.id`.
    pub(crate) id: u16,
    /// Port for Kafka clients and for other brokers.
    pub(crate) kafka: Option<u16>,
    /// Port for controllers and for brokers that follow the metadata.
    pub(crate) controller: Option<u16>,
    /// Port of its HTTP server.
    pub(crate) http: u16,
    /// Folder of its partitions and of `server.log`.
    pub(crate) data: PathBuf,
    /// Its `.properties` file.
    pub(crate) config: PathBuf,
}

impl NodePlan {
    /// The file that takes its output.
    pub(crate) fn log(&self) -> PathBuf {
        self.data.join("server.log")
    }

    /// Each port with the key that asks for it.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (u16, &'static str)> {
        let kafka = self.kafka.map(|port| (port, "Kafka"));
        let controller = self.controller.map(|port| (port, "the controllers"));
        kafka.into_iter().chain(controller).chain([(self.http, "HTTP")])
    }
}

impl fmt::Display for NodePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.role, self.id)
    }
}

/// The processes of a cluster, controllers first.
pub(crate) fn nodes(shape: Shape, base: u16, data: &Path) -> Vec<NodePlan> {
    let node = |role: Role, id: u16, kafka, controller, http| {
        let name = format!("{role}-{id}");
        let config = data.join("config").join(format!("{name}.properties"));
        NodePlan { role, id, kafka, controller, http, data: data.join(name), config }
    };
    let kafka = |i: u16| base + 2 * i;
    if shape.combined {
        return (0..shape.brokers)
            .map(|i| {
                let controller = Some(base + CONTROLLERS_AT + i);
                node(Role::Node, 1 + i, Some(kafka(i)), controller, base + BROKERS_HTTP_AT + i)
            })
            .collect();
    }
    let controllers = (0..shape.controllers).map(|i| {
        let port = Some(base + CONTROLLERS_AT + i);
        node(Role::Controller, FIRST_CONTROLLER + i, None, port, base + CONTROLLERS_HTTP_AT + i)
    });
    let brokers = (0..shape.brokers)
        .map(|i| node(Role::Broker, 1 + i, Some(kafka(i)), None, base + BROKERS_HTTP_AT + i));
    controllers.chain(brokers).collect()
}

/// The `.properties` file of one node. `set` (from `-X`) comes last and wins over what stands above it.
pub(crate) fn properties(
    node: &NodePlan,
    nodes: &[NodePlan],
    cluster: &ClusterId,
    set: &[(String, String)],
) -> String {
    let mut lines = vec![
        ("process.roles".to_owned(), roles(node.role).to_owned()),
        ("node.id".to_owned(), node.id.to_string()),
        ("minikafka.cluster.id".to_owned(), cluster.to_string()),
        ("log.dirs".to_owned(), node.data.display().to_string()),
        ("minikafka.http.listen".to_owned(), format!("{HOST}:{}", node.http)),
    ];
    let mut listeners = Vec::new();
    if let Some(port) = node.kafka {
        listeners.push(format!("PLAINTEXT://{HOST}:{port}"));
        lines.push(("advertised.listeners".to_owned(), format!("PLAINTEXT://{HOST}:{port}")));
        lines.push(("inter.broker.listener.name".to_owned(), "PLAINTEXT".to_owned()));
    }
    if let Some(port) = node.controller {
        listeners.push(format!("CONTROLLER://{HOST}:{port}"));
    }
    let voters: Vec<String> = nodes
        .iter()
        .filter_map(|voter| voter.controller.map(|port| format!("{}@{HOST}:{port}", voter.id)))
        .collect();
    lines.push(("listeners".to_owned(), listeners.join(",")));
    lines.push(("controller.listener.names".to_owned(), "CONTROLLER".to_owned()));
    lines.push((
        "listener.security.protocol.map".to_owned(),
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT".to_owned(),
    ));
    lines.push(("controller.quorum.voters".to_owned(), voters.join(",")));
    for (key, value) in set {
        lines.retain(|(known, _)| known != key);
        lines.push((key.clone(), value.clone()));
    }
    let mut text = format!(
        "# {node}. Written by `minikafka up` at each start, so do not edit it: `-X key=value` sets a key for all nodes.\n"
    );
    for (key, value) in lines {
        writeln!(text, "{key}={}", value.replace('\\', "\\\\")).expect("a String takes all text");
    }
    text
}

const fn roles(role: Role) -> &'static str {
    match role {
        Role::Broker => "broker",
        Role::Controller => "controller",
        Role::Node => "broker,controller",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEPARATE: Shape = Shape { brokers: 3, controllers: 3, combined: false };

    #[test]
    fn three_and_three_stand_where_the_readme_says() {
        let nodes = nodes(SEPARATE, 9092, Path::new("/d"));
        let ids: Vec<u16> = nodes.iter().map(|n| n.id).collect();
        assert_eq!(ids, [101, 102, 103, 1, 2, 3]);
        let kafka: Vec<u16> = nodes.iter().filter_map(|n| n.kafka).collect();
        assert_eq!(kafka, [9092, 9094, 9096]);
        let controllers: Vec<u16> = nodes.iter().filter_map(|n| n.controller).collect();
        assert_eq!(controllers, [9192, 9193, 9194]);
        let http: Vec<u16> = nodes.iter().map(|n| n.http).collect();
        assert_eq!(http, [9392, 9393, 9394, 9292, 9293, 9294]);
    }

    #[test]
    fn fifty_of_each_share_no_port() {
        let shape = Shape { brokers: 50, controllers: 50, combined: false };
        let nodes = nodes(shape, 9092, Path::new("/d"));
        let mut ports: Vec<u16> = nodes.iter().flat_map(|n| n.ports().map(|(port, _)| port)).collect();
        let all = ports.len();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), all);
    }

    #[test]
    fn a_setting_replaces_the_generated_line() {
        let nodes = nodes(SEPARATE, 9092, Path::new("/d"));
        let set = [("minikafka.http.listen".to_owned(), "127.0.0.1:1".to_owned())];
        let text = properties(&nodes[3], &nodes, &ClusterId("c".to_owned()), &set);
        assert_eq!(text.matches("minikafka.http.listen=").count(), 1);
        assert!(text.contains("minikafka.http.listen=127.0.0.1:1\n"));
        assert!(
            text.contains(
                "controller.quorum.voters=101@127.0.0.1:9192,102@127.0.0.1:9193,103@127.0.0.1:9194\n"
            )
        );
    }

    #[test]
    fn a_combined_node_has_both_roles() {
        let shape = Shape { brokers: 3, controllers: 3, combined: true };
        let nodes = nodes(shape, 9092, Path::new("/d"));
        let text = properties(&nodes[0], &nodes, &ClusterId("c".to_owned()), &[]);
        assert!(text.contains("process.roles=broker,controller\n"));
        assert!(text.contains("listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9192\n"));
        assert!(text.contains("controller.quorum.voters=1@127.0.0.1:9192,2@"));
    }
}
