//! The language of the transcripts. A line that starts with `#` is narration, one that is indented is what happened, the others
//! are commands: a word, then arguments, some of them `name=value`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use minikafka_model::{
    BrokerEpoch, BrokerId, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, WallMs,
};
use minikafka_replication::{
    Acks, ConsumerAnswer, ConsumerAsk, EpochEndAnswer, IsrAnswer, OffsetAnswer, OffsetSpec, Produce,
    ProduceRefusal, Produced, ReadLimit, ReplicaConfig,
};

use super::batches::{From, batch, told};
use super::{World, facts};

struct Line<'a> {
    words: Vec<&'a str>,
    named: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Line<'a> {
        let (named, words): (Vec<&str>, Vec<&str>) =
            line.split_whitespace().partition(|word| word.contains('='));
        Line { words, named: named.into_iter().filter_map(|word| word.split_once('=')).collect() }
    }

    fn word(&self, n: usize) -> &'a str {
        self.words.get(n).copied().unwrap_or_else(|| panic!("argument {n} of {:?} is missing", self.words))
    }

    fn broker(&self, n: usize) -> BrokerId {
        BrokerId(number(self.word(n)))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.named.get(name).map(|text| number(text))
    }

    fn brokers(&self, name: &str) -> Option<Vec<BrokerId>> {
        let list = self.named.get(name)?;
        Some(list.split(',').filter(|id| !id.is_empty()).map(|id| BrokerId(number(id))).collect())
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("'{text}' is not a number"))
}

pub(super) fn run(script: &str, config: &ReplicaConfig) -> String {
    let mut world = World::new(&[BrokerId(1), BrokerId(2), BrokerId(3)], config);
    let mut told = String::new();
    for line in script.lines() {
        if line.starts_with(' ') {
            continue;
        }
        told.push_str(line);
        told.push('\n');
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        world.command(&Line::parse(line));
        for happened in std::mem::take(&mut world.lines) {
            told.push_str("    ");
            told.push_str(&happened);
            told.push('\n');
        }
    }
    told
}

impl World {
    fn command(&mut self, line: &Line<'_>) {
        match line.word(0) {
            "brokers" => {
                let ids: Vec<BrokerId> = line.words[1..].iter().map(|id| BrokerId(number(id))).collect();
                *self = World::new(&ids, &self.config);
            }
            "min-isr" => self.reconfigure(|config| config.min_insync_replicas = number(line.word(1))),
            "lag" => {
                self.reconfigure(|config| config.lag_time_max = Duration::from_millis(number(line.word(1))));
            }
            "lead" => self.lead(line),
            "produce" => self.produce(line),
            "fetch" => {
                let id = line.broker(1);
                self.ask(id, None, None);
                self.deliver(id);
            }
            "ask" => {
                self.ask(
                    line.broker(1),
                    line.number("to").map(BrokerId),
                    line.number("life").map(BrokerEpoch),
                );
            }
            "craft" => {
                // A follower is handed what another replica has, under its own present ask.
                let from = BrokerId(line.number("from").expect("from=ID"));
                let position = Offset(line.number("position").expect("position=OFFSET"));
                self.craft(line.broker(1), from, position);
            }
            "deliver" => self.deliver(line.broker(1)),
            "drop" => {
                self.answers.remove(&line.broker(1));
            }
            "reconnect" => self.perform(line.broker(1), vec![minikafka_replication::Effect::AskChanged]),
            "hold-epochs" => self.hold_epochs = true,
            "epochs" => {
                if let Some((id, leader_epoch)) = self.unwritten.pop_front() {
                    self.epochs_written(id, leader_epoch);
                }
            }
            "isr" => self.isr(line),
            "tick" => self.tick(line),
            "eligible" => {
                let eligible = line.word(2) == "yes";
                self.brokers.get_mut(&line.broker(1)).expect("known").eligible = eligible;
                self.brokers_changed();
            }
            "new-life" => self.new_life(line),
            "consume" => self.consume(line),
            "park" => {
                let ticket = self.ticket(format!("a consumer of {}", line.word(1)));
                let position = Offset(line.number("from").unwrap_or(0));
                let parked = self.replica(line.broker(1)).park(ticket, position);
                self.say(if parked { "parked" } else { "not parked: look again" });
            }
            "offsets" => self.offsets(line),
            "epoch-end" => self.epoch_end(line),
            "log-start" => {
                let mut out = Vec::new();
                let to = Offset(line.number("to").expect("to=OFFSET"));
                let start = self.replica(line.broker(1)).advance_log_start(to, &mut out);
                self.say(format!("log start {start:?}"));
                self.perform(line.broker(1), out);
            }
            "fail-log" => {
                let mut out = Vec::new();
                self.replica(line.broker(1)).fail("input/output error".to_owned(), &mut out);
                self.perform(line.broker(1), out);
            }
            "show" => self.show(),
            "log" => self.show_log(line.broker(1)),
            other => panic!("there is no command '{other}'"),
        }
    }

