//! The producer against a scripted broker: what is stored, in which order, and what the application hears.

use std::time::Duration;

use futures::future::join_all;
use minikafka_model::{ErrorCode, Offset};
use minikafka_wire::ApiKey;

use super::{Delivery, EnqueueError, GaveUp, Persisted, ProduceError, Producer, Record, Stored};
use crate::Client;
use crate::scripted::{Action, Scripted, TOPIC, eventually};

fn client(broker: &Scripted, settings: &[(&str, &str)]) -> Client {
    let mut builder = Client::builder().bootstrap(broker.address());
    // Short pauses: nothing here waits for luck.
    let quick = [("retry.backoff.ms", "2"), ("reconnect.backoff.ms", "1"), ("linger.ms", "0")];
    for (key, value) in quick.iter().chain(settings) {
        builder = builder.set(key, value).expect("a good setting");
    }
    builder.build().expect("a good configuration")
}

async fn send(producer: &Producer, value: &str) -> Delivery {
    let record = Record::to(TOPIC).partition(0).value(value.to_owned());
    producer.send(record).await.expect("taken")
}

async fn send_all(producer: &Producer, values: std::ops::Range<usize>) -> Vec<Result<Stored, ProduceError>> {
    let mut deliveries = Vec::new();
    for value in values {
        deliveries.push(send(producer, &value.to_string()).await);
        // Many small batches: the sender gets to run between the records.
        tokio::task::yield_now().await;
    }
    join_all(deliveries).await
}

fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

#[tokio::test]
async fn records_are_stored_in_order_and_hear_their_offsets() {
    let broker = Scripted::start(1).await;
    let producer = client(&broker, &[]).producer();
    let stored = send_all(&producer, 0..50).await;
    let offsets: Vec<_> = stored.into_iter().map(|stored| stored.expect("stored").offset).collect();
    assert_eq!(offsets, (0..50).map(|n| Some(Offset(n))).collect::<Vec<_>>());
    assert_eq!(broker.values(0), numbers(0..50));
    let report = producer.close(Duration::from_secs(1)).await;
    assert_eq!((report.delivered, report.failed, report.unsent), (50, 0, 0));
}

#[tokio::test]
async fn order_and_uniqueness_survive_every_kind_of_failure() {
    for action in
        [Action::Refuse(19), Action::Refuse(6), Action::Close, Action::ServeAndClose, Action::Refuse(7)]
    {
        let broker = Scripted::start(1).await;
        broker.script(ApiKey::Produce, [1, 2, 4, 7, 8, 9, 15], action);
        let producer = client(&broker, &[("batch.size", "100")]).producer();
        for stored in send_all(&producer, 0..60).await {
            stored.unwrap_or_else(|error| panic!("{action:?}: {error}"));
        }
        assert_eq!(broker.values(0), numbers(0..60), "{action:?}");
        assert_eq!(broker.calls(ApiKey::InitProducerId), 1, "{action:?}");
    }
}

#[tokio::test]
async fn without_idempotence_order_survives_refusals() {
    let broker = Scripted::start(1).await;
    broker.script(ApiKey::Produce, [1, 2, 4, 7], Action::Refuse(19));
    let producer = client(&broker, &[("acks", "1"), ("batch.size", "100")]).producer();
    for stored in send_all(&producer, 0..40).await {
        stored.expect("stored");
    }
    assert_eq!(broker.values(0), numbers(0..40));
    assert_eq!(broker.calls(ApiKey::InitProducerId), 0);
}

#[tokio::test]
async fn a_deadline_keeps_the_brokers_last_words() {
    let broker = Scripted::start(1).await;
    broker.script(ApiKey::Produce, 1..1000, Action::Refuse(19));
    let producer = client(&broker, &[("delivery.timeout.ms", "200")]).producer();
    let error = send(&producer, "x").await.await.expect_err("refused for ever");
    assert!(matches!(error.gave_up(), GaveUp::Deadline { .. }));
    assert_eq!(error.kafka_code(), Some(ErrorCode::NotEnoughReplicas));
    assert_eq!(error.persisted(), Persisted::No);
    assert!(error.attempts().len() > 2);
    let known = error.last_known().expect("metadata was there");
    assert_eq!((known.isr.len(), known.min_isr), (1, Some(2)));
    assert!(error.to_string().contains("min ISR 2"), "{error}");
}

