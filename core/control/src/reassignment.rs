//! Replicas move (Kafka semantics 6.8). While a reassignment is under way the replica list is the target followed by what is being
//! removed; it completes as a side effect of an ISR change (see `election`).

use std::sync::Arc;

use minikafka_metadata::PartitionState;
use minikafka_model::{BrokerId, DirectoryId, ErrorCode, TopicPartition};

use crate::answer::{Answer, OngoingReassignment, ReassignedPartition, Refusal};
use crate::command::{PartitionName, ReassignPartitions};
use crate::draft::{Draft, Exclusion};
use crate::election::{ElectionKind, Wish};
use crate::event::ControlEvent;

impl Draft<'_> {
    pub(crate) fn reassign_partitions(&mut self, it: ReassignPartitions) -> Answer {
        let results = it
            .partitions
            .into_iter()
            .map(|item| {
                let outcome = match &item.replicas {
                    Some(target) => self.reassign(&item.at, target, it.allow_replication_factor_change),
                    None => self.cancel(&item.at),
                };
                ReassignedPartition { at: item.at, outcome }
            })
            .collect();
        Answer::Reassigned(results)
    }

    fn reassigned_state(&self, at: &PartitionName) -> Result<(TopicPartition, Arc<PartitionState>), Refusal> {
        let unknown = |text: String| Refusal::new(ErrorCode::UnknownTopicOrPartition, text);
        let topic = self
            .image
            .topic_by_name(&at.topic)
            .ok_or_else(|| unknown(format!("Unable to find a topic named {}.", at.topic)))?;
        let state = topic
            .partitions
            .get(&at.partition)
            .ok_or_else(|| unknown(format!("Unable to find partition {}:{}.", at.topic, at.partition)))?;
        Ok((TopicPartition { topic: topic.id, partition: at.partition }, Arc::clone(state)))
    }

    fn reassign(&mut self, at: &PartitionName, target: &[BrokerId], any_size: bool) -> Result<(), Refusal> {
        let (id, state) = self.reassigned_state(at)?;
        self.check_assignment(target, None)?;
        // What was there before any reassignment under way; a new one replaces that.
        let settled: Vec<BrokerId> = without(&state.replicas, &state.adding);
        if !any_size {
            let current = without(&state.replicas, &state.removing).len();
            if current != target.len() {
                return Err(Refusal::new(
                    ErrorCode::InvalidReplicationFactor,
                    format!("The replication factor is changed from {current} to {}", target.len()),
                ));
            }
        }
        let adding = without(target, &settled);
        let removing = without(&state.replicas, target);
        let replicas: Vec<BrokerId> = target.iter().chain(&removing).copied().collect();
        let wish = Wish {
            replicas: Some(self.with_directories(&state, &replicas)),
            adding: Some(adding.clone()),
            removing: Some(removing.clone()),
            ..Wish::default()
        };
        let kind = self.usual_kind(id.topic);
        let Some(change) = self.plan(id, wish, kind, Exclusion::default()) else { return Ok(()) };
        self.tell(ControlEvent::Reassignment {
            topic: self.name(id.topic),
            partition: id.partition,
            reason: "begun",
            replicas,
            adding,
            removing,
        });
        self.commit(id, &change, "reassignment");
        Ok(())
    }

    fn cancel(&mut self, at: &PartitionName) -> Result<(), Refusal> {
        let (id, state) = self.reassigned_state(at)?;
        if !state.is_reassigning() {
            return Err(Refusal::bare(ErrorCode::NoReassignmentInProgress));
        }
        let replicas = without(&state.replicas, &state.adding);
        let isr = without(&state.isr, &state.adding);
        let unclean = isr.is_empty() && !state.isr.is_empty();
        let impossible = || {
            Refusal::new(
                ErrorCode::InvalidReplicaAssignment,
                format!(
                    "Unable to revert partition assignment for {}:{} because it would require an unclean leader election.",
                    at.topic, at.partition
                ),
            )
        };
        let kind = self.usual_kind(id.topic);
        if unclean && kind != ElectionKind::Unclean {
            return Err(impossible());
        }
        let wish = Wish {
            isr: Some(isr),
            replicas: Some(self.with_directories(&state, &replicas)),
            adding: Some(Vec::new()),
            removing: Some(Vec::new()),
            ..Wish::default()
        };
        let Some(change) = self.plan(id, wish, kind, Exclusion::default()) else { return Ok(()) };
        if unclean && change.after.leader.is_none() {
            return Err(impossible());
        }
        self.tell(ControlEvent::Reassignment {
            topic: self.name(id.topic),
            partition: id.partition,
            reason: "cancelled",
            replicas,
            adding: Vec::new(),
            removing: Vec::new(),
        });
        self.commit(id, &change, "its reassignment was cancelled");
        Ok(())
    }

    /// Replicas keep their directories; new ones get the only one of their broker.
    fn with_directories(
        &self,
        state: &PartitionState,
        replicas: &[BrokerId],
    ) -> Vec<(BrokerId, Option<DirectoryId>)> {
        let directory = |id: BrokerId| {
            if state.replicas.contains(&id) { state.directory(id) } else { self.only_directory(id) }
        };
        replicas.iter().map(|id| (*id, directory(*id))).collect()
    }

    pub(crate) fn list_reassignments(&self, which: Option<&[PartitionName]>) -> Answer {
        let wanted = |topic: &str, partition| {
            which.is_none_or(|list| list.iter().any(|at| at.topic == topic && at.partition == partition))
        };
        let ongoing = self
            .image
            .topics_by_name()
            .flat_map(|topic| topic.partitions.iter().map(move |(index, state)| (&topic.name, *index, state)))
            .filter(|(name, index, state)| state.is_reassigning() && wanted(name, *index))
            .map(|(name, partition, state)| OngoingReassignment {
                topic: name.to_string(),
                partition,
                replicas: state.replicas.clone(),
                adding: state.adding.clone(),
                removing: state.removing.clone(),
            })
            .collect();
        Answer::Reassignments(ongoing)
    }
}

fn without(list: &[BrokerId], out: &[BrokerId]) -> Vec<BrokerId> {
    list.iter().copied().filter(|id| !out.contains(id)).collect()
}
