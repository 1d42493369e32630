//! A simulated broker: the shell around the replicas, without threads or sockets. What a real broker does with effects is done
//! here the same way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use minikafka_metadata::{Delta, Image, local_plan};
use minikafka_model::{
    BrokerEpoch, BrokerId, ClusterId, ErrorCode, IncarnationId, Mono, Offset, Ticket, TopicPartition, Uuid,
};
use minikafka_replication::{
    Acks, BrokerLifecycle, ConsumerAnswer, ConsumerAsk, Effect, IsrAnswer, IsrProposal, LeaderSession,
    LifecycleConfig, LifecycleEffect, Next, OwnRegistration, PartitionFacts, Produce, ProduceRefusal,
    Produced, ReadLimit, Replica, ReplicaConfig, ReplicaLog, StreamId, brokers_of,
};

use crate::control::SESSION;
use crate::fetcher::Fetcher;
use crate::message::{Message, Node, Write};
use crate::outbox::{Note, Outbox, Timer};
use crate::records::{batch, seen};

/// How long a caller waits for a controller.
const CALL_TIMEOUT: Duration = Duration::from_millis(250);
/// Before an ISR proposal is sent again.
const ISR_RETRY: Duration = Duration::from_millis(50);
const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(1000);

/// What a broker has on its disk.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// The log of each partition, while no process has it open.
    pub(crate) logs: BTreeMap<TopicPartition, ReplicaLog>,
    /// Log ends that are surely on disk: a power loss takes the rest.
    pub(crate) synced: BTreeMap<TopicPartition, Offset>,
    /// `.kafka_cleanshutdown`: the epoch of a life that ended in an orderly way. Taken when it is seen.
    pub(crate) clean_shutdown: Option<BrokerEpoch>,
    /// `replication-offset-checkpoint`.
    pub(crate) high_watermarks: BTreeMap<TopicPartition, Offset>,
}

/// A broker of a simulated cluster.
#[derive(Debug)]
pub(crate) struct Broker {
    /// Its id.
    pub(crate) id: BrokerId,
    /// The disk, which outlives the process.
    pub(crate) disk: Disk,
    /// The process, if it runs.
    pub(crate) process: Option<Process>,
    /// How many processes there were.
    pub(crate) lives: u64,
    config: ReplicaConfig,
}

/// One life of a broker's process.
#[derive(Debug)]
pub(crate) struct Process {
    incarnation: IncarnationId,
    /// Registration and heartbeats.
    pub(crate) lifecycle: BrokerLifecycle,
    /// The replicas.
    pub(crate) replicas: BTreeMap<TopicPartition, Replica>,
    /// The metadata applied.
    pub(crate) image: Option<Arc<Image>>,
    /// The metadata that the replicas follow.
    applied: Image,
    config: ReplicaConfig,
    previous_epoch: Option<BrokerEpoch>,
    last_epoch: Option<BrokerEpoch>,
    pub(crate) streams: BTreeMap<StreamId, LeaderSession>,
    pub(crate) fetchers: BTreeMap<BrokerId, Fetcher>,
    waiting: BTreeMap<Ticket, Waiting>,
    proposals: BTreeMap<TopicPartition, (u64, IsrProposal)>,
    next_number: u64,
    call: Option<u64>,
    /// Timers that are set: one of each is enough.
    armed: BTreeMap<Timer, Mono>,
    /// `minikafka.replica.fetch.max.outstanding` of this life.
    pub(crate) credit: usize,
}

#[derive(Debug)]
enum Waiting {
    Write { client: u32, request: u64 },
    Read { client: u32, request: u64, partition: TopicPartition, position: Offset },
}

impl Broker {
    /// A broker with an empty disk that does not run yet.
    pub(crate) fn new(id: BrokerId, config: ReplicaConfig) -> Broker {
        Broker { id, disk: Disk::default(), process: None, lives: 0, config }
    }

