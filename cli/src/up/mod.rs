//! `minikafka up`: a whole cluster of child processes on this machine.
//!
//! Everything that can be wrong is looked at before anything is changed: the shape, the configuration, the data directory, the ports.

mod child;
mod data_dir;
pub(crate) mod health;
mod layout;
mod supervise;
mod tell;

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::time::Instant;

use minikafka_model::ClusterId;
use minikafka_node::ConfigProblems;

use crate::args::Up;
use crate::failure::{Failure, Outcome};
use data_dir::{DataDir, Found};
use layout::{HOST, NodePlan, Shape};

/// Brokers and controllers where neither the command line nor the data directory says how many.
const DEFAULT_COUNT: u16 = 3;

/// Runs a cluster until it is told to stop.
///
/// # Errors
/// A cluster that could not be started: one clear line, and nothing is damaged.
pub(crate) fn run(asked: &Up) -> Outcome {
    let begun = Instant::now();
    let found = data_dir::look(&asked.data_dir)?;
    let shape = shape(asked, &found)?;
    check_config(asked, shape)?;
    let data = DataDir::hold(&asked.data_dir)?;
    data.check_idle()?;
    // What the directory holds may have changed until the lock was ours.
    let found = data_dir::look(data.path())?;
    let nodes = layout::nodes(shape, asked.base_port, data.path());
    check_ports(&nodes)?;
    if asked.fresh {
        data.clear()?;
    }
    let record = match found {
        Found::Cluster(record) if !asked.fresh => record,
        _ => data.found(shape)?,
    };
    for node in &nodes {
        data.make_dir(&node.data)?;
        let text = layout::properties(node, &nodes, &record.cluster_id, &asked.set);
        data.write_config(&format!("{}-{}.properties", node.role, node.id), &text)?;
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::error)?;
    let cluster = supervise::Cluster::new(nodes, record, data, asked.json, begun);
    runtime.block_on(cluster.run())
}

/// The shape asked for, or the one the directory has.
fn shape(asked: &Up, found: &Found) -> Outcome<Shape> {
    let recorded = match found {
        Found::Cluster(record) if !asked.fresh => Some(record.shape),
        _ => None,
    };
    let combined = asked.combined || recorded.is_some_and(|shape| shape.combined);
    let mut brokers = asked.brokers.or(recorded.map(|shape| shape.brokers));
    let mut controllers = asked.controllers.or(recorded.map(|shape| shape.controllers));
    if combined {
        if let (Some(b), Some(c)) = (asked.brokers, asked.controllers)
            && b != c
        {
            return Err(Failure::usage(format!(
                "--combined nodes are both, so --brokers {b} and --controllers {c} cannot differ"
            )));
        }
        brokers = asked.brokers.or(asked.controllers).or(brokers);
        controllers = brokers;
    }
    let shape = Shape {
        brokers: brokers.unwrap_or(DEFAULT_COUNT),
        controllers: controllers.unwrap_or(DEFAULT_COUNT),
        combined,
    };
    match recorded {
        Some(recorded) if recorded != shape => Err(Failure::error(format!(
            "data directory {} holds a cluster of {recorded}, not of {shape}",
            asked.data_dir.display()
        ))
        .hint("leave the numbers out to start it as it is, choose another --data-dir, or begin anew with --fresh")),
        _ => Ok(shape),
    }
}

/// The configuration must be good for every kind of node; what it says without effect is told once.
fn check_config(asked: &Up, shape: Shape) -> Outcome {
    let nodes = layout::nodes(shape, asked.base_port, &asked.data_dir);
    // Any id does: it only has to be there.
    let cluster = ClusterId("new".to_owned());
    let (mut problems, mut notes) = (BTreeSet::new(), BTreeSet::new());
    for node in &nodes {
        let text = layout::properties(node, &nodes, &cluster, &[]);
        let name = format!("{node}, as generated");
        match minikafka_node::load_config_text(&name, &text, std::env::vars(), &asked.set) {
            Ok(loaded) => notes.extend(loaded.notes.iter().map(ToString::to_string)),
            Err(ConfigProblems(found)) => problems.extend(found),
        }
    }
    notes.iter().for_each(|note| eprintln!("note: {note}"));
    if problems.is_empty() {
        return Ok(());
    }
    let problems: Vec<String> = problems.into_iter().collect();
    Err(Failure::usage(problems.join("\n       ")))
}

/// Every port of the cluster must be free, so that no node fails half-way.
fn check_ports(nodes: &[NodePlan]) -> Outcome {
    for node in nodes {
        for (port, what) in node.ports() {
            let address: SocketAddr = format!("{HOST}:{port}").parse().map_err(Failure::error)?;
            // The standard library sets SO_REUSEADDR, as the nodes do: only a living listener is in the way.
            TcpListener::bind(address).map_err(|error| {
                Failure::error(format!("port {port} ({what} of {node}) cannot be used: {error}"))
                    .hint("stop what listens there, or choose other ports with --base-port")
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn asked(words: &[&str]) -> Up {
        let words = ["minikafka", "up"].iter().chain(words);
        match Arguments::try_parse_from(words).expect("a good command line").command {
            Command::Up(up) => up,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_directory_keeps_its_shape() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = DataDir::hold(folder.path()).expect("free");
        let record = held.found(Shape { brokers: 2, controllers: 1, combined: false }).expect("written");
        let found = Found::Cluster(record.clone());
        assert_eq!(shape(&asked(&[]), &found).expect("as it is"), record.shape);
        let refusal = shape(&asked(&["--brokers", "3"]), &found).expect_err("another shape").to_string();
        assert!(refusal.contains("1 controller and 2 brokers"), "{refusal}");
        let anew = shape(&asked(&["--brokers", "3", "--fresh"]), &found).expect("begun anew");
        assert_eq!((anew.brokers, anew.controllers), (3, 3));
    }

    #[test]
    fn combined_nodes_are_counted_once() {
        let nodes = shape(&asked(&["--combined", "--brokers", "5"]), &Found::Nothing).expect("five");
        assert_eq!((nodes.brokers, nodes.controllers, nodes.combined), (5, 5, true));
        shape(&asked(&["--combined", "--brokers", "5", "--controllers", "3"]), &Found::Nothing)
            .expect_err("neither five nor three");
    }

    #[test]
    fn a_port_in_use_is_named() {
        let taken = TcpListener::bind((HOST, 0)).expect("a port");
        let port = taken.local_addr().expect("an address").port();
        let mut nodes = layout::nodes(
            Shape { brokers: 1, controllers: 1, combined: false },
            9092,
            std::path::Path::new("/d"),
        );
        nodes.truncate(1);
        nodes[0].controller = Some(port);
        let refusal = check_ports(&nodes).expect_err("taken").to_string();
        assert!(refusal.contains(&port.to_string()) && refusal.contains("controller 101"), "{refusal}");
    }
}
