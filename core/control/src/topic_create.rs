//! Topics come to be (Kafka semantics 6.8). Texts and codes are those that Kafka 4.4 gave the oracle's probe.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use minikafka_metadata::{ConfigResource, PartitionState, Record};
use minikafka_model::{BrokerId, ErrorCode, PartitionIndex, TopicId, TopicPartition, Uuid};

use crate::answer::{Answer, CreatedTopic, NewTopicFacts, Refusal};
use crate::command::{Assignment, CreateTopics, NewTopic, Overrides};
use crate::draft::Draft;
use crate::event::ControlEvent;
use crate::placement::{Candidate, place};
use crate::topic_name::{METADATA_TOPIC, check_topic_name, collision_key};

/// Partitions that one request may create.
pub const MAX_PARTITIONS_PER_REQUEST: usize = 10_000;

pub(crate) fn too_many_partitions() -> Refusal {
    Refusal::new(ErrorCode::PolicyViolation, "Excessively large number of partitions per request.")
}

impl Draft<'_> {
    pub(crate) fn create_topics(&mut self, it: CreateTopics) -> Answer {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for topic in &it.topics {
            *count.entry(&topic.name).or_default() += 1;
        }
        let twice: BTreeSet<String> =
            count.into_iter().filter(|(_, n)| *n > 1).map(|(name, _)| name.to_owned()).collect();
        let once: Vec<NewTopic> =
            it.topics.into_iter().filter(|topic| !twice.contains(&topic.name)).collect();
        let mut results: Vec<CreatedTopic> = twice
            .into_iter()
            .map(|name| CreatedTopic {
                name,
                outcome: Err(Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.")),
            })
            .collect();

        let asked: usize = once.iter().map(|topic| self.partitions_asked(topic)).sum();
        if asked > MAX_PARTITIONS_PER_REQUEST {
            let all = once.into_iter();
            results.extend(all.map(|t| CreatedTopic { name: t.name, outcome: Err(too_many_partitions()) }));
            return Answer::CreatedTopics(results);
        }
        // Names are judged against what existed before the request: two colliding names in one request are both created.
        let verdicts: Vec<Result<(), Refusal>> =
            once.iter().map(|topic| self.check_name(&topic.name)).collect();
        for (topic, verdict) in once.into_iter().zip(verdicts) {
            let name = topic.name.clone();
            let outcome = verdict.and_then(|()| self.create_topic(topic, it.validate_only));
            results.push(CreatedTopic { name, outcome });
        }
        Answer::CreatedTopics(results)
    }

    fn partitions_asked(&self, topic: &NewTopic) -> usize {
        if topic.assignments.is_empty() {
            let asked = topic.partitions.unwrap_or(self.config.default_partitions);
            usize::try_from(asked).unwrap_or(0)
        } else {
            topic.assignments.len()
        }
    }

    fn check_name(&self, name: &str) -> Result<(), Refusal> {
        if name == METADATA_TOPIC {
            return Err(Refusal::bare(ErrorCode::TopicAuthorizationFailed));
        }
        check_topic_name(name).map_err(|text| Refusal::new(ErrorCode::InvalidTopicException, text))?;
        if self.image.topic_id(name).is_some() {
            return Err(Refusal::new(
                ErrorCode::TopicAlreadyExists,
                format!("Topic '{name}' already exists."),
            ));
        }
        let Some(key) = collision_key(name) else { return Ok(()) };
        let other =
            self.image.topics_by_name().find(|topic| collision_key(&topic.name).as_ref() == Some(&key));
        match other {
            Some(other) => Err(Refusal::new(
                ErrorCode::InvalidTopicException,
                format!("Topic '{name}' collides with existing topic: {}", other.name),
            )),
            None => Ok(()),
        }
    }

    fn create_topic(&mut self, topic: NewTopic, validate_only: bool) -> Result<NewTopicFacts, Refusal> {
        let configs = self.check_topic_configs(&topic.configs)?;
        let partitions =
            if topic.assignments.is_empty() { self.placed(&topic)? } else { self.assigned(&topic)? };
        let replication_factor = partitions.first().map_or(0, |state| state.replicas.len());
        let id = self.new_topic_id();
        let none = Arc::new(Overrides::new());
        let cluster = self.image.configs(ConfigResource::ClusterDefault).unwrap_or(&none);
        let facts = NewTopicFacts {
            id,
            partitions: i32::try_from(partitions.len()).unwrap_or(i32::MAX),
            replication_factor: i32::try_from(replication_factor).unwrap_or(i32::MAX),
            configs: self.config.rules.topic_entries(&configs, cluster),
        };
        if !validate_only {
            let name: Arc<str> = topic.name.as_str().into();
            self.tell(ControlEvent::TopicCreated {
                topic: name,
                topic_id: id,
                partitions: partitions.len(),
                replication_factor,
            });
            self.put(Record::Topic { id, name: topic.name });
            for (key, value) in configs {
                self.put(Record::Config { resource: ConfigResource::Topic(id), key, value: Some(value) });
            }
            for (index, state) in (0..).map(PartitionIndex).zip(partitions) {
                self.put(Record::Partition { at: TopicPartition { topic: id, partition: index }, state });
            }
        }
        Ok(facts)
    }

    fn check_topic_configs(&self, configs: &[(String, Option<String>)]) -> Result<Overrides, Refusal> {
        let nulls: Vec<&str> =
            configs.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| key.as_str()).collect();
        if !nulls.is_empty() {
            return Err(Refusal::new(
                ErrorCode::InvalidConfig,
                format!("Null value not supported for topic configs: {}", nulls.join(",")),
            ));
        }
        let mut overrides = Overrides::new();
        for (key, value) in configs {
            let value = value.clone().unwrap_or_default();
            self.config
                .rules
                .check_topic(key, &value)
                .map_err(|refusal| Refusal::new(refusal.code, refusal.message))?;
            overrides.insert(key.clone(), value);
        }
        Ok(overrides)
    }

    /// Kafka never hands out the reserved ids, nor one whose text starts with a dash.
    fn new_topic_id(&mut self) -> TopicId {
        loop {
            if let Some(uuid) = Uuid::from_random(self.dice.wide())
                && self.image.topic(TopicId(uuid)).is_none()
            {
                return TopicId(uuid);
            }
        }
    }

    fn placed(&mut self, topic: &NewTopic) -> Result<Vec<PartitionState>, Refusal> {
        let replication_factor = topic.replication_factor.unwrap_or(self.config.default_replication_factor);
        let Some(replicas) = usize::try_from(replication_factor).ok().filter(|replicas| *replicas > 0) else {
            return Err(Refusal::new(
                ErrorCode::InvalidReplicationFactor,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            ));
        };
        let count = topic.partitions.unwrap_or(self.config.default_partitions);
        let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
            return Err(Refusal::new(
                ErrorCode::InvalidPartitions,
                "Number of partitions was set to an invalid non-positive value.",
            ));
        };
        self.place_partitions(count, replicas)
    }

    /// New partitions where the placement puts them.
    pub(crate) fn place_partitions(
        &mut self,
        count: usize,
        replicas: usize,
    ) -> Result<Vec<PartitionState>, Refusal> {
        let candidates: Vec<Candidate> = self
            .image
            .brokers()
            .values()
            .filter(|broker| !broker.in_controlled_shutdown)
            .map(|broker| Candidate { broker: broker.id, rack: broker.rack.clone(), fenced: broker.fenced })
            .collect();
        let refused = |text: String| {
            Refusal::new(
                ErrorCode::InvalidReplicationFactor,
                format!("Unable to replicate the partition {replicas} time(s): {text}"),
            )
        };
        let placed = place(&candidates, count, replicas, &mut self.dice)
            .map_err(|error| refused(error.to_string()))?;
        Ok(placed.into_iter().map(|brokers| self.new_partition(brokers)).collect())
    }

    /// The initial state: the ISR is that of the active replicas, in order.
    fn new_partition(&self, brokers: Vec<BrokerId>) -> PartitionState {
        let directories = brokers.iter().map(|id| self.only_directory(*id)).collect();
        let isr = brokers.iter().copied().filter(|id| self.image.is_active(*id)).collect();
        PartitionState::created(brokers, directories, isr)
    }

    fn assigned(&self, topic: &NewTopic) -> Result<Vec<PartitionState>, Refusal> {
        let invalid = |what: &str| {
            let text = format!("A manual partition assignment was specified, but {what} was not set to -1.");
            Err(Refusal::new(ErrorCode::InvalidRequest, text))
        };
        if topic.replication_factor.is_some() {
            return invalid("replication factor");
        }
        if topic.partitions.is_some() {
            return invalid("numPartitions");
        }
        let wrong = |text: String| Refusal::new(ErrorCode::InvalidReplicaAssignment, text);
        let mut partitions: BTreeMap<PartitionIndex, PartitionState> = BTreeMap::new();
        let mut replication_factor = None;
        for Assignment { partition, brokers } in &topic.assignments {
            if partitions.contains_key(partition) {
                return Err(Refusal::new(
                    ErrorCode::InvalidReplicaAssignment,
                    format!("Found multiple manual partition assignments for partition {partition}"),
                ));
            }
            let state = self.assigned_partition(*partition, brokers, replication_factor)?;
            replication_factor = Some(brokers.len());
            partitions.insert(*partition, state);
        }
        if partitions.keys().zip(0..).any(|(index, expected)| index.0 != expected) {
            return Err(wrong("partitions should be a consecutive 0-based integer sequence".to_owned()));
        }
        Ok(partitions.into_values().collect())
    }

    /// A new partition whose replicas a user gave.
    pub(crate) fn assigned_partition(
        &self,
        partition: PartitionIndex,
        brokers: &[BrokerId],
        replication_factor: Option<usize>,
    ) -> Result<PartitionState, Refusal> {
        self.check_assignment(brokers, replication_factor)?;
        let state = self.new_partition(brokers.to_vec());
        if state.isr.is_empty() {
            return Err(Refusal::new(
                ErrorCode::InvalidReplicaAssignment,
                format!(
                    "All brokers specified in the manual partition assignment for partition {partition} are fenced or in controlled shutdown."
                ),
            ));
        }
        Ok(state)
    }

    /// Whether a replica list given by a user makes sense.
    pub(crate) fn check_assignment(
        &self,
        brokers: &[BrokerId],
        replication_factor: Option<usize>,
    ) -> Result<(), Refusal> {
        let wrong = |text: String| {
            let text = format!("The manual partition assignment includes {text}");
            Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, text))
        };
        if brokers.is_empty() {
            return wrong("an empty replica list.".to_owned());
        }
        let mut sorted = brokers.to_vec();
        sorted.sort_unstable();
        for (n, id) in sorted.iter().enumerate() {
            if self.image.broker(*id).is_none() {
                return wrong(format!("broker {id}, but no such broker is registered."));
            }
            if n > 0 && sorted[n - 1] == *id {
                return wrong(format!("the broker {id} more than once."));
            }
        }
        match replication_factor {
            Some(others) if others != brokers.len() => wrong(format!(
                "a partition with {} replica(s), but this is not consistent with previous partitions, which have {others} replica(s).",
                brokers.len()
            )),
            _ => Ok(()),
        }
    }
}
