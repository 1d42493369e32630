//! The doors of the crate as a broker and a client use them: refusals, the ApiVersions rule, vectored answers, errors with a path.

use std::io::IoSlice;

use bytes::{Buf, Bytes};
use minikafka_wire::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use minikafka_wire::fetch::{self, FetchRequest, FetchResponse};
use minikafka_wire::metadata::{MetadataRequest, RequestTopic};
use minikafka_wire::produce::{PartitionData, ProduceRequest, ProduceResponse, TopicData};
use minikafka_wire::{
    ApiKey, Problem, Records, RequestFrame, RequestRefusal, Versions, api, decode_response,
    encode_api_versions_fallback, encode_request, encode_response, peek_correlation_id,
};

/// A frame without its length bytes.
fn request_bytes(key: i16, version: i16, rest: &[u8]) -> Bytes {
    let mut bytes = Vec::new();
    bytes.extend(key.to_be_bytes());
    bytes.extend(version.to_be_bytes());
    bytes.extend(7i32.to_be_bytes());
    bytes.extend(rest);
    Bytes::from(bytes)
}

fn produce_of(records: Bytes) -> ProduceRequest {
    let partition_data = vec![PartitionData { index: 0, records: Some(records) }];
    let topic = TopicData { name: "orders".to_owned(), partition_data, ..TopicData::default() };
    ProduceRequest { acks: -1, timeout_ms: 1000, topic_data: vec![topic], ..ProduceRequest::default() }
}

#[test]
fn api_versions_in_an_unknown_version_is_answered_with_its_own_range() {
    // Neither a client id nor a body need be there (recorded: frame.apiversions.v99-empty-body).
    for version in [99, 6, -1] {
        let refusal = RequestFrame::parse(request_bytes(18, version, b"")).expect_err("unknown version");
        assert_eq!(refusal, RequestRefusal::ApiVersionsFallback { version, correlation_id: 7 });
    }
    let answer = encode_api_versions_fallback(7).to_bytes();
    assert_eq!(answer[..], [0, 0, 0, 16, 0, 0, 0, 7, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 5]);
    // A client that asked in version 5 reads it as version 0.
    let read: ApiVersionsResponse =
        decode_response::<ApiVersionsRequest>(&answer.slice(4..), 7, 5).expect("a fallback answer");
    assert_eq!((read.error_code, read.api_keys.len(), read.api_keys[0].max_version), (35, 1, 5));
}

#[test]
fn what_is_not_served_is_refused_by_name_and_number() {
    let refused = |key, version| {
        RequestFrame::parse(request_bytes(key, version, b"\0\x04kcat")).expect_err("not served")
    };
    let client_id = Some("kcat".to_owned());
    for key in [999, -1, 52, 63, 4] {
        assert_eq!(
            refused(key, 0),
            RequestRefusal::UnknownApi { key, version: 0, client_id: client_id.clone() }
        );
    }
    for (key, version) in
        [(ApiKey::Metadata, 99), (ApiKey::Metadata, -1), (ApiKey::Fetch, 0), (ApiKey::Produce, 2)]
    {
        let refusal = refused(key.code(), version);
        let supported = key.api().versions;
        let expected =
            RequestRefusal::UnsupportedVersion { key, version, supported, client_id: client_id.clone() };
        assert_eq!(refusal, expected);
    }
    assert_eq!(refused(1, 0).to_string(), "Fetch version 0 is not supported, only 4-18 (client id \"kcat\")");
}

#[test]
fn an_api_that_is_not_served_is_neither_named_nor_let_in() {
    let advertised = api::advertised();
    for api in minikafka_wire::APIS {
        let row = advertised.iter().find(|row| row.api_key == api.key.code());
        assert_eq!(row.is_some(), api.served, "{}", api.name);
        let request = request_bytes(api.key.code(), api.versions.max, b"\xff\xff\0");
        assert_eq!(RequestFrame::parse(request).is_ok(), api.served, "{}", api.name);
    }
    assert!(advertised.is_sorted_by_key(|row| row.api_key));
    let produce = advertised.iter().find(|row| row.api_key == 0).expect("Produce is served");
    assert_eq!((produce.min_version, produce.max_version), (0, 13));
}

