//! Topics get more partitions (Kafka semantics 6.8). Texts and codes are those that Kafka 4.4 gave the oracle's probe.

use std::collections::BTreeMap;

use minikafka_metadata::{PartitionState, Record};
use minikafka_model::{ErrorCode, PartitionIndex, TopicPartition};

use crate::answer::{Answer, Refusal, TopicResult};
use crate::command::{CreatePartitions, NewPartitions};
use crate::draft::Draft;
use crate::event::ControlEvent;
use crate::topic_create::{MAX_PARTITIONS_PER_REQUEST, too_many_partitions};

impl Draft<'_> {
    pub(crate) fn create_partitions(&mut self, it: &CreatePartitions) -> Answer {
        let mut count: BTreeMap<&str, usize> = BTreeMap::new();
        for topic in &it.topics {
            *count.entry(&topic.topic).or_default() += 1;
        }
        let mut results: Vec<TopicResult> = Vec::new();
        let mut left = MAX_PARTITIONS_PER_REQUEST;
        for topic in &it.topics {
            if count[topic.topic.as_str()] > 1 {
                if !results.iter().any(|done| done.name == topic.topic) {
                    let refusal = Refusal::new(ErrorCode::InvalidRequest, "Duplicate topic name.");
                    results.push(TopicResult { name: topic.topic.clone(), outcome: Err(refusal) });
                }
                continue;
            }
            let outcome = self.more_partitions(topic, &mut left, it.validate_only);
            results.push(TopicResult { name: topic.topic.clone(), outcome });
        }
        Answer::CreatedPartitions(results)
    }

    fn more_partitions(
        &mut self,
        topic: &NewPartitions,
        left: &mut usize,
        validate_only: bool,
    ) -> Result<(), Refusal> {
        let Some(known) = self.image.topic_by_name(&topic.topic) else {
            return Err(Refusal::bare(ErrorCode::UnknownTopicOrPartition));
        };
        let (id, name, has) = (known.id, known.name.clone(), known.partitions.len());
        let replicas = known.partitions.get(&PartitionIndex::ZERO).map_or(0, |first| first.replicas.len());
        let count = usize::try_from(topic.count).unwrap_or(0);
        if count == has {
            let text = format!("Topic already has {has} partition(s).");
            return Err(Refusal::new(ErrorCode::InvalidPartitions, text));
        }
        if count < has {
            return Err(Refusal::new(
                ErrorCode::InvalidPartitions,
                format!(
                    "The topic {name} currently has {has} partition(s); {} would not be an increase.",
                    topic.count
                ),
            ));
        }
        *left = left.checked_sub(count - has).ok_or_else(too_many_partitions)?;
        let states = self.new_states(topic, has, count - has, replicas)?;
        if validate_only {
            return Ok(());
        }
        self.tell(ControlEvent::PartitionsCreated { topic: name, from: has, to: count });
        for (index, state) in (has..).zip(states) {
            let partition = PartitionIndex(i32::try_from(index).unwrap_or(i32::MAX));
            self.put(Record::Partition { at: TopicPartition { topic: id, partition }, state });
        }
        Ok(())
    }

    fn new_states(
        &mut self,
        topic: &NewPartitions,
        has: usize,
        more: usize,
        replicas: usize,
    ) -> Result<Vec<PartitionState>, Refusal> {
        let Some(assignments) = &topic.assignments else {
            return self.place_partitions(more, replicas);
        };
        if assignments.len() != more {
            return Err(Refusal::new(
                ErrorCode::InvalidReplicaAssignment,
                format!(
                    "Attempted to add {more} additional partition(s), but only {} assignment(s) were specified.",
                    assignments.len()
                ),
            ));
        }
        (has..)
            .zip(assignments)
            .map(|(index, brokers)| {
                let partition = PartitionIndex(i32::try_from(index).unwrap_or(i32::MAX));
                self.assigned_partition(partition, brokers, Some(replicas))
            })
            .collect()
    }
}
