//! Random lives of a cluster: after every decision the image keeps its invariants (M1 to M3: `World::command` looks), a controller
//! that takes over sees the same, and nothing that was decided is undone.

mod world;

use minikafka_control::{
    AlterPartition, Answer, Command, Control, CreatePartitions, CreateTopics, DeleteTopics, ElectLeaders,
    ElectionKind, Faults, FeatureUpdate, IsrMember, NewIsr, NewPartitions, NewTopic, PartitionName,
    ReassignPartitions, Reassignment, TopicSelector, UpdateFeatures, UpgradeType,
};
use minikafka_metadata::{
    ConfigResource, Delta, Image, METADATA_VERSION, Record, decode_snapshot, encode_snapshot,
};
use minikafka_model::{BrokerId, ClusterId, ErrorCode, LeaderEpoch, Mono, PartitionEpoch, TopicPartition};
use proptest::prelude::*;
use world::World;

const BROKERS: i32 = 4;

#[derive(Debug, Clone)]
enum Step {
    Register { broker: i32, new: bool, clean: bool },
    Beat { broker: i32, fence: bool, shut_down: bool },
    Wait { millis: u64 },
    Create { name: u8, partitions: i32, replicas: i32 },
    Delete { name: u8 },
    Isr { pick: u32, members: u8, old: u8, recovering: bool },
    Elect { pick: u32, unclean: bool },
    Reassign { pick: u32, first: i32, replicas: i32, cancel: bool },
    More { name: u8, count: i32 },
    Unclean { name: u8, on: bool },
    MinIsr { name: u8, to: u8 },
    Elr { on: bool },
    Failover,
    Unregister { broker: i32 },
}

fn step() -> impl Strategy<Value = Step> {
    let broker = || 1..=BROKERS;
    prop_oneof![
        3 => (broker(), any::<bool>(), any::<bool>()).prop_map(|(broker, new, clean)| Step::Register { broker, new, clean }),
        6 => (broker(), prop::bool::weighted(0.15), prop::bool::weighted(0.15)).prop_map(|(broker, fence, shut_down)| Step::Beat { broker, fence, shut_down }),
        2 => (0u64..12_000).prop_map(|millis| Step::Wait { millis }),
        2 => (0u8..4, 1..4i32, 1..=BROKERS).prop_map(|(name, partitions, replicas)| Step::Create { name, partitions, replicas }),
        1 => (0u8..4).prop_map(|name| Step::Delete { name }),
        8 => (any::<u32>(), any::<u8>(), 0u8..12, prop::bool::weighted(0.1)).prop_map(|(pick, members, old, recovering)| Step::Isr { pick, members, old, recovering }),
        2 => (any::<u32>(), any::<bool>()).prop_map(|(pick, unclean)| Step::Elect { pick, unclean }),
        2 => (any::<u32>(), broker(), broker(), prop::bool::weighted(0.3)).prop_map(|(pick, first, replicas, cancel)| Step::Reassign { pick, first, replicas, cancel }),
        1 => (0u8..4, 1..6i32).prop_map(|(name, count)| Step::More { name, count }),
        1 => (0u8..4, any::<bool>()).prop_map(|(name, on)| Step::Unclean { name, on }),
        1 => (0u8..4, 1u8..4).prop_map(|(name, to)| Step::MinIsr { name, to }),
        1 => any::<bool>().prop_map(|on| Step::Elr { on }),
        1 => Just(Step::Failover),
        1 => broker().prop_map(|broker| Step::Unregister { broker }),
    ]
}

fn name(number: u8) -> String {
    format!("t{number}")
}

/// A partition of those that exist.
fn pick(world: &World, pick: u32) -> Option<(TopicPartition, PartitionName)> {
    let all: Vec<TopicPartition> = world.image.partitions().map(|(at, _)| at).collect();
    let at = *all.get(pick as usize % all.len().max(1))?;
    let topic = world.image.topic_name(at.topic)?.to_string();
    Some((at, PartitionName { topic, partition: at.partition }))
}

