//! The controllers: the real mind (`core/control` over `core/metadata`), and a log that commits an entry after a delay, or loses it
//! with the controller that wrote it. A quorum that is away commits nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use minikafka_control::{
    AlterPartition, Answer, BrokerIdentity, Command, ConfigEntry, ConfigRefusal, ConfigRules, Control,
    ControlConfig, CreateTopics, Heartbeat, IsrMember, Moment, NewIsr, NewTopic, RegisterBroker,
    bootstrap_records,
};
use minikafka_metadata::{Image, Listener, Position, Record};
use minikafka_model::{
    BrokerEpoch, BrokerId, ClusterId, ControllerId, DirectoryId, ErrorCode, IncarnationId, MetadataOffset,
    Mono, Now, Term, TopicPartition, Uuid, WallMs,
};
use minikafka_replication::{HeartbeatAnswer, IsrAnswer, IsrProposal};

use crate::ledger::MIN_INSYNC_REPLICAS;
use crate::message::{Message, Node};
use crate::outbox::{Outbox, Timer};

/// `broker.session.timeout.ms` of a simulated cluster.
pub(crate) const SESSION: Duration = Duration::from_millis(1200);
/// Brokers that have not heard of the newest metadata are sent it again.
const RESEND: Duration = Duration::from_millis(200);
/// The name of the topic.
const TOPIC: &str = "orders";

/// The configuration that matters here.
#[derive(Debug)]
struct Rules;

impl ConfigRules for Rules {
    fn check_topic(&self, _key: &str, _value: &str) -> Result<(), ConfigRefusal> {
        Ok(())
    }

    fn check_broker(&self, _key: &str, _value: Option<&str>, _one: bool) -> Result<(), ConfigRefusal> {
        Ok(())
    }

    fn is_list(&self, _key: &str) -> bool {
        false
    }

    fn topic_value(
        &self,
        key: &str,
        _topic: &BTreeMap<String, String>,
        _cluster: &BTreeMap<String, String>,
    ) -> Option<String> {
        match key {
            "min.insync.replicas" => Some(MIN_INSYNC_REPLICAS.to_string()),
            "unclean.leader.election.enable" => Some("false".to_owned()),
            _ => None,
        }
    }

    fn topic_entries(
        &self,
        _topic: &BTreeMap<String, String>,
        _cluster: &BTreeMap<String, String>,
    ) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// Whom an answer goes to, and in which shape.
#[derive(Debug)]
enum Reply {
    Nobody,
    Registered { to: BrokerId, incarnation: IncarnationId, attempt: u64 },
    Heartbeat { to: BrokerId, number: u64 },
    Isr { to: BrokerId, number: u64, partition: TopicPartition, proposal: IsrProposal },
}

/// An entry that was proposed and is not committed yet, or an answer that waits for those before it.
#[derive(Debug)]
struct Pending {
    at: Option<Position>,
    records: Vec<Record>,
    reply: Reply,
    answer: Answer,
    commits: Mono,
}

/// The quorum of controllers.
#[derive(Debug)]
pub(crate) struct Controllers {
    control: Control,
    committed: Arc<Image>,
    term: Term,
    next: MetadataOffset,
    pending: VecDeque<Pending>,
    away: bool,
    resend: Mono,
    topic_asked: bool,
}

impl Controllers {
    /// A new cluster.
    pub(crate) fn new() -> Controllers {
        let mut config = ControlConfig::new(ControllerId(101), Arc::new(Rules));
        config.session_timeout = SESSION;
        config.rebalance_interval = Duration::from_millis(2500);
        let mut image = Image::empty(ClusterId("sim".to_owned()));
        let first = Position { offset: MetadataOffset(1), term: Term(1) };
        image.apply(first, &bootstrap_records(0)).expect("a new cluster");
        let mut control = Control::new(config);
        control.activate(Mono(0), image.clone());
        Controllers {
            control,
            committed: Arc::new(image),
            term: Term(1),
            next: MetadataOffset(2),
            pending: VecDeque::new(),
            away: false,
            resend: Mono(0),
            topic_asked: false,
        }
    }

    /// The committed metadata.
    pub(crate) fn image(&self) -> &Arc<Image> {
        &self.committed
    }

    /// The partitions of the topic, once it is created.
    pub(crate) fn partitions(&self) -> Vec<TopicPartition> {
        self.committed.partitions().map(|(at, _)| at).collect()
    }

