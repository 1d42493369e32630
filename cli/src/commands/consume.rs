//! `minikafka consume`: records of assigned partitions.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use minikafka_client::{Client, ConsumerRecord, Error, OffsetSpec, Start};
use minikafka_model::{ErrorCode, Offset, WallMs};
use serde_json::{Value, json};

use super::connect::{connect, run};
use super::template::Template;
use crate::args::{Consume, Output, Place};
use crate::failure::{Failure, Kind, Outcome, Written, written};

/// Reads until told to stop.
pub(crate) fn consume(asked: &Consume) -> Outcome {
    let template = Template::parse(&asked.format).map_err(Failure::usage)?;
    if matches!(asked.to, Some(Place::Beginning | Place::BeforeEnd(_) | Place::Time(_))) {
        return Err(Failure::usage("--to takes end or an offset"));
    }
    run(async {
        // A reader creates no topics, and is told where its place does not exist.
        let extra = [("allow.auto.create.topics", "false"), ("auto.offset.reset", "none")];
        let client = connect(&asked.connection, &extra).await?;
        read(asked, &client, &template).await
    })
}

async fn read(asked: &Consume, client: &Client, template: &Template) -> Outcome {
    let partitions = partitions(asked, client).await?;
    let starts = starts(asked, client, &partitions).await?;
    let ends = ends(asked, client, &partitions).await?;
    let mut builder = client.consumer();
    for (partition, start) in starts {
        builder = builder.assign(&asked.topic, partition, start);
    }
    let mut consumer = builder.start();
    let positions = consumer.positions();
    let mut out = io::BufWriter::new(io::stdout());
    let mut left = asked.max.unwrap_or(u64::MAX);
    while left > 0 {
        let next = tokio::select! {
            biased;
            next = consumer.next() => next,
            () = positions.reached(&asked.topic, &ends), if !ends.is_empty() => break,
            () = positions.caught_up(), if asked.exit_eof => break,
            // Nothing is there at once: what was read is shown before waiting.
            () = std::future::ready(()), if !out.buffer().is_empty() => {
                if written(out.flush())? == Written::Enough {
                    return Ok(());
                }
                continue;
            }
        };
        let record = match next {
            Some(Ok(record)) => record,
            Some(Err(error @ Error::LogTruncation { .. })) => {
                eprintln!("note: {error}; going on there");
                continue;
            }
            Some(Err(error)) => {
                // What was read is shown, whatever came of the rest.
                let _ = out.flush();
                return Err(explained(asked, client, error).await);
            }
            None => break,
        };
        if ends.get(&record.partition.0).is_some_and(|end| record.offset >= *end) {
            continue;
        }
        let line = match asked.connection.output {
            Output::Table => template.fill(&record),
            Output::Json => object(&record),
        };
        if written(out.write_all(&line))? == Written::Enough {
            return Ok(());
        }
        left -= 1;
    }
    written(out.flush()).map(|_| ())
}

/// A failure, with the offsets that are there where one was asked for that is not.
async fn explained(asked: &Consume, client: &Client, error: Error) -> Failure {
    let Error::OffsetOutOfRange { partition, .. } = error else { return error.into() };
    let first = offsets(asked, client, &[partition], OffsetSpec::Earliest).await;
    let last = offsets(asked, client, &[partition], OffsetSpec::Latest).await;
    let failure = Failure::from(error);
    match (first, last) {
        (Ok(first), Ok(last)) => {
            let of = |found: &BTreeMap<i32, Offset>| found.get(&partition).copied().unwrap_or(Offset::ZERO);
            failure.hint(format!("the log begins at {} and ends before {}", of(&first), of(&last)))
        }
        _ => failure,
    }
}