/// The command of a step, where there is one.
fn command(world: &mut World, step: &Step) -> Option<Command> {
    Some(match step {
        Step::Register { broker, new, clean } => {
            let epoch = world.epoch(BrokerId(*broker));
            let mut it = world.registration(BrokerId(*broker), *new);
            it.previous_epoch = clean.then_some(epoch);
            Command::RegisterBroker(it)
        }
        Step::Beat { broker, fence, shut_down } => {
            let mut beat = world.beat(BrokerId(*broker));
            beat.want_fence = *fence;
            beat.want_shut_down = *shut_down;
            Command::Heartbeat(beat)
        }
        Step::Create { name: n, partitions, replicas } => Command::CreateTopics(CreateTopics {
            topics: vec![NewTopic {
                name: name(*n),
                partitions: Some(*partitions),
                replication_factor: Some(*replicas),
                assignments: Vec::new(),
                configs: Vec::new(),
            }],
            validate_only: false,
        }),
        Step::Delete { name: n } => Command::DeleteTopics(DeleteTopics {
            topics: vec![TopicSelector { name: Some(name(*n)), id: None }],
        }),
        Step::Isr { pick: which, members, old, recovering } => {
            proposal(world, *which, *members, *old, *recovering)?
        }
        Step::Elect { pick: which, unclean } => Command::ElectLeaders(ElectLeaders {
            kind: if *unclean { ElectionKind::Unclean } else { ElectionKind::Preferred },
            partitions: Some(vec![pick(world, *which)?.1]),
        }),
        Step::Reassign { pick: which, first, replicas, cancel } => {
            let target = (0..*replicas).map(|n| BrokerId((first + n - 1) % BROKERS + 1)).collect();
            Command::ReassignPartitions(ReassignPartitions {
                partitions: vec![Reassignment {
                    at: pick(world, *which)?.1,
                    replicas: (!cancel).then_some(target),
                }],
                allow_replication_factor_change: true,
            })
        }
        Step::More { name: n, count } => Command::CreatePartitions(CreatePartitions {
            topics: vec![NewPartitions { topic: name(*n), count: *count, assignments: None }],
            validate_only: false,
        }),
        Step::Unclean { name: n, on } => set(&name(*n), "unclean.leader.election.enable", on.to_string()),
        Step::MinIsr { name: n, to } => set(&name(*n), "min.insync.replicas", to.to_string()),
        Step::Elr { on } => Command::UpdateFeatures(UpdateFeatures {
            updates: vec![FeatureUpdate {
                name: minikafka_metadata::ELIGIBLE_LEADER_REPLICAS.to_owned(),
                level: i16::from(*on),
                kind: if *on { UpgradeType::Upgrade } else { UpgradeType::SafeDowngrade },
            }],
            validate_only: false,
        }),
        Step::Unregister { broker } => Command::UnregisterBroker(BrokerId(*broker)),
        Step::Wait { .. } | Step::Failover => return None,
    })
}

fn set(topic: &str, key: &str, value: String) -> Command {
    Command::IncrementalAlterConfigs(minikafka_control::IncrementalAlterConfigs {
        resources: vec![(
            minikafka_control::NamedResource::Topic(topic.to_owned()),
            vec![(key.to_owned(), minikafka_control::ConfigOp::Set(Some(value)))],
        )],
        validate_only: false,
    })
}

/// What a leader could propose: any members of the replicas and perhaps a stranger, on epochs that are mostly right.
fn proposal(world: &World, which: u32, members: u8, old: u8, recovering: bool) -> Option<Command> {
    let (at, _) = pick(world, which)?;
    let state = world.image.partition(at)?;
    let isr = (1..=BROKERS)
        .map(BrokerId)
        .filter(|id| state.leader == Some(*id) && members & 64 == 0 || members & (1 << id.0) != 0)
        .filter(|id| state.replicas.contains(id) || old == 11)
        .map(|broker| IsrMember { broker, epoch: (old != 7).then(|| world.epoch(broker)) })
        .collect();
    let item = NewIsr {
        at,
        leader_epoch: LeaderEpoch(state.leader_epoch.0 - i32::from(old == 1) + i32::from(old == 2)),
        partition_epoch: PartitionEpoch(state.partition_epoch.0 - i32::from(old == 3) + i32::from(old == 4)),
        isr,
        recovering,
    };
    let from = world.identity(state.leader.unwrap_or(BrokerId(1)));
    Some(Command::AlterPartition(AlterPartition { from, items: vec![item] }))
}

