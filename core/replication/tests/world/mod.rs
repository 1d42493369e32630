//! A few replicas of one partition and a script for them: what a transcript in `tests/data` runs on. Nothing happens by itself;
//! each line of a script is one step, and everything a step brings about is written down.

mod batches;
mod script;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use minikafka_model::{
    BrokerEpoch, BrokerId, LeaderEpoch, Mono, Now, Offset, PartitionEpoch, PartitionIndex, Ticket, TopicId,
    TopicPartition, Uuid, WallMs,
};
use minikafka_replication::{
    Ask, BrokerFacts, Brokers, Effect, Fetched, FetchedAnswer, FollowerAnswer, FollowerAsk, IsrAnswer,
    IsrProposal, Next, PartitionFacts, ReadLimit, Recovery, Replica, ReplicaConfig, ReplicaLog, RoleName,
    StreamId,
};

const PARTITION: TopicPartition = TopicPartition { topic: TopicId(Uuid(7)), partition: PartitionIndex(0) };

/// The replicas, and whatever is under way between them.
pub(crate) struct World {
    now: Mono,
    config: ReplicaConfig,
    brokers: Brokers,
    replicas: BTreeMap<BrokerId, Replica>,
    /// What each follower asks, as its fetcher holds it.
    asks: BTreeMap<BrokerId, Ask>,
    /// Answers on their way to a follower.
    answers: BTreeMap<BrokerId, VecDeque<Fetched>>,
    told: BTreeMap<BrokerId, (Offset, Offset)>,
    proposals: VecDeque<(BrokerId, IsrProposal)>,
    /// Epoch checkpoints are written at once, unless a script wants to see the moment between.
    hold_epochs: bool,
    unwritten: VecDeque<(BrokerId, LeaderEpoch)>,
    next_ticket: u64,
    tickets: BTreeMap<Ticket, String>,
    lines: Vec<String>,
}

impl World {
    fn new(ids: &[BrokerId], config: &ReplicaConfig) -> World {
        let facts =
            |id: &BrokerId| (*id, BrokerFacts { epoch: BrokerEpoch(100 + i64::from(id.0)), eligible: true });
        let mut world = World {
            now: Mono(0),
            config: ReplicaConfig { lag_time_max: Duration::from_secs(10), ..config.clone() },
            brokers: ids.iter().map(facts).collect(),
            replicas: BTreeMap::new(),
            asks: BTreeMap::new(),
            answers: BTreeMap::new(),
            told: BTreeMap::new(),
            proposals: VecDeque::new(),
            hold_epochs: false,
            unwritten: VecDeque::new(),
            next_ticket: 1,
            tickets: BTreeMap::new(),
            lines: Vec::new(),
        };
        for id in ids {
            let log = ReplicaLog::default();
            world.replicas.insert(*id, Replica::new(PARTITION, *id, log, None, world.config.clone()));
        }
        world
    }

    fn at(&self) -> Now {
        Now { mono: self.now, wall: WallMs(1_000_000 + i64::try_from(self.now.0 / 1000).expect("short")) }
    }

    fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn replica(&mut self, id: BrokerId) -> &mut Replica {
        self.replicas.get_mut(&id).unwrap_or_else(|| panic!("there is no broker {id}"))
    }

