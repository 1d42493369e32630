//! Kafka's dump text of our facts, to be compared line by line with what its tool printed.

use std::path::Path;

use minikafka_storage::dump::{BatchFacts, Facts, RecordFacts};

pub(crate) fn compare(file: &Path, facts: &Facts, kafkas: &str) {
    let printed: Vec<&str> = kafkas.lines().skip(1).take_while(|line| *line != "# stderr").collect();
    let stopped = kafkas.contains("NoSuchElementException");
    let mut ours = lines(file, facts);
    if stopped {
        // Kafka's tool died at an index entry that names a torn batch.
        ours.truncate(printed.len());
        assert!(!ours.is_empty());
    }
    let empty = printed.len() == 1 && printed[0].ends_with(" is empty.");
    if empty {
        assert!(ours.is_empty(), "{}", file.display());
        return;
    }
    for (line, (ours, kafkas)) in ours.iter().zip(&printed).enumerate() {
        assert_eq!(ours, kafkas, "{}, line {}", file.display(), line + 2);
    }
    assert_eq!(ours.len(), printed.len(), "{}", file.display());
}

fn optional(value: Option<i64>) -> String {
    value.map_or("OptionalLong.empty".to_owned(), |value| format!("OptionalLong[{value}]"))
}

fn lines(file: &Path, facts: &Facts) -> Vec<String> {
    match facts {
        Facts::Log { starting_offset, batches, invalid_bytes } => {
            let mut lines = vec![format!("Log starting offset: {starting_offset}")];
            for batch in batches {
                assert_eq!(batch.records_error, None);
                lines.push(batch_line(batch));
                lines.extend(batch.records.iter().flatten().map(|record| record_line(batch, record)));
            }
            if *invalid_bytes > 0 {
                let name = file.file_name().unwrap().to_string_lossy();
                lines.push(format!("Found {invalid_bytes} invalid bytes at the end of {name}"));
            }
            lines
        }
        Facts::Index(index) => index
            .entries
            .iter()
            .map(|it| format!("offset: {} position: {}", it.offset, it.position))
            .collect(),
        Facts::TimeIndex(index) => index
            .entries
            .iter()
            .map(|it| format!("timestamp: {} offset: {}", it.timestamp, it.offset))
            .collect(),
        Facts::TransactionIndex(index) => {
            let line = |it: &minikafka_storage::dump::TransactionIndexEntry| {
                format!(
                    "version: {} producerId: {} firstOffset: {} lastOffset: {} lastStableOffset: {}",
                    it.version, it.producer_id, it.first_offset, it.last_offset, it.last_stable_offset
                )
            };
            index.entries.iter().map(line).collect()
        }
        Facts::Snapshot { producers } => {
            let line = |it: &minikafka_storage::dump::ProducerFacts| {
                format!(
                    "producerId: {} producerEpoch: {} coordinatorEpoch: {} currentTxnFirstOffset: {} \
                     lastTimestamp: {} firstSequence: {} lastSequence: {} lastOffset: {} offsetDelta: {} timestamp: {}",
                    it.producer_id,
                    it.producer_epoch,
                    it.coordinator_epoch,
                    optional(it.current_txn_first_offset),
                    it.last_timestamp,
                    it.first_sequence,
                    it.last_sequence,
                    it.last_offset,
                    it.offset_delta,
                    it.timestamp
                )
            };
            producers.iter().map(line).collect()
        }
        other => panic!("{}: Kafka's tool does not print {other:?}", file.display()),
    }
}

fn batch_line(it: &BatchFacts) -> String {
    format!(
        "baseOffset: {} lastOffset: {} count: {} baseSequence: {} lastSequence: {} producerId: {} producerEpoch: {} \
         partitionLeaderEpoch: {} isTransactional: {} isControl: {} deleteHorizonMs: {} position: {} {}: {} size: {} \
         magic: {} compresscodec: {} crc: {} isvalid: {}",
        it.base_offset,
        it.last_offset,
        it.count,
        it.base_sequence,
        it.last_sequence,
        it.producer_id,
        it.producer_epoch,
        it.partition_leader_epoch,
        it.is_transactional,
        it.is_control,
        optional(it.delete_horizon_ms),
        it.position,
        it.timestamp_type,
        it.timestamp,
        it.size,
        it.magic,
        it.compresscodec,
        it.crc,
        it.isvalid
    )
}

fn record_line(batch: &BatchFacts, it: &RecordFacts) -> String {
    let mut line = format!(
        "| offset: {} {}: {} keySize: {} valueSize: {} sequence: {} headerKeys: [{}]",
        it.offset,
        batch.timestamp_type,
        it.timestamp,
        it.key_size,
        it.value_size,
        it.sequence,
        it.header_keys.join(",")
    );
    if let Some(control) = &it.control {
        let (marker, epoch) = (control.end_txn_marker, control.coordinator_epoch);
        line.push_str(&format!(" endTxnMarker: {marker} coordinatorEpoch: {epoch}"));
    }
    if let Some(key) = &it.key {
        line.push_str(&format!(" key: {key}"));
    }
    if let Some(payload) = &it.payload {
        line.push_str(&format!(" payload: {payload}"));
    }
    line
}
