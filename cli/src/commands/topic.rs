//! `minikafka topic`: create, list, describe, delete.

use minikafka_client::{BrokerError, NewTopic};
use minikafka_model::ErrorCode;
use serde_json::json;

use super::connect::{connect, run};
use super::describe;
use crate::args::{Output, Topic, TopicCreate, TopicDelete, TopicList};
use crate::failure::{Failure, Outcome, answer};

/// `minikafka topic ...`.
pub(crate) fn topic(asked: &Topic) -> Outcome {
    run(async {
        match asked {
            Topic::Create(asked) => create(asked).await,
            Topic::List(asked) => list(asked).await,
            Topic::Describe(asked) => describe::describe(asked).await,
            Topic::Delete(asked) => delete(asked).await,
        }
    })
}

async fn create(asked: &TopicCreate) -> Outcome {
    let name = &asked.name;
    let mut topic = NewTopic::new(name);
    topic.partitions = asked.partitions;
    topic.replication_factor = asked.replication_factor;
    topic.configs.clone_from(&asked.config);
    if let Some(assignment) = &asked.assignment {
        for (partition, replicas) in (0..).zip(&assignment.0) {
            topic = topic.assign(partition, replicas.iter().copied());
        }
    }
    if name.contains(['.', '_']) {
        eprintln!(
            "note: topics whose names differ only in '.' and '_' collide; it is best to use one of them, not both"
        );
    }
    let client = connect(&asked.connection, &[]).await?;
    let results = client.admin().create_topics(&[topic], asked.validate_only).await?;
    let result = results.into_iter().next().map(|(_, result)| result);
    match result {
        Some(Ok(created)) => match asked.connection.output {
            Output::Table if asked.validate_only => answer(&format!("Topic {name} could be created.")),
            Output::Table => answer(&format!("Created topic {name}.")),
            Output::Json => answer(
                &json!({
                    "schema": 1,
                    "name": name,
                    "id": created.id.map(|id| id.to_string()),
                    "partitions": created.partitions,
                    "replication_factor": created.replication_factor,
                    "created": !asked.validate_only,
                })
                .to_string(),
            ),
        },
        Some(Err(error)) if asked.if_not_exists && error.code == ErrorCode::TopicAlreadyExists => Ok(()),
        Some(Err(error)) => Err(refused(name, &error)),
        None => Err(Failure::error(format!("the broker says nothing about topic {name}"))),
    }
}

fn refused(name: &str, error: &BrokerError) -> Failure {
    Failure::kafka(error.code, format!("topic {name}: {error}"))
}

async fn list(asked: &TopicList) -> Outcome {
    let client = connect(&asked.connection, &[]).await?;
    let names = client.admin().list_topics().await?;
    match asked.connection.output {
        Output::Table => names.is_empty().then_some(()).map_or_else(|| answer(&names.join("\n")), Ok),
        Output::Json => answer(&json!({"schema": 1, "topics": names}).to_string()),
    }
}

async fn delete(asked: &TopicDelete) -> Outcome {
    let client = connect(&asked.connection, &[]).await?;
    let results = client.admin().delete_topics(&asked.names).await?;
    let mut failure = None;
    let mut deleted = Vec::new();
    for (name, result) in results {
        match result {
            Ok(()) => deleted.push(name),
            Err(error) => failure = failure.or(Some(refused(&name, &error))),
        }
    }
    match asked.connection.output {
        Output::Table => {
            let lines: Vec<String> = deleted.iter().map(|name| format!("Deleted topic {name}.")).collect();
            if !lines.is_empty() {
                answer(&lines.join("\n"))?;
            }
        }
        Output::Json => answer(&json!({"schema": 1, "deleted": deleted}).to_string())?,
    }
    failure.map_or(Ok(()), Err)
}
