//! The table of keys and the words of refusals, compared with what Kafka 4.4 answered (`tests/oracle/probe`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use minikafka_model::config::{
    Dynamic, Given, Resolved, Source, Update, broker_key, broker_keys, check_topic, resolve, topic_key,
    topic_keys,
};
use serde_json::Value;

fn answer(case: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle/probe/answers-kafka-4.4.json");
    let text = std::fs::read_to_string(path).expect("the recorded answers");
    let mut all: Value = serde_json::from_str(&text).expect("JSON");
    all["cases"][case]["answer"].take()
}

fn with(settings: &[(&str, &str)]) -> Resolved {
    let given = settings.iter().map(|(key, value)| Given {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
        source: Source::CommandLine,
    });
    resolve(given).resolved
}

/// The recorded cluster gave `min.insync.replicas` as a dynamic default of all brokers.
fn dynamic() -> BTreeMap<String, String> {
    BTreeMap::from([("min.insync.replicas".to_owned(), "1".to_owned())])
}

#[test]
fn every_topic_key_has_kafkas_type_default_and_source() {
    let all = dynamic();
    let dynamic = Dynamic { broker: None, all: Some(&all) };
    let ours: BTreeMap<String, Value> = with(&[])
        .topic_values(&BTreeMap::new(), dynamic)
        .into_iter()
        .map(|v| {
            let facts = serde_json::json!([v.value, v.source.code(), v.key.kind.code()]);
            (v.key.name.to_owned(), facts)
        })
        .collect();
    assert_eq!(serde_json::to_value(ours).expect("JSON"), answer("configs.describe.all-topic-keys"));
}

#[test]
fn every_broker_key_has_kafkas_type_and_flags() {
    let recorded = answer("configs.describe.all-broker-keys");
    let recorded = recorded.as_object().expect("an object");
    for (name, facts) in recorded {
        let key = broker_key(name).unwrap_or_else(|| panic!("{name} is missing"));
        let ours = serde_json::json!([key.kind.code(), key.update == Update::ReadOnly, key.is_secret()]);
        assert_eq!(&ours, facts, "{name}");
    }
    assert!(recorded.len() > 300);
    let names: BTreeSet<&str> = broker_keys().map(|key| key.name).collect();
    assert_eq!(names.len(), broker_keys().count(), "no key stands twice");
    assert!(topic_keys().all(|key| topic_key(key.name) == Some(key)));
}

#[test]
fn brokers_have_kafkas_defaults() {
    let recorded = answer("configs.describe.broker-defaults");
    let resolved = with(&[]);
    let mut compared = 0;
    for (name, facts) in recorded.as_object().expect("an object") {
        if facts[1] == 5 {
            assert_eq!(Resolved::default_of(name), facts[0].as_str(), "{name}");
            assert_eq!(resolved.text(name), facts[0].as_str().filter(|text| !text.is_empty()), "{name}");
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn synonyms_come_in_kafkas_order() {
    let recorded = answer("configs.describe.synonyms");
    let all = dynamic();
    let own = BTreeMap::from([("min.insync.replicas".to_owned(), "2".to_owned())]);
    for config in recorded[0]["Configs"].as_array().expect("a list") {
        let name = config["Name"].as_str().expect("a name");
        let ours = with(&[])
            .topic_value(name, &own, Dynamic { broker: None, all: Some(&all) })
            .expect("a topic key");
        let synonyms: Vec<Value> = ours
            .synonyms
            .iter()
            .map(|s| serde_json::json!({"Name": s.name, "Value": s.value, "Source": s.source.code()}))
            .collect();
        assert_eq!(Value::from(synonyms), config["Synonyms"], "{name}");
        assert_eq!(
            (ours.value.as_deref(), i64::from(ours.source.code())),
            (config["Value"].as_str(), config["ConfigSource"].as_i64().expect("a number"))
        );
    }
}

#[test]
fn refusals_have_kafkas_words() {
    let refusals = [
        ("retention.ms", "soon"),
        ("min.insync.replicas", "0"),
        ("cleanup.policy", "shred"),
        ("unclean.leader.election.enable", "maybe"),
        ("segment.bytes", "13"),
        ("max.message.bytes", "-1"),
        ("compression.type", "rar"),
    ];
    let recorded = answer("configs.inc.bad-value");
    assert_eq!(recorded.as_array().expect("a list").len(), refusals.len());
    for ((key, value), recorded) in refusals.iter().zip(recorded.as_array().expect("a list")) {
        let ours = check_topic(key, value).expect_err(key).to_string();
        assert_eq!(Some(ours.as_str()), recorded[0]["ErrorMessage"].as_str());
    }
    for (case, key, value) in [
        ("create.config.unknown", "no.such.key", "1"),
        ("create.config.bad-number", "retention.ms", "soon"),
        ("create.config.out-of-range", "min.insync.replicas", "0"),
        ("create.config.bad-enum", "cleanup.policy", "shred"),
        ("create.config.broker-key", "log.retention.ms", "1"),
    ] {
        let ours = check_topic(key, value).expect_err(case).to_string();
        assert_eq!(Some(ours.as_str()), answer(case)[0]["ErrorMessage"].as_str(), "{case}");
    }
}

#[test]
fn the_page_of_keys_is_fresh() {
    let page = include_str!("../../../docs/configuration.md");
    assert!(
        page == minikafka_model::config::reference(),
        "docs/configuration.md is stale: cargo run -p minikafka-model --example configuration > docs/configuration.md"
    );
}