    /// The majority goes, or comes back with another controller. What was proposed and not committed is lost, or not: the first
    /// `survive` entries are committed by the successor.
    pub(crate) fn set_away(&mut self, away: bool, survive: usize, cx: &mut Outbox<'_>) {
        if away == self.away {
            return;
        }
        self.away = away;
        if away {
            self.control.deactivate();
            return;
        }
        for pending in self.pending.drain(..).take(survive) {
            if let Some(at) = pending.at {
                Arc::make_mut(&mut self.committed)
                    .apply(at, &pending.records)
                    .expect("decided on this ground");
                self.next = at.offset.next();
            }
        }
        self.term = self.term.next();
        self.next = self.committed.offset().unwrap_or(MetadataOffset(0)).next();
        let position = Position { offset: self.next, term: self.term };
        Arc::make_mut(&mut self.committed).advance(position);
        self.next = self.next.next();
        self.topic_asked = false;
        self.control.activate(cx.now, Image::clone(&self.committed));
        self.publish(cx);
    }

    /// Another controller takes over at once.
    pub(crate) fn fail_over(&mut self, cx: &mut Outbox<'_>) {
        let survive = cx.dice.range(0, 3) as usize;
        self.set_away(true, 0, cx);
        self.set_away(false, survive, cx);
    }

    fn moment(&self, cx: &mut Outbox<'_>) -> Moment {
        let now = Now { mono: cx.now, wall: WallMs((cx.now.0 / 1000) as i64) };
        let seed = (u128::from(cx.dice.bits()) << 64) | u128::from(cx.dice.bits());
        Moment { now, next: Position { offset: self.next, term: self.term }, seed, deadline: None }
    }

    /// The controller's own timer: fences whom it must. There is always one.
    pub(crate) fn tick(&mut self, cx: &mut Outbox<'_>) {
        self.commit(cx);
        if !self.away {
            loop {
                let at = self.moment(cx);
                let Some(decision) = self.control.tick(&at) else { break };
                self.propose(decision.records, decision.answer, Reply::Nobody, cx);
            }
            self.create_topic(cx);
            if cx.now >= self.resend {
                self.publish(cx);
            }
        }
        let wake = self.control.next_wake().map_or(self.resend, |wake| wake.min(self.resend));
        cx.at(wake.max(Mono(cx.now.0 + 1000)), Timer::Controller);
    }

    /// The topic is created once three brokers are there to hold it.
    fn create_topic(&mut self, cx: &mut Outbox<'_>) {
        let active = self.committed.brokers().values().filter(|broker| broker.is_active()).count();
        if self.topic_asked || active < 3 || self.committed.topic_by_name(TOPIC).is_some() {
            return;
        }
        self.topic_asked = true;
        let topic = NewTopic {
            name: TOPIC.to_owned(),
            partitions: Some(2),
            replication_factor: Some(3),
            assignments: Vec::new(),
            configs: Vec::new(),
        };
        let at = self.moment(cx);
        let command = Command::CreateTopics(CreateTopics { topics: vec![topic], validate_only: false });
        let decision = self.control.handle(&at, command);
        self.propose(decision.records, decision.answer, Reply::Nobody, cx);
    }

    /// A message of a broker.
    pub(crate) fn handle(&mut self, from: BrokerId, message: Message, cx: &mut Outbox<'_>) {
        if self.away {
            return;
        }
        self.commit(cx);
        let (command, reply) = match message {
            Message::Register { incarnation, attempt, previous_epoch } => (
                register(from, incarnation, previous_epoch),
                Reply::Registered { to: from, incarnation, attempt },
            ),
            Message::Heartbeat { number, heartbeat } => {
                self.control.contact(cx.now, from, heartbeat.broker_epoch);
                let command = Command::Heartbeat(Heartbeat {
                    from: BrokerIdentity { broker: from, epoch: heartbeat.broker_epoch },
                    metadata_offset: heartbeat.metadata_offset,
                    want_fence: heartbeat.want_fence,
                    want_shut_down: heartbeat.want_shut_down,
                    offline_log_dirs: Vec::new(),
                });
                (command, Reply::Heartbeat { to: from, number })
            }
            Message::AlterIsr { number, broker_epoch, partition, proposal } => {
                let isr =
                    proposal.isr.iter().map(|(broker, epoch)| IsrMember { broker: *broker, epoch: *epoch });
                let item = NewIsr {
                    at: partition,
                    leader_epoch: proposal.leader_epoch,
                    partition_epoch: proposal.partition_epoch,
                    isr: isr.collect(),
                    recovering: false,
                };
                let identity = BrokerIdentity { broker: from, epoch: broker_epoch };
                let command = Command::AlterPartition(AlterPartition { from: identity, items: vec![item] });
                (command, Reply::Isr { to: from, number, partition, proposal })
            }
            other => unreachable!("{other:?} is not for controllers"),
        };
        let at = self.moment(cx);
        let decision = self.control.handle(&at, command);
        self.propose(decision.records, decision.answer, reply, cx);
    }

