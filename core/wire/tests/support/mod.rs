//! What the tests of this crate share: the recorded traffic of Kafka 4.4 and a second decoder that walks the tables.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests read the recorded traffic from its files")]

use std::path::{Path, PathBuf};

use bytes::Bytes;
use minikafka_wire::table::{Field, Table, Type};
use minikafka_wire::{ApiKey, Direction, Reader};
use serde_json::{Map, Value, json};

/// Calls `$callback!` with every API: key, module, request, response.
#[macro_export]
macro_rules! each_api {
    ($callback:ident) => {
        $callback! {
            Produce produce ProduceRequest ProduceResponse,
            Fetch fetch FetchRequest FetchResponse,
            ListOffsets list_offsets ListOffsetsRequest ListOffsetsResponse,
            Metadata metadata MetadataRequest MetadataResponse,
            ApiVersions api_versions ApiVersionsRequest ApiVersionsResponse,
            CreateTopics create_topics CreateTopicsRequest CreateTopicsResponse,
            DeleteTopics delete_topics DeleteTopicsRequest DeleteTopicsResponse,
            InitProducerId init_producer_id InitProducerIdRequest InitProducerIdResponse,
            OffsetForLeaderEpoch offset_for_leader_epoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse,
            DescribeConfigs describe_configs DescribeConfigsRequest DescribeConfigsResponse,
            AlterConfigs alter_configs AlterConfigsRequest AlterConfigsResponse,
            DescribeLogDirs describe_log_dirs DescribeLogDirsRequest DescribeLogDirsResponse,
            CreatePartitions create_partitions CreatePartitionsRequest CreatePartitionsResponse,
            ElectLeaders elect_leaders ElectLeadersRequest ElectLeadersResponse,
            IncrementalAlterConfigs incremental_alter_configs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse,
            AlterPartitionReassignments alter_partition_reassignments AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse,
            ListPartitionReassignments list_partition_reassignments ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse,
            DescribeQuorum describe_quorum DescribeQuorumRequest DescribeQuorumResponse,
            UpdateFeatures update_features UpdateFeaturesRequest UpdateFeaturesResponse,
            DescribeCluster describe_cluster DescribeClusterRequest DescribeClusterResponse,
            UnregisterBroker unregister_broker UnregisterBrokerRequest UnregisterBrokerResponse,
            DescribeTopicPartitions describe_topic_partitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse,
        }
    };
}

/// The folder of what Kafka 4.4 answered.
pub(crate) fn oracle() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle")
}

/// One recorded exchange.
pub(crate) struct Exchange {
    pub(crate) key: ApiKey,
    pub(crate) version: i16,
    /// Frames without their length bytes; the response is `None` where Kafka closed the connection.
    pub(crate) request: Bytes,
    pub(crate) response: Option<Bytes>,
    pub(crate) request_fields: Value,
    pub(crate) response_fields: Value,
}

/// Every recorded exchange of an API this codec knows.
pub(crate) fn exchanges() -> Vec<Exchange> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(oracle().join("wire")).expect("tests/oracle/wire") {
        let path = file.expect("a folder entry").path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        for line in std::fs::read_to_string(&path).expect("a text file").lines() {
            let line: Value = serde_json::from_str(line).expect("one object a line");
            let code = line["key"].as_i64().expect("a key") as i16;
            let Some(key) = ApiKey::from_code(code) else { continue };
            found.push(Exchange {
                key,
                version: line["version"].as_i64().expect("a version") as i16,
                request: frame(line["request"].as_str().expect("hex")),
                response: line["response"].as_str().filter(|text| *text != "closed").map(frame),
                request_fields: line["request_fields"].clone(),
                response_fields: line["response_fields"].clone(),
            });
        }
    }
    found.sort_by_key(|exchange| (exchange.key, exchange.version));
    assert!(found.len() > 100, "the recorded exchanges are there");
    found
}

fn frame(hex: &str) -> Bytes {
    let bytes = unhex(hex);
    assert_eq!(bytes[..4], (bytes.len() as u32 - 4).to_be_bytes(), "length in front");
    bytes.slice(4..)
}

pub(crate) fn unhex(hex: &str) -> Bytes {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Byte position of the body in a response frame: after the correlation id, and an empty list of tags if the header has one.
pub(crate) fn response_body_at(key: ApiKey, version: i16) -> usize {
    if key != ApiKey::ApiVersions && key.api().is_flexible(version) { 5 } else { 4 }
}

/// A body as JSON, read by walking its table at run time and not by the code the table generates.
pub(crate) fn fields_of(key: ApiKey, direction: Direction, version: i16, body: &Bytes) -> Value {
    let mut from = Reader::new(body, version, key.api().is_flexible(version));
    let fields = structure(key.api().table(direction), &mut from);
    assert_eq!(from.left(), 0, "{key} {version}: bytes left over");
    fields
}

fn structure(table: &Table, from: &mut Reader<'_>) -> Value {
    let mut found = Map::new();
    for field in table.fields {
        if field.tag.is_none() && field.versions.contains(from.version()) {
            found.insert(field.name.to_owned(), value_or_null(field, from));
        }
    }
    if from.flexible() {
        for _ in 0..from.uvarint().expect("number of tags") {
            let tag = from.uvarint().expect("a tag");
            let size = from.uvarint().expect("its size") as usize;
            let end = from.left() - size;
            let known = |field: &&Field| field.tag == Some(tag) && field.versions.contains(from.version());
            let field = table.fields.iter().find(known).expect("a known tag");
            found.insert(field.name.to_owned(), value_or_null(field, from));
            assert_eq!(from.left(), end, "tag {tag} has another size");
        }
    }
    Value::Object(found)
}

fn value_or_null(field: &Field, from: &mut Reader<'_>) -> Value {
    let nullable = field.nullable.contains(from.version());
    if nullable && matches!(field.kind, Type::Struct(_)) && from.int8().expect("a mark") < 0 {
        return Value::Null;
    }
    value(&field.kind, from)
}

fn value(kind: &Type, from: &mut Reader<'_>) -> Value {
    match kind {
        Type::Bool => json!(from.int8().expect("bool") != 0),
        Type::Int8 => json!(from.int8().expect("int8")),
        Type::Int16 => json!(from.int16().expect("int16")),
        Type::Uint16 => json!(from.uint16().expect("uint16")),
        Type::Int32 => json!(from.int32().expect("int32")),
        Type::Int64 => json!(from.int64().expect("int64")),
        Type::Uuid => {
            let digits = hex(&from.uuid().expect("uuid").to_bytes());
            let cut = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
            json!(cut.join("-"))
        }
        Type::String => from.string().expect("string").map_or(Value::Null, Value::String),
        Type::Bytes | Type::Records => from.bytes().expect("bytes").map_or(Value::Null, |b| json!(hex(&b))),
        Type::Array(element) => {
            let count = if from.flexible() {
                i64::from(from.uvarint().expect("count")) - 1
            } else {
                i64::from(from.int32().expect("count"))
            };
            if count < 0 { Value::Null } else { (0..count).map(|_| value(element, from)).collect() }
        }
        Type::Struct(table) => structure(table, from),
    }
}
