//! A controller under test: a log that commits at once, a clock, and brokers that live as the story says.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test uses its part")]

mod rules;
mod script;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use minikafka_control::{
    Answer, Background, BrokerIdentity, Command, Control, ControlConfig, Decision, Faults, Heartbeat, Moment,
    RegisterBroker, bootstrap_records,
};
use minikafka_metadata::{Image, Listener, Position, Record, decode_records, encode_records};
use minikafka_model::{
    BrokerEpoch, BrokerId, ClusterId, ControllerId, DirectoryId, IncarnationId, MetadataOffset, Mono, Now,
    Term, TopicPartition, Uuid, WallMs,
};

pub use rules::TestRules;

/// Runs a story and gives it back with what happened.
pub fn run(story: &str) -> String {
    script::run(story, Faults::default())
}

/// Runs a story with a fault planted.
#[cfg(feature = "seeded-bugs")]
pub fn run_with(story: &str, bug: minikafka_control::SeededBug) -> String {
    script::run(story, Faults::plant(bug))
}

pub fn config(faults: Faults) -> ControlConfig {
    let mut config = ControlConfig::new(ControllerId(101), Arc::new(TestRules));
    config.default_partitions = 1;
    config.faults = faults;
    config
}

/// Microseconds between heartbeats.
const HEARTBEAT: u64 = 2_000_000;

pub struct World {
    pub control: Control,
    /// What is committed.
    pub image: Image,
    pub now: Mono,
    pub term: Term,
    pub alive: BTreeSet<BrokerId>,
    incarnations: BTreeMap<BrokerId, u128>,
    seed: u128,
    /// Every (partition, leader epoch) and its leader, for M1.
    leaders: BTreeMap<(TopicPartition, i32), Option<BrokerId>>,
}

impl World {
    pub fn new(faults: Faults) -> World {
        let mut image = Image::empty(ClusterId("cluster".into()));
        let first = Position { offset: MetadataOffset(1), term: Term(1) };
        image.apply(first, &bootstrap_records(0)).expect("the bootstrap entry applies");
        let mut world = World {
            control: Control::new(config(faults)),
            image,
            now: Mono(0),
            term: Term(1),
            alive: BTreeSet::new(),
            incarnations: BTreeMap::new(),
            seed: 0,
            leaders: BTreeMap::new(),
        };
        world.take_over();
        world
    }

    /// Another controller becomes active with what is committed.
    pub fn take_over(&mut self) {
        self.term = self.term.next();
        self.control.deactivate();
        self.control.activate(self.now, self.image.clone());
    }

    pub fn moment(&mut self) -> Moment {
        self.seed += 1;
        let offset = self.image.offset().map_or(MetadataOffset(1), |at| at.next());
        Moment {
            now: Now { mono: self.now, wall: WallMs(self.now.0 as i64 / 1000) },
            next: Position { offset, term: self.term },
            seed: self.seed,
            deadline: None,
        }
    }

    pub fn command(&mut self, command: Command) -> Decision {
        let at = self.moment();
        let decision = self.control.handle(&at, command);
        self.commit(&at, &decision.records);
        decision
    }

    /// What the controller does by itself, until there is nothing left to do.
    pub fn tick(&mut self) -> Vec<(Decision, i64)> {
        let mut decisions = Vec::new();
        loop {
            let at = self.moment();
            let Some(decision) = self.control.tick(&at) else { return decisions };
            assert!(matches!(decision.answer, Answer::Background(_)));
            self.commit(&at, &decision.records);
            decisions.push((decision, self.offset()));
            assert!(decisions.len() < 1000, "the controller finds no end");
        }
    }

    fn commit(&mut self, at: &Moment, records: &[Record]) {
        if records.is_empty() {
            return;
        }
        let records = decode_records(&encode_records(records)).expect("records survive their encoding");
        let delta = self.image.apply(at.next, &records).expect("what was decided applies");
        assert_eq!(Some(&self.image), self.control.image(), "the controller sees what it decided");
        if let Err((partition, violation)) = self.image.check() {
            panic!("M2: partition {partition}: {violation}");
        }
        for (partition, change) in &delta.partitions {
            if let Some(before) = &change.before {
                assert!(before.partition_epoch < change.after.partition_epoch, "M1: partition epochs rise");
                assert!(before.leader_epoch <= change.after.leader_epoch, "M1: leader epochs never fall");
            }
            let key = (*partition, change.after.leader_epoch.0);
            let leader = *self.leaders.entry(key).or_insert(change.after.leader);
            assert_eq!(leader, change.after.leader, "M1: one leader in epoch {} of {partition}", key.1);
        }
    }

    pub fn offset(&self) -> i64 {
        self.image.offset().map_or(0, |at| at.0)
    }

    pub fn epoch(&self, broker: BrokerId) -> BrokerEpoch {
        self.image.broker(broker).map_or(BrokerEpoch(0), |known| known.epoch)
    }

    pub fn identity(&self, broker: BrokerId) -> BrokerIdentity {
        BrokerIdentity { broker, epoch: self.epoch(broker) }
    }

    /// The registration of a new process, or of the same one again.
    pub fn registration(&mut self, broker: BrokerId, new_process: bool) -> RegisterBroker {
        let life = self.incarnations.entry(broker).or_insert(0);
        if new_process {
            *life += 1;
        }
        let incarnation = IncarnationId(Uuid((broker.0 as u128) << 64 | *life));
        RegisterBroker {
            broker,
            cluster: ClusterId("cluster".into()),
            incarnation,
            listeners: vec![Listener {
                name: "PLAINTEXT".into(),
                host: "localhost".into(),
                port: 9090 + broker.0 as u16,
                security_protocol: "PLAINTEXT".into(),
            }],
            rack: None,
            log_dirs: vec![DirectoryId(Uuid(1000 + broker.0 as u128))],
            previous_epoch: None,
        }
    }

    pub fn beat(&self, broker: BrokerId) -> Heartbeat {
        Heartbeat {
            from: self.identity(broker),
            metadata_offset: self.image.offset(),
            want_fence: false,
            want_shut_down: false,
            offline_log_dirs: Vec::new(),
        }
    }

    /// Time passes; the brokers that are alive are heard of, and the controller does what is due.
    pub fn wait(&mut self, millis: u64) -> Vec<(Decision, i64)> {
        let end = Mono(self.now.0 + millis * 1000);
        let mut decisions = Vec::new();
        while self.now < end {
            let before = self.now.0;
            self.now = Mono((before + 125_000).min(end.0));
            if before / HEARTBEAT != self.now.0 / HEARTBEAT {
                for broker in self.alive.clone() {
                    let beat = self.beat(broker);
                    let decision = self.command(Command::Heartbeat(beat));
                    if !decision.records.is_empty() {
                        decisions.push((decision, self.offset()));
                    }
                }
            }
            decisions.extend(self.tick());
        }
        decisions
    }
}

/// Whether a decision fenced somebody.
pub fn fenced(decision: &Decision) -> Option<BrokerId> {
    match decision.answer {
        Answer::Background(Background::Fenced(broker)) => Some(broker),
        _ => None,
    }
}
