//! The event loop: one queue ordered by time, one step at a time, the ledger after each.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use minikafka_model::{BrokerId, Mono, TopicPartition};
use minikafka_replication::{ReplicaConfig, ReplicaEvent, RoleName};

use crate::broker::Broker;
use crate::client::{Client, Job};
use crate::control::Controllers;
use crate::dice::Dice;
use crate::faults::Plan;
use crate::ledger::{Counts, Ledger, MIN_INSYNC_REPLICAS};
use crate::message::{Message, Node};
use crate::net::{Fate, Net};
use crate::outbox::{Note, Outbox, Timer};

/// How a run is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The seed.
    pub seed: u64,
    /// Sim time with faults.
    pub stormy: Duration,
    /// Sim time in which the healed cluster must be whole again.
    pub healing: Duration,
    /// Power fails on all brokers at once: more than the system promises to survive.
    pub break_budget: bool,
    /// Keep a text of every step.
    pub trace: bool,
    /// The replicas' settings.
    pub config: ReplicaConfig,
}

impl Setup {
    /// The standard run of a seed.
    pub fn of_seed(seed: u64) -> Setup {
        Setup {
            seed,
            stormy: Duration::from_secs(20),
            healing: Duration::from_secs(15),
            break_budget: false,
            trace: false,
            config: ReplicaConfig {
                min_insync_replicas: MIN_INSYNC_REPLICAS,
                lag_time_max: Duration::from_millis(1500),
                fetch_backoff: Duration::from_millis(150),
                ..ReplicaConfig::default()
            },
        }
    }
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What was broken, if anything.
    pub broken: Option<String>,
    /// What happened.
    pub counts: Counts,
    /// Promises broken beyond the fault budget.
    pub losses: u64,
    /// A number that two runs of a seed share.
    pub hash: u64,
    /// Steps taken.
    pub steps: u64,
    /// The last steps, with `trace`.
    pub trace: Vec<String>,
}

impl Outcome {
    /// Whether too little happened for the run to prove anything.
    pub fn void(&self) -> bool {
        let counts = &self.counts;
        counts.acknowledged < 50 || counts.read < 50 || counts.elections < 5 || counts.faults < 3
    }
}

#[derive(Debug)]
enum Event {
    Deliver { from: Node, to: Node, life: u64, message: Message },
    Ring { node: Node, life: u64, timer: Timer },
    Fault,
}

/// A run that takes more steps than this turns in a circle.
const MOST_STEPS: u64 = 2_000_000;

/// How many steps are kept of a traced run.
const TRACE_KEPT: usize = 4000;

/// A simulated cluster.
pub struct World {
    pub(crate) now: Mono,
    queue: BTreeMap<(Mono, u64), Event>,
    order: u64,
    pub(crate) dice: Dice,
    pub(crate) net: Net,
    pub(crate) brokers: BTreeMap<BrokerId, Broker>,
    pub(crate) control: Controllers,
    clients: Vec<Client>,
    pub(crate) ledger: Ledger,
    pub(crate) paused: BTreeMap<BrokerId, VecDeque<(Mono, u64)>>,
    held: BTreeMap<(Mono, u64), Event>,
    partitions: Vec<TopicPartition>,
    plan: Plan,
    hash: u64,
    steps: u64,
    trace: Option<VecDeque<String>>,
    healed: bool,
}

impl World {
    /// A cluster of three brokers and two partitions that has not started.
    pub fn new(setup: &Setup) -> World {
        let ids = [BrokerId(1), BrokerId(2), BrokerId(3)];
        World {
            now: Mono(0),
            queue: BTreeMap::new(),
            order: 0,
            dice: Dice::new(setup.seed),
            net: Net::default(),
            brokers: ids.iter().map(|id| (*id, Broker::new(*id, setup.config.clone()))).collect(),
            control: Controllers::new(),
            clients: Vec::new(),
            ledger: Ledger::default(),
            paused: BTreeMap::new(),
            held: BTreeMap::new(),
            partitions: Vec::new(),
            plan: Plan::new(setup.break_budget),
            hash: 0xcbf2_9ce4_8422_2325,
            steps: 0,
            trace: setup.trace.then(VecDeque::new),
            healed: false,
        }
    }

    /// Runs a setup from start to end.
    pub fn run(setup: &Setup) -> Outcome {
        let mut world = World::new(setup);
        let broken = world.whole_run(setup).err();
        Outcome {
            seed: setup.seed,
            broken: broken.map(|why| format!("at {:.3} s: {why}", world.now.0 as f64 / 1e6)),
            counts: world.ledger.counts,
            losses: world.ledger.losses,
            hash: world.hash,
            steps: world.steps,
            trace: world.trace.map(Vec::from).unwrap_or_default(),
        }
    }