/// M3: an accepted ISR was built on the very epochs that were committed, and all of its members are alive.
fn check_accepted(world: &World, step: &Step, before: &Image, answer: &Answer) {
    let (Answer::AlteredPartitions(results), Step::Isr { old, .. }) = (answer, step) else { return };
    for result in results {
        let Ok(outcome) = &result.outcome else { continue };
        assert!(!matches!(old, 1..=4), "accepted on epochs {old} that were not the committed ones");
        for member in &outcome.isr {
            assert!(before.is_active(*member), "{member} joined an ISR without being alive");
        }
        let now = world.image.partition(result.at).expect("it exists");
        assert_eq!((now.isr.clone(), now.partition_epoch), (outcome.isr.clone(), outcome.partition_epoch));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_decision_keeps_the_invariants(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new(Faults::default());
        for broker in 1..=3 {
            let it = world.registration(BrokerId(broker), true);
            world.command(Command::RegisterBroker(it));
            let beat = world.beat(BrokerId(broker));
            world.command(Command::Heartbeat(beat));
        }
        for step in &steps {
            let before = world.image.clone();
            match step {
                Step::Wait { millis } => {
                    world.wait(*millis);
                }
                Step::Failover => world.take_over(),
                step => {
                    if let Some(command) = command(&mut world, step) {
                        let decision = world.command(command);
                        check_accepted(&world, step, &before, &decision.answer);
                        if let Answer::Refused(refusal) = &decision.answer {
                            prop_assert!(decision.records.is_empty(), "refused with {refusal:?}, and yet decided");
                        }
                        let epochs = decision.records.iter().filter_map(|record| match record {
                            Record::RegisterBroker(it) => Some((it.broker, it.epoch)),
                            _ => None,
                        });
                        for (broker, epoch) in epochs {
                            prop_assert!(epoch >= before.broker(broker).map_or(epoch, |known| known.epoch));
                        }
                    }
                }
            }
        }
        // A new broker that is given a snapshot sees what the log says.
        let read = decode_snapshot(&encode_snapshot(&world.image)).unwrap();
        prop_assert!(Delta::between(&read, &world.image).is_empty());
        // The cluster heals: with every broker back, every partition that a replica holds whole has a leader.
        for broker in 1..=BROKERS {
            world.now = Mono(world.now.0 + 30_000_000);
            world.tick();
            let mut it = world.registration(BrokerId(broker), true);
            it.previous_epoch = world.image.broker(BrokerId(broker)).map(|known| known.epoch);
            let registered = world.command(Command::RegisterBroker(it));
            prop_assert!(matches!(registered.answer, Answer::Registered(_)), "{:?}", registered.answer);
        }
        for broker in 1..=BROKERS {
            let beat = world.beat(BrokerId(broker));
            world.command(Command::Heartbeat(beat));
        }
        for (at, state) in world.image.partitions() {
            let nobody_left = state.isr.is_empty() && state.elr.is_empty();
            prop_assert!(state.leader.is_some() || nobody_left, "{at} has no leader: {state:?}");
        }
    }

    #[test]
    fn who_is_not_active_decides_nothing(seed: u8) {
        let mut world = World::new(Faults::default());
        world.control.deactivate();
        let at = world.moment();
        let beat = world.beat(BrokerId(i32::from(seed)));
        let decision = world.control.handle(&at, Command::Heartbeat(beat));
        prop_assert!(decision.records.is_empty());
        prop_assert!(matches!(decision.answer, Answer::Refused(refusal) if refusal.code == ErrorCode::NotController));
        prop_assert!(world.control.tick(&at).is_none());
    }
}

#[test]
fn a_command_after_its_deadline_decides_nothing() {
    let mut world = World::new(Faults::default());
    let mut at = world.moment();
    at.deadline = Some(at.now.mono);
    let command = Command::DeleteTopics(DeleteTopics { topics: Vec::new() });
    let decision = world.control.handle(&at, command);
    assert!(
        matches!(decision.answer, Answer::Refused(refusal) if refusal.code == ErrorCode::RequestTimedOut)
    );
}

#[test]
fn a_new_cluster_begins_with_its_features() {
    for (elr, min_isr) in [(0, None), (1, Some("1"))] {
        let mut config = world::config(Faults::default());
        config.elr_of_new_cluster = elr;
        let mut control = Control::new(config);
        let empty = Image::empty(ClusterId("new".into()));
        control.activate(Mono(0), empty);
        assert_eq!(control.next_wake(), Some(Mono(0)), "it is due at once");
        let at = World::new(Faults::default()).moment();
        let decision = control.tick(&at).expect("the first decision");
        assert!(decision.records.iter().all(|r| !matches!(r, Record::ClearElr { .. })));
        let image = control.image().expect("active");
        assert!(image.feature(METADATA_VERSION) > 0);
        assert_eq!(image.elr_enabled(), elr == 1);
        assert_eq!(image.config(ConfigResource::ClusterDefault, "min.insync.replicas"), min_isr);
        assert!(control.tick(&at).is_none(), "once");
    }
}

#[test]
fn contact_outside_the_queue_keeps_a_session_alive() {
    let mut world = World::new(Faults::default());
    let it = world.registration(BrokerId(1), true);
    world.command(Command::RegisterBroker(it));
    let beat = world.beat(BrokerId(1));
    world.command(Command::Heartbeat(beat));
    world.now = Mono(8_000_000);
    world.control.contact(world.now, BrokerId(1), world.epoch(BrokerId(1)));
    // A heartbeat of another life counts for nothing.
    world.control.contact(Mono(60_000_000), BrokerId(1), minikafka_model::BrokerEpoch(99));
    world.now = Mono(16_900_000);
    assert!(world.tick().is_empty(), "heard of 8.9 seconds ago");
    world.now = Mono(18_100_000);
    let fenced: Vec<_> = world.tick().iter().filter_map(|(decision, _)| world::fenced(decision)).collect();
    assert_eq!(fenced, [BrokerId(1)]);
}

/// Kafka semantics 6.3: fenced between 9.0 and about 10.1 seconds after the last contact, whatever the moment.
#[test]
fn fencing_comes_within_an_eighth_of_the_session() {
    for offset in 0..20u64 {
        let mut world = World::new(Faults::default());
        world.wait(offset * 57);
        let it = world.registration(BrokerId(1), true);
        world.command(Command::RegisterBroker(it));
        let beat = world.beat(BrokerId(1));
        world.command(Command::Heartbeat(beat));
        let start = world.now;
        let mut silent = 0;
        while world.image.is_active(BrokerId(1)) {
            let wake = world.control.next_wake().expect("an active controller has something to look at");
            world.now = wake.max(world.now);
            world.tick();
            silent = world.now.since(start).as_millis();
            assert!(silent < 20_000, "never fenced");
        }
        assert!((9_000..=10_125).contains(&silent), "fenced after {silent} ms");
    }
}