    fn reconfigure(&mut self, change: impl FnOnce(&mut ReplicaConfig)) {
        change(&mut self.config);
        let ids: Vec<BrokerId> = self.replicas.keys().copied().collect();
        for id in ids {
            let (now, config) = (self.now, self.config.clone());
            let mut out = Vec::new();
            self.replica(id).reconfigure(now, config, &mut out);
            self.perform(id, out);
        }
    }

    /// `lead 1 epoch=1 pe=1 isr=1,2,3 [to=1,2]`; `lead none ...`.
    fn lead(&mut self, line: &Line<'_>) {
        let leader = (line.word(1) != "none").then(|| line.broker(1));
        let all: Vec<BrokerId> = self.replicas.keys().copied().collect();
        let isr: BTreeSet<BrokerId> = line.brokers("isr").expect("isr=IDS").into_iter().collect();
        let epoch = line.number("epoch").expect("epoch=N");
        let replicas = line.brokers("replicas").unwrap_or_else(|| all.clone());
        let facts = facts(leader, epoch, line.number("pe").unwrap_or(epoch), isr, replicas);
        self.metadata(&facts, &line.brokers("to").unwrap_or(all));
    }

    /// `produce 1 word [acks=all|1] [pid=5 pepoch=0 seq=3] [wait=1000]`.
    fn produce(&mut self, line: &Line<'_>) {
        let id = line.broker(1);
        let acks = match line.named.get("acks").copied() {
            None | Some("all") => Acks::All,
            Some("1") => Acks::Leader,
            Some(other) => panic!("acks={other}"),
        };
        let from = line.number("pid").map(|pid| From {
            id: ProducerId(pid),
            epoch: ProducerEpoch(line.number("pepoch").unwrap_or(0)),
            first: Sequence(line.number("seq").unwrap_or(0)),
        });
        let ticket = self.ticket(line.word(2).to_owned());
        let now = self.at();
        let deadline = now.mono.after(Duration::from_millis(line.number("wait").unwrap_or(30_000)));
        let batch = Ok(batch(line.word(2), from, now.wall.0));
        let mut out = Vec::new();
        let produced = self.replica(id).produce(now, Produce { batch, acks, ticket, deadline }, &mut out);
        if !matches!(produced, Produced::Waiting(_)) {
            self.tickets.remove(&ticket);
        }
        self.say(match produced {
            Produced::Done(written) if written.duplicate => {
                format!("done: was at {} already", written.base_offset)
            }
            Produced::Done(written) => format!("done at {}", written.base_offset),
            Produced::Waiting(written) => format!("waits at {}", written.base_offset),
            Produced::Refused(ProduceRefusal::NotServed(refused)) => format!("refused: {}", refused.code()),
            Produced::Refused(ProduceRefusal::NotEnoughReplicas(few)) => {
                format!("refused: NOT_ENOUGH_REPLICAS. {few}")
            }
            Produced::Refused(ProduceRefusal::Producer { code, .. }) => format!("refused: {code}"),
            Produced::Refused(other) => format!("refused: {other:?}"),
        });
        self.perform(id, out);
    }

    /// `isr accept pe=2`, `isr already`, `isr not-applied|await|again`, `isr drop`.
    fn isr(&mut self, line: &Line<'_>) {
        let accepted = |pe: i32| {
            move |proposal: &minikafka_replication::IsrProposal| IsrAnswer::Accepted {
                isr: proposal.isr.keys().copied().collect(),
                leader_epoch: proposal.leader_epoch,
                partition_epoch: minikafka_model::PartitionEpoch(pe),
            }
        };
        match line.word(1) {
            "accept" => self.isr_answer(accepted(line.number("pe").expect("pe=N"))),
            "not-applied" => self.isr_answer(|_| IsrAnswer::NotApplied),
            "await" => self.isr_answer(|_| IsrAnswer::AwaitMetadata),
            "again" => self.isr_answer(|_| IsrAnswer::TryAgain),
            other => panic!("isr {other}"),
        }
    }

    /// `tick 1 500`: time passes by so many milliseconds, then broker 1 is given a tick.
    fn tick(&mut self, line: &Line<'_>) {
        self.now = self.now.after(Duration::from_millis(number(line.word(2))));
        let (id, now) = (line.broker(1), self.now);
        let mut out = Vec::new();
        self.replica(id).tick(now, &mut out);
        self.perform(id, out);
    }