#[tokio::test]
async fn after_a_deadline_the_next_record_finds_its_way_under_a_raised_epoch() {
    let broker = Scripted::start(1).await;
    // The first record is stored; the second never reaches the log, and its producer cannot know.
    broker.script(ApiKey::Produce, [2], Action::Refuse(7));
    broker.script(ApiKey::Produce, 3..200, Action::Refuse(7));
    let producer = client(&broker, &[("delivery.timeout.ms", "100")]).producer();
    send(&producer, "one").await.await.expect("stored");
    let error = send(&producer, "two").await.await.expect_err("never answered well");
    assert_eq!(error.persisted(), Persisted::Maybe);
    broker.model().script.clear();
    send(&producer, "three").await.await.expect("stored under the next epoch");
    send(&producer, "four").await.await.expect("and on");
    assert_eq!(broker.values(0), ["one", "three", "four"]);
    assert_eq!(broker.calls(ApiKey::InitProducerId), 1, "the epoch is raised locally");
}

#[tokio::test]
async fn a_record_that_was_stored_in_silence_is_not_stored_twice() {
    let broker = Scripted::start(1).await;
    broker.script(ApiKey::Produce, [1], Action::ServeInSilence);
    let settings = [("request.timeout.ms", "100"), ("delivery.timeout.ms", "5000")];
    let producer = client(&broker, &settings).producer();
    let stored = send(&producer, "once").await.await.expect("stored");
    assert_eq!(stored.offset, Some(Offset(0)));
    assert_eq!(broker.values(0), ["once"]);
    assert_eq!(broker.calls(ApiKey::Produce), 2);
}

#[tokio::test]
async fn a_refusal_that_no_retry_changes_is_told_at_once() {
    let broker = Scripted::start(1).await;
    broker.script(ApiKey::Produce, [2], Action::Refuse(87));
    let producer = client(&broker, &[]).producer();
    send(&producer, "first").await.await.expect("stored");
    let error = send(&producer, "bad").await.await.expect_err("refused");
    assert_eq!((error.gave_up(), error.kafka_code()), (&GaveUp::Refused, Some(ErrorCode::InvalidRecord)));
    assert_eq!(error.persisted(), Persisted::No);
    assert_eq!(error.attempts().len(), 1);
    // Its sequence was given back: the next record leaves no gap.
    send(&producer, "good").await.await.expect("stored");
    assert_eq!(broker.calls(ApiKey::Produce), 3);
}

#[tokio::test]
async fn a_batch_that_is_too_large_is_sent_in_parts() {
    let broker = Scripted::start(1).await;
    broker.model().max_message_bytes = 150;
    let producer = client(&broker, &[("linger.ms", "20")]).producer();
    let deliveries = join_all((0..20).map(|n| send(&producer, ["a", "b", "c", "d", "e"][n % 5]))).await;
    let stored = join_all(deliveries).await;
    let offsets: Vec<_> = stored.into_iter().map(|stored| stored.expect("stored").offset).collect();
    assert_eq!(offsets, (0..20).map(|n| Some(Offset(n))).collect::<Vec<_>>());
    assert!(broker.model().logs[0].batches.len() > 1);
    let record = Record::to(TOPIC).partition(0).value(vec![0_u8; 300]);
    let error = producer.send(record).await.expect("taken").await.expect_err("one record is too large");
    assert_eq!(error.kafka_code(), Some(ErrorCode::MessageTooLarge));
}

#[tokio::test]
async fn nobody_answers_acks_0() {
    let broker = Scripted::start(1).await;
    let producer = client(&broker, &[("acks", "0")]).producer();
    let stored = send(&producer, "x").await.await.expect("sent");
    assert_eq!(stored.offset, None);
    eventually("the broker has it", || broker.values(0) == ["x"]).await;
}

#[tokio::test]
async fn a_weak_promise_is_refused_before_anything_is_sent() {
    let broker = Scripted::start(1).await;
    let producer = client(&broker, &[("require.min.insync.replicas", "3")]).producer();
    let error = producer.send(Record::to(TOPIC).value("x")).await.expect_err("too weak");
    assert!(
        matches!(&error, EnqueueError::PromiseTooWeak { topic, effective: 2, required: 3, .. } if topic == TOPIC),
        "{error}"
    );
    assert_eq!(broker.calls(ApiKey::Produce), 0);
    let producer = client(&broker, &[("require.min.insync.replicas", "2")]).producer();
    producer.send(Record::to(TOPIC).value("x")).await.expect("enough").await.expect("stored");
}