/// librdkafka switches a feature on if each of these versions lies in the broker's range.
#[test]
fn the_feature_gates_of_librdkafka_open() {
    let gates: &[(&str, &[(i16, Versions)])] = &[
        ("record format 2", &[(0, Versions::between(3, 3)), (1, Versions::between(4, 4))]),
        ("offsets by time", &[(2, Versions::between(1, 1))]),
        ("idempotence", &[(22, Versions::between(0, 0))]),
        ("zstd", &[(0, Versions::between(7, 7)), (1, Versions::between(10, 10))]),
        ("lz4", &[(10, Versions::between(0, 0))]),
        ("any compression", &[(0, Versions::between(0, 0))]),
        (
            "groups",
            &[
                (10, Versions::between(0, 0)),
                (8, Versions::between(1, 2)),
                (9, Versions::between(1, 1)),
                (11, Versions::between(0, 0)),
                (14, Versions::between(0, 0)),
                (12, Versions::between(0, 0)),
                (13, Versions::between(0, 0)),
            ],
        ),
    ];
    let advertised = api::advertised();
    let mut judged = 0;
    for (feature, needs) in gates {
        for (key, versions) in *needs {
            // A key that is not served yet opens its gates once it is.
            let Some(row) = advertised.iter().find(|row| row.api_key == *key) else { continue };
            judged += 1;
            assert!(
                row.min_version <= versions.max && row.max_version >= versions.min,
                "{feature} needs key {key} in {versions}, advertised is {}-{}",
                row.min_version,
                row.max_version
            );
        }
    }
    assert!(judged >= 7, "only {judged} gates judged");
}

#[test]
fn a_client_speaks_the_highest_version_both_know() {
    let produce = ApiKey::Produce.api();
    assert_eq!(produce.common_version(Versions::between(0, 99)), Some(13));
    assert_eq!(produce.common_version(Versions::between(0, 7)), Some(7));
    assert_eq!(produce.common_version(Versions::between(0, 2)), None);
}

#[test]
fn records_of_a_request_are_a_slice_of_its_frame() {
    let records = Bytes::from(vec![5; 4000]);
    let frame =
        encode_request(1, Some("me"), 9, &produce_of(records)).expect("encodes").to_bytes().slice(4..);
    let request: ProduceRequest =
        RequestFrame::parse(frame.clone()).expect("a header").decode().expect("a body");
    let records = request.topic_data[0].partition_data[0].records.clone().expect("records");
    let (first, last) = (frame.as_ptr() as usize, frame.as_ptr() as usize + frame.len());
    assert!((first..last).contains(&(records.as_ptr() as usize)), "copied");
    assert_eq!(records.len(), 4000);
}

#[test]
fn records_of_an_answer_are_not_copied() {
    let slices = [Bytes::from(vec![1; 5000]), Bytes::from(vec![2; 3]), Bytes::from(vec![3; 6000])];
    let partition = fetch::PartitionResponse {
        records: Records::from(slices.to_vec()),
        ..fetch::PartitionResponse::default()
    };
    let second = fetch::PartitionResponse { partition_index: 1, ..fetch::PartitionResponse::default() };
    let topic = fetch::TopicResponse {
        topic: "orders".to_owned(),
        partitions: vec![partition, second],
        ..fetch::TopicResponse::default()
    };
    let response = FetchResponse { responses: vec![topic], ..FetchResponse::default() };
    let frame = encode_response(9, 12, &response).expect("encodes");
    let starts: Vec<*const u8> = frame.chunks().iter().map(|chunk| chunk.as_ptr()).collect();
    assert!(starts.contains(&slices[0].as_ptr()) && starts.contains(&slices[2].as_ptr()), "copied");
    assert!(!starts.contains(&slices[1].as_ptr()), "a slice of three bytes is not worth a part of its own");

    let whole = frame.to_bytes();
    assert_eq!(whole.len(), frame.len());
    assert_eq!(whole[..4], (whole.len() as u32 - 4).to_be_bytes());
    let read = decode_response::<FetchRequest>(&whole.slice(4..), 9, 12).expect("an answer");
    assert_eq!(read, response, "one slice or three: the same records");
    let none = &read.responses[0].partitions[1].records;
    assert!(none.is_empty() && none.slices().len() == 1, "no records are zero bytes, not null");
}