    fn whole_run(&mut self, setup: &Setup) -> Result<(), String> {
        self.step_controller(|control, cx| control.tick(cx))?;
        for id in self.brokers.keys().copied().collect::<Vec<_>>() {
            self.step_broker(id, |broker, cx| broker.start(cx))?;
        }
        self.schedule(Mono(2_000_000), Event::Fault);
        let storm_ends = Mono(0).after(setup.stormy);
        self.run_until(storm_ends)?;
        self.heal()?;
        let healed = storm_ends.after(setup.healing / 2);
        self.run_until(healed)?;
        for client in &mut self.clients {
            client.quiet = true;
        }
        self.run_until(healed.after(setup.healing / 2))?;
        self.at_the_end()
    }

    fn run_until(&mut self, end: Mono) -> Result<(), String> {
        while let Some(((time, _), _)) = self.queue.first_key_value()
            && *time <= end
        {
            let ((time, order), event) = self.queue.pop_first().expect("just seen");
            self.now = time;
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(format!("a busy loop: {MOST_STEPS} steps; the next one is {event:?}"));
            }
            self.step(order, event)?;
        }
        self.now = end;
        Ok(())
    }

    fn mix(&mut self, number: u64) {
        self.hash = (self.hash ^ number).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// Writes a line of the trace.
    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            if trace.len() == TRACE_KEPT {
                trace.pop_front();
            }
            trace.push_back(format!("{:>10.6} {}", self.now.0 as f64 / 1e6, line()));
        }
    }

    fn step(&mut self, order: u64, event: Event) -> Result<(), String> {
        self.mix(self.now.0);
        let target = match &event {
            Event::Deliver { to: Node::Broker(id), life, .. }
            | Event::Ring { node: Node::Broker(id), life, .. } => {
                if self.brokers[id].process.is_none() || self.brokers[id].lives != *life {
                    return Ok(());
                }
                Some(*id)
            }
            _ => None,
        };
        if let Some(id) = target
            && let Some(waiting) = self.paused.get_mut(&id)
        {
            waiting.push_back((self.now, order));
            self.held.insert((self.now, order), event);
            return Ok(());
        }
        match event {
            Event::Deliver { from, to, message, .. } => {
                self.mix(message.kind());
                if self.trace.is_some() {
                    let text = format!("{from:?} -> {to:?}: {message:?}");
                    self.tell(|| text);
                }
                self.deliver(from, to, message)
            }
            Event::Ring { node, timer, .. } => self.ring(node, timer),
            Event::Fault => {
                if self.healed {
                    // Whoever ended in an orderly way comes back too.
                    for id in self.brokers.keys().copied().collect::<Vec<_>>() {
                        if self.brokers[&id].process.is_none() {
                            self.step_broker(id, |broker, cx| broker.start(cx))?;
                        }
                    }
                    self.schedule(self.now.after(Duration::from_millis(500)), Event::Fault);
                    return Ok(());
                }
                let next = Plan::strike(self)?;
                self.schedule(self.now.after(next), Event::Fault);
                Ok(())
            }
        }
    }

    fn deliver(&mut self, from: Node, to: Node, message: Message) -> Result<(), String> {
        match to {
            Node::Broker(id) => self.step_broker(id, |broker, cx| broker.handle(from, message, cx)),
            Node::Controller => {
                let Node::Broker(from) = from else { return Ok(()) };
                self.step_controller(|control, cx| control.handle(from, message, cx))
            }
            Node::Client(id) => self.step_client(id as usize, |client, cx| client.handle(message, cx)),
        }
    }

    fn ring(&mut self, node: Node, timer: Timer) -> Result<(), String> {
        match (node, timer) {
            (Node::Broker(id), timer) => self.step_broker(id, |broker, cx| broker.timer(timer, cx)),
            (Node::Controller, Timer::Commit) => self.step_controller(|control, cx| control.commit(cx)),
            (Node::Controller, _) => self.step_controller(|control, cx| control.tick(cx)),
            (Node::Client(id), Timer::Client(alarm)) => {
                self.step_client(id as usize, |client, cx| client.timer(alarm, cx))
            }
            (Node::Client(_), _) => Ok(()),
        }
    }

    fn schedule(&mut self, at: Mono, event: Event) {
        self.order += 1;
        self.queue.insert((at, self.order), event);
    }

    /// One step of a broker, and the look of the ledger at it.
    pub(crate) fn step_broker(
        &mut self,
        id: BrokerId,
        step: impl FnOnce(&mut Broker, &mut Outbox<'_>),
    ) -> Result<(), String> {
        let mut cx = Outbox {
            now: self.now,
            dice: &mut self.dice,
            sends: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
        };
        step(self.brokers.get_mut(&id).expect("known"), &mut cx);
        let Outbox { sends, timers, notes, .. } = cx;
        self.dispatch(Node::Broker(id), sends, timers);
        self.ledger.look(id, &self.brokers, self.control.image())?;
        let broker = &self.brokers[&id];
        let mut ends = Vec::new();
        if let Some(process) = &broker.process {
            ends.extend(process.replicas.values().filter_map(|replica| replica.bounds()));
        }
        for bounds in ends {
            self.mix(bounds.high_watermark.0 as u64);
            self.mix(bounds.log_end.0 as u64);
        }
        self.notes(notes)
    }

    pub(crate) fn step_controller(
        &mut self,
        step: impl FnOnce(&mut Controllers, &mut Outbox<'_>),
    ) -> Result<(), String> {
        let mut cx = Outbox {
            now: self.now,
            dice: &mut self.dice,
            sends: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
        };
        let before = self.control.image().clone();
        step(&mut self.control, &mut cx);
        let Outbox { sends, timers, notes, .. } = cx;
        self.dispatch(Node::Controller, sends, timers);
        let image = self.control.image().clone();
        self.ledger.joined(&before, &image, &self.brokers)?;
        self.ledger.lost_power.retain(|id, old_life| {
            let epoch = image.broker(*id).map(|known| known.epoch);
            epoch == *old_life || !image.partitions().all(|(_, state)| state.isr.contains(id))
        });
        self.notes(notes)?;
        self.start_clients()
    }

    /// Clients begin when the topic is there.
    fn start_clients(&mut self) -> Result<(), String> {
        if !self.partitions.is_empty() {
            return Ok(());
        }
        self.partitions = self.control.partitions();
        let brokers: Vec<BrokerId> = self.brokers.keys().copied().collect();
        for at in self.partitions.clone() {
            for job in [Job::Careful, Job::Careful, Job::Careless, Job::Reader] {
                let n = self.clients.len();
                self.clients.push(Client::new(n as u32, job, at, brokers.clone()));
                self.step_client(n, |client, cx| client.start(cx))?;
            }
        }
        Ok(())
    }

    fn step_client(
        &mut self,
        n: usize,
        step: impl FnOnce(&mut Client, &mut Outbox<'_>),
    ) -> Result<(), String> {
        let mut cx = Outbox {
            now: self.now,
            dice: &mut self.dice,
            sends: Vec::new(),
            timers: Vec::new(),
            notes: Vec::new(),
        };
        step(&mut self.clients[n], &mut cx);
        let Outbox { sends, timers, notes, .. } = cx;
        self.dispatch(Node::Client(n as u32), sends, timers);
        self.notes(notes)
    }

    fn notes(&mut self, notes: Vec<Note>) -> Result<(), String> {
        for note in notes {
            if let Note::Replica(id, at, event) = &note {
                let text = format!("{id} {at}: {event}", at = at.partition);
                self.tell(|| text);
                if let ReplicaEvent::Election { leader_epoch, .. } = event
                    && let Some(log) = self.brokers[id].log(*at)
                {
                    self.ledger.elected(*id, *at, *leader_epoch, log)?;
                }
            }
            if let Note::SequenceRefused { partition, broker, .. } = &note
                && self.control.image().partition(*partition).and_then(|state| state.leader) != Some(*broker)
            {
                // An old leader that does not know of its successor lacks what the successor took.
                continue;
            }
            if let Note::Refused(at, value) = &note {
                self.ledger.refused(*at, value, &self.brokers)?;
            }
            self.ledger.note(note)?;
        }
        Ok(())
    }

    fn dispatch(&mut self, from: Node, sends: Vec<(Node, Message)>, timers: Vec<(Mono, Timer)>) {
        let life = self.life(from);
        for (at, timer) in timers {
            self.schedule(at, Event::Ring { node: from, life, timer });
        }
        for (to, message) in sends {
            let life = self.life(to);
            match self.net.fate(self.now, from, to, &message, &mut self.dice) {
                Fate::Arrives(moments) => {
                    for moment in moments {
                        self.schedule(moment, Event::Deliver { from, to, life, message: message.clone() });
                    }
                }
                Fate::StreamLost(stream, here, there) => {
                    let closed = Message::StreamClosed { stream };
                    let own = self.life(from);
                    self.schedule(there, Event::Deliver { from, to, life, message: closed.clone() });
                    self.schedule(here, Event::Deliver { from: to, to: from, life: own, message: closed });
                }
            }
        }
    }

    fn life(&self, node: Node) -> u64 {
        match node {
            Node::Broker(id) => self.brokers[&id].lives,
            Node::Controller | Node::Client(_) => 0,
        }
    }

    /// Lets a paused broker go on: whatever came for it meanwhile comes now, in order.
    pub(crate) fn resume(&mut self, id: BrokerId) {
        for key in self.paused.remove(&id).unwrap_or_default() {
            if let Some(event) = self.held.remove(&key) {
                self.schedule(self.now, event);
            }
        }
    }

    /// The peers of a crashed broker hear that their connections are closed, as a kernel tells them.
    pub(crate) fn connections_closed(&mut self, id: BrokerId) {
        let others: Vec<BrokerId> = self.brokers.keys().copied().filter(|other| *other != id).collect();
        for other in others {
            let Some(process) = &self.brokers[&other].process else { continue };
            let life = self.brokers[&other].lives;
            let streams = process.streams_with(id);
            for stream in streams {
                let at = Mono(self.now.0 + self.dice.range(100, 3000));
                let (from, to) = (Node::Broker(id), Node::Broker(other));
                self.schedule(
                    at,
                    Event::Deliver { from, to, life, message: Message::StreamClosed { stream } },
                );
            }
        }
    }

    /// The power of a broker fails: what was not synced is lost with the process.
    pub(crate) fn power_fails(&mut self, id: BrokerId) {
        let epoch = self.control.image().broker(id).map(|known| known.epoch);
        self.ledger.lost_power.insert(id, epoch);
        self.brokers.get_mut(&id).expect("known").crash(true);
    }

    /// The plan of faults.
    pub(crate) fn plan(&mut self) -> &mut Plan {
        &mut self.plan
    }

    /// Lifts every fault.
    fn heal(&mut self) -> Result<(), String> {
        self.tell(|| "--- healed".to_owned());
        self.healed = true;
        self.net.heal();
        self.step_controller(|control, cx| control.set_away(false, 0, cx))?;
        for id in self.paused.keys().copied().collect::<Vec<_>>() {
            self.resume(id);
        }
        for id in self.brokers.keys().copied().collect::<Vec<_>>() {
            if self.brokers[&id].process.is_none() {
                self.step_broker(id, |broker, cx| broker.start(cx))?;
            }
        }
        Ok(())
    }

    /// L1 to L6: a leader everywhere, full ISRs, high watermark at the log end on every replica, nothing pending, consumers at
    /// the end; then the ledger's last look.
    fn at_the_end(&mut self) -> Result<(), String> {
        if self.ledger.beyond_budget {
            for at in self.partitions.clone() {
                for (id, broker) in &self.brokers {
                    if let Some(log) = broker.log(at) {
                        self.ledger.at_the_end(at, *id, log)?;
                    }
                }
            }
            return Ok(());
        }
        for at in self.partitions.clone() {
            let Some(facts) = self.control.image().partition(at).cloned() else { continue };
            if facts.leader.is_none() || facts.isr.len() != facts.replicas.len() {
                return Err(format!(
                    "L1, L2: after healing {at} has leader {:?} and ISR {:?}",
                    facts.leader, facts.isr
                ));
            }
            let mut ends = Vec::new();
            for (id, broker) in &self.brokers {
                let replica = broker.process.as_ref().and_then(|process| process.replicas.get(&at));
                let Some(bounds) = replica.and_then(|replica| replica.bounds()) else {
                    return Err(format!("L7: broker {id} does not run"));
                };
                let role = replica.map(|replica| replica.status().role);
                if (role == Some(RoleName::Leader)) != (facts.leader == Some(*id)) {
                    return Err(format!("L1: {id} is {role:?} of {at}, whose leader is {:?}", facts.leader));
                }
                ends.push((*id, bounds.high_watermark, bounds.log_end));
            }
            if ends.iter().any(|(_, high_watermark, end)| high_watermark != end || *end != ends[0].2) {
                return Err(format!("L3: after healing the marks of {at} are {ends:?}"));
            }
            for (id, broker) in &self.brokers {
                self.ledger.at_the_end(at, *id, broker.log(at).expect("runs"))?;
            }
            for client in self.clients.iter().filter(|client| client.partition() == at) {
                if client.pending() {
                    return Err(format!("L4: a write to {at} is without an answer"));
                }
                if client.job == Job::Reader && client.position != ends[0].2 {
                    return Err(format!(
                        "L6: the reader of {at} is at {}, the end is {}",
                        client.position, ends[0].2
                    ));
                }
            }
        }
        Ok(())
    }
}
