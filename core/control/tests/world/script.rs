//! The language of the stories. A line that starts with `#` is narration, one that is indented is what happened, the others are
//! commands: a word, then arguments, some of them `name=value`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use minikafka_control::{
    AlterConfigs, AlterPartition, Answer, Assignment, Command, ConfigOp, CreatePartitions, CreateTopics,
    Decision, DeleteTopics, ElectLeaders, ElectionKind, Faults, FeatureUpdate, IncrementalAlterConfigs,
    IsrMember, NamedResource, NewIsr, NewPartitions, NewTopic, PartitionName, ReassignPartitions,
    Reassignment, Refusal, TopicSelector, UpdateFeatures, UpgradeType,
};
use minikafka_metadata::{PartitionState, Recovery};
use minikafka_model::{
    BrokerEpoch, BrokerId, ClusterId, DirectoryId, LeaderEpoch, MetadataOffset, PartitionEpoch,
    PartitionIndex, TopicPartition, Uuid,
};

use super::World;

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

    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn broker(&self) -> BrokerId {
        BrokerId(number(self.word(1)))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.named.get(name).map(|text| number(text))
    }

    fn partition(&self, n: usize) -> PartitionName {
        let (topic, index) = self.word(n).rsplit_once('-').expect("topic-partition");
        PartitionName { topic: topic.to_owned(), partition: PartitionIndex(number(index)) }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("'{text}' is not a number"))
}

fn brokers(list: &str) -> Vec<BrokerId> {
    list.split(',').filter(|id| !id.is_empty()).map(|id| BrokerId(number(id))).collect()
}

pub(super) fn run(story: &str, faults: Faults) -> String {
    let mut world = World::new(faults);
    let mut told = String::new();
    for line in story.lines().filter(|line| !line.starts_with(' ')) {
        told.push_str(line);
        told.push('\n');
        if !line.is_empty() && !line.starts_with('#') {
            let line = Line::parse(line);
            for happened in world.perform(&line) {
                writeln!(told, "    {happened}").expect("writing to memory");
            }
        }
    }
    told
}

impl World {
    fn perform(&mut self, line: &Line<'_>) -> Vec<String> {
        match line.word(0) {
            "start" => {
                let mut told = self.register(line, true);
                let beat = self.beat(line.broker());
                told.extend(self.tell(Command::Heartbeat(beat)));
                self.alive.insert(line.broker());
                told
            }
            "register" => self.register(line, !line.has("again")),
            "kill" => {
                self.alive.remove(&line.broker());
                Vec::new()
            }
            "heartbeat" => self.heartbeat(line),
            "wait" => {
                let decisions = self.wait(number(line.word(1)));
                decisions.into_iter().flat_map(|(decision, at)| told(&decision, at, false)).collect()
            }
            "failover" => {
                self.take_over();
                vec![format!("active in term {}", self.term)]
            }
            "show" => self.show(line.word(1)),
            "brokers" => self.show_brokers(),
            "isr" => self.alter_isr(line),
            "producer-ids" => {
                let from = self.identity(line.broker());
                let epoch = line.number("epoch").map_or(from.epoch, BrokerEpoch);
                let from = minikafka_control::BrokerIdentity { epoch, ..from };
                self.tell(Command::AllocateProducerIds(from))
            }
            "unregister" => self.tell(Command::UnregisterBroker(line.broker())),
            _ => self.perform_admin(line),
        }
    }