#[tokio::test]
async fn a_full_buffer_makes_send_wait_and_try_send_refuse() {
    let broker = Scripted::start(1).await;
    broker.script(ApiKey::Produce, [1], Action::ServeInSilence);
    let settings = [("buffer.memory", "1000"), ("max.block.ms", "60"), ("max.request.size", "900")];
    let producer = client(&broker, &settings).producer();
    let record = || Record::to(TOPIC).partition(0).value(vec![0_u8; 800]);
    let first = producer.send(record()).await.expect("taken");
    let error = producer.try_send(&record()).expect_err("full");
    assert!(matches!(error, EnqueueError::BufferFull { limit: 1000, .. }), "{error}");
    let error = producer.send(record()).await.expect_err("full for 60 ms");
    assert!(error.is_retriable(), "{error}");
    let error = producer.send(Record::to(TOPIC).value(vec![0_u8; 2000])).await.expect_err("never fits");
    assert!(matches!(error, EnqueueError::TooLarge { key: "max.request.size", .. }), "{error}");
    drop(first);
}

#[tokio::test]
async fn flush_does_not_linger() {
    let broker = Scripted::start(1).await;
    let producer = client(&broker, &[("linger.ms", "60000"), ("delivery.timeout.ms", "120000")]).producer();
    let delivery = send(&producer, "x").await;
    producer.flush().await;
    assert_eq!(broker.values(0), ["x"]);
    delivery.await.expect("stored");
}

#[tokio::test]
async fn closing_counts_what_was_given_up() {
    let broker = Scripted::start(1).await;
    broker.script(ApiKey::Produce, 1..1000, Action::Refuse(19));
    let producer = client(&broker, &[]).producer();
    let delivery = send(&producer, "x").await;
    eventually("it was tried twice", || broker.calls(ApiKey::Produce) >= 2).await;
    let report = producer.close(Duration::from_millis(30)).await;
    assert_eq!((report.delivered, report.unsent), (0, 1));
    let error = delivery.await.expect_err("given up");
    assert!(error.is_fatal() && error.kafka_code() == Some(ErrorCode::NotEnoughReplicas), "{error}");
}

#[tokio::test]
async fn a_partition_without_a_leader_is_waited_for() {
    let broker = Scripted::start(1).await;
    let producer = client(&broker, &[("delivery.timeout.ms", "150")]).producer();
    send(&producer, "one").await.await.expect("stored");
    broker.model().has_leader = false;
    broker.script(ApiKey::Produce, [2], Action::Refuse(6));
    let error = send(&producer, "two").await.await.expect_err("nobody leads");
    assert_eq!(error.kafka_code(), Some(ErrorCode::NotLeaderOrFollower));
    assert!(error.to_string().contains("no leader"), "{error}");
    broker.model().has_leader = true;
    send(&producer, "three").await.await.expect("stored");
    assert_eq!(broker.values(0), ["one", "three"]);
}

#[tokio::test]
async fn an_older_broker_is_spoken_to_in_its_versions() {
    let broker = Scripted::start(2).await;
    broker.model().newest.extend([(0, 7), (3, 5), (22, 1)]);
    let producer = client(&broker, &[]).producer();
    let stored =
        producer.send(Record::to(TOPIC).key("21").value("x")).await.expect("taken").await.expect("stored");
    assert_eq!(stored.partition, super::partition_of_key(b"21", 2));
}

#[tokio::test]
async fn unknown_partitions_and_topics_are_refused_before_sending() {
    let broker = Scripted::start(1).await;
    let producer = client(&broker, &[("max.block.ms", "50")]).producer();
    let error =
        producer.send(Record::to(TOPIC).partition(9).value("x")).await.expect_err("no such partition");
    assert!(error.to_string().contains("no partition 9"), "{error}");
    let error = producer.send(Record::to("elsewhere").value("x")).await.expect_err("no such topic");
    assert!(matches!(error, EnqueueError::Metadata { .. }), "{error}");
}

#[tokio::test]
async fn nobody_there_is_told_with_the_address() {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        free.local_addr().expect("an address").port()
    };
    let client = Client::builder().bootstrap(format!("127.0.0.1:{port}")).build().expect("good");
    let error = client.connect().await.expect_err("nobody there").to_string();
    assert_eq!(error, format!("cannot connect to 127.0.0.1:{port} (connection refused)"));
}

mod ledger {
    //! The same rules step by step, without a socket.

    use minikafka_model::{BrokerId, PartitionIndex, ProducerEpoch, ProducerId, WallMs};
    use tokio::time::Instant;

    use super::super::ledger::{Job, Ledger};
    use super::super::rules::Rules;
    use super::super::settle::{Done, Told};
    use super::*;
    use crate::error::BrokerError;
    use crate::metadata::{ClusterView, test_view};

    struct Desk {
        ledger: Ledger,
        view: ClusterView,
        now: Instant,
    }

