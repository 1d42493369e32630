//! Creating, listing, describing and deleting topics.

use std::collections::BTreeMap;

use minikafka_model::{BrokerId, ErrorCode, PartitionIndex, TopicId, Uuid};
use minikafka_wire::create_topics::{
    CreatableConfig, CreatableTopic, CreateTopicsRequest, ReplicaAssignment, TopicResult,
};
use minikafka_wire::delete_topics::{DeleteTopicState, DeleteTopicsRequest};

use super::{Admin, Repeat};
use crate::error::{BrokerError, Error};
use crate::metadata::{ClusterView, TopicView};

/// A topic to create.
///
/// ```
/// use minikafka_client::NewTopic;
///
/// let topic = NewTopic::new("orders").partitions(3).replication_factor(3).config("min.insync.replicas", "2");
/// assert_eq!(topic.name, "orders");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// Number of partitions; the broker's default without one.
    pub partitions: Option<i32>,
    /// Replicas of each partition; the broker's default without one.
    pub replication_factor: Option<i16>,
    /// Replicas of each partition chosen by hand, instead of the two numbers.
    pub assignment: BTreeMap<PartitionIndex, Vec<BrokerId>>,
    /// Configs that differ from the broker's.
    pub configs: Vec<(String, String)>,
}

impl NewTopic {
    /// A topic with the broker's defaults.
    pub fn new(name: impl Into<String>) -> NewTopic {
        NewTopic { name: name.into(), ..NewTopic::default() }
    }

    /// With this many partitions.
    pub fn partitions(mut self, count: i32) -> NewTopic {
        self.partitions = Some(count);
        self
    }

    /// With this many replicas of each partition.
    pub fn replication_factor(mut self, factor: i16) -> NewTopic {
        self.replication_factor = Some(factor);
        self
    }

    /// With these replicas of one partition, the preferred leader first.
    pub fn assign(mut self, partition: i32, replicas: impl IntoIterator<Item = i32>) -> NewTopic {
        let replicas = replicas.into_iter().map(BrokerId).collect();
        self.assignment.insert(PartitionIndex(partition), replicas);
        self
    }

    /// With this config.
    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> NewTopic {
        self.configs.push((key.into(), value.into()));
        self
    }

    fn to_wire(&self) -> CreatableTopic {
        let assignments = self.assignment.iter().map(|(partition, replicas)| ReplicaAssignment {
            partition_index: partition.0,
            broker_ids: replicas.iter().map(|id| id.0).collect(),
        });
        let configs = self
            .configs
            .iter()
            .map(|(name, value)| CreatableConfig { name: name.clone(), value: Some(value.clone()) });
        CreatableTopic {
            name: self.name.clone(),
            num_partitions: self.partitions.unwrap_or(-1),
            replication_factor: self.replication_factor.unwrap_or(-1),
            assignments: assignments.collect(),
            configs: configs.collect(),
        }
    }
}

/// A topic as it was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its id, if the broker told it.
    pub id: Option<TopicId>,
    /// Number of partitions, if the broker told it.
    pub partitions: Option<i32>,
    /// Replicas of each partition, if the broker told it.
    pub replication_factor: Option<i16>,
}

impl CreatedTopic {
    fn from_wire(result: TopicResult) -> (String, Result<CreatedTopic, BrokerError>) {
        let created = BrokerError::check(result.error_code, result.error_message).map(|()| CreatedTopic {
            id: (result.topic_id != Uuid::ZERO).then_some(TopicId(result.topic_id)),
            partitions: (result.num_partitions > 0).then_some(result.num_partitions),
            replication_factor: (result.replication_factor > 0).then_some(result.replication_factor),
        });
        (result.name, created)
    }
}