    fn perform_admin(&mut self, line: &Line<'_>) -> Vec<String> {
        let command = match line.word(0) {
            "create" => create(line),
            "delete" => Command::DeleteTopics(DeleteTopics {
                topics: line.words[1..]
                    .iter()
                    .map(|name| TopicSelector { name: Some((*name).to_owned()), id: None })
                    .collect(),
            }),
            "partitions" => Command::CreatePartitions(CreatePartitions {
                topics: vec![NewPartitions {
                    topic: line.word(1).to_owned(),
                    count: line.number("count").expect("count="),
                    assignments: line.named.get("assign").map(|list| list.split(';').map(brokers).collect()),
                }],
                validate_only: line.has("validate-only"),
            }),
            "elect" => Command::ElectLeaders(ElectLeaders {
                kind: match line.word(1) {
                    "preferred" => ElectionKind::Preferred,
                    "unclean" => ElectionKind::Unclean,
                    other => panic!("no election {other}"),
                },
                partitions: (line.words.len() > 2).then(|| vec![line.partition(2)]),
            }),
            "reassign" => Command::ReassignPartitions(ReassignPartitions {
                partitions: vec![Reassignment {
                    at: line.partition(1),
                    replicas: line.named.get("to").map(|list| brokers(list)),
                }],
                allow_replication_factor_change: !line.has("same-size"),
            }),
            "reassignments" => Command::ListReassignments(None),
            "config" => configs(line),
            "configs" => Command::AlterConfigs(AlterConfigs {
                resources: vec![(
                    resource(line.word(1)),
                    line.named.iter().map(|(k, v)| ((*k).to_owned(), Some((*v).to_owned()))).collect(),
                )],
                validate_only: false,
            }),
            "feature" => Command::UpdateFeatures(UpdateFeatures {
                updates: vec![FeatureUpdate {
                    name: line.word(1).to_owned(),
                    level: number(line.word(2)),
                    kind: if line.has("down") { UpgradeType::SafeDowngrade } else { UpgradeType::Upgrade },
                }],
                validate_only: false,
            }),
            other => panic!("no command {other}"),
        };
        self.tell(command)
    }

    fn register(&mut self, line: &Line<'_>, new_process: bool) -> Vec<String> {
        let mut it = self.registration(line.broker(), new_process);
        if let Some(cluster) = line.named.get("cluster") {
            it.cluster = ClusterId((*cluster).to_owned());
        }
        if let Some(dirs) = line.named.get("dirs") {
            let ids = dirs.split(',').filter(|id| !id.is_empty());
            it.log_dirs = ids.map(|id| DirectoryId(Uuid(number(id)))).collect();
        }
        if line.has("clean") {
            it.previous_epoch = Some(self.epoch(line.broker()));
        }
        it.rack = line.named.get("rack").map(|rack| (*rack).to_owned());
        self.tell(Command::RegisterBroker(it))
    }

    fn heartbeat(&mut self, line: &Line<'_>) -> Vec<String> {
        let mut beat = self.beat(line.broker());
        beat.want_fence = line.has("want-fence");
        beat.want_shut_down = line.has("want-shutdown");
        if let Some(epoch) = line.number("epoch") {
            beat.from.epoch = BrokerEpoch(epoch);
        }
        if let Some(at) = line.number("at") {
            beat.metadata_offset = Some(MetadataOffset(at));
        }
        if let Some(dirs) = line.named.get("offline") {
            beat.offline_log_dirs = dirs.split(',').map(|id| DirectoryId(Uuid(number(id)))).collect();
        }
        self.tell(Command::Heartbeat(beat))
    }

    fn alter_isr(&mut self, line: &Line<'_>) -> Vec<String> {
        let name = line.partition(1);
        let topic = self.image.topic_id(&name.topic).unwrap_or(minikafka_model::TopicId(Uuid(1)));
        let at = TopicPartition { topic, partition: name.partition };
        let state = self.image.partition(at).cloned();
        let (leader, leader_epoch, partition_epoch) = state
            .map_or((None, LeaderEpoch(0), PartitionEpoch(0)), |state| {
                (state.leader, state.leader_epoch, state.partition_epoch)
            });
        let from = line.number("from").map_or(leader.unwrap_or(BrokerId(0)), BrokerId);
        let mut isr: Vec<IsrMember> = brokers(line.word(2))
            .into_iter()
            .map(|broker| IsrMember { broker, epoch: Some(self.epoch(broker)) })
            .collect();
        if let Some((broker, epoch)) = line.named.get("life").and_then(|text| text.split_once(':')) {
            for member in &mut isr {
                if member.broker == BrokerId(number(broker)) {
                    member.epoch = epoch.parse().ok().map(BrokerEpoch);
                }
            }
        }
        let mut from = self.identity(from);
        if let Some(epoch) = line.number("epoch") {
            from.epoch = BrokerEpoch(epoch);
        }
        self.tell(Command::AlterPartition(AlterPartition {
            from,
            items: vec![NewIsr {
                at,
                leader_epoch: line.number("leader-epoch").map_or(leader_epoch, LeaderEpoch),
                partition_epoch: line.number("partition-epoch").map_or(partition_epoch, PartitionEpoch),
                isr,
                recovering: line.has("recovering"),
            }],
        }))
    }

