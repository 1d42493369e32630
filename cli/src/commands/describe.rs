//! `minikafka topic describe`: the columns of Kafka's own tool (Kafka semantics 12.1), or JSON with the leader epochs beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use minikafka_client::{Client, ConfigEntry, ConfigResource, ConfigSource, Error, PartitionView, TopicView};
use minikafka_model::{BrokerId, ErrorCode, PartitionIndex};
use serde_json::{Value, json};

use super::connect::connect;
use crate::args::{Output, TopicDescribe};
use crate::failure::{Failure, Outcome, answer};

/// A topic with its configs.
struct Described {
    topic: TopicView,
    configs: Vec<ConfigEntry>,
}

impl Described {
    fn min_isr(&self) -> Option<usize> {
        let entry = self.configs.iter().find(|entry| entry.name == "min.insync.replicas")?;
        entry.value.as_ref()?.parse().ok()
    }

    /// Every value that does not come from the built-in defaults, as in Kafka's tool.
    fn set_configs(&self) -> impl Iterator<Item = (&str, &str)> {
        let set = self.configs.iter().filter(|entry| entry.source != ConfigSource::Default);
        set.map(|entry| (entry.name.as_str(), entry.value.as_deref().unwrap_or("null")))
    }
}

pub(super) async fn describe(asked: &TopicDescribe) -> Outcome {
    let client = connect(&asked.connection, &[]).await?;
    let cluster = client.admin().describe_all_topics().await?;
    let living: BTreeSet<BrokerId> = cluster.brokers.keys().copied().collect();
    let topics: Vec<TopicView> = if asked.names.is_empty() {
        cluster.topics.into_values().collect()
    } else {
        client.admin().describe_topics(&asked.names).await?
    };
    let mut failure = None;
    let mut described = Vec::new();
    for topic in topics {
        match topic.error {
            // A topic whose partitions have no leader is described all the same.
            Some(ErrorCode::LeaderNotAvailable) | None => {
                let configs = configs(&client, &topic.name).await?;
                described.push(Described { topic, configs });
            }
            Some(code) => {
                let text = match code {
                    ErrorCode::UnknownTopicOrPartition => format!("topic {} does not exist", topic.name),
                    _ => format!("topic {}: {code}", topic.name),
                };
                failure = failure.or(Some(Failure::kafka(code, text)));
            }
        }
    }
    let filter = Filter { asked, living };
    match asked.connection.output {
        Output::Table => {
            let text: String = described.iter().map(|described| lines(described, &filter)).collect();
            if !text.is_empty() {
                answer(&text)?;
            }
        }
        Output::Json => {
            let topics: Vec<Value> = described.iter().map(|described| object(described, &filter)).collect();
            answer(&json!({"schema": 1, "topics": topics}).to_string())?;
        }
    }
    failure.map_or(Ok(()), Err)
}

/// A topic that was deleted in between has none.
async fn configs(client: &Client, topic: &str) -> Outcome<Vec<ConfigEntry>> {
    let resource = ConfigResource::Topic(topic.to_owned());
    match client.admin().describe_configs(&resource, None).await {
        Ok(configs) => Ok(configs),
        Err(Error::Broker { error, .. }) if error.code == ErrorCode::UnknownTopicOrPartition => {
            Ok(Vec::new())
        }
        Err(error) => Err(error.into()),
    }
}

/// Which partitions are shown.
struct Filter<'a> {
    asked: &'a TopicDescribe,
    living: BTreeSet<BrokerId>,
}

impl Filter<'_> {
    fn is_on(&self) -> bool {
        let asked = self.asked;
        asked.under_replicated || asked.under_min_isr || asked.at_min_isr || asked.unavailable
    }

    /// Several filters are OR-ed, as in Kafka's tool.
    fn shows(&self, partition: &PartitionView, min_isr: Option<usize>) -> bool {
        let asked = self.asked;
        let isr = partition.isr.len();
        let leader = partition.leader.filter(|leader| self.living.contains(leader));
        !self.is_on()
            || (asked.under_replicated && isr < partition.replicas.len())
            || (asked.under_min_isr && (partition.leader.is_none() || min_isr.is_some_and(|min| isr < min)))
            || (asked.at_min_isr && min_isr == Some(isr))
            || (asked.unavailable && leader.is_none())
    }
}

fn ids(ids: &[BrokerId]) -> String {
    ids.iter().map(BrokerId::to_string).collect::<Vec<String>>().join(",")
}

fn replication_factor(topic: &TopicView) -> usize {
    topic.partitions.get(&PartitionIndex::ZERO).map_or(0, |partition| partition.replicas.len())
}

