//! The door for Kafka clients.

use std::time::Duration;

use minikafka_wire::api_versions::ApiVersionsRequest;
use minikafka_wire::create_topics::{CreatableTopic, CreateTopicsRequest};
use minikafka_wire::fetch::{FetchPartition, FetchRequest, FetchTopic};
use minikafka_wire::metadata::{MetadataRequest, RequestTopic};

use crate::cluster::{Cluster, until};

fn versions() -> ApiVersionsRequest {
    ApiVersionsRequest {
        client_software_name: "test".to_owned(),
        client_software_version: "1".to_owned(),
        ..ApiVersionsRequest::default()
    }
}

fn fetch(topic: &str, offset: i64, max_wait_ms: i32) -> FetchRequest {
    FetchRequest {
        max_wait_ms,
        min_bytes: 1,
        max_bytes: 1 << 20,
        topics: vec![FetchTopic {
            topic: topic.to_owned(),
            partitions: vec![FetchPartition {
                fetch_offset: offset,
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_keep_the_order_of_the_requests_while_the_first_one_waits() {
    let cluster = Cluster::start(1).await;
    cluster.controller.create("t", &[&[1]]);
    until("the broker leads", async || cluster.replica(1, "t", 0).is_some_and(|it| it["role"] == "leader"))
        .await;
    let mut client = cluster.client(1).await;
    let begun = std::time::Instant::now();
    let first = client.send(12, &fetch("t", 0, 300)).await;
    let second = client.send(3, &versions()).await;
    let answer = client.answer::<FetchRequest>(first, 12).await;
    assert!(begun.elapsed() >= Duration::from_millis(290), "{:?}", begun.elapsed());
    assert_eq!(answer.responses[0].partitions[0].error_code, 0);
    assert_eq!(client.answer::<ApiVersionsRequest>(second, 3).await.error_code, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_closes_the_connection_and_nothing_else() {
    let cluster = Cluster::start(1).await;
    let garbage: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
        &[0xff, 0xff, 0xff, 0xff],
        &[0x06, 0x40, 0x00, 0x01],
        &[0, 0, 0, 0],
        &[0, 0, 0, 1, 0],
        // An unknown key, and a version that is not served.
        &[0, 0, 0, 10, 3, 231, 0, 0, 0, 0, 0, 1, 255, 255],
        &[0, 0, 0, 10, 0, 3, 0, 99, 0, 0, 0, 1, 255, 255],
        // Metadata 1 whose body ends early.
        &[0, 0, 0, 16, 0, 3, 0, 1, 0, 0, 0, 1, 255, 255, 0, 0, 0, 1, 0, 5],
    ];
    let mut witness = cluster.client(1).await;
    for bytes in garbage {
        let mut client = cluster.client(1).await;
        client.raw(bytes).await;
        assert_eq!(client.frame().await, None, "{bytes:?}");
        assert_eq!(witness.call(3, &versions()).await.error_code, 0);
    }
    // ApiVersions alone is answered in an unknown version, and the connection stays.
    let mut client = cluster.client(1).await;
    client.raw(&[0, 0, 0, 10, 0, 18, 0, 99, 0, 0, 0, 7, 255, 255]).await;
    let answer = client.frame().await.expect("an answer");
    assert_eq!(answer[..6], [0, 0, 0, 7, 0, 35]);
    assert_eq!(client.call(0, &versions()).await.error_code, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_is_made_by_request_and_by_asking_for_it() {
    let cluster = Cluster::start(2).await;
    let mut client = cluster.client(2).await;
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: "made".to_owned(),
            num_partitions: 3,
            replication_factor: 2,
            ..CreatableTopic::default()
        }],
        timeout_ms: 5000,
        ..CreateTopicsRequest::default()
    };
    let answer = client.call(7, &request).await;
    assert_eq!((answer.topics[0].error_code, answer.topics[0].num_partitions), (0, 3));
    let again = client.call(7, &request).await;
    assert_eq!(again.topics[0].error_code, 36);
    let none = CreateTopicsRequest { timeout_ms: 0, ..request };
    assert_eq!(client.call(7, &none).await.topics[0].error_code, 7);
    let asked = MetadataRequest {
        topics: Some(vec![RequestTopic { name: Some("asked".to_owned()), ..RequestTopic::default() }]),
        allow_auto_topic_creation: true,
        ..MetadataRequest::default()
    };
    assert_eq!(client.call(9, &asked).await.topics[0].error_code, 3);
    let client = tokio::sync::Mutex::new(client);
    until("the topic is made in the background", async || {
        let answer = client.lock().await.call(9, &asked).await;
        answer.topics[0].error_code == 0 && answer.topics[0].partitions[0].leader_id > 0
    })
    .await;
}