    fn tell(&mut self, command: Command) -> Vec<String> {
        let decision = self.command(command);
        told(&decision, self.offset(), true)
    }

    fn show(&self, topic: &str) -> Vec<String> {
        let Some(topic) = self.image.topic_by_name(topic) else { return vec!["no such topic".to_owned()] };
        topic.partitions.iter().map(|(index, state)| format!("{index}: {}", shown(state))).collect()
    }

    fn show_brokers(&self) -> Vec<String> {
        self.image
            .brokers()
            .values()
            .map(|broker| {
                let state = match (broker.fenced, broker.in_controlled_shutdown) {
                    (true, _) => "fenced",
                    (false, true) => "in controlled shutdown",
                    (false, false) => "active",
                };
                format!("{}: epoch {}, {state}", broker.id, broker.epoch)
            })
            .collect()
    }
}

fn told(decision: &Decision, offset: i64, with_answer: bool) -> Vec<String> {
    let mut told: Vec<String> = decision.events.iter().map(ToString::to_string).collect();
    for line in &mut told {
        if let Some(from) = line.find("topic ID ") {
            let from = from + "topic ID ".len();
            line.replace_range(from..from + 22, "<id>");
        }
    }
    if !decision.records.is_empty() {
        let names: Vec<&str> =
            decision.records.iter().map(|r| r.type_name().trim_end_matches("Record")).collect();
        told.push(format!("entry {offset}: {}", names.join(" ")));
    }
    if with_answer {
        told.extend(answer(&decision.answer));
    }
    told
}

fn list(ids: &[BrokerId]) -> String {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    if ids.is_empty() { "-".to_owned() } else { ids.join(",") }
}

fn shown(state: &PartitionState) -> String {
    let leader = state.leader.map_or("none".to_owned(), |id| id.to_string());
    let mut text = format!(
        "replicas {} isr {} leader {leader} leader-epoch {} partition-epoch {}",
        list(&state.replicas),
        list(&state.isr),
        state.leader_epoch,
        state.partition_epoch
    );
    if !state.elr.is_empty() {
        text.push_str(&format!(" elr {}", list(&state.elr)));
    }
    if let Some(last) = state.last_known_elr {
        text.push_str(&format!(" last-known {last}"));
    }
    if state.recovery == Recovery::Recovering {
        text.push_str(" recovering");
    }
    if state.is_reassigning() {
        text.push_str(&format!(" adding {} removing {}", list(&state.adding), list(&state.removing)));
    }
    text
}

fn create(line: &Line<'_>) -> Command {
    let assignments = line.named.get("assign").map_or_else(Vec::new, |text| {
        text.split(';')
            .map(|part| {
                let (index, ids) = part.split_once(':').expect("partition:brokers");
                Assignment { partition: PartitionIndex(number(index)), brokers: brokers(ids) }
            })
            .collect()
    });
    let configs = line
        .named
        .iter()
        .filter(|(key, _)| key.contains('.'))
        .map(|(key, value)| ((*key).to_owned(), (*value != "null").then(|| (*value).to_owned())))
        .collect();
    let topic = |name: &str| NewTopic {
        name: name.to_owned(),
        partitions: line.number("partitions"),
        replication_factor: line.number("rf"),
        assignments: assignments.clone(),
        configs,
    };
    let mut topics = vec![topic(line.word(1))];
    for name in line.words[2..].iter().filter(|word| **word != "validate-only") {
        topics.push(NewTopic { name: (*name).to_owned(), ..topics[0].clone() });
    }
    Command::CreateTopics(CreateTopics { topics, validate_only: line.has("validate-only") })
}

fn resource(name: &str) -> NamedResource {
    match name.split_once(':') {
        Some(("broker", "all")) => NamedResource::ClusterDefault,
        Some(("broker", id)) => NamedResource::Broker(BrokerId(number(id))),
        Some(("topic", name)) => NamedResource::Topic(name.to_owned()),
        _ => panic!("no resource {name}"),
    }
}

