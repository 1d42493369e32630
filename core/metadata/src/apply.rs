//! From records to state: the only way.

use std::collections::BTreeMap;
use std::sync::Arc;

use minikafka_model::{BrokerEpoch, BrokerId, MetadataOffset, PartitionIndex, TopicId, TopicPartition};

use crate::broker::BrokerRegistration;
use crate::delta::Delta;
use crate::error::{ApplyError, Violation};
use crate::image::{Image, Position, TopicImage};
use crate::partition::{PartitionChange, PartitionState};
use crate::record::{BrokerChange, ConfigResource, Record, RegisterBroker};

impl Image {
    /// Applies one entry of the log: all of its records, at one position. Gives back what changed.
    ///
    /// # Errors
    /// An entry that does not follow from this image. The image is then of no use any more and the process has to stop.
    pub fn apply(&mut self, at: Position, records: &[Record]) -> Result<Delta, ApplyError> {
        if let Some(applied) = self.position {
            if at.offset <= applied.offset {
                return Err(ApplyError::OutOfOrder { offset: at.offset, applied: applied.offset });
            }
            if at.term < applied.term {
                return Err(ApplyError::TermFell { offset: at.offset, term: at.term, applied: applied.term });
            }
        }
        let mut delta = Delta::default();
        for record in records {
            self.apply_one(at.offset, record, &mut delta)?;
        }
        self.position = Some(at);
        self.check_changed(at.offset, &delta)?;
        Ok(delta)
    }

    /// Applies one record of an entry that is still being decided; its place in the log is not taken yet. For the controller, which
    /// decides record by record; what it has decided then goes through [`Image::apply`] like everywhere else.
    ///
    /// # Errors
    /// A record that does not follow from this image.
    pub fn draft(&mut self, at: Position, record: &Record) -> Result<(), ApplyError> {
        self.apply_one(at.offset, record, &mut Delta::default())
    }

    /// What holds between partitions and brokers is checked when the whole entry has been applied.
    fn check_changed(&self, offset: MetadataOffset, delta: &Delta) -> Result<(), ApplyError> {
        for at in delta.partitions.keys() {
            if let Some(state) = self.partition(*at) {
                self.check_alive(state).map_err(|violation| ApplyError::Partition {
                    offset,
                    at: *at,
                    violation,
                })?;
            }
        }
        Ok(())
    }

    fn apply_one(
        &mut self,
        offset: MetadataOffset,
        record: &Record,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        let name = record.type_name();
        match record {
            Record::RegisterBroker(it) => self.register(offset, it, delta)?,
            Record::BrokerChange(it) => self.change_broker(offset, it, delta)?,
            Record::UnregisterBroker { broker, epoch } => {
                let known = self.known_broker(offset, name, *broker, *epoch)?;
                Arc::make_mut(&mut self.brokers).remove(broker);
                delta.broker(*broker, Some(known), None);
            }
            Record::Topic { id, name } => self.create_topic(offset, *id, name, delta)?,
            Record::Partition { at, state } => self.create_partition(offset, *at, state, delta)?,
            Record::PartitionChange(it) => self.change_partition(offset, it, delta)?,
            Record::RemoveTopic { id } => {
                let unknown = ApplyError::UnknownTopic { offset, record: name, id: *id };
                let topic = Arc::make_mut(&mut self.topics).remove(id).ok_or(unknown)?;
                Arc::make_mut(&mut self.names).remove(&topic.name);
                Arc::make_mut(&mut self.configs).remove(&ConfigResource::Topic(*id));
                delta.topic_deleted(topic);
            }
            Record::Config { resource, key, value } => {
                if let ConfigResource::Topic(id) = resource {
                    self.known_topic(offset, name, *id)?;
                }
                self.set_config(*resource, key, value.as_deref());
                delta.configs.insert(*resource);
            }
            Record::FeatureLevel { name, level } => {
                Arc::make_mut(&mut self.features).insert(name.clone(), *level);
                delta.features.insert(name.clone());
            }
            Record::ProducerIds { next, .. } => {
                if *next < self.next_producer_id {
                    return Err(ApplyError::ProducerIdsFell {
                        offset,
                        from: self.next_producer_id.0,
                        to: next.0,
                    });
                }
                self.next_producer_id = *next;
            }
            Record::NoOp => {}
            Record::ClearElr { topic } => self.clear_elr(offset, *topic, delta)?,
        }
        Ok(())
    }

    fn known_broker(
        &self,
        offset: MetadataOffset,
        record: &'static str,
        broker: BrokerId,
        epoch: BrokerEpoch,
    ) -> Result<Arc<BrokerRegistration>, ApplyError> {
        let known = self.brokers.get(&broker).ok_or(ApplyError::UnknownBroker { offset, record, broker })?;
        if known.epoch != epoch {
            return Err(ApplyError::BrokerEpoch { offset, record, broker, epoch, known: known.epoch });
        }
        Ok(Arc::clone(known))
    }

    fn known_topic(
        &self,
        offset: MetadataOffset,
        record: &'static str,
        id: TopicId,
    ) -> Result<&Arc<TopicImage>, ApplyError> {
        self.topics.get(&id).ok_or(ApplyError::UnknownTopic { offset, record, id })
    }

