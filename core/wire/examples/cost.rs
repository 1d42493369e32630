//! Nanoseconds for the two hot paths: `cargo run --release -p minikafka-wire --example cost`.
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use bytes::Bytes;
use minikafka_wire::fetch::{self, FetchResponse};
use minikafka_wire::produce::{PartitionData, ProduceRequest, TopicData};
use minikafka_wire::{RequestFrame, WireError, encode_request, encode_response};

const ROUNDS: u32 = 200_000;
const PARTITIONS: i32 = 3;
const RECORDS: usize = 16 * 1024;

fn main() -> Result<(), WireError> {
    let records = Bytes::from(vec![7; RECORDS]);
    let partition_data =
        (0..PARTITIONS).map(|index| PartitionData { index, records: Some(records.clone()) }).collect();
    let topic = TopicData { name: "orders".to_owned(), partition_data, ..TopicData::default() };
    let request =
        ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: vec![topic], ..ProduceRequest::default() };
    let frame = encode_request(1, Some("producer-1"), 9, &request)?.to_bytes().slice(4..);
    measure("Produce 9: header and body decoded, 3 partitions of 16 KiB", || {
        let frame = RequestFrame::parse(frame.clone()).expect("a request of our own");
        frame.decode::<ProduceRequest>().expect("a body of our own")
    });

    let partitions = (0..PARTITIONS)
        .map(|partition_index| fetch::PartitionResponse {
            partition_index,
            records: records.clone().into(),
            ..fetch::PartitionResponse::default()
        })
        .collect();
    let topic =
        fetch::TopicResponse { topic: "orders".to_owned(), partitions, ..fetch::TopicResponse::default() };
    let response = FetchResponse { responses: vec![topic], ..FetchResponse::default() };
    measure("Fetch 12: answer encoded, 3 partitions of 16 KiB", || encode_response(1, 12, &response));
    Ok(())
}

fn measure<T>(what: &str, mut work: impl FnMut() -> T) {
    let start = Instant::now();
    for _ in 0..ROUNDS {
        black_box(work());
    }
    println!("{what}: {} ns", start.elapsed().as_nanos() / u128::from(ROUNDS));
}