fn configs(line: &Line<'_>) -> Command {
    let mut ops: Vec<(String, ConfigOp)> = Vec::new();
    for (key, value) in &line.named {
        let value = (*value != "null").then(|| (*value).to_owned());
        let (key, op) = match key.chars().next_back() {
            Some('+') => (&key[..key.len() - 1], ConfigOp::Append(value)),
            Some('-') => (&key[..key.len() - 1], ConfigOp::Subtract(value)),
            _ => (*key, ConfigOp::Set(value)),
        };
        ops.push((key.to_owned(), op));
    }
    for key in line.words[2..].iter().filter(|word| **word != "validate-only") {
        ops.push(((*key).to_owned(), ConfigOp::Delete));
    }
    Command::IncrementalAlterConfigs(IncrementalAlterConfigs {
        resources: vec![(resource(line.word(1)), ops)],
        validate_only: line.has("validate-only"),
    })
}

fn refused(refusal: &Refusal) -> String {
    let name = format!("{} {}", refusal.code.code(), refusal.code.name());
    refusal.message.as_ref().map_or(name.clone(), |text| format!("{name}: {text}"))
}

fn outcome(what: &str, outcome: &Result<(), Refusal>) -> String {
    match outcome {
        Ok(()) => format!("{what}: done"),
        Err(refusal) => format!("{what}: {}", refused(refusal)),
    }
}

fn answer(answer: &Answer) -> Vec<String> {
    let named = |at: &PartitionName| format!("{}-{}", at.topic, at.partition);
    match answer {
        Answer::Refused(refusal) => vec![refused(refusal)],
        Answer::Registered(epoch) => vec![format!("broker epoch {epoch}")],
        Answer::Heartbeat(reply) => {
            let yes = |flag, text: &'static str| if flag { text } else { "" };
            vec![format!(
                "{}{}{}",
                yes(reply.caught_up, "caught up"),
                if reply.fenced { ", fenced" } else { ", unfenced" },
                yes(reply.should_shut_down, ", may shut down")
            )]
        }
        Answer::AlteredPartitions(results) => results
            .iter()
            .map(|result| match &result.outcome {
                Ok(now) => {
                    format!("accepted: isr {} partition-epoch {}", list(&now.isr), now.partition_epoch)
                }
                Err(code) => code.to_string(),
            })
            .collect(),
        Answer::ProducerIds { first, count } => vec![format!("{count} ids from {first}")],
        Answer::CreatedTopics(results) => results
            .iter()
            .map(|result| match &result.outcome {
                Ok(facts) => format!(
                    "{}: {} partitions, replication factor {}, {} configs",
                    result.name,
                    facts.partitions,
                    facts.replication_factor,
                    facts.configs.len()
                ),
                Err(refusal) => format!("{}: {}", result.name, refused(refusal)),
            })
            .collect(),
        Answer::DeletedTopics(results) => {
            results.iter().map(|r| outcome(r.name.as_deref().unwrap_or("-"), &r.outcome)).collect()
        }
        Answer::CreatedPartitions(results) => results.iter().map(|r| outcome(&r.name, &r.outcome)).collect(),
        Answer::Elected(results) => results.iter().map(|r| outcome(&named(&r.at), &r.outcome)).collect(),
        Answer::Reassigned(results) => results.iter().map(|r| outcome(&named(&r.at), &r.outcome)).collect(),
        Answer::Reassignments(all) => all
            .iter()
            .map(|it| {
                let (adding, removing) = (list(&it.adding), list(&it.removing));
                format!("{}-{}: adding {adding} removing {removing}", it.topic, it.partition)
            })
            .collect(),
        Answer::AlteredConfigs(results) => results.iter().map(|r| outcome("configs", &r.outcome)).collect(),
        Answer::Unregistered => vec!["unregistered".to_owned()],
        Answer::UpdatedFeatures(results) => {
            results.iter().map(|it| format!("{} is at {}", it.name, it.level)).collect()
        }
        Answer::Background(_) => Vec::new(),
    }
}