#[test]
fn a_frame_is_consumed_part_by_part() {
    let records = Bytes::from((0..3000u32).map(|n| n as u8).collect::<Vec<u8>>());
    let mut frame = encode_request(1, None, 9, &produce_of(records)).expect("encodes");
    let whole = frame.to_bytes();
    let mut sent = Vec::new();
    for step in [1, 3, 40, 900, 1, 2000, 5].iter().cycle() {
        if frame.is_empty() {
            break;
        }
        let step = (*step).min(frame.len());
        let mut slices = [IoSlice::new(&[]); 8];
        let count = frame.chunks_vectored(&mut slices);
        let visible: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(visible.len(), frame.remaining(), "few parts: all are seen at once");
        sent.extend(&visible[..step]);
        frame.advance(step);
    }
    assert_eq!(sent, whole);
    assert_eq!((frame.remaining(), frame.chunk().len(), frame.into_chunks().len()), (0, 0, 0));
}

#[test]
fn errors_name_message_version_field_and_byte() {
    let records = Bytes::from(vec![5; 40]);
    let frame = encode_request(1, None, 9, &produce_of(records)).expect("encodes").to_bytes().slice(4..);
    let cut = frame.slice(..frame.len() - 10);
    let error =
        RequestFrame::parse(cut).expect("a header").decode::<ProduceRequest>().expect_err("cut short");
    assert_eq!(error.field_path(), "TopicData[0].PartitionData[0].Records");
    assert_eq!(error.message(), Some(("ProduceRequest", 9)));
    assert_eq!(
        error.to_string(),
        "ProduceRequest version 9, field TopicData[0].PartitionData[0].Records, byte 32: 40 more bytes wanted, 33 left"
    );
    let counts = request_bytes(3, 1, &[0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let error =
        RequestFrame::parse(counts).expect("a header").decode::<MetadataRequest>().expect_err("a lie");
    assert_eq!(
        error.problem(),
        &Problem::TooManyElements { count: i32::MAX as usize, left: 0, most: 0 },
        "{error}"
    );
}

#[test]
fn null_and_text_are_judged_per_version() {
    // Version 0 has no null: every topic is asked for with an empty list (Kafka's own way).
    let all = MetadataRequest::default();
    let frame = encode_request(1, None, 0, &all).expect("encodes").to_bytes();
    assert_eq!(frame[frame.len() - 4..], [0; 4]);
    let frame = encode_request(1, None, 1, &all).expect("encodes").to_bytes();
    assert_eq!(frame[frame.len() - 4..], [0xff; 4]);
    // A null where there is none is refused (recorded: frame.negative-array).
    let null = request_bytes(19, 2, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 3, 0xe8, 0]);
    let error = RequestFrame::parse(null)
        .expect("a header")
        .decode::<minikafka_wire::create_topics::CreateTopicsRequest>()
        .expect_err("null");
    assert_eq!((error.problem(), error.field_path().as_str()), (&Problem::UnexpectedNull, "Topics"));
    // Text that is not UTF-8 is a bad name, not a broken request.
    let bad = request_bytes(3, 1, &[0xff, 0xff, 0, 0, 0, 1, 0, 2, 0xff, 0xfe]);
    let read: MetadataRequest = RequestFrame::parse(bad).expect("a header").decode().expect("a body");
    let name = read.topics.expect("topics")[0].name.clone();
    assert_eq!(name.as_deref(), Some("\u{fffd}\u{fffd}"));
}

#[test]
fn what_does_not_fit_is_an_error_of_the_writer() {
    let name = Some("x".repeat(40_000));
    let topics = vec![RequestTopic { name, ..RequestTopic::default() }];
    let request = MetadataRequest { topics: Some(topics), ..MetadataRequest::default() };
    let error = encode_request(1, None, 8, &request).expect_err("two bytes of length");
    assert!(matches!(error.problem(), Problem::TooLong { len: 40_000, most: 32_767, .. }), "{error}");
    assert!(encode_request(1, None, 9, &request).is_ok(), "compact lengths have room");
    let error = encode_response(1, 14, &ProduceResponse::default()).expect_err("no such version");
    assert!(matches!(error.problem(), Problem::UnsupportedVersion(_)), "{error}");
}

#[test]
fn an_answer_is_matched_to_its_question() {
    let frame = encode_response(5, 9, &ProduceResponse::default()).expect("encodes").to_bytes().slice(4..);
    assert_eq!(peek_correlation_id(&frame), Ok(5));
    assert!(decode_response::<ProduceRequest>(&frame, 5, 9).is_ok());
    let error = decode_response::<ProduceRequest>(&frame, 6, 9).expect_err("another question");
    assert_eq!(error.problem(), &Problem::Correlation { expected: 6, found: 5 });
    assert!(peek_correlation_id(&Bytes::from_static(b"abc")).is_err());
}
