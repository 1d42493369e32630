//! What a broker has to do with its own replicas after a change of metadata (Kafka semantics 6.11).

use std::collections::BTreeMap;
use std::sync::Arc;

use minikafka_model::{BrokerId, TopicPartition};

use crate::delta::Delta;
use crate::image::Image;
use crate::partition::PartitionState;

/// A replica of this broker and what the metadata says of it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalReplica {
    /// The name of its topic.
    pub topic: Arc<str>,
    /// The state of its partition.
    pub state: Arc<PartitionState>,
    /// This broker had no replica of the partition before.
    pub is_new: bool,
    /// The leader epoch rose (always so for a new replica): leaders start a new epoch, followers start their fetcher anew. Without
    /// it only the ISR, the replica list or the like changed.
    pub leader_epoch_rose: bool,
}

/// What to do, in this order: delete, then lead, then follow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalPlan {
    /// Replicas that are not this broker's any more, with the topic's name: stop them and remove their files.
    pub delete: BTreeMap<TopicPartition, Arc<str>>,
    /// Partitions that changed and are led by this broker.
    pub lead: BTreeMap<TopicPartition, LocalReplica>,
    /// Partitions that changed and of which this broker holds a replica without leading. Where there is no leader the log stays as it
    /// is and nothing is fetched.
    pub follow: BTreeMap<TopicPartition, LocalReplica>,
}

impl LocalPlan {
    /// There is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.delete.is_empty() && self.lead.is_empty() && self.follow.is_empty()
    }
}

/// The plan of one broker for the step that `delta` describes and that ends at `new`.
pub fn local_plan(new: &Image, delta: &Delta, me: BrokerId) -> LocalPlan {
    let mut plan = LocalPlan::default();
    for (id, topic) in &delta.topics_deleted {
        for (index, state) in &topic.partitions {
            if state.replicas.contains(&me) {
                let at = TopicPartition { topic: *id, partition: *index };
                plan.delete.insert(at, Arc::clone(&topic.name));
            }
        }
    }
    for (at, change) in &delta.partitions {
        let Some(name) = new.topic_name(at.topic) else { continue };
        let was_mine = change.before.as_ref().is_some_and(|before| before.replicas.contains(&me));
        if !change.after.replicas.contains(&me) {
            if was_mine {
                plan.delete.insert(*at, Arc::clone(name));
            }
            continue;
        }
        let replica = LocalReplica {
            topic: Arc::clone(name),
            state: Arc::clone(&change.after),
            is_new: !was_mine,
            leader_epoch_rose: !was_mine || change.leader_epoch_rose(),
        };
        let list = if change.after.leader == Some(me) { &mut plan.lead } else { &mut plan.follow };
        list.insert(*at, replica);
    }
    plan
}
