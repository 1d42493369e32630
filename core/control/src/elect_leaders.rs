//! Elections asked for by a user (Kafka semantics 6.7).

use minikafka_model::{ErrorCode, TopicPartition};

use crate::answer::{Answer, ElectedPartition, Refusal};
use crate::command::{ElectLeaders, PartitionName};
use crate::draft::{Draft, Exclusion};
use crate::election::{ElectionKind, Wish};

const REASON: &str = "an election was asked for";

impl Draft<'_> {
    pub(crate) fn elect_leaders(&mut self, it: ElectLeaders) -> Answer {
        let all = it.partitions.is_none();
        let wanted = it.partitions.unwrap_or_else(|| self.all_partition_names());
        let results = wanted
            .into_iter()
            .map(|at| {
                let outcome = self.elect_one(&at, it.kind);
                ElectedPartition { at, outcome }
            })
            // Who asks for all partitions does not hear of those that need nothing.
            .filter(|result| !all || !is_needless(&result.outcome))
            .collect();
        Answer::Elected(results)
    }

    fn all_partition_names(&self) -> Vec<PartitionName> {
        self.image
            .topics_by_name()
            .flat_map(|topic| {
                topic
                    .partitions
                    .keys()
                    .map(|index| PartitionName { topic: topic.name.to_string(), partition: *index })
            })
            .collect()
    }

    fn elect_one(&mut self, at: &PartitionName, kind: ElectionKind) -> Result<(), Refusal> {
        let unknown = |text: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, text);
        let topic = self
            .image
            .topic_by_name(&at.topic)
            .ok_or_else(|| unknown(format!("No such topic as {}", at.topic)))?;
        let state = topic
            .partitions
            .get(&at.partition)
            .ok_or_else(|| unknown(format!("No such partition as {}-{}", at.topic, at.partition)))?;
        let needless = match kind {
            ElectionKind::Preferred => state.leader.is_some() && state.leader == state.preferred_leader(),
            ElectionKind::Online | ElectionKind::Unclean => state.leader.is_some(),
        };
        if needless {
            return Err(Refusal::new(
                ErrorCode::ElectionNotNeeded,
                "Leader election not needed for topic partition.",
            ));
        }
        let id = TopicPartition { topic: topic.id, partition: at.partition };
        let (code, text) = match kind {
            ElectionKind::Preferred => {
                (ErrorCode::PreferredLeaderNotAvailable, "The preferred leader was not available.")
            }
            ElectionKind::Online | ElectionKind::Unclean => (
                ErrorCode::EligibleLeadersNotAvailable,
                "Eligible topic partition leaders are not available.",
            ),
        };
        self.edit(id, Wish::default(), kind, Exclusion::default(), REASON)
            .map(|_| ())
            .ok_or_else(|| Refusal::new(code, text))
    }
}

fn is_needless(outcome: &Result<(), Refusal>) -> bool {
    matches!(outcome, Err(refusal) if refusal.code == ErrorCode::ElectionNotNeeded)
}
