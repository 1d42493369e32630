//! `minikafka produce`: the lines of standard input as records.

use std::io::{self, BufRead, Write};

use bytes::Bytes;
use minikafka_client::{Client, Delivery, ProduceError, Record, Stored};
use serde_json::json;
use tokio::sync::mpsc;

use super::connect::{connect, run};
use crate::args::{Output, Produce};
use crate::failure::{Failure, Outcome, Written, written};

/// Lines that were read but not sent, and deliveries that were not looked at; beyond it reading waits.
const MAX_AHEAD: usize = 4096;
/// Failures that are told one by one.
const MAX_TOLD: u64 = 10;

/// Writes every line; ends with the first failure, if there was one.
pub(crate) fn produce(asked: &Produce) -> Outcome {
    run(async {
        let mut extra = Vec::new();
        if let Some(acks) = &asked.acks {
            extra.push(("acks", acks.as_str()));
        }
        if asked.idempotent {
            extra.push(("enable.idempotence", "true"));
        }
        let client = connect(&asked.connection, &extra).await?;
        write_lines(asked, &client).await
    })
}

/// Counts and the first failure.
#[derive(Default)]
struct Tally {
    delivered: u64,
    failed: u64,
    first: Option<Failure>,
}

async fn write_lines(asked: &Produce, client: &Client) -> Outcome {
    let producer = client.producer();
    let mut lines = read_lines();
    let (deliveries, to_watch) = mpsc::channel::<Delivery>(MAX_AHEAD);
    let show = if asked.verbose { Some(asked.connection.output) } else { None };
    let watching = tokio::spawn(watch(to_watch, show));
    let mut failure = None;
    while let Some(line) = lines.recv().await {
        let sent = match line {
            Ok(line) => producer.send(record(asked, line)).await.map_err(Failure::from),
            Err(error) => Err(Failure::error(format!("standard input: {error}"))),
        };
        match sent {
            Ok(delivery) => {
                if deliveries.send(delivery).await.is_err() {
                    break;
                }
            }
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    drop(deliveries);
    producer.flush().await;
    let tally = watching.await.map_err(Failure::error)??;
    let Tally { delivered, failed, first } = tally;
    if failed > 0 || delivered > 0 {
        let lost = if failed > 0 { format!(", {failed} not") } else { String::new() };
        eprintln!("{delivered} record{} delivered{lost}", if delivered == 1 { "" } else { "s" });
    }
    failure.or(first).map_or(Ok(()), Err)
}

/// Waits for the verdicts in the order of the lines.
async fn watch(mut deliveries: mpsc::Receiver<Delivery>, show: Option<Output>) -> Outcome<Tally> {
    let mut tally = Tally::default();
    while let Some(delivery) = deliveries.recv().await {
        match delivery.await {
            Ok(stored) => {
                tally.delivered += 1;
                if let Some(output) = show
                    && say(&stored, output)? == Written::Enough
                {
                    return Ok(tally);
                }
            }
            Err(error) => {
                tally.failed += 1;
                tell(&error, tally.failed);
                tally.first.get_or_insert_with(|| error.into());
            }
        }
    }
    Ok(tally)
}

fn tell(error: &ProduceError, failed: u64) {
    // The first is told at the end, with the exit code.
    if failed > 1 && failed <= MAX_TOLD {
        eprintln!("{error}");
    } else if failed == MAX_TOLD + 1 {
        eprintln!("further failures are only counted");
    }
}

fn say(stored: &Stored, output: Output) -> Outcome<Written> {
    let offset = stored.offset.map(|offset| offset.0);
    let line = match output {
        Output::Table => {
            let offset = offset.map_or_else(|| "unknown".to_owned(), |offset| offset.to_string());
            format!("partition {} offset {offset}", stored.partition)
        }
        Output::Json => {
            json!({"topic": &*stored.topic, "partition": stored.partition.0, "offset": offset, "timestamp": stored.timestamp.0})
                .to_string()
        }
    };
    let mut out = io::stdout().lock();
    written(writeln!(out, "{line}").and_then(|()| out.flush()))
}

fn record(asked: &Produce, line: Vec<u8>) -> Record {
    let mut record = Record::to(&asked.topic);
    let line = Bytes::from(line);
    let separator = asked.key_separator.as_deref().map(str::as_bytes).filter(|text| !text.is_empty());
    let at =
        separator.and_then(|separator| line.windows(separator.len()).position(|window| window == separator));
    record = match (at, separator) {
        (Some(at), Some(separator)) => record.key(line.slice(..at)).value(line.slice(at + separator.len()..)),
        _ => record.value(line),
    };
    if let Some(partition) = asked.partition {
        record = record.partition(partition);
    }
    for (key, value) in &asked.header {
        record = record.header(key.clone(), value.clone());
    }
    record
}

/// Reads standard input on a thread of its own: a terminal cannot be waited for otherwise.
fn read_lines() -> mpsc::Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel(MAX_AHEAD);
    std::thread::spawn(move || {
        for line in io::stdin().lock().split(b'\n') {
            let line = line.map(|mut line| {
                if line.last() == Some(&b'\r') {
                    line.pop();
                }
                line
            });
            let failed = line.is_err();
            if sender.blocking_send(line).is_err() || failed {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn asked(words: &[&str]) -> Produce {
        let words = ["minikafka", "produce", "orders"].iter().chain(words);
        match Arguments::try_parse_from(words).expect("a good command line").command {
            Command::Produce(asked) => asked,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_is_cut_at_the_first_separator() {
        let asked = asked(&["-K", "::", "-H", "a=b", "-p", "2"]);
        let record = record(&asked, b"k::v::w".to_vec());
        assert_eq!((record.key.as_deref(), record.value.as_deref()), (Some(&b"k"[..]), Some(&b"v::w"[..])));
        assert_eq!(record.headers.len(), 1);
        assert_eq!(record.partition.map(|p| p.0), Some(2));
        let record = super::record(&asked, b"no key".to_vec());
        assert_eq!((record.key, record.value.as_deref()), (None, Some(&b"no key"[..])));
    }
}