    /// Performs the effects of one step on a broker.
    fn perform(&mut self, id: BrokerId, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Produced { ticket, done } => {
                    let what = self.tickets.remove(&ticket).expect("a ticket is answered once");
                    let written = done.written();
                    self.say(format!("write {what} at {}: {}", written.base_offset, done.code()));
                }
                Effect::WakeFetch { ticket } => {
                    let what = self.tickets.remove(&ticket).expect("a parked fetch is woken once");
                    self.say(format!("wakes {what}"));
                }
                Effect::WakeStream { .. } => {}
                Effect::ProposeIsr(proposal) => {
                    let members: Vec<String> = proposal
                        .isr
                        .iter()
                        .map(|(id, epoch)| {
                            format!("{id}@{}", epoch.map_or("?".to_owned(), |e| e.to_string()))
                        })
                        .collect();
                    self.say(format!(
                        "{id} proposes {} on partition epoch {}",
                        members.join(","),
                        proposal.partition_epoch
                    ));
                    self.proposals.push_back((id, proposal));
                }
                Effect::WithdrawIsr => self.proposals.retain(|(from, _)| *from != id),
                Effect::WriteEpochs { leader_epoch, .. } if self.hold_epochs => {
                    self.say(format!("{id} writes its epoch checkpoint"));
                    self.unwritten.push_back((id, leader_epoch));
                }
                Effect::WriteEpochs { leader_epoch, .. } => self.epochs_written(id, leader_epoch),
                Effect::AskChanged => {
                    self.asks.remove(&id);
                    if let Some(ask) = self.replica(id).ask() {
                        self.asks.insert(id, ask);
                    }
                }
                Effect::Emit(event) => self.say(format!("{id}: {event}")),
                Effect::LogFailed { error } => self.say(format!("{id} log failed: {error}")),
            }
        }
    }

    fn epochs_written(&mut self, id: BrokerId, leader_epoch: LeaderEpoch) {
        let now = self.at();
        let mut out = Vec::new();
        let next = self.replica(id).epochs_written(now, leader_epoch, &mut out);
        self.perform(id, out);
        if self.replica(id).status().role == RoleName::Follower {
            self.follow(id, next);
        }
    }

    /// The fetcher of `id` does what its replica said.
    fn follow(&mut self, id: BrokerId, next: Next) {
        match next {
            Next::Ask(ask) => {
                self.asks.insert(id, ask);
            }
            Next::AskAt(ask, at) => {
                self.say(format!("{id} asks again in {} ms", at.since(self.now).as_millis()));
                self.asks.insert(id, ask);
            }
            Next::Held => {}
            Next::AskBounds { leader, leader_epoch, generation } => {
                let bounds =
                    self.replica(leader).bounds_for_follower(leader_epoch).map_err(|refused| refused.code());
                self.say(format!("{id} asks {leader} for its bounds: {bounds:?}"));
                let now = self.at();
                let mut out = Vec::new();
                let next = self.replica(id).leader_bounds(now, generation, bounds, &mut out);
                self.perform(id, out);
                self.follow(id, next);
            }
            Next::Stop => {
                self.asks.remove(&id);
                self.say(format!("{id} stops fetching"));
            }
            Next::Ignore => self.say(format!("{id} ignores it")),
        }
    }

    /// A follower's ask reaches its leader, and the answer goes on its way. `to` is another broker for a script that sends it
    /// astray.
    fn ask(&mut self, id: BrokerId, to: Option<BrokerId>, life: Option<BrokerEpoch>) {
        let Some(ask) = self.asks.get(&id).copied() else {
            self.say(format!("{id} has nothing to ask"));
            return;
        };
        let leader = to.unwrap_or(ask.leader);
        let follower_ask = FollowerAsk {
            broker: id,
            broker_epoch: life.unwrap_or(self.brokers[&id].epoch),
            stream: StreamId(u64::try_from(id.0).expect("positive")),
            leader_epoch: ask.leader_epoch,
            position: ask.position,
            last_epoch: ask.last_epoch,
            acknowledged: Some(ask.position),
            log_start: ask.log_start,
            told: self.told.get(&id).copied(),
            limit: ReadLimit { max_bytes: 1 << 20, at_least_one: true },
        };
        let now = self.now;
        let mut out = Vec::new();
        let answer = self.replica(leader).follower_fetch(now, &follower_ask, &mut out);
        let answer = self.answer_of(id, answer);
        self.perform(leader, out);
        if let Some(answer) = answer {
            self.answers.entry(id).or_default().push_back(Fetched { generation: ask.generation, answer });
        }
    }

    fn answer_of(&mut self, id: BrokerId, answer: FollowerAnswer) -> Option<FetchedAnswer> {
        let data = |batches, bounds: minikafka_replication::Bounds| FetchedAnswer::Data {
            batches,
            high_watermark: bounds.high_watermark,
            log_start: bounds.log_start,
        };
        match answer {
            FollowerAnswer::Read { plan, bounds } => {
                self.told.insert(id, (bounds.high_watermark, bounds.log_start));
                Some(data(plan.run().expect("readable").batches, bounds))
            }
            FollowerAnswer::News { bounds } => {
                self.told.insert(id, (bounds.high_watermark, bounds.log_start));
                Some(data(Vec::new(), bounds))
            }
            FollowerAnswer::Later => unreachable!("the limit is never zero here"),
            FollowerAnswer::Parked => {
                self.say(format!("{id} is parked"));
                None
            }
            FollowerAnswer::Diverging(divergence) => {
                self.say(format!(
                    "{id} diverges: epoch {} ends at {}",
                    divergence.epoch, divergence.end_offset
                ));
                Some(FetchedAnswer::Diverging(divergence))
            }
            FollowerAnswer::OutOfRange => {
                self.say(format!("{id} is out of range"));
                Some(FetchedAnswer::Error(minikafka_model::ErrorCode::OffsetOutOfRange))
            }
            FollowerAnswer::Refused(refused) => {
                self.say(format!("{id} is refused: {}", refused.code()));
                Some(FetchedAnswer::Error(refused.code()))
            }
        }
    }

    /// The oldest answer on its way to `id` arrives.
    fn deliver(&mut self, id: BrokerId) {
        let Some(fetched) = self.answers.get_mut(&id).and_then(VecDeque::pop_front) else { return };
        let now = self.at();
        let mut out = Vec::new();
        let next = self.replica(id).fetched(now, fetched, &mut out);
        self.perform(id, out);
        self.follow(id, next);
    }

    /// Hands `id` whatever `from` has from `position` on, as an answer to its present ask.
    fn craft(&mut self, id: BrokerId, from: BrokerId, position: Offset) {
        let Some(generation) = self.asks.get(&id).map(|ask| ask.generation) else { return };
        let log = self.replica(from).log().expect("online");
        let limit = ReadLimit { max_bytes: 1 << 20, at_least_one: true };
        let batches = log.plan_read(position, log.end(), limit).run().expect("readable").batches;
        let answer = FetchedAnswer::Data { batches, high_watermark: Offset(0), log_start: Offset(0) };
        self.answers.entry(id).or_default().push_back(Fetched { generation, answer });
        self.deliver(id);
    }

    fn metadata(&mut self, facts: &PartitionFacts, to: &[BrokerId]) {
        for id in to {
            let (now, brokers) = (self.at(), self.brokers.clone());
            let mut out = Vec::new();
            self.replica(*id).metadata(now, facts, &brokers, &mut out);
            self.told.remove(id);
            self.perform(*id, out);
        }
    }

    fn isr_answer(&mut self, answer: impl FnOnce(&IsrProposal) -> IsrAnswer) {
        let Some((id, proposal)) = self.proposals.pop_front() else {
            self.say("nothing was proposed");
            return;
        };
        let answer = answer(&proposal);
        let now = self.now;
        let mut out = Vec::new();
        self.replica(id).isr_answered(now, &proposal, answer, &mut out);
        self.perform(id, out);
    }

    fn ticket(&mut self, what: String) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.tickets.insert(ticket, what);
        ticket
    }

    fn brokers_changed(&mut self) {
        let ids: Vec<BrokerId> = self.replicas.keys().copied().collect();
        for id in ids {
            let (now, brokers) = (self.now, self.brokers.clone());
            let mut out = Vec::new();
            self.replica(id).brokers_changed(now, &brokers, &mut out);
            self.perform(id, out);
        }
    }

    fn show(&mut self) {
        let lines: Vec<String> = self
            .replicas
            .iter()
            .map(|(id, replica)| {
                let status = replica.status();
                let role = match status.role {
                    RoleName::Leader => "leader",
                    RoleName::Follower => "follower",
                    RoleName::Offline => "offline",
                };
                let Some(bounds) = status.bounds else { return format!("{id} {role}") };
                let isr: Vec<String> = status.isr.iter().map(ToString::to_string).collect();
                let isr = if isr.is_empty() { String::new() } else { format!(" isr {}", isr.join(",")) };
                format!(
                    "{id} {role}: start {}, hw {}, end {}{isr}",
                    bounds.log_start, bounds.high_watermark, bounds.log_end
                )
            })
            .collect();
        self.lines.extend(lines);
    }
}

fn facts(
    leader: Option<BrokerId>,
    epoch: i32,
    partition_epoch: i32,
    isr: BTreeSet<BrokerId>,
    replicas: Vec<BrokerId>,
) -> PartitionFacts {
    PartitionFacts {
        replicas,
        isr,
        leader,
        leader_epoch: LeaderEpoch(epoch),
        partition_epoch: PartitionEpoch(partition_epoch),
        recovery: Recovery::Recovered,
    }
}

/// Runs a transcript and gives it back with what really happened.
#[cfg_attr(feature = "seeded-bugs", allow(dead_code, reason = "used by one of the two tests"))]
pub(crate) fn run(script: &str) -> String {
    script::run(script, &ReplicaConfig::default())
}

/// The same with a fault planted.
#[cfg(feature = "seeded-bugs")]
#[allow(dead_code, reason = "used by one of the two tests")]
pub(crate) fn run_with(script: &str, seeded: Option<minikafka_replication::SeededBug>) -> String {
    script::run(script, &ReplicaConfig { seeded, ..ReplicaConfig::default() })
}
