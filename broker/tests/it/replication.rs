//! Writing, reading, replication and failover through the real doors.

use std::time::Duration;

use bytes::Bytes;
use minikafka_model::batch::{BatchBuilder, CompressionType};
use minikafka_model::{PartitionIndex, TopicId, TopicPartition};
use minikafka_wire::fetch::{FetchPartition, FetchRequest, FetchTopic, PartitionResponse};
use minikafka_wire::produce::{self, ProduceRequest};

use crate::client::Client;
use crate::cluster::{Cluster, until};

fn batch(values: &[&str]) -> Bytes {
    let mut builder = BatchBuilder::new();
    for value in values {
        builder.push(1_700_000_000_000, None, Some(value.as_bytes()), &[]);
    }
    builder.build(CompressionType::None, None).expect("plain")
}

async fn produce(
    client: &mut Client,
    topic: TopicId,
    acks: i16,
    timeout_ms: i32,
    records: Bytes,
) -> produce::PartitionResponse {
    let request = ProduceRequest {
        acks,
        timeout_ms,
        topic_data: vec![produce::TopicData {
            topic_id: topic.0,
            partition_data: vec![produce::PartitionData { index: 0, records: Some(records) }],
            ..produce::TopicData::default()
        }],
        ..ProduceRequest::default()
    };
    let answer = client.call(13, &request).await;
    answer.responses[0].partition_responses[0].clone()
}