    fn propose(&mut self, records: Vec<Record>, answer: Answer, reply: Reply, cx: &mut Outbox<'_>) {
        let at = (!records.is_empty()).then(|| {
            let at = Position { offset: self.next, term: self.term };
            self.next = self.next.next();
            at
        });
        let last = self.pending.back().map_or(cx.now, |pending| pending.commits);
        let span = if at.is_some() { cx.dice.range(300, 8_000) } else { 0 };
        let commits = last.max(Mono(cx.now.0 + span));
        self.pending.push_back(Pending { at, records, reply, answer, commits });
        cx.at(commits, Timer::Commit);
        self.commit(cx);
    }

    /// Commits what is due, and gives the answers that waited for it.
    pub(crate) fn commit(&mut self, cx: &mut Outbox<'_>) {
        if self.away {
            return;
        }
        let mut changed = false;
        while self.pending.front().is_some_and(|pending| pending.commits <= cx.now) {
            let Some(pending) = self.pending.pop_front() else { break };
            if let Some(at) = pending.at {
                Arc::make_mut(&mut self.committed)
                    .apply(at, &pending.records)
                    .expect("decided on this ground");
                changed = true;
            }
            answer(pending.reply, pending.answer, cx);
        }
        if changed {
            self.publish(cx);
        }
    }

    /// Sends what is committed to every broker.
    fn publish(&mut self, cx: &mut Outbox<'_>) {
        self.resend = cx.now.after(RESEND);
        for id in [BrokerId(1), BrokerId(2), BrokerId(3)] {
            cx.send(Node::Broker(id), Message::Metadata(self.committed.clone()));
        }
    }
}

fn register(broker: BrokerId, incarnation: IncarnationId, previous_epoch: Option<BrokerEpoch>) -> Command {
    Command::RegisterBroker(RegisterBroker {
        broker,
        cluster: ClusterId("sim".to_owned()),
        incarnation,
        listeners: vec![Listener {
            name: "PLAINTEXT".to_owned(),
            host: format!("broker-{broker}"),
            port: 9092,
            security_protocol: "PLAINTEXT".to_owned(),
        }],
        rack: None,
        log_dirs: vec![DirectoryId(Uuid(0x5000_0000 + u128::from(broker.0.unsigned_abs())))],
        previous_epoch,
    })
}

fn answer(reply: Reply, answer: Answer, cx: &mut Outbox<'_>) {
    let refused = |answer: &Answer| match answer {
        Answer::Refused(refusal) => refusal.code,
        _ => ErrorCode::UnknownServerError,
    };
    match reply {
        Reply::Nobody => {}
        Reply::Registered { to, incarnation, attempt } => {
            let answer = match answer {
                Answer::Registered(epoch) => Ok(epoch),
                other => Err(refused(&other)),
            };
            cx.send(Node::Broker(to), Message::Registered { incarnation, attempt, answer });
        }
        Reply::Heartbeat { to, number } => {
            let answer = match answer {
                Answer::Heartbeat(reply) => Ok(HeartbeatAnswer {
                    caught_up: reply.caught_up,
                    fenced: reply.fenced,
                    should_shut_down: reply.should_shut_down,
                }),
                other => Err(refused(&other)),
            };
            cx.send(Node::Broker(to), Message::HeartbeatAnswered { number, answer });
        }
        Reply::Isr { to, number, partition, proposal } => {
            let answer = match answer {
                Answer::AlteredPartitions(mut items) => {
                    items.pop().map_or(IsrAnswer::TryAgain, |item| match item.outcome {
                        Ok(outcome) => IsrAnswer::Accepted {
                            isr: outcome.isr.into_iter().collect(),
                            leader_epoch: outcome.leader_epoch,
                            partition_epoch: outcome.partition_epoch,
                        },
                        Err(code) => IsrAnswer::of_code(code),
                    })
                }
                other => IsrAnswer::of_code(refused(&other)),
            };
            cx.send(Node::Broker(to), Message::IsrAltered { number, partition, proposal, answer });
        }
    }
}
