//! `minikafka cluster info`.

use comfy_table::{Table, presets};
use minikafka_client::{ClusterDescription, ClusterNode};
use serde_json::{Value, json};

use super::connect::{connect, run};
use crate::args::{ClusterInfo, Output};
use crate::failure::{Outcome, answer};

/// Id, controller and brokers.
pub(crate) fn info(asked: &ClusterInfo) -> Outcome {
    run(async {
        let client = connect(&asked.connection, &[]).await?;
        let cluster = client.admin().describe_cluster().await?;
        answer(&match asked.connection.output {
            Output::Table => table(&cluster),
            Output::Json => object(&cluster).to_string(),
        })
    })
}

fn state(node: &ClusterNode) -> &'static str {
    match node.fenced {
        Some(true) => "fenced",
        Some(false) => "running",
        None => "known",
    }
}

fn table(cluster: &ClusterDescription) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["BROKER", "ADDRESS", "RACK", "STATE", ""]);
    for (id, node) in &cluster.nodes {
        let takes_admin = if cluster.controller == Some(*id) { "takes admin requests" } else { "" };
        table.add_row([
            id.to_string(),
            node.broker.address.to_string(),
            node.broker.rack.clone().unwrap_or_else(|| "-".to_owned()),
            state(node).to_owned(),
            takes_admin.to_owned(),
        ]);
    }
    format!("Cluster: {}\n{}", cluster.cluster_id.as_deref().unwrap_or("unknown"), table.trim_fmt())
}

fn object(cluster: &ClusterDescription) -> Value {
    let brokers: Vec<Value> = cluster
        .nodes
        .iter()
        .map(|(id, node)| {
            json!({
                "id": id.0,
                "address": node.broker.address.to_string(),
                "rack": node.broker.rack,
                "fenced": node.fenced,
            })
        })
        .collect();
    json!({
        "schema": 1,
        "cluster_id": cluster.cluster_id,
        "controller": cluster.controller.map(|id| id.0),
        "brokers": brokers,
    })
}
