//! Properties of the image: snapshots and deltas say the same as the log; no bytes make the readers panic; broken entries are refused.

use bytes::Bytes;
use minikafka_metadata::{
    ApplyError, BrokerChange, ConfigResource, Delta, Image, Listener, PartitionChange, PartitionState,
    Position, Record, Recovery, RegisterBroker, SnapshotError, Violation, decode_records, decode_snapshot,
    encode_records, encode_snapshot, local_plan,
};
use minikafka_model::{
    BrokerEpoch, BrokerId, ClusterId, DirectoryId, IncarnationId, LeaderEpoch, MetadataOffset,
    PartitionEpoch, PartitionIndex, ProducerId, Term, TopicId, TopicPartition, Uuid,
};
use proptest::prelude::*;

const BROKERS: i32 = 4;

fn at(offset: i64) -> Position {
    Position { offset: MetadataOffset(offset), term: Term(1) }
}

fn partition_of(topic: u128, index: i32) -> TopicPartition {
    TopicPartition { topic: TopicId(Uuid(topic)), partition: PartitionIndex(index) }
}

fn ids(ids: &[i32]) -> Vec<BrokerId> {
    ids.iter().copied().map(BrokerId).collect()
}

fn state(replicas: &[i32], isr: &[i32]) -> PartitionState {
    PartitionState::created(ids(replicas), vec![None; replicas.len()], ids(isr))
}

fn register(broker: i32, offset: i64) -> Record {
    Record::RegisterBroker(RegisterBroker {
        broker: BrokerId(broker),
        epoch: BrokerEpoch(offset),
        incarnation: IncarnationId(Uuid(offset as u128)),
        listeners: vec![Listener {
            name: "PLAINTEXT".into(),
            host: "localhost".into(),
            port: 9092,
            security_protocol: "PLAINTEXT".into(),
        }],
        rack: (broker % 2 == 0).then(|| format!("rack{broker}")),
        log_dirs: vec![DirectoryId(Uuid(broker as u128))],
        fenced: false,
        in_controlled_shutdown: false,
    })
}

