//! The field tables against the layouts of every message of Kafka 4.4, field by field.

mod support;

use minikafka_wire::table::{Table, Type};
use minikafka_wire::{APIS, Versions};
use serde_json::Value;

#[test]
fn every_table_is_kafkas() {
    let text = std::fs::read_to_string(support::oracle().join("probe/layouts.json")).expect("layouts.json");
    let layouts: Value = serde_json::from_str(&text).expect("JSON");
    let mut differences = Vec::new();
    for api in APIS {
        let layout = &layouts[api.key.code().to_string()];
        let mut expect = |what: &str, ours: String| {
            if layout[what] != ours.as_str() {
                differences.push(format!("{} {what}: {} here, {} in Kafka", api.name, ours, layout[what]));
            }
        };
        expect("name", api.name.to_owned());
        // InitProducerId 6 belongs to two-phase commit: Kafka 4.4 knows it and does not offer it. Its fields are in the table.
        let versions = if api.name == "InitProducerId" { Versions::between(0, 6) } else { api.versions };
        expect("versions", versions.to_string());
        expect("flexible", api.flexible.to_string());
        compare(&format!("{} request", api.name), api.request, &layout["request"], &mut differences);
        compare(&format!("{} response", api.name), api.response, &layout["response"], &mut differences);
    }
    assert!(differences.is_empty(), "{differences:#?}");
}

fn compare(path: &str, table: &Table, layout: &Value, differences: &mut Vec<String>) {
    let theirs = layout.as_array().expect("a list of fields");
    let names: Vec<&str> = theirs.iter().map(|field| field["n"].as_str().expect("a name")).collect();
    let ours: Vec<&str> = table.fields.iter().map(|field| field.name).collect();
    if ours != names {
        differences.push(format!("{path}: fields {ours:?}, in Kafka {names:?}"));
        return;
    }
    for (field, layout) in table.fields.iter().zip(theirs) {
        let path = format!("{path}.{}", field.name);
        if snake(field.name) != field.rust_name {
            differences.push(format!("{path}: called {}", field.rust_name));
        }
        let optional = |versions: Versions| (!versions.is_empty()).then(|| versions.to_string());
        let mut expect = |what: &str, ours: Option<String>| {
            let theirs = match &layout[what] {
                Value::Null => None,
                Value::String(text) => Some(text.to_lowercase()),
                other => Some(other.to_string()),
            };
            if ours != theirs {
                differences.push(format!("{path} {what}: {ours:?} here, {theirs:?} in Kafka"));
            }
        };
        expect("t", Some(type_name(&field.kind)));
        expect("v", Some(field.versions.to_string()));
        expect("null", optional(field.nullable));
        expect("tag", field.tag.map(|tag| tag.to_string()));
        expect("tv", field.tag.map(|_| field.versions.to_string()));
        expect("d", field.default.map(|text| text.replace(' ', "").replace("String::new()", "")));
        match field.kind {
            Type::Struct(inner) | Type::Array(&Type::Struct(inner)) => {
                compare(&path, inner, &layout["f"], differences);
            }
            _ => {}
        }
    }
}

/// Bytes and record sets are one format on the wire; of the messages here only record sets use it.
fn type_name(kind: &Type) -> String {
    match kind {
        Type::Struct(_) => "{}".to_owned(),
        Type::Array(element) => format!("[]{}", type_name(element)),
        Type::Bytes | Type::Records => "records".to_owned(),
        other => other.to_string(),
    }
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for (at, letter) in name.char_indices() {
        if letter.is_uppercase() && at > 0 {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

#[test]
fn tags_ascend_in_the_order_of_the_table() {
    fn check(table: &Table) {
        let tags: Vec<u32> = table.fields.iter().filter_map(|field| field.tag).collect();
        assert!(tags.is_sorted(), "{}: tags {tags:?} are written in this order", table.name);
        for field in table.fields {
            if let Type::Struct(inner) | Type::Array(&Type::Struct(inner)) = field.kind {
                check(inner);
            }
        }
    }
    for api in APIS {
        check(api.request);
        check(api.response);
    }
}

#[test]
fn the_protocol_page_is_fresh() {
    let page = include_str!("../../../docs/protocol.md");
    assert!(
        page == minikafka_wire::doc::protocol(),
        "docs/protocol.md is stale: cargo run -p minikafka-wire --example protocol > docs/protocol.md"
    );
}
