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

fn name(key: i16) -> String {
    ApiKey::from_code(key).map_or_else(|| format!("API {key}"), |api| api.name().to_owned())
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