fn lines(described: &Described, filter: &Filter<'_>) -> String {
    let Described { topic, .. } = described;
    let mut text = String::new();
    if !filter.is_on() {
        let configs: Vec<String> =
            described.set_configs().map(|(key, value)| format!("{key}={value}")).collect();
        let id = topic.id.map(|id| id.to_string()).unwrap_or_default();
        let (name, count, factor) = (&topic.name, topic.partitions.len(), replication_factor(topic));
        let configs = configs.join(",");
        writeln!(
            text,
            "Topic: {name}\tTopicId: {id}\tPartitionCount: {count}\tReplicationFactor: {factor}\tConfigs: {configs}"
        )
        .expect("a String takes all text");
    }
    for partition in topic.partitions.values().filter(|p| filter.shows(p, described.min_isr())) {
        let leader = partition.leader.map_or_else(|| "none".to_owned(), |id| id.to_string());
        writeln!(
            text,
            "\tTopic: {}\tPartition: {}\tLeader: {leader}\tReplicas: {}\tIsr: {}\tElr: N/A\tLastKnownElr: N/A",
            topic.name,
            partition.index,
            ids(&partition.replicas),
            ids(&partition.isr),
        )
        .expect("a String takes all text");
    }
    text
}

fn object(described: &Described, filter: &Filter<'_>) -> Value {
    let Described { topic, .. } = described;
    let list = |ids: &[BrokerId]| ids.iter().map(|id| id.0).collect::<Vec<i32>>();
    let partitions: Vec<Value> = topic
        .partitions
        .values()
        .filter(|partition| filter.shows(partition, described.min_isr()))
        .map(|partition| {
            json!({
                "partition": partition.index.0,
                "leader": partition.leader.map(|id| id.0),
                "leader_epoch": partition.leader_epoch.map(|epoch| epoch.0),
                "replicas": list(&partition.replicas),
                "isr": list(&partition.isr),
                "offline": list(&partition.offline),
            })
        })
        .collect();
    json!({
        "name": topic.name,
        "id": topic.id.map(|id| id.to_string()),
        "partition_count": topic.partitions.len(),
        "replication_factor": replication_factor(topic),
        "min_isr": described.min_isr(),
        "configs": described.set_configs().collect::<BTreeMap<&str, &str>>(),
        "partitions": partitions,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use minikafka_model::{LeaderEpoch, TopicId, Uuid};

    use super::*;
    use crate::args::{Arguments, Command, Topic};

    fn described() -> Described {
        let partition = |index: i32, leader: Option<i32>, isr: &[i32]| PartitionView {
            index: PartitionIndex(index),
            leader: leader.map(BrokerId),
            leader_epoch: Some(LeaderEpoch(4)),
            replicas: vec![BrokerId(1), BrokerId(2), BrokerId(3)],
            isr: isr.iter().copied().map(BrokerId).collect(),
            offline: Vec::new(),
        };
        let partitions = [partition(0, Some(1), &[1, 2, 3]), partition(1, None, &[])];
        let entry = |name: &str, value: &str, source| ConfigEntry {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            source,
            read_only: false,
            sensitive: false,
            synonyms: Vec::new(),
        };
        Described {
            topic: TopicView {
                name: "orders".to_owned(),
                id: Some(TopicId(Uuid(1))),
                error: None,
                is_internal: false,
                partitions: partitions.into_iter().map(|p| (p.index, p)).collect(),
            },
            configs: vec![
                entry("min.insync.replicas", "2", ConfigSource::Topic),
                entry("segment.bytes", "1048576", ConfigSource::StaticBroker),
                entry("retention.ms", "604800000", ConfigSource::Default),
            ],
        }
    }

    fn shown(flags: &[&str]) -> String {
        let words = ["minikafka", "topic", "describe"].iter().chain(flags);
        let Command::Topic(Topic::Describe(asked)) =
            Arguments::try_parse_from(words).expect("good flags").command
        else {
            panic!("another command");
        };
        lines(&described(), &Filter { asked: &asked, living: [BrokerId(1)].into() })
    }

    #[test]
    fn the_columns_are_kafkas() {
        assert_eq!(
            shown(&[]),
            "Topic: orders\tTopicId: AAAAAAAAAAAAAAAAAAAAAQ\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: min.insync.replicas=2,segment.bytes=1048576\n\
             \tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\tElr: N/A\tLastKnownElr: N/A\n\
             \tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 1,2,3\tIsr: \tElr: N/A\tLastKnownElr: N/A\n"
        );
    }

    #[test]
    fn filters_print_partitions_alone() {
        let second = "\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 1,2,3\tIsr: \tElr: N/A\tLastKnownElr: N/A\n";
        for flag in ["--under-replicated", "--under-min-isr", "--unavailable"] {
            assert_eq!(shown(&[flag]), second, "{flag}");
        }
        assert_eq!(shown(&["--at-min-isr"]), "");
    }
}