    /// The log of a partition, whether a process has it open or not.
    pub(crate) fn log(&self, at: TopicPartition) -> Option<&ReplicaLog> {
        match &self.process {
            Some(process) => process.replicas.get(&at).and_then(Replica::log),
            None => self.disk.logs.get(&at),
        }
    }

    /// Starts a process.
    pub(crate) fn start(&mut self, cx: &mut Outbox<'_>) {
        self.lives += 1;
        let incarnation =
            IncarnationId(Uuid((u128::from(self.id.0.unsigned_abs()) << 64) | u128::from(self.lives)));
        let config = LifecycleConfig {
            heartbeat_interval: Duration::from_millis(300),
            session_timeout: SESSION,
            registration_timeout: Duration::from_secs(3600),
            shutdown_timeout: Duration::from_secs(10),
        };
        let logs = std::mem::take(&mut self.disk.logs);
        let replicas = logs
            .into_iter()
            .map(|(at, log)| {
                let high_watermark = self.disk.high_watermarks.get(&at).copied();
                (at, Replica::new(at, self.id, log, high_watermark, self.config.clone()))
            })
            .collect();
        self.process = Some(Process {
            incarnation,
            lifecycle: BrokerLifecycle::new(config, cx.now),
            replicas,
            image: None,
            applied: Image::empty(ClusterId("sim".to_owned())),
            config: self.config.clone(),
            previous_epoch: self.disk.clean_shutdown.take(),
            last_epoch: None,
            streams: BTreeMap::new(),
            fetchers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            proposals: BTreeMap::new(),
            next_number: 0,
            call: None,
            armed: BTreeMap::new(),
            // Odd lives run ahead, even ones keep to Kafka's loop: both are under test.
            credit: if self.lives % 2 == 1 { 2 } else { 1 },
        });
        cx.after(CHECKPOINT_INTERVAL, Timer::Checkpoint);
        self.with(cx, |process, id, cx| process.tick_lifecycle(id, cx));
    }

    /// The process ends at once. What it has written stays, unless the power goes too: then what was not synced is lost.
    pub(crate) fn crash(&mut self, power_loss: bool) {
        let Some(process) = self.process.take() else { return };
        for (at, replica) in process.replicas {
            let mut out = Vec::new();
            let mut log = replica.remove(&mut out).unwrap_or_default();
            if power_loss {
                let synced = self.disk.synced.get(&at).copied().unwrap_or(Offset(0));
                log.truncate_to(synced).expect("in memory");
            }
            self.disk.logs.insert(at, log);
        }
    }

    /// Orderly end: everything is synced and checkpointed.
    pub(crate) fn stop(&mut self) {
        self.checkpoint();
        self.disk.clean_shutdown = self.process.as_ref().and_then(|process| process.last_epoch);
        self.crash(false);
    }

    fn checkpoint(&mut self) {
        let Some(process) = &self.process else { return };
        for (at, replica) in &process.replicas {
            if let Some(bounds) = replica.bounds() {
                self.disk.high_watermarks.insert(*at, bounds.high_watermark);
                self.disk.synced.insert(*at, bounds.log_end);
            }
        }
    }

    fn with(&mut self, cx: &mut Outbox<'_>, step: impl FnOnce(&mut Process, BrokerId, &mut Outbox<'_>)) {
        if let Some(process) = &mut self.process {
            step(process, self.id, cx);
            // A log that was cut below what was synced is durable only up to there.
            for (at, replica) in &process.replicas {
                if let (Some(bounds), Some(synced)) = (replica.bounds(), self.disk.synced.get_mut(at)) {
                    *synced = (*synced).min(bounds.log_end);
                }
            }
        }
    }

    /// A message arrives.
    pub(crate) fn handle(&mut self, from: Node, message: Message, cx: &mut Outbox<'_>) {
        self.with(cx, |process, id, cx| process.handle(id, from, message, cx));
    }

    /// A timer of this process rings.
    pub(crate) fn timer(&mut self, timer: Timer, cx: &mut Outbox<'_>) {
        if timer == Timer::Checkpoint {
            self.checkpoint();
            cx.after(CHECKPOINT_INTERVAL, Timer::Checkpoint);
            return;
        }
        self.with(cx, |process, id, cx| process.timer(id, timer, cx));
        if self.process.as_ref().is_some_and(|process| process.ended()) {
            self.stop();
        }
    }

    /// The process is asked to end in an orderly way.
    pub(crate) fn shut_down(&mut self, cx: &mut Outbox<'_>) {
        self.with(cx, |process, id, cx| {
            let mut out = Vec::new();
            process.lifecycle.shut_down(cx.now, &mut out);
            process.perform_lifecycle(id, out, cx);
        });
        if self.process.as_ref().is_some_and(|process| process.ended()) {
            self.stop();
        }
    }
}

