//! The consumer against a scripted broker.

use futures::StreamExt;
use minikafka_model::{LeaderEpoch, Offset};
use minikafka_wire::ApiKey;

use super::{Consumer, Start};
use crate::scripted::{Action, Scripted, TOPIC, eventually};
use crate::{Client, Error};

fn client(broker: &Scripted, settings: &[(&str, &str)]) -> Client {
    let mut builder = Client::builder().bootstrap(broker.address());
    let quick = [("retry.backoff.ms", "2"), ("reconnect.backoff.ms", "1")];
    for (key, value) in quick.iter().chain(settings) {
        builder = builder.set(key, value).expect("a good setting");
    }
    builder.build().expect("a good configuration")
}

async fn next(consumer: &mut Consumer) -> (i64, String) {
    let record = consumer.next().await.expect("the stream goes on").expect("a record");
    let value = record.value.expect("a value");
    (record.offset.0, String::from_utf8_lossy(&value).into_owned())
}

#[tokio::test]
async fn records_come_in_order_and_the_end_is_noticed() {
    let broker = Scripted::start(1).await;
    broker.append(0, &["a", "b"]);
    broker.append(0, &["c"]);
    let mut consumer = client(&broker, &[]).consumer().assign(TOPIC, 0, Start::Earliest).start();
    assert_eq!(next(&mut consumer).await, (0, "a".to_owned()));
    let positions = consumer.positions();
    assert_eq!(positions.lag(TOPIC, 0), Some(2));
    assert_eq!(next(&mut consumer).await, (1, "b".to_owned()));
    assert_eq!(next(&mut consumer).await, (2, "c".to_owned()));
    tokio::select! {
        record = consumer.next() => panic!("{record:?}"),
        () = positions.caught_up() => {}
    }
    assert_eq!(positions.position(TOPIC, 0), Some(Offset(3)));
}

#[tokio::test]
async fn a_seek_drops_what_is_buffered() {
    let broker = Scripted::start(1).await;
    broker.append(0, &["a", "b", "c"]);
    let mut consumer = client(&broker, &[]).consumer().assign(TOPIC, 0, Start::At(Offset(1))).start();
    assert_eq!(next(&mut consumer).await.0, 1);
    assert!(consumer.positions().seek(TOPIC, 0, Start::At(Offset(0))));
    assert_eq!(next(&mut consumer).await.0, 0);
    assert_eq!(next(&mut consumer).await.0, 1);
}

#[tokio::test]
async fn reading_goes_on_after_failures() {
    let broker = Scripted::start(1).await;
    broker.append(0, &["a"]);
    broker.script(ApiKey::ListOffsets, [1], Action::Refuse(6));
    broker.script(ApiKey::Fetch, [1], Action::Refuse(6));
    broker.script(ApiKey::Fetch, [2], Action::Close);
    broker.script(ApiKey::Fetch, [3], Action::Refuse(56));
    let mut consumer = client(&broker, &[]).consumer().assign(TOPIC, 0, Start::Earliest).start();
    assert_eq!(next(&mut consumer).await, (0, "a".to_owned()));
}

#[tokio::test]
async fn an_offset_out_of_range_follows_the_policy() {
    let broker = Scripted::start(1).await;
    broker.append(0, &["a"]);
    let earliest = client(&broker, &[("auto.offset.reset", "earliest")]);
    let mut consumer = earliest.consumer().assign(TOPIC, 0, Start::At(Offset(99))).start();
    assert_eq!(next(&mut consumer).await.0, 0);
    let none = client(&broker, &[("auto.offset.reset", "none")]);
    let mut consumer = none.consumer().assign(TOPIC, 0, Start::At(Offset(99))).start();
    let error = consumer.next().await.expect("the stream goes on").expect_err("nowhere to go");
    assert!(matches!(error, Error::OffsetOutOfRange { offset: 99, log_start: Some(0), .. }), "{error}");
    consumer.positions().seek(TOPIC, 0, Start::Earliest);
    consumer.positions().resume(TOPIC, 0);
    assert_eq!(next(&mut consumer).await.0, 0);
}

#[tokio::test]
async fn a_truncation_under_the_reader_is_told() {
    let broker = Scripted::start(1).await;
    broker.append(0, &["a"]);
    broker.append(0, &["b"]);
    broker.append(0, &["c"]);
    let mut consumer = client(&broker, &[]).consumer().assign(TOPIC, 0, Start::Earliest).start();
    for expected in 0..3 {
        assert_eq!(next(&mut consumer).await.0, expected);
    }
    {
        // An unclean election: the new leader has one record of the old epoch, and goes its own way.
        let mut model = broker.model();
        model.logs[0].truncate(1);
        model.leader_epoch = 4;
        model.epoch_end = Some((3, 1));
    }
    broker.append(0, &["B"]);
    let error = consumer.next().await.expect("the stream goes on").expect_err("truncated");
    match error {
        Error::LogTruncation { offset: 3, epoch: 3, end_offset: 1, .. } => {}
        other => panic!("{other}"),
    }
    let record = consumer.next().await.expect("the stream goes on").expect("a record");
    assert_eq!((record.offset, record.leader_epoch), (Offset(1), Some(LeaderEpoch(4))));
}

#[tokio::test]
async fn a_new_leader_with_the_same_log_is_no_news() {
    let broker = Scripted::start(1).await;
    broker.append(0, &["a"]);
    let mut consumer = client(&broker, &[]).consumer().assign(TOPIC, 0, Start::Earliest).start();
    assert_eq!(next(&mut consumer).await.0, 0);
    broker.model().leader_epoch = 5;
    broker.append(0, &["b"]);
    assert_eq!(next(&mut consumer).await, (1, "b".to_owned()));
    assert!(broker.calls(ApiKey::OffsetForLeaderEpoch) >= 1, "the position was checked");
}

#[tokio::test]
async fn a_paused_partition_is_not_fetched() {
    let broker = Scripted::start(2).await;
    broker.append(0, &["a"]);
    broker.append(1, &["x"]);
    let builder = client(&broker, &[]).consumer();
    let mut consumer = builder.assign(TOPIC, 0, Start::Earliest).assign(TOPIC, 1, Start::Earliest).start();
    consumer.positions().pause(TOPIC, 0);
    let record = consumer.next().await.expect("the stream goes on").expect("a record");
    assert_eq!(record.partition.0, 1);
    consumer.positions().resume(TOPIC, 0);
    let record = consumer.next().await.expect("the stream goes on").expect("a record");
    assert_eq!(record.partition.0, 0);
}

#[tokio::test]
async fn what_was_buffered_before_a_truncation_is_not_shown() {
    let broker = Scripted::start(1).await;
    broker.append(0, &["a"]);
    let client = client(&broker, &[]);
    let mut consumer = client.consumer().assign(TOPIC, 0, Start::Earliest).start();
    assert_eq!(next(&mut consumer).await.0, 0);
    let positions = consumer.positions();
    let place = (TOPIC.into(), minikafka_model::PartitionIndex(0));
    broker.append(0, &["b"]);
    eventually("b is buffered", || positions.table().partitions[&place].fetch_at == Offset(2)).await;
    {
        let mut model = broker.model();
        model.logs[0].truncate(1);
        model.leader_epoch = 4;
        model.epoch_end = Some((3, 1));
    }
    broker.append(0, &["B"]);
    client.refresh();
    eventually("the position was checked", || {
        positions.table().partitions[&place].validated == Some(LeaderEpoch(4))
    })
    .await;
    // Nothing that was read is gone, so there is nothing to tell.
    assert_eq!(next(&mut consumer).await, (1, "B".to_owned()));
}
