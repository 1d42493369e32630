//! `minikafka log dump`: what stands in a file, in the words of Kafka's own tool or as JSON.

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use minikafka_node::OsDisk;
use minikafka_storage::dump::{BatchFacts, DumpError, Facts, RecordFacts, dump_file, dump_log};
use serde::Serialize;

use crate::args::LogDump;
use crate::failure::{Failure, Kind, Outcome, Written, written};

/// Says what stands in each file; damage at the end of a log is told on standard error.
pub(crate) fn log_dump(asked: &LogDump) -> Outcome {
    let mut out = BufWriter::new(io::stdout().lock());
    for file in &asked.files {
        let is_log = file.extension().is_some_and(|extension| extension == "log");
        let told = if is_log { log(asked, file, &mut out) } else { other(asked, file, &mut out) };
        if told? == Written::Enough {
            return Ok(());
        }
    }
    written(out.flush()).map(|_| ())
}

fn failed(error: DumpError) -> Failure {
    match error {
        DumpError::Missing { .. } => Failure::of(Kind::NotFound, error),
        DumpError::UnknownFile { .. } => Failure::usage(error),
        _ => Failure::error(error),
    }
}

/// A log may be large: its batches are told one by one.
fn log(asked: &LogDump, file: &Path, out: &mut impl Write) -> Outcome<Written> {
    let mut result = Ok(());
    if !asked.json {
        let base =
            file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().trim_start_matches('0');
        let base = if base.is_empty() { "0" } else { base };
        result = writeln!(out, "Dumping {}\nLog starting offset: {base}", file.display());
    }
    let invalid = dump_log(&OsDisk, file, asked.records, |batch| {
        if result.is_ok() {
            result =
                if asked.json { put_json(out, &batch) } else { out.write_all(batch_text(&batch).as_bytes()) };
        }
    })
    .map_err(failed)?;
    if invalid > 0 {
        if asked.json {
            #[derive(Serialize)]
            #[serde(rename_all = "camelCase")]
            struct End {
                invalid_bytes: u64,
            }
            result = result.and_then(|()| put_json(out, &End { invalid_bytes: invalid }));
        }
        result = result.and_then(|()| out.flush());
        eprintln!("Found {invalid} invalid bytes at the end of {}", file.display());
    }
    written(result)
}

fn other(asked: &LogDump, file: &Path, out: &mut impl Write) -> Outcome<Written> {
    let facts = dump_file(&OsDisk, file, asked.records).map_err(failed)?;
    if asked.json {
        return written(put_json(out, &facts));
    }
    written(
        writeln!(out, "Dumping {}", file.display())
            .and_then(|()| out.write_all(facts_text(&facts).as_bytes())),
    )
}

fn put_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

/// Java's way to show a number that may be absent.
fn optional(number: Option<i64>) -> String {
    number.map_or_else(|| "OptionalLong.empty".to_owned(), |number| format!("OptionalLong[{number}]"))
}

fn batch_text(batch: &BatchFacts) -> String {
    let BatchFacts { base_offset, last_offset, count, base_sequence, last_sequence, .. } = batch;
    let BatchFacts { producer_id, producer_epoch, partition_leader_epoch, is_transactional, .. } = batch;
    let BatchFacts { is_control, position, timestamp_type, timestamp, size, magic, .. } = batch;
    let BatchFacts { compresscodec, crc, isvalid, .. } = batch;
    let horizon = optional(batch.delete_horizon_ms);
    let mut text = format!(
        "baseOffset: {base_offset} lastOffset: {last_offset} count: {count} baseSequence: {base_sequence} \
         lastSequence: {last_sequence} producerId: {producer_id} producerEpoch: {producer_epoch} \
         partitionLeaderEpoch: {partition_leader_epoch} isTransactional: {is_transactional} isControl: {is_control} \
         deleteHorizonMs: {horizon} position: {position} {timestamp_type}: {timestamp} size: {size} magic: {magic} \
         compresscodec: {compresscodec} crc: {crc} isvalid: {isvalid}\n"
    );
    for record in batch.records.iter().flatten() {
        text.push_str(&record_text(record, timestamp_type));
    }
    if let Some(error) = &batch.records_error {
        writeln!(text, "| {error}").expect("a String takes all text");
    }
    text
}

fn record_text(record: &RecordFacts, timestamp_type: &str) -> String {
    let RecordFacts { offset, timestamp, key_size, value_size, sequence, header_keys, .. } = record;
    let mut text = format!(
        "| offset: {offset} {timestamp_type}: {timestamp} keySize: {key_size} valueSize: {value_size} \
         sequence: {sequence} headerKeys: [{}]",
        header_keys.join(",")
    );
    if let Some(control) = &record.control {
        let (marker, epoch) = (control.end_txn_marker, control.coordinator_epoch);
        write!(text, " endTxnMarker: {marker} coordinatorEpoch: {epoch}").expect("a String takes all text");
    } else {
        for (name, value) in [("key", &record.key), ("payload", &record.payload)] {
            if let Some(value) = value {
                write!(text, " {name}: {value}").expect("a String takes all text");
            }
        }
    }
    text.push('\n');
    text
}

fn facts_text(facts: &Facts) -> String {
    let mut lines: Vec<String> = Vec::new();
    match facts {
        Facts::Log { batches, .. } => return batches.iter().map(batch_text).collect(),
        Facts::Index(index) => {
            lines.extend(index.entries.iter().map(|e| format!("offset: {} position: {}", e.offset, e.position)));
        }
        Facts::TimeIndex(index) => {
            lines.extend(index.entries.iter().map(|e| format!("timestamp: {} offset: {}", e.timestamp, e.offset)));
        }
        Facts::TransactionIndex(index) => lines.extend(index.entries.iter().map(|e| {
            format!(
                "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
                e.version, e.producer_id, e.first_offset, e.last_offset, e.last_stable_offset
            )
        })),
        Facts::Snapshot { producers } => lines.extend(producers.iter().map(|p| {
            format!(
                "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {} lastTimestamp: {} \
                 firstSequence: {} lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}",
                p.producer_id,
                p.producer_epoch,
                p.coordinator_epoch,
                optional(p.current_txn_first_offset),
                p.last_timestamp,
                p.first_sequence,
                p.last_sequence,
                p.last_offset,
                p.offset_delta,
                p.timestamp
            )
        })),
        Facts::LeaderEpochs { epochs } => {
            lines.extend(epochs.iter().map(|e| format!("epoch: {} startOffset: {}", e.epoch, e.start_offset)));
        }
        Facts::Offsets { entries } => {
            let line = |topic: &str, partition: i32, offset: i64| {
                format!("topic: {topic} partition: {partition} offset: {offset}")
            };
            lines.extend(entries.iter().map(|e| line(&e.topic, e.partition, e.offset)));
        }
        Facts::PartitionMetadata { topic_id } => lines.push(format!("topicId: {topic_id}")),
        Facts::MetaProperties { cluster_id, node_id, directory_id } => {
            lines.push(format!("clusterId: {cluster_id} nodeId: {node_id} directoryId: {directory_id}"));
        }
        Facts::CleanShutdown { broker_epoch } => {
            lines.push(format!("brokerEpoch: {}", optional(*broker_epoch)));
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}