async fn partitions(asked: &Consume, client: &Client) -> Outcome<Vec<i32>> {
    let topics = client.admin().describe_topics(std::slice::from_ref(&asked.topic)).await?;
    let topic = topics.into_iter().next().ok_or_else(|| Failure::error("the broker says nothing"))?;
    match topic.error {
        Some(ErrorCode::UnknownTopicOrPartition) => {
            let code = ErrorCode::UnknownTopicOrPartition;
            return Err(Failure::kafka(code, format!("topic {} does not exist", asked.topic)));
        }
        Some(ErrorCode::LeaderNotAvailable) | None => {}
        Some(code) => return Err(Failure::kafka(code, format!("topic {}: {code}", asked.topic))),
    }
    let all: Vec<i32> = topic.partitions.keys().map(|partition| partition.0).collect();
    if asked.partition.is_empty() {
        return Ok(all);
    }
    match asked.partition.iter().find(|partition| !all.contains(partition)) {
        Some(missing) => {
            let text = format!(
                "topic {} has no partition {missing}, only 0 to {}",
                asked.topic,
                all.len().saturating_sub(1)
            );
            Err(Failure::of(Kind::NotFound, text))
        }
        None => Ok(asked.partition.clone()),
    }
}

async fn offsets(
    asked: &Consume,
    client: &Client,
    partitions: &[i32],
    spec: OffsetSpec,
) -> Outcome<BTreeMap<i32, Offset>> {
    let wanted: Vec<(String, i32, OffsetSpec)> =
        partitions.iter().map(|partition| (asked.topic.clone(), *partition, spec)).collect();
    let mut found = BTreeMap::new();
    for ((_, partition), result) in client.admin().list_offsets(&wanted).await {
        found.insert(partition, result?.offset.unwrap_or(Offset::ZERO));
    }
    Ok(found)
}

async fn starts(asked: &Consume, client: &Client, partitions: &[i32]) -> Outcome<BTreeMap<i32, Start>> {
    let everywhere = |start: Start| Ok(partitions.iter().map(|partition| (*partition, start)).collect());
    match asked.from {
        Place::Beginning => everywhere(Start::Earliest),
        Place::End => everywhere(Start::Latest),
        Place::Offset(offset) => everywhere(Start::At(Offset(offset))),
        Place::Time(millis) => everywhere(Start::Time(WallMs(millis))),
        Place::BeforeEnd(count) => {
            let first = offsets(asked, client, partitions, OffsetSpec::Earliest).await?;
            let last = offsets(asked, client, partitions, OffsetSpec::Latest).await?;
            Ok(last
                .into_iter()
                .map(|(partition, end)| {
                    let from = end.plus(-count).max(first.get(&partition).copied().unwrap_or(Offset::ZERO));
                    (partition, Start::At(from))
                })
                .collect())
        }
    }
}

async fn ends(asked: &Consume, client: &Client, partitions: &[i32]) -> Outcome<BTreeMap<i32, Offset>> {
    match asked.to {
        Some(Place::End) => offsets(asked, client, partitions, OffsetSpec::Latest).await,
        Some(Place::Offset(offset)) => {
            Ok(partitions.iter().map(|partition| (*partition, Offset(offset))).collect())
        }
        _ => Ok(BTreeMap::new()),
    }
}

/// Text as text, other bytes as base64 under a name that says so.
fn put(object: &mut serde_json::Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    match bytes.map(|bytes| (std::str::from_utf8(bytes), bytes)) {
        None => object.insert(name.to_owned(), Value::Null),
        Some((Ok(text), _)) => object.insert(name.to_owned(), text.into()),
        Some((Err(_), bytes)) => object.insert(format!("{name}_base64"), STANDARD.encode(bytes).into()),
    };
}

fn object(record: &ConsumerRecord) -> Vec<u8> {
    let mut object = serde_json::Map::new();
    object.insert("topic".to_owned(), (*record.topic).into());
    object.insert("partition".to_owned(), record.partition.0.into());
    object.insert("offset".to_owned(), record.offset.0.into());
    object.insert("timestamp".to_owned(), record.timestamp.0.into());
    object.insert("leader_epoch".to_owned(), record.leader_epoch.map(|epoch| epoch.0).into());
    put(&mut object, "key", record.key.as_deref());
    put(&mut object, "value", record.value.as_deref());
    let headers = record.headers.iter().map(|header| {
        let mut entry = serde_json::Map::new();
        put(&mut entry, "key", Some(&header.key));
        put(&mut entry, "value", header.value.as_deref());
        Value::Object(entry)
    });
    object.insert("headers".to_owned(), headers.collect());
    let mut line = json!(object).to_string().into_bytes();
    line.push(b'\n');
    line
}