fn not_controller<T>(results: &[(String, Result<T, BrokerError>)]) -> Result<(), Error> {
    let refused = results.iter().find_map(|(name, result)| match result {
        Err(error) if error.code == ErrorCode::NotController => Some((name, error)),
        _ => None,
    });
    match refused {
        Some((name, error)) => Err(Error::broker(format!("topic {name}"), error.clone())),
        None => Ok(()),
    }
}

impl Admin {
    /// Creates topics (or with `validate_only` says what would happen).
    ///
    /// # Errors
    /// The call as a whole: nobody to ask, no answer. After a lost connection or a time-out it is not known whether the topics were
    /// created. What became of each topic is in the list.
    pub async fn create_topics(
        &self,
        topics: &[NewTopic],
        validate_only: bool,
    ) -> Result<Vec<(String, Result<CreatedTopic, BrokerError>)>, Error> {
        let wanted: Vec<CreatableTopic> = topics.iter().map(NewTopic::to_wire).collect();
        self.any_broker("creating topics", Repeat::Command, |connection, left| {
            let timeout_ms = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
            let request = CreateTopicsRequest { topics: wanted.clone(), timeout_ms, validate_only };
            async move {
                let answer = connection.call(&request, left).await?;
                let results: Vec<_> = answer.topics.into_iter().map(CreatedTopic::from_wire).collect();
                not_controller(&results).map(|()| results)
            }
        })
        .await
    }

    /// Deletes topics by name.
    ///
    /// # Errors
    /// As [`Admin::create_topics`].
    pub async fn delete_topics(
        &self,
        names: &[String],
    ) -> Result<Vec<(String, Result<(), BrokerError>)>, Error> {
        let state = |name: &String| DeleteTopicState { name: Some(name.clone()), topic_id: Uuid::ZERO };
        self.any_broker("deleting topics", Repeat::Command, |connection, left| {
            let request = DeleteTopicsRequest {
                topics: names.iter().map(state).collect(),
                topic_names: names.to_vec(),
                timeout_ms: i32::try_from(left.as_millis()).unwrap_or(i32::MAX),
            };
            async move {
                let answer = connection.call(&request, left).await?;
                let results = answer.responses.into_iter().map(|result| {
                    let outcome = BrokerError::check(result.error_code, result.error_message);
                    (result.name.unwrap_or_default(), outcome)
                });
                let results: Vec<_> = results.collect();
                not_controller(&results).map(|()| results)
            }
        })
        .await
    }

    /// Every topic with its partitions, and the brokers that are not fenced.
    ///
    /// # Errors
    /// Nobody to ask, no answer.
    pub async fn describe_all_topics(&self) -> Result<ClusterView, Error> {
        self.look(None).await
    }

    /// These topics. One that does not exist carries its error ([`TopicView::error`]); none is created.
    ///
    /// # Errors
    /// Nobody to ask, no answer.
    pub async fn describe_topics(&self, names: &[String]) -> Result<Vec<TopicView>, Error> {
        let mut view = self.look(Some(names.to_vec())).await?;
        let missing = |name: &String| TopicView {
            name: name.clone(),
            id: None,
            error: Some(ErrorCode::UnknownTopicOrPartition),
            is_internal: false,
            partitions: BTreeMap::new(),
        };
        Ok(names.iter().map(|name| view.topics.remove(name).unwrap_or_else(|| missing(name))).collect())
    }

    /// The names of all topics, sorted.
    ///
    /// # Errors
    /// Nobody to ask, no answer.
    pub async fn list_topics(&self) -> Result<Vec<String>, Error> {
        Ok(self.look(None).await?.topics.into_keys().collect())
    }

    async fn look(&self, names: Option<Vec<String>>) -> Result<ClusterView, Error> {
        let keeper = self.shared.keeper.clone();
        self.any_broker("asking for metadata", Repeat::Question, |_, _| {
            let (keeper, names) = (keeper.clone(), names.clone());
            async move { Ok(ClusterView::from_wire(&keeper.metadata(names, false).await?)) }
        })
        .await
    }
}
