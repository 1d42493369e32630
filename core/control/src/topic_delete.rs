//! Topics go (Kafka semantics 6.8).

use std::collections::BTreeMap;
use std::sync::Arc;

use minikafka_metadata::Record;
use minikafka_model::{ErrorCode, TopicId};

use crate::answer::{Answer, DeletedTopic, Refusal};
use crate::command::{DeleteTopics, TopicSelector};
use crate::draft::Draft;
use crate::event::ControlEvent;

impl Draft<'_> {
    pub(crate) fn delete_topics(&mut self, it: &DeleteTopics) -> Answer {
        if !self.config.delete_topic_enable {
            return Answer::Refused(Refusal::new(
                ErrorCode::TopicDeletionDisabled,
                "Topic deletion is disabled.",
            ));
        }
        let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
        let mut by_id: BTreeMap<TopicId, usize> = BTreeMap::new();
        for topic in &it.topics {
            if let Some(name) = &topic.name {
                *by_name.entry(name).or_default() += 1;
            }
            if let Some(id) = topic.id {
                *by_id.entry(id).or_default() += 1;
            }
        }
        let mut results: Vec<DeletedTopic> = Vec::new();
        for topic in &it.topics {
            let twice = topic.name.as_deref().is_some_and(|name| by_name[name] > 1)
                || topic.id.is_some_and(|id| by_id[&id] > 1);
            // What is named twice is answered once.
            if twice && results.iter().any(|done| done.name == topic.name && done.id == topic.id) {
                continue;
            }
            let outcome = if twice { Err(duplicate(topic)) } else { self.find(topic) };
            results.push(match outcome {
                Ok((id, name)) => {
                    self.put(Record::RemoveTopic { id });
                    self.tell(ControlEvent::TopicDeleted { topic: Arc::clone(&name), topic_id: id });
                    DeletedTopic { name: Some(name.to_string()), id: Some(id), outcome: Ok(()) }
                }
                Err(refusal) => {
                    DeletedTopic { name: topic.name.clone(), id: topic.id, outcome: Err(refusal) }
                }
            });
        }
        Answer::DeletedTopics(results)
    }

    fn find(&self, topic: &TopicSelector) -> Result<(TopicId, Arc<str>), Refusal> {
        match (&topic.name, topic.id) {
            (Some(_), Some(_)) => Err(Refusal::new(
                ErrorCode::InvalidRequest,
                "You may not specify both topic name and topic id.",
            )),
            (None, None) => {
                Err(Refusal::new(ErrorCode::InvalidRequest, "Neither topic name nor id were specified."))
            }
            (Some(name), None) => {
                let topic = self.image.topic_by_name(name).ok_or_else(|| {
                    let text = "This server does not host this topic-partition.";
                    Refusal::new(ErrorCode::UnknownTopicOrPartition, text)
                })?;
                Ok((topic.id, Arc::clone(&topic.name)))
            }
            (None, Some(id)) => {
                let topic = self.image.topic(id).ok_or_else(|| {
                    Refusal::new(ErrorCode::UnknownTopicId, "This server does not host this topic ID.")
                })?;
                Ok((id, Arc::clone(&topic.name)))
            }
        }
    }
}

fn duplicate(topic: &TopicSelector) -> Refusal {
    let text = if topic.name.is_some() { "Duplicate topic name." } else { "Duplicate topic id." };
    Refusal::new(ErrorCode::InvalidRequest, text)
}
