//! `minikafka api-versions`: what each broker offers, beside what this client speaks.

use comfy_table::{Table, presets};
use minikafka_client::{Broker, Error, OfferedVersions};
use minikafka_wire::ApiKey;
use serde_json::{Value, json};

use super::connect::{connect, run};
use crate::args::{ApiVersions, Output};
use crate::failure::{Failure, Kind, Outcome, answer};

type Offers = Vec<(Broker, Result<OfferedVersions, Error>)>;

/// Asks every broker.
pub(crate) fn api_versions(asked: &ApiVersions) -> Outcome {
    run(async {
        let client = connect(&asked.connection, &[]).await?;
        let offers = client.admin().api_versions().await?;
        answer(&match asked.connection.output {
            Output::Table => table(&offers),
            Output::Json => object(&offers).to_string(),
        })?;
        let silent: Vec<String> = offers
            .iter()
            .filter_map(|(broker, offered)| {
                offered.as_ref().err().map(|error| format!("broker {}: {error}", broker.id))
            })
            .collect();
        if silent.is_empty() { Ok(()) } else { Err(Failure::of(Kind::CannotConnect, silent.join("; "))) }
    })
}

/// Names of the APIs that this client does not speak (the field layouts of Kafka 4.4).
const OTHER_NAMES: &[(i16, &str)] = &[
    (8, "OffsetCommit"),
    (9, "OffsetFetch"),
    (10, "FindCoordinator"),
    (11, "JoinGroup"),
    (12, "Heartbeat"),
    (13, "LeaveGroup"),
    (14, "SyncGroup"),
    (15, "DescribeGroups"),
    (16, "ListGroups"),
    (17, "SaslHandshake"),
    (21, "DeleteRecords"),
    (24, "AddPartitionsToTxn"),
    (25, "AddOffsetsToTxn"),
    (26, "EndTxn"),
    (27, "WriteTxnMarkers"),
    (28, "TxnOffsetCommit"),
    (29, "DescribeAcls"),
    (30, "CreateAcls"),
    (31, "DeleteAcls"),
    (34, "AlterReplicaLogDirs"),
    (36, "SaslAuthenticate"),
    (38, "CreateDelegationToken"),
    (39, "RenewDelegationToken"),
    (40, "ExpireDelegationToken"),
    (41, "DescribeDelegationToken"),
    (42, "DeleteGroups"),
    (47, "OffsetDelete"),
    (48, "DescribeClientQuotas"),
    (49, "AlterClientQuotas"),
    (50, "DescribeUserScramCredentials"),
    (51, "AlterUserScramCredentials"),
    (61, "DescribeProducers"),
    (65, "DescribeTransactions"),
    (66, "ListTransactions"),
    (68, "ConsumerGroupHeartbeat"),
    (69, "ConsumerGroupDescribe"),
    (71, "GetTelemetrySubscriptions"),
    (72, "PushTelemetry"),
    (74, "ListConfigResources"),
    (76, "ShareGroupHeartbeat"),
    (77, "ShareGroupDescribe"),
    (78, "ShareFetch"),
    (79, "ShareAcknowledge"),
    (80, "AddRaftVoter"),
    (81, "RemoveRaftVoter"),
    (83, "InitializeShareGroupState"),
    (84, "ReadShareGroupState"),
    (85, "WriteShareGroupState"),
    (86, "DeleteShareGroupState"),
    (87, "ReadShareGroupStateSummary"),
    (88, "StreamsGroupHeartbeat"),
    (89, "StreamsGroupDescribe"),
    (90, "DescribeShareGroupOffsets"),
    (91, "AlterShareGroupOffsets"),
    (92, "DeleteShareGroupOffsets"),
    (93, "StreamsGroupTopologyDescriptionUpdate"),
    (94, "UnregisterController"),
];

fn name(key: i16) -> String {
    let other = || OTHER_NAMES.iter().find(|(known, _)| *known == key).map(|(_, name)| (*name).to_owned());
    let known = ApiKey::from_code(key).map(|api| api.name().to_owned());
    known.or_else(other).unwrap_or_else(|| format!("API {key}"))
}

fn table(offers: &Offers) -> String {
    let mut text = String::new();
    for (broker, offered) in offers {
        let Ok(offered) = offered else { continue };
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["KEY", "API", "OFFERED", "SPOKEN HERE"]);
        for (key, versions) in offered.iter() {
            let ours =
                ApiKey::from_code(key).map_or_else(|| "-".to_owned(), |api| api.api().versions.to_string());
            table.add_row([key.to_string(), name(key), versions.to_string(), ours]);
        }
        let features: Vec<String> =
            offered.features.iter().map(|(name, level)| format!("{name}={level}")).collect();
        text.push_str(&format!("Broker {} at {}\n{}\n", broker.id, broker.address, table.trim_fmt()));
        if !features.is_empty() {
            text.push_str(&format!("Features: {}\n", features.join(", ")));
        }
        text.push('\n');
    }
    text
}

fn object(offers: &Offers) -> Value {
    let brokers: Vec<Value> = offers
        .iter()
        .map(|(broker, offered)| match offered {
            Ok(offered) => {
                let apis: Vec<Value> = offered
                    .iter()
                    .map(|(key, versions)| json!({"key": key, "name": name(key), "min": versions.min, "max": versions.max}))
                    .collect();
                json!({
                    "id": broker.id.0,
                    "address": broker.address.to_string(),
                    "apis": apis,
                    "features": offered.features,
                })
            }
            Err(error) => {
                json!({"id": broker.id.0, "address": broker.address.to_string(), "error": error.to_string()})
            }
        })
        .collect();
    json!({"schema": 1, "brokers": brokers})
}