impl Process {
    /// Whether the lifecycle says that the process may end.
    pub(crate) fn ended(&self) -> bool {
        self.lifecycle.next_wake().is_none() && self.call.is_none()
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn handle(&mut self, id: BrokerId, from: Node, message: Message, cx: &mut Outbox<'_>) {
        match (from, message) {
            (Node::Broker(peer), message) => self.handle_peer(id, peer, message, cx),
            (_, Message::Registered { incarnation, attempt, answer }) => {
                if incarnation == self.incarnation {
                    let mut out = Vec::new();
                    self.lifecycle.registered(cx.now, attempt, answer.map_err(Some), &mut out);
                    self.perform_lifecycle(id, out, cx);
                }
            }
            (_, Message::HeartbeatAnswered { number, answer }) => {
                if self.call == Some(number) {
                    self.call = None;
                    let mut out = Vec::new();
                    self.lifecycle.heartbeat_answered(cx.now, answer.map_err(Some), &mut out);
                    self.perform_lifecycle(id, out, cx);
                }
            }
            (_, Message::IsrAltered { number, partition, proposal, answer }) => {
                self.isr_altered(id, partition, number, &proposal, answer, cx);
            }
            (_, Message::Metadata(image)) => self.metadata(id, &image, cx),
            (Node::Client(client), message) => self.handle_client(id, client, message, cx),
            (from, message) => unreachable!("{message:?} from {from:?}"),
        }
    }

    fn handle_client(&mut self, id: BrokerId, client: u32, message: Message, cx: &mut Outbox<'_>) {
        match message {
            Message::WhoLeads { partition } => {
                let leader = self.image.as_ref().and_then(|image| image.partition(partition)?.leader);
                cx.send(Node::Client(client), Message::Leads { leader });
            }
            Message::Produce(write) => self.produce(id, client, &write, cx),
            Message::Consume { partition, request, position } => {
                self.consume(client, request, partition, position, true, cx);
            }
            other => unreachable!("{other:?} from a client"),
        }
    }

    fn produce(&mut self, id: BrokerId, client: u32, write: &Write, cx: &mut Outbox<'_>) {
        let ticket = Ticket(self.number());
        let acks = if write.sequence.is_some() { Acks::All } else { Acks::Leader };
        let producer = write.sequence.map(|sequence| (i64::from(client), sequence));
        let produce = Produce {
            batch: Ok(batch(&write.value, producer)),
            acks,
            ticket,
            deadline: cx.now.after(Duration::from_millis(1500)),
        };
        let Some(replica) = self.replicas.get_mut(&write.partition) else { return };
        let mut out = Vec::new();
        let clocks = cx.clocks();
        let answer = match replica.produce(clocks, produce, &mut out) {
            Produced::Done(written) => Some(Ok(written.base_offset)),
            Produced::Waiting(_) => {
                self.waiting.insert(ticket, Waiting::Write { client, request: write.request });
                None
            }
            Produced::Refused(refusal) => Some(Err(match refusal {
                ProduceRefusal::NotServed(refused) => refused.code(),
                ProduceRefusal::NotEnoughReplicas(_) => ErrorCode::NotEnoughReplicas,
                ProduceRefusal::Batch(_) => ErrorCode::InvalidRecord,
                ProduceRefusal::LargerThanSegment { .. } => ErrorCode::RecordListTooLarge,
                ProduceRefusal::Producer { code, .. } => code,
            })),
        };
        if let Some(answer) = answer {
            cx.send(Node::Client(client), Message::Produced { request: write.request, answer });
        }
        self.perform(id, write.partition, out, cx);
        self.arm_replica(write.partition, cx);
    }

    fn consume(
        &mut self,
        client: u32,
        request: u64,
        partition: TopicPartition,
        position: Offset,
        may_wait: bool,
        cx: &mut Outbox<'_>,
    ) {
        let ticket = Ticket(self.number());
        let Some(replica) = self.replicas.get_mut(&partition) else { return };
        let ask = ConsumerAsk {
            leader_epoch: None,
            position,
            last_epoch: None,
            follower_may_serve: true,
            limit: ReadLimit { max_bytes: 2000, at_least_one: true },
        };
        let answer = match replica.consumer_fetch(&ask) {
            ConsumerAnswer::Read { plan, .. } => {
                let batches = plan.run().expect("in memory").batches;
                Ok(batches.iter().map(seen).collect())
            }
            ConsumerAnswer::Empty { .. } => {
                if may_wait && replica.park(ticket, position) {
                    self.waiting.insert(ticket, Waiting::Read { client, request, partition, position });
                    return;
                }
                Ok(Vec::new())
            }
            ConsumerAnswer::Diverging(..) | ConsumerAnswer::OutOfRange(_) => Err(ErrorCode::OffsetOutOfRange),
            ConsumerAnswer::Refused(refused) => Err(refused.code()),
        };
        cx.send(Node::Client(client), Message::Consumed { request, answer });
    }

    /// Performs the effects of one step of a replica.
    pub(crate) fn perform(
        &mut self,
        id: BrokerId,
        at: TopicPartition,
        out: Vec<Effect>,
        cx: &mut Outbox<'_>,
    ) {
        let mut wake = VecDeque::new();
        for effect in out {
            match effect {
                Effect::Produced { ticket, done } => {
                    if let Some(Waiting::Write { client, request }) = self.waiting.remove(&ticket) {
                        let answer = match done.code() {
                            ErrorCode::None => Ok(done.written().base_offset),
                            code => Err(code),
                        };
                        cx.send(Node::Client(client), Message::Produced { request, answer });
                    }
                }
                Effect::WakeFetch { ticket } => {
                    if let Some(Waiting::Read { client, request, partition, position }) =
                        self.waiting.remove(&ticket)
                    {
                        self.consume(client, request, partition, position, false, cx);
                    }
                }
                Effect::WakeStream { stream } => {
                    if let Some(session) = self.streams.get_mut(&stream) {
                        session.wake(at);
                        wake.push_back(stream);
                    }
                }
                Effect::ProposeIsr(proposal) => self.propose_isr(at, proposal, cx),
                Effect::WithdrawIsr => {
                    self.proposals.remove(&at);
                }
                Effect::WriteEpochs { leader_epoch, version, .. } => {
                    let span = Duration::from_micros(cx.dice.range(200, 20_000));
                    cx.after(span, Timer::EpochsWritten(at, leader_epoch, version));
                }
                Effect::AskChanged => self.ask_changed(at, cx),
                Effect::Emit(event) => cx.notes.push(Note::Replica(id, at, event)),
                Effect::LogFailed { error } => unreachable!("a log in memory does not fail: {error}"),
            }
        }
        for stream in wake {
            self.serve(id, stream, cx);
        }
    }

    /// Sets a timer, unless the same is set for an earlier moment already.
    pub(crate) fn arm(&mut self, at: Mono, timer: Timer, cx: &mut Outbox<'_>) {
        let at = at.max(cx.now);
        if self.armed.get(&timer).is_none_or(|armed| *armed > at || *armed < cx.now) {
            self.armed.insert(timer, at);
            cx.at(at, timer);
        }
    }

    fn arm_replica(&mut self, at: TopicPartition, cx: &mut Outbox<'_>) {
        if let Some(wake) = self.replicas.get(&at).and_then(Replica::next_wake) {
            self.arm(wake, Timer::Replica(at), cx);
        }
    }

    fn timer(&mut self, id: BrokerId, timer: Timer, cx: &mut Outbox<'_>) {
        if self.armed.get(&timer).is_some_and(|at| *at <= cx.now) {
            self.armed.remove(&timer);
        }
        match timer {
            Timer::Lifecycle => self.tick_lifecycle(id, cx),
            Timer::Replica(at) => {
                let Some(replica) = self.replicas.get_mut(&at) else { return };
                if replica.next_wake().is_some_and(|wake| wake <= cx.now) {
                    let mut out = Vec::new();
                    replica.tick(cx.now, &mut out);
                    self.perform(id, at, out, cx);
                    self.arm_replica(at, cx);
                }
            }
            Timer::EpochsWritten(at, leader_epoch, _) => {
                let Some(replica) = self.replicas.get_mut(&at) else { return };
                let mut out = Vec::new();
                let next = replica.epochs_written(cx.clocks(), leader_epoch, &mut out);
                self.perform(id, at, out, cx);
                self.follow(at, next, cx);
            }
            Timer::Serve(stream) => self.serve(id, stream, cx),
            Timer::Fetcher(source) => self.fetcher_timer(id, source, cx),
            Timer::IsrOverdue(at, number) => {
                if let Some((current, proposal)) = self.proposals.get(&at).cloned()
                    && current == number
                {
                    self.isr_altered(id, at, number, &proposal, IsrAnswer::TryAgain, cx);
                }
            }
            Timer::CallOverdue(number) => {
                if self.call == Some(number) {
                    self.call = None;
                    let mut out = Vec::new();
                    self.lifecycle.heartbeat_answered(cx.now, Err(None), &mut out);
                    self.perform_lifecycle(id, out, cx);
                }
            }
            Timer::Checkpoint | Timer::Controller | Timer::Commit | Timer::Client(_) => {}
        }
    }

    fn propose_isr(&mut self, at: TopicPartition, proposal: IsrProposal, cx: &mut Outbox<'_>) {
        let Some(broker_epoch) = self.lifecycle.broker_epoch() else { return };
        let number = self.number();
        self.proposals.insert(at, (number, proposal.clone()));
        cx.send(Node::Controller, Message::AlterIsr { number, broker_epoch, partition: at, proposal });
        cx.after(CALL_TIMEOUT, Timer::IsrOverdue(at, number));
    }

    fn isr_altered(
        &mut self,
        id: BrokerId,
        at: TopicPartition,
        number: u64,
        proposal: &IsrProposal,
        answer: IsrAnswer,
        cx: &mut Outbox<'_>,
    ) {
        if self.proposals.get(&at).is_some_and(|(current, _)| *current == number) {
            if answer == IsrAnswer::TryAgain {
                // Paced: the replica sends the same again.
                if !cx.dice.permille(500) {
                    cx.after(ISR_RETRY, Timer::IsrOverdue(at, number));
                    return;
                }
            }
            self.proposals.remove(&at);
        } else if answer == IsrAnswer::TryAgain {
            return;
        }
        let Some(replica) = self.replicas.get_mut(&at) else { return };
        let mut out = Vec::new();
        replica.isr_answered(cx.now, proposal, answer, &mut out);
        self.perform(id, at, out, cx);
    }

    fn tick_lifecycle(&mut self, id: BrokerId, cx: &mut Outbox<'_>) {
        let mut out = Vec::new();
        self.lifecycle.tick(cx.now, &mut out);
        self.perform_lifecycle(id, out, cx);
    }

    fn perform_lifecycle(&mut self, id: BrokerId, out: Vec<LifecycleEffect>, cx: &mut Outbox<'_>) {
        for effect in out {
            match effect {
                LifecycleEffect::Register { attempt } => {
                    cx.send(
                        Node::Controller,
                        Message::Register {
                            incarnation: self.incarnation,
                            attempt,
                            previous_epoch: self.previous_epoch,
                        },
                    );
                }
                LifecycleEffect::SendHeartbeat(heartbeat) => {
                    let number = self.number();
                    self.call = Some(number);
                    cx.send(Node::Controller, Message::Heartbeat { number, heartbeat });
                    cx.after(CALL_TIMEOUT, Timer::CallOverdue(number));
                }
                LifecycleEffect::Registered { broker_epoch } => self.last_epoch = Some(broker_epoch),
                LifecycleEffect::GiveUp { .. } => unreachable!("the time allowed is longer than a run"),
                LifecycleEffect::SeesItself => {
                    // Roles are taken only now that the image holds this life's registration.
                    if let Some(image) = self.image.clone() {
                        self.apply(id, &image, cx);
                    }
                    let mut out = Vec::new();
                    self.lifecycle.ready(cx.now, &mut out);
                    self.perform_lifecycle(id, out, cx);
                }
                LifecycleEffect::ShutDownNow(_)
                | LifecycleEffect::RegistrationFailed { .. }
                | LifecycleEffect::HeartbeatRefused { .. }
                | LifecycleEffect::Unfenced
                | LifecycleEffect::Fenced => {}
            }
        }
        if let Some(wake) = self.lifecycle.next_wake() {
            self.arm(wake, Timer::Lifecycle, cx);
        }
    }

    fn metadata(&mut self, id: BrokerId, image: &Arc<Image>, cx: &mut Outbox<'_>) {
        if self.image.as_ref().is_some_and(|have| have.offset() >= image.offset()) {
            return;
        }
        let Some(offset) = image.offset() else { return };
        let own =
            image.broker(id).map(|known| OwnRegistration { broker_epoch: known.epoch, fenced: known.fenced });
        self.image = Some(image.clone());
        let mut out = Vec::new();
        let before = self.lifecycle.sees_itself();
        self.lifecycle.metadata(cx.now, offset, own, &mut out);
        if before {
            self.apply(id, image, cx);
        }
        self.perform_lifecycle(id, out, cx);
    }

    /// Carries out what the metadata asks of this broker: delete, lead, follow; then whatever concerns other brokers.
    fn apply(&mut self, id: BrokerId, image: &Arc<Image>, cx: &mut Outbox<'_>) {
        let delta = Delta::between(&self.applied, image);
        self.applied = Image::clone(image);
        let plan = local_plan(image, &delta, id);
        let brokers = brokers_of(image);
        for (at, local) in plan.lead.iter().chain(&plan.follow) {
            let replica = self
                .replicas
                .entry(*at)
                .or_insert_with(|| Replica::new(*at, id, ReplicaLog::default(), None, self.config.clone()));
            let mut out = Vec::new();
            replica.metadata(cx.clocks(), &PartitionFacts::from(local.state.as_ref()), &brokers, &mut out);
            self.perform(id, *at, out, cx);
            self.arm_replica(*at, cx);
        }
        if !delta.brokers.is_empty() {
            for at in self.replicas.keys().copied().collect::<Vec<_>>() {
                let Some(replica) = self.replicas.get_mut(&at) else { continue };
                let mut out = Vec::new();
                replica.brokers_changed(cx.now, &brokers, &mut out);
                self.perform(id, at, out, cx);
            }
        }
    }

    /// The next word of a replica to its fetcher.
    pub(crate) fn follow(&mut self, at: TopicPartition, next: Next, cx: &mut Outbox<'_>) {
        let found =
            self.fetchers.iter_mut().find(|(_, fetcher)| fetcher.session.partitions().any(|p| p == at));
        if let Some((source, fetcher)) = found {
            let source = *source;
            fetcher.session.next(at, next);
            if let Next::AskBounds { leader, leader_epoch, generation } = next {
                cx.send(Node::Broker(leader), Message::AskBounds { partition: at, leader_epoch, generation });
            }
            self.pump(source, cx);
        }
    }
}