    impl Desk {
        fn new() -> Desk {
            let mut settings = crate::config::Settings::default();
            for (key, value) in [("bootstrap.servers", "h:1"), ("batch.size", "1"), ("linger.ms", "0")] {
                settings.set(key, value).expect("a good setting");
            }
            let mut ledger = Ledger::new(Rules::of(&settings.finish().expect("good")));
            ledger.identify(Ok((ProducerId(4), ProducerEpoch(0))));
            Desk { ledger, view: test_view(&[(1, 0)]), now: Instant::now() }
        }

        /// One record, one batch.
        fn append(&mut self) {
            let record = Record::to("t").value("x");
            let taken = self.ledger.append(&record, PartitionIndex(0), WallMs(0), 80, self.now);
            drop(taken);
        }

        fn jobs(&mut self) -> Vec<Job> {
            let mut jobs = Vec::new();
            loop {
                let plan = self.ledger.plan(&self.view, self.now, false);
                if plan.jobs.is_empty() {
                    return jobs;
                }
                jobs.extend(plan.jobs);
            }
        }

        fn settle(&mut self, job: Job, told: &Told) {
            let batches = job.batches.into_iter().map(|batch| (batch, told.clone())).collect();
            self.ledger.settle(Done { broker: BrokerId(1), batches }, &self.view, self.now);
            // Every pause is over.
            self.now += Duration::from_secs(2);
        }
    }

    fn stored() -> Told {
        Told::Stored { base: Some(Offset(0)), append_time: None }
    }

    fn refused(code: i16) -> Told {
        Told::Refused { error: BrokerError::from_wire(code, None).expect("an error"), base: None }
    }

    fn sequences(jobs: &[Job]) -> Vec<(i16, i32)> {
        let stamps = jobs.iter().flat_map(|job| &job.batches).map(|batch| batch.stamp.expect("stamped"));
        stamps.map(|stamp| (stamp.epoch.0, stamp.sequence.0)).collect()
    }

    #[tokio::test]
    async fn batches_are_pipelined_once_the_leader_knows_the_producer() {
        let mut desk = Desk::new();
        (0..8).for_each(|_| desk.append());
        let mut jobs = desk.jobs();
        assert_eq!(sequences(&jobs), [(0, 0)], "first one alone");
        desk.settle(jobs.remove(0), &stored());
        assert_eq!(sequences(&desk.jobs()), [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)], "five in flight");
    }

    #[tokio::test]
    async fn failed_batches_are_sent_again_lowest_first_and_alone() {
        let mut desk = Desk::new();
        (0..5).for_each(|_| desk.append());
        let first = desk.jobs().remove(0);
        desk.settle(first, &stored());
        let jobs = desk.jobs();
        assert_eq!(sequences(&jobs), [(0, 1), (0, 2), (0, 3), (0, 4)]);
        for (job, code) in jobs.into_iter().zip([19, 45, 45, 45]) {
            desk.settle(job, &refused(code));
        }
        for _ in 0..2 {
            let mut jobs = desk.jobs();
            assert_eq!(sequences(&jobs), [(0, 1)]);
            desk.settle(jobs.remove(0), &refused(19));
        }
        for sequence in 1..5 {
            let mut jobs = desk.jobs();
            assert_eq!(sequences(&jobs), [(0, sequence)]);
            desk.settle(jobs.remove(0), &stored());
        }
        assert!(desk.jobs().is_empty());
        assert_eq!(desk.ledger.report().delivered, 5);
    }

    #[tokio::test]
    async fn a_certain_gap_begins_sequences_anew_and_forgets_none() {
        let mut desk = Desk::new();
        (0..3).for_each(|_| desk.append());
        let first = desk.jobs().remove(0);
        desk.settle(first, &stored());
        let jobs = desk.jobs();
        for job in jobs {
            desk.settle(job, &refused(45));
        }
        let mut jobs = desk.jobs();
        assert_eq!(sequences(&jobs), [(1, 0)], "the next epoch, from 0");
        desk.settle(jobs.remove(0), &stored());
        assert_eq!(sequences(&desk.jobs()), [(1, 1)]);
    }

    #[tokio::test]
    async fn what_is_late_has_its_verdict_even_while_under_way() {
        let mut desk = Desk::new();
        desk.append();
        let job = desk.jobs().remove(0);
        desk.now += Duration::from_secs(121);
        assert!(desk.jobs().is_empty());
        assert_eq!(desk.ledger.report().failed, 1);
        assert_eq!(desk.ledger.waiting(), 0);
        // Its answer comes after all; it is not counted twice, and the sequences go on behind it.
        desk.settle(job, &stored());
        assert_eq!(desk.ledger.report().delivered, 0);
        desk.append();
        assert_eq!(sequences(&desk.jobs()), [(0, 1)]);
    }
}