    /// `new-life 2 epoch=200`: the broker's process starts anew and is registered; with `wiped=yes` on an empty disk.
    fn new_life(&mut self, line: &Line<'_>) {
        let id = line.broker(1);
        self.brokers.get_mut(&id).expect("known").epoch = BrokerEpoch(line.number("epoch").expect("epoch=N"));
        self.brokers_changed();
        let mut out = Vec::new();
        let replica = self.replicas.remove(&id).expect("known");
        let high_watermark = replica.bounds().map(|bounds| bounds.high_watermark);
        let log = replica.remove(&mut out);
        let wiped = line.named.get("wiped") == Some(&"yes");
        let log = if wiped { None } else { log };
        let high_watermark = if wiped { None } else { high_watermark };
        let log = log.unwrap_or_default();
        self.asks.remove(&id);
        self.answers.remove(&id);
        let replica = minikafka_replication::Replica::new(
            super::PARTITION,
            id,
            log,
            high_watermark,
            self.config.clone(),
        );
        self.replicas.insert(id, replica);
    }

    fn consumer_ask(line: &Line<'_>) -> ConsumerAsk {
        ConsumerAsk {
            leader_epoch: line.number("epoch").map(LeaderEpoch),
            position: Offset(line.number("from").unwrap_or(0)),
            last_epoch: line.number("last").map(LeaderEpoch),
            follower_may_serve: line.named.get("version").is_none_or(|version| number::<i32>(version) >= 11),
            limit: ReadLimit { max_bytes: 1 << 20, at_least_one: true },
        }
    }

    fn consume(&mut self, line: &Line<'_>) {
        let answer = self.replica(line.broker(1)).consumer_fetch(&World::consumer_ask(line));
        self.say(match answer {
            ConsumerAnswer::Read { plan, bounds } => {
                let batches: Vec<String> = plan.run().expect("readable").batches.iter().map(told).collect();
                format!("{} (hw {})", batches.join(" "), bounds.high_watermark)
            }
            ConsumerAnswer::Empty { bounds } => format!("nothing (hw {})", bounds.high_watermark),
            ConsumerAnswer::Diverging(divergence, _) => {
                format!("diverging: epoch {} ends at {}", divergence.epoch, divergence.end_offset)
            }
            ConsumerAnswer::OutOfRange(_) => "OFFSET_OUT_OF_RANGE (1)".to_owned(),
            ConsumerAnswer::Refused(refused) => format!("refused: {}", refused.code()),
        });
    }

    /// `offsets 1 earliest|latest|max|at:MS [epoch=N]`.
    fn offsets(&mut self, line: &Line<'_>) {
        let spec = match line.word(2) {
            "earliest" => OffsetSpec::Earliest,
            "latest" => OffsetSpec::Latest,
            "max" => OffsetSpec::MaxTimestamp,
            time => OffsetSpec::AtOrAfter(WallMs(number(time.trim_start_matches("at:")))),
        };
        let mut out = Vec::new();
        let answer =
            self.replica(line.broker(1)).list_offsets(line.number("epoch").map(LeaderEpoch), spec, &mut out);
        self.say(match answer {
            OffsetAnswer::At { offset, timestamp, leader_epoch } => format!(
                "offset {offset}{}{}",
                timestamp.map_or(String::new(), |time| format!(", time {}", time.0)),
                leader_epoch.map_or(String::new(), |epoch| format!(", epoch {epoch}"))
            ),
            OffsetAnswer::NotFound => "not found".to_owned(),
            OffsetAnswer::NotAvailable => "OFFSET_NOT_AVAILABLE (78)".to_owned(),
            OffsetAnswer::Refused(refused) => format!("refused: {}", refused.code()),
        });
        self.perform(line.broker(1), out);
    }

    fn epoch_end(&mut self, line: &Line<'_>) {
        let asked = LeaderEpoch(line.number("of").expect("of=EPOCH"));
        let answer = self.replica(line.broker(1)).end_of_epoch(line.number("epoch").map(LeaderEpoch), asked);
        self.say(match answer {
            EpochEndAnswer::Found(end) => format!("epoch {} ends at {}", end.epoch, end.end_offset),
            EpochEndAnswer::Unknown => "unknown".to_owned(),
            EpochEndAnswer::Refused(refused) => format!("refused: {}", refused.code()),
        });
    }

    /// The whole log of one replica, with the epochs it is written in.
    fn show_log(&mut self, id: BrokerId) {
        let log = self.replica(id).log().expect("online");
        let limit = ReadLimit { max_bytes: 1 << 30, at_least_one: true };
        let plan = log.plan_read(log.start(), log.end(), limit);
        let epochs: Vec<String> =
            log.epoch_entries().iter().map(|(epoch, start)| format!("{epoch}@{start}")).collect();
        let batches: Vec<String> = plan.run().expect("readable").batches.iter().map(told).collect();
        self.say(format!("{} | epochs {}", batches.join(" "), epochs.join(" ")));
    }
}