    fn register(
        &mut self,
        offset: MetadataOffset,
        it: &RegisterBroker,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        let before = self.brokers.get(&it.broker).cloned();
        if let Some(known) = &before {
            let amends = known.incarnation == it.incarnation && known.epoch == it.epoch;
            if !amends && it.epoch <= known.epoch {
                return Err(ApplyError::BrokerEpoch {
                    offset,
                    record: "RegisterBrokerRecord",
                    broker: it.broker,
                    epoch: it.epoch,
                    known: known.epoch,
                });
            }
        }
        let after = Arc::new(BrokerRegistration {
            id: it.broker,
            epoch: it.epoch,
            incarnation: it.incarnation,
            listeners: it.listeners.clone(),
            rack: it.rack.clone(),
            log_dirs: it.log_dirs.clone(),
            fenced: it.fenced,
            in_controlled_shutdown: it.in_controlled_shutdown,
        });
        Arc::make_mut(&mut self.brokers).insert(it.broker, Arc::clone(&after));
        delta.broker(it.broker, before, Some(after));
        Ok(())
    }

    fn change_broker(
        &mut self,
        offset: MetadataOffset,
        it: &BrokerChange,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        let before = self.known_broker(offset, "BrokerRegistrationChangeRecord", it.broker, it.epoch)?;
        let mut after = BrokerRegistration::clone(&before);
        after.fenced = it.fenced.unwrap_or(before.fenced);
        after.in_controlled_shutdown = it.in_controlled_shutdown.unwrap_or(before.in_controlled_shutdown);
        if let Some(dirs) = &it.log_dirs {
            after.log_dirs.clone_from(dirs);
        }
        let after = Arc::new(after);
        Arc::make_mut(&mut self.brokers).insert(it.broker, Arc::clone(&after));
        delta.broker(it.broker, Some(before), Some(after));
        Ok(())
    }

    fn create_topic(
        &mut self,
        offset: MetadataOffset,
        id: TopicId,
        name: &str,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        if self.topics.contains_key(&id) || self.names.contains_key(name) {
            return Err(ApplyError::TopicExists { offset, id, name: name.to_owned() });
        }
        let name: Arc<str> = name.into();
        Arc::make_mut(&mut self.names).insert(Arc::clone(&name), id);
        let topic = TopicImage { id, name, partitions: BTreeMap::new() };
        Arc::make_mut(&mut self.topics).insert(id, Arc::new(topic));
        delta.topics_created.insert(id);
        Ok(())
    }

    fn create_partition(
        &mut self,
        offset: MetadataOffset,
        at: TopicPartition,
        state: &PartitionState,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        let topic = self.known_topic(offset, "PartitionRecord", at.topic)?;
        let expected = topic.partitions.keys().next_back().map_or(PartitionIndex::ZERO, |last| last.next());
        if at.partition != expected {
            return Err(ApplyError::PartitionOutOfTurn { offset, at, expected });
        }
        state.check().map_err(|violation| ApplyError::Partition { offset, at, violation })?;
        self.put_partition(at, state.clone(), delta);
        Ok(())
    }

    fn change_partition(
        &mut self,
        offset: MetadataOffset,
        it: &PartitionChange,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        let before = self.partition(it.at).ok_or(ApplyError::UnknownPartition { offset, at: it.at })?;
        let after =
            it.onto(before).map_err(|violation| ApplyError::Partition { offset, at: it.at, violation })?;
        self.put_partition(it.at, after, delta);
        Ok(())
    }

    /// Sets a partition's state; its topic exists.
    fn put_partition(&mut self, at: TopicPartition, state: PartitionState, delta: &mut Delta) {
        if let Some(topic) = Arc::make_mut(&mut self.topics).get_mut(&at.topic) {
            let after = Arc::new(state);
            let before = Arc::make_mut(topic).partitions.insert(at.partition, Arc::clone(&after));
            delta.partition(at, before, after);
        }
    }

    fn set_config(&mut self, resource: ConfigResource, key: &str, value: Option<&str>) {
        let configs = Arc::make_mut(&mut self.configs);
        let map = Arc::make_mut(configs.entry(resource).or_default());
        match value {
            Some(value) => map.insert(key.to_owned(), value.to_owned()),
            None => map.remove(key),
        };
        if map.is_empty() {
            configs.remove(&resource);
        }
    }

    /// Forgetting the ELR is a change like any other: the partition epoch rises.
    fn clear_elr(
        &mut self,
        offset: MetadataOffset,
        only: Option<TopicId>,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        if let Some(id) = only {
            self.known_topic(offset, "ClearElrRecord", id)?;
        }
        let affected: Vec<(TopicPartition, PartitionState)> = self
            .partitions()
            .filter(|(at, _)| only.is_none_or(|id| id == at.topic))
            .filter(|(_, state)| !state.elr.is_empty() || state.last_known_elr.is_some())
            .map(|(at, state)| (at, PartitionState::clone(state)))
            .collect();
        for (at, mut state) in affected {
            state.elr.clear();
            state.last_known_elr = None;
            state.partition_epoch = state.partition_epoch.next();
            state.check().map_err(|violation: Violation| ApplyError::Partition { offset, at, violation })?;
            self.put_partition(at, state, delta);
        }
        Ok(())
    }
}