async fn fetch(client: &mut Client, topic: TopicId, offset: i64, max_wait_ms: i32) -> PartitionResponse {
    let request = FetchRequest {
        max_wait_ms,
        min_bytes: 1,
        max_bytes: 10 << 20,
        topics: vec![FetchTopic {
            topic_id: topic.0,
            partitions: vec![FetchPartition {
                fetch_offset: offset,
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    client.call(17, &request).await.responses[0].partitions[0].clone()
}

async fn topic(cluster: &Cluster, name: &str, replicas: &[i32]) -> TopicId {
    let id = cluster.controller.create(name, &[replicas]);
    until("every replica has its role", async || {
        replicas
            .iter()
            .all(|broker| cluster.replica(*broker, name, 0).is_some_and(|it| !it["leader"].is_null()))
    })
    .await;
    id
}

fn first(topic: TopicId) -> TopicPartition {
    TopicPartition { topic, partition: PartitionIndex(0) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_all_have_is_acknowledged_and_can_be_read() {
    let cluster = Cluster::start(3).await;
    let id = topic(&cluster, "t", &[1, 2, 3]).await;
    let mut client = cluster.client(1).await;
    for n in 0..20 {
        let answer = produce(&mut client, id, -1, 5000, batch(&["one", "two"])).await;
        assert_eq!((answer.error_code, answer.base_offset), (0, n * 2));
    }
    let read = fetch(&mut client, id, 0, 1000).await;
    assert_eq!((read.error_code, read.high_watermark), (0, 40));
    assert!(read.records.len() > 20 * 61);
    until("the followers know the high watermark", async || {
        [2, 3].iter().all(|broker| {
            cluster
                .replica(*broker, "t", 0)
                .is_some_and(|it| it["high_watermark"] == 40 && it["log_end_offset"] == 40)
        })
    })
    .await;
    // A consumer may read from a follower (version 11 and later); a producer may not write to one.
    let mut follower = cluster.client(2).await;
    assert_eq!(fetch(&mut follower, id, 38, 1000).await.error_code, 0);
    let refused = produce(&mut follower, id, -1, 1000, batch(&["x"])).await;
    assert_eq!((refused.error_code, refused.current_leader.leader_id), (6, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiting_fetch_is_woken_by_a_write() {
    let cluster = Cluster::start(2).await;
    let id = topic(&cluster, "t", &[1, 2]).await;
    let mut reader = cluster.client(1).await;
    let reading =
        tokio::spawn(async move { (fetch(&mut reader, id, 0, 10_000).await, std::time::Instant::now()) });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let begun = std::time::Instant::now();
    let mut writer = cluster.client(1).await;
    assert_eq!(produce(&mut writer, id, 1, 1000, batch(&["x"])).await.error_code, 0);
    let (read, ended) = reading.await.expect("read");
    assert_eq!((read.error_code, read.high_watermark), (0, 1));
    assert!(ended.duration_since(begun) < Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_follower_leaves_the_isr_and_comes_back() {
    let cluster = Cluster::start(2).await;
    let id = topic(&cluster, "t", &[1, 2]).await;
    let stop = minikafka_node::FaultSpec {
        kind: minikafka_node::FaultKind::Fetching,
        peer: "*".to_owned(),
        direction: minikafka_node::Direction::Both,
        action: minikafka_node::Action::Stop,
        delay_ms: 0,
        for_ms: 60_000,
    };
    cluster.broker(2).faults().set(stop).expect("it fits");
    let mut client = cluster.client(1).await;
    let waiting = produce(&mut client, id, -1, 200, batch(&["x"])).await;
    assert_eq!((waiting.error_code, waiting.base_offset), (7, 0), "the follower does not fetch");
    cluster
        .until("the follower leaves the ISR", |image| {
            image.partition(first(id)).is_some_and(|it| it.isr.len() == 1)
        })
        .await;
    assert_eq!(produce(&mut client, id, -1, 5000, batch(&["y"])).await.error_code, 0);
    cluster.broker(2).faults().clear(None);
    cluster
        .until("the follower is back", |image| image.partition(first(id)).is_some_and(|it| it.isr.len() == 2))
        .await;
    assert_eq!(produce(&mut client, id, -1, 5000, batch(&["z"])).await.base_offset, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tail_that_nobody_else_has_is_cut_after_a_new_leader() {
    let cluster = Cluster::start(2).await;
    let id = topic(&cluster, "t", &[1, 2]).await;
    let (mut one, mut two) = (cluster.client(1).await, cluster.client(2).await);
    assert_eq!(produce(&mut one, id, -1, 5000, batch(&["both"])).await.error_code, 0);
    let drop_fetches = minikafka_node::FaultSpec {
        kind: minikafka_node::FaultKind::Replication,
        peer: "*".to_owned(),
        direction: minikafka_node::Direction::Both,
        action: minikafka_node::Action::Drop,
        delay_ms: 0,
        for_ms: 60_000,
    };
    cluster.broker(2).faults().set(drop_fetches).expect("it fits");
    assert_eq!(produce(&mut one, id, 1, 1000, batch(&["lost", "lost too"])).await.base_offset, 1);
    cluster.controller.elect(first(id), 2);
    cluster.broker(2).faults().clear(None);
    until("broker 2 leads", async || cluster.replica(2, "t", 0).is_some_and(|it| it["role"] == "leader"))
        .await;
    assert_eq!(produce(&mut two, id, -1, 10_000, batch(&["kept"])).await.base_offset, 1);
    until("broker 1 has what broker 2 has", async || {
        cluster.replica(1, "t", 0).is_some_and(|it| it["log_end_offset"] == 2 && it["role"] == "follower")
    })
    .await;
    let events = cluster.broker(1).surface().events(0, 1000);
    assert!(events.iter().any(|event| event["kind"] == "truncation" && event["from"] == 3), "{events:?}");
    let stale = produce(&mut one, id, 1, 1000, batch(&["late"])).await;
    assert_eq!(
        (stale.error_code, stale.current_leader.leader_id, stale.current_leader.leader_epoch),
        (6, 2, 1)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_was_stopped_comes_back_and_catches_up() {
    let mut cluster = Cluster::start(2).await;
    let id = topic(&cluster, "t", &[1, 2]).await;
    let mut client = cluster.client(1).await;
    assert_eq!(produce(&mut client, id, -1, 5000, batch(&["x"])).await.error_code, 0);
    cluster.stop(2).await;
    assert_eq!(produce(&mut client, id, 1, 5000, batch(&["y"])).await.error_code, 0);
    cluster.restart(2).await;
    until("broker 2 has everything", async || {
        cluster.replica(2, "t", 0).is_some_and(|it| it["log_end_offset"] == 2)
    })
    .await;
}
