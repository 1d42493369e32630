//! One decision while it is being made: an image that moves with each record, the records, the events.

use std::collections::BTreeSet;
use std::sync::Arc;

use minikafka_metadata::{ConfigResource, Image, PartitionChange, PartitionState, Record};
use minikafka_model::{BrokerId, DirectoryId, TopicId, TopicPartition};

use crate::command::Overrides;
use crate::config::ControlConfig;
use crate::control::Moment;
use crate::dice::Dice;
use crate::election::{Change, Elected, ElectionKind, ElectionRules, Wish, change_partition};
use crate::event::ControlEvent;

pub(crate) const MIN_ISR: &str = "min.insync.replicas";
pub(crate) const UNCLEAN_ELECTION: &str = "unclean.leader.election.enable";

#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) config: &'a ControlConfig,
    pub(crate) at: Moment,
    pub(crate) image: Image,
    pub(crate) records: Vec<Record>,
    pub(crate) events: Vec<ControlEvent>,
    pub(crate) dice: Dice,
}

/// Who may lead besides the active brokers, and who may not although it is one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Exclusion {
    /// On its way out.
    pub(crate) leaving: Option<BrokerId>,
    /// May have lost records.
    pub(crate) unclean: Option<BrokerId>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(config: &'a ControlConfig, at: &Moment, image: Image) -> Draft<'a> {
        Draft { config, at: *at, image, records: Vec::new(), events: Vec::new(), dice: Dice::new(at.seed) }
    }

    /// Adds a record; what is decided after it sees its effect.
    pub(crate) fn put(&mut self, record: Record) {
        if let Err(error) = self.image.draft(self.at.next, &record) {
            panic!("the controller decided a record that does not apply: {error}");
        }
        self.records.push(record);
    }

    pub(crate) fn tell(&mut self, event: ControlEvent) {
        self.events.push(event);
    }

    pub(crate) fn name(&self, topic: TopicId) -> Arc<str> {
        self.image.topic_name(topic).cloned().unwrap_or_else(|| topic.to_string().into())
    }

    fn topic_value(&self, topic: TopicId, key: &str) -> Option<String> {
        let none = Arc::new(Overrides::new());
        let own = self.image.configs(ConfigResource::Topic(topic)).unwrap_or(&none);
        let cluster = self.image.configs(ConfigResource::ClusterDefault).unwrap_or(&none);
        self.config.rules.topic_value(key, own, cluster)
    }

    /// The effective min ISR of a topic: no more than its replicas (Kafka semantics 1.3).
    pub(crate) fn min_isr(&self, at: TopicPartition) -> usize {
        let configured =
            self.topic_value(at.topic, MIN_ISR).and_then(|value| value.parse().ok()).unwrap_or(1);
        let first = TopicPartition { partition: minikafka_model::PartitionIndex::ZERO, ..at };
        self.image.partition(first).map_or(configured, |state| configured.min(state.replicas.len()))
    }

    /// Whether this topic prefers availability over its records.
    pub(crate) fn unclean_allowed(&self, topic: TopicId) -> bool {
        self.topic_value(topic, UNCLEAN_ELECTION).is_some_and(|value| value == "true")
    }

    /// The kind of election that goes with a change of ISR.
    pub(crate) fn usual_kind(&self, topic: TopicId) -> ElectionKind {
        if self.unclean_allowed(topic) { ElectionKind::Unclean } else { ElectionKind::Online }
    }

    /// Where a new replica on this broker lies: known when the broker has one directory.
    pub(crate) fn only_directory(&self, broker: BrokerId) -> Option<DirectoryId> {
        match self.image.broker(broker)?.log_dirs.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    fn may_lead(&self, state: &PartitionState, id: BrokerId, out: Exclusion) -> bool {
        if out.leaving == Some(id) || out.unclean == Some(id) {
            return false;
        }
        self.image.broker(id).is_some_and(|broker| {
            let online = state.directory(id).is_none_or(|dir| broker.log_dirs.contains(&dir));
            broker.is_active() && online
        })
    }

    /// What would come of a wish.
    pub(crate) fn plan(
        &self,
        at: TopicPartition,
        wish: Wish,
        kind: ElectionKind,
        out: Exclusion,
    ) -> Option<Change> {
        let before = self.image.partition(at)?;
        let acceptable = |id: BrokerId| self.may_lead(before, id, out);
        let rules = ElectionRules {
            kind,
            elr: self.image.elr_enabled(),
            min_isr: self.min_isr(at),
            acceptable: &acceptable,
            faults: self.config.faults,
        };
        change_partition(before, wish, &rules)
    }

    /// Changes a partition; says what was decided. None where nothing changes.
    pub(crate) fn edit(
        &mut self,
        at: TopicPartition,
        wish: Wish,
        kind: ElectionKind,
        out: Exclusion,
        reason: &'static str,
    ) -> Option<Change> {
        let change = self.plan(at, wish, kind, out)?;
        self.commit(at, &change, reason);
        Some(change)
    }

    /// Writes a planned change.
    pub(crate) fn commit(&mut self, at: TopicPartition, change: &Change, reason: &'static str) {
        let Some(before) = self.image.partition(at).cloned() else { return };
        self.tell_change(at, &before, change, reason);
        self.put(Record::PartitionChange(PartitionChange::between(at, &before, &change.after)));
    }

    fn tell_change(
        &mut self,
        at: TopicPartition,
        before: &PartitionState,
        change: &Change,
        reason: &'static str,
    ) {
        let (topic, partition, after) = (self.name(at.topic), at.partition, &change.after);
        if change.completed_reassignment {
            self.tell(ControlEvent::Reassignment {
                topic: Arc::clone(&topic),
                partition,
                reason: "completed",
                replicas: after.replicas.clone(),
                adding: Vec::new(),
                removing: Vec::new(),
            });
        }
        let (from, to) = (before.isr.clone(), after.isr.clone());
        let (was, is): (BTreeSet<_>, BTreeSet<_>) = (before.isr_set(), after.isr_set());
        let partition_epoch = after.partition_epoch;
        // An election from outside the ISR replaces it; the election says so.
        let replaced = change.elected.is_some_and(|how| how != Elected::FromIsr);
        if was != is && !replaced {
            let topic = Arc::clone(&topic);
            self.tell(if is.is_subset(&was) {
                ControlEvent::IsrShrink { topic, partition, from, to, partition_epoch, reason }
            } else {
                ControlEvent::IsrExpand { topic, partition, from, to, partition_epoch, reason }
            });
        }
        if before.leader != after.leader {
            self.tell(ControlEvent::Election {
                topic,
                partition,
                from: before.leader,
                to: after.leader,
                leader_epoch: after.leader_epoch,
                partition_epoch,
                isr: after.isr.clone(),
                unclean: change.elected.is_some_and(|how| how.is_unclean()),
                reason,
            });
        }
    }
}