/// One step of a random history, turned into records that follow from the image.
fn records_for(image: &Image, offset: i64, choice: u8, a: u32, b: u32) -> Vec<Record> {
    let topics: Vec<TopicId> = image.topics().keys().copied().collect();
    let topic = topics.get(a as usize % topics.len().max(1)).copied();
    match (choice % 8, topic) {
        (0, _) => vec![register(1 + (a % BROKERS as u32) as i32, offset)],
        (1 | 2, _) => {
            let active: Vec<BrokerId> = image.brokers().keys().copied().collect();
            if active.is_empty() {
                return vec![Record::NoOp];
            }
            let id = TopicId(Uuid(offset as u128));
            let name = format!("t{offset}");
            let mut records = vec![Record::Topic { id, name }];
            for index in 0..(b % 3) as i32 + 1 {
                let state = PartitionState::created(active.clone(), vec![None; active.len()], active.clone());
                records.push(Record::Partition {
                    at: TopicPartition { topic: id, partition: PartitionIndex(index) },
                    state,
                });
            }
            records
        }
        (3, Some(id)) => vec![Record::RemoveTopic { id }],
        (4, Some(id)) => vec![Record::Config {
            resource: ConfigResource::Topic(id),
            key: format!("key{}", b % 2),
            value: (!b.is_multiple_of(3)).then(|| b.to_string()),
        }],
        (5, _) => vec![
            Record::FeatureLevel { name: "metadata.version".into(), level: a as u16 },
            Record::ProducerIds {
                broker: BrokerId(1),
                epoch: BrokerEpoch(0),
                next: ProducerId(image.next_producer_id().0 + 1000),
            },
        ],
        (_, Some(id)) => {
            let tp = TopicPartition { topic: id, partition: PartitionIndex(0) };
            let before = image.partition(tp).expect("every topic has a partition 0");
            let mut after = before.as_ref().clone();
            after.partition_epoch = after.partition_epoch.next();
            let keep = before.replicas[b as usize % before.replicas.len()];
            after.isr = vec![keep];
            if after.leader != Some(keep) {
                after.leader = Some(keep);
                after.leader_epoch = after.leader_epoch.next();
            }
            vec![Record::PartitionChange(PartitionChange::between(tp, before, &after))]
        }
        _ => vec![Record::NoOp],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn snapshot_and_delta_say_what_the_log_says(steps in prop::collection::vec((any::<u8>(), any::<u32>(), any::<u32>()), 1..60), cut in any::<prop::sample::Index>()) {
        let empty = Image::empty(ClusterId("c".into()));
        let (mut image, mut middle) = (empty.clone(), empty);
        let mut merged = Delta::default();
        let cut = cut.index(steps.len());
        for (n, (choice, a, b)) in steps.iter().enumerate() {
            let offset = n as i64 + 1;
            let records = records_for(&image, offset, *choice, *a, *b);
            let decoded = decode_records(&encode_records(&records)).unwrap();
            prop_assert_eq!(&decoded, &records);
            let delta = image.apply(at(offset), &decoded).unwrap();
            if n == cut {
                middle = image.clone();
            } else if n > cut {
                merged.merge(delta);
            }
        }
        let read = decode_snapshot(&encode_snapshot(&image)).unwrap();
        prop_assert_eq!(&read, &image);
        let between = Delta::between(&middle, &image);
        prop_assert_eq!(&merged.topics_created, &between.topics_created);
        prop_assert_eq!(&merged.topics_deleted, &between.topics_deleted);
        merged.partitions.retain(|_, change| change.before.as_ref() != Some(&change.after));
        prop_assert_eq!(&merged.partitions, &between.partitions);
        prop_assert!(between.configs.is_subset(&merged.configs));
        for me in 1..=BROKERS {
            prop_assert_eq!(local_plan(&image, &merged, BrokerId(me)), local_plan(&image, &between, BrokerId(me)));
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..30) {
        let _ = decode_records(&Bytes::from(bytes.clone()));
        let mut framed = vec![0, kind, 1];
        framed.extend((bytes.len() as u32).to_be_bytes());
        framed.extend(&bytes);
        let _ = decode_records(&framed.into());
        let _ = decode_snapshot(&bytes.into());
    }
}

fn cluster() -> Image {
    let mut image = Image::empty(ClusterId("c".into()));
    for broker in 1..=3 {
        image.apply(at(i64::from(broker)), &[register(broker, i64::from(broker))]).unwrap();
    }
    let topic = Record::Topic { id: TopicId(Uuid(1)), name: "t".into() };
    let partition = Record::Partition { at: partition_of(1, 0), state: state(&[1, 2, 3], &[1, 2, 3]) };
    image.apply(at(4), &[topic, partition]).unwrap();
    image
}

#[test]
fn a_damaged_snapshot_is_refused_wherever_it_is_damaged() {
    let good = encode_snapshot(&cluster());
    for position in 0..good.len() {
        let mut bad = good.to_vec();
        bad[position] ^= 0x10;
        assert!(decode_snapshot(&bad.into()).is_err(), "byte {position}");
        assert!(decode_snapshot(&good.slice(..position)).is_err(), "cut at {position}");
    }
    let mut newer = good.to_vec();
    newer[9] = 2;
    assert_eq!(decode_snapshot(&newer.into()), Err(SnapshotError::Newer(2)));
}

#[test]
fn entries_that_do_not_follow_are_refused() {
    let image = cluster();
    let tp = partition_of(1, 0);
    let before = image.partition(tp).unwrap();
    let change = |edit: &dyn Fn(&mut PartitionState)| {
        let mut after = before.as_ref().clone();
        after.partition_epoch = after.partition_epoch.next();
        edit(&mut after);
        vec![Record::PartitionChange(PartitionChange::between(tp, before, &after))]
    };
    let violation = |records: &[Record]| match image.clone().apply(at(5), records) {
        Err(ApplyError::Partition { violation, .. }) => violation,
        other => panic!("{other:?}"),
    };
    let lead = |s: &mut PartitionState, id| {
        s.leader = Some(BrokerId(id));
        s.leader_epoch = s.leader_epoch.next();
    };
    assert!(image.clone().apply(at(5), &change(&|s| s.isr = ids(&[1, 2]))).is_ok());
    assert_eq!(violation(&change(&|s| s.isr = ids(&[1, 9]))), Violation::IsrOutsideReplicas);
    assert_eq!(violation(&change(&|s| s.isr = ids(&[1, 1]))), Violation::IsrMemberTwice);
    assert_eq!(violation(&change(&|s| s.isr = ids(&[2, 3]))), Violation::LeaderOutsideIsr);
    assert_eq!(violation(&change(&|s| s.elr = ids(&[3]))), Violation::ElrInsideIsr);
    assert_eq!(violation(&change(&|s| s.elr = ids(&[9]))), Violation::ElrOutsideReplicas);
    assert_eq!(
        violation(&change(&|s| s.recovery = Recovery::Recovering)),
        Violation::RecoveringWithFollowersInIsr
    );
    assert!(matches!(
        violation(&change(&|s| s.partition_epoch = PartitionEpoch(7))),
        Violation::PartitionEpochNotNext { .. }
    ));
    assert!(matches!(
        violation(&change(&|s| s.leader = Some(BrokerId(2)))),
        Violation::LeaderEpochDoesNotFollow { .. }
    ));
    assert!(matches!(
        violation(&change(&|s| s.leader_epoch = LeaderEpoch(2))),
        Violation::LeaderEpochDoesNotFollow { .. }
    ));
    let fence = Record::BrokerChange(BrokerChange {
        broker: BrokerId(2),
        epoch: BrokerEpoch(2),
        fenced: Some(true),
        in_controlled_shutdown: None,
        log_dirs: None,
    });
    let mut both = change(&|s| lead(s, 2));
    both.push(fence);
    assert_eq!(violation(&both), Violation::LeaderNotAlive(BrokerId(2)));
    assert!(matches!(image.clone().apply(at(4), &[]), Err(ApplyError::OutOfOrder { .. })));
    let old = Position { offset: MetadataOffset(5), term: Term(0) };
    assert!(matches!(image.clone().apply(old, &[]), Err(ApplyError::TermFell { .. })));
    assert!(matches!(image.clone().apply(at(5), &[register(1, 0)]), Err(ApplyError::BrokerEpoch { .. })));
    let gap = Record::Partition { at: partition_of(1, 2), state: state(&[1], &[1]) };
    assert!(matches!(image.clone().apply(at(5), &[gap]), Err(ApplyError::PartitionOutOfTurn { .. })));
    let again = Record::Topic { id: TopicId(Uuid(2)), name: "t".into() };
    assert!(matches!(image.clone().apply(at(5), &[again]), Err(ApplyError::TopicExists { .. })));
}

#[test]
fn the_plan_of_a_broker_deletes_leads_and_follows() {
    let mut image = cluster();
    let before = image.clone();
    let topic = Record::Topic { id: TopicId(Uuid(2)), name: "u".into() };
    let led = Record::Partition { at: partition_of(2, 0), state: state(&[2, 1], &[2, 1]) };
    let foreign = Record::Partition { at: partition_of(2, 1), state: state(&[3], &[3]) };
    let mut delta =
        image.apply(at(5), &[Record::RemoveTopic { id: TopicId(Uuid(1)) }, topic, led, foreign]).unwrap();
    let plan = local_plan(&image, &delta, BrokerId(2));
    assert_eq!(plan.delete.keys().copied().collect::<Vec<_>>(), [partition_of(1, 0)]);
    assert!(plan.lead[&partition_of(2, 0)].is_new);
    assert!(plan.follow.is_empty());
    assert!(local_plan(&image, &delta, BrokerId(1)).follow.contains_key(&partition_of(2, 0)));

    let state = image.partition(partition_of(2, 0)).unwrap();
    let mut moved = state.as_ref().clone();
    moved.partition_epoch = moved.partition_epoch.next();
    moved.leader_epoch = moved.leader_epoch.next();
    moved.replicas = ids(&[2, 3]);
    moved.isr = ids(&[2]);
    let change = Record::PartitionChange(PartitionChange::between(partition_of(2, 0), state, &moved));
    delta.merge(image.apply(at(6), std::slice::from_ref(&change)).unwrap());
    let gone = local_plan(&image, &Delta::between(&before, &image), BrokerId(1));
    assert_eq!(gone.delete.len(), 1, "only the replica it held at the start: {gone:?}");
    assert!(local_plan(&image, &delta, BrokerId(3)).follow[&partition_of(2, 0)].is_new);
}
