//! The checks of a client's batch, in Kafka's order (Kafka semantics 1.2, rows 12 to 17), and the only conversions a broker makes.

use bytes::{Bytes, BytesMut};

use crate::WallMs;

use super::header::{HEADER_BYTES, set_max_timestamp, write_header};
use super::records::RecordError;
use super::refusal::{BatchRefusal, FaultyRecords, RecordFault};
use super::scan::{RecordFacts, scan};
use super::{
    Batch, BatchError, BatchHeader, Checked, CompressionType, MAX_DECOMPRESSED_BYTES, Received, TimestampType,
};

/// What a topic asks of the batches that clients send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckRules {
    /// `max.message.bytes`: the largest batch, header included.
    pub max_message_bytes: usize,
    /// `cleanup.policy` holds `compact`: every record needs a key.
    pub compacted: bool,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how old a producer's timestamp may be.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far ahead of the broker's clock it may be.
    pub timestamp_after_max_ms: i64,
    /// `compression.type`: none where it is `producer`, which keeps what the producer chose.
    pub compression: Option<Compression>,
}

impl Default for CheckRules {
    /// Kafka's defaults.
    fn default() -> CheckRules {
        CheckRules {
            max_message_bytes: 1_048_588,
            compacted: false,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            compression: None,
        }
    }
}

/// A codec and how hard it tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compression {
    /// The codec.
    pub codec: CompressionType,
    /// Its level (`compression.gzip.level`, `compression.zstd.level`); none for its own default. The others have none here.
    pub level: Option<i32>,
}

impl Batch<Received> {
    /// Takes exactly one batch that a client sent.
    ///
    /// # Errors
    /// The bytes are not one batch of format 2 (Kafka semantics 1.2, row 5).
    pub fn from_client(bytes: Bytes) -> Result<Batch<Received>, BatchRefusal> {
        match BatchHeader::parse(&bytes) {
            Ok(header) if header.size == bytes.len() => Ok(Batch::at(bytes, header)),
            Ok(header) => Err(BatchRefusal::NotOneBatch { bytes: bytes.len(), first: header.size }),
            Err(BatchError::BadMagic(magic @ (0 | 1))) => Err(BatchRefusal::OldFormat { magic }),
            Err(BatchError::BadMagic(magic)) => Err(BatchRefusal::UnknownFormat { magic }),
            Err(_) => Err(BatchRefusal::NotOneBatch { bytes: bytes.len(), first: 0 }),
        }
    }

    /// Checks the batch against the rules of its topic; `now` is the broker's clock. What comes out is what will be stored, but for
    /// offset, epoch and the broker's own timestamp: compressed anew where the topic wants another codec, with the largest timestamp
    /// that its records really have.
    ///
    /// # Errors
    /// The first check that fails, in the order of Kafka semantics 1.2.
    pub fn check(self, rules: &CheckRules, now: WallMs) -> Result<Batch<Checked>, BatchRefusal> {
        let Batch { bytes, header, .. } = self;
        if header.base_offset.0 != 0 {
            return Err(BatchRefusal::BaseOffset { sent: header.base_offset });
        }
        if header.size > rules.max_message_bytes {
            return Err(too_large(header.size, rules, false));
        }
        header.verify(&bytes).map_err(|_| BatchRefusal::BadChecksum)?;
        let codec = header.compression().map_err(|number| BatchRefusal::UnknownCodec { number })?;
        check_header(&header)?;
        let packed = bytes.slice(HEADER_BYTES..header.size);
        let plain = match codec {
            CompressionType::None => packed,
            _ => codec
                .decompress(&packed, MAX_DECOMPRESSED_BYTES)
                .map_err(BatchRefusal::Undecompressable)?
                .into(),
        };
        let max_timestamp = check_records(&header, &plain, rules, now)?;
        match rules.compression {
            Some(target) if target.codec != codec => {
                recompressed(&header, &plain, target, max_timestamp, rules)
            }
            _ => Ok(with_max_timestamp(bytes, header, max_timestamp, rules)),
        }
    }
}

fn too_large(size: usize, rules: &CheckRules, recompressed: bool) -> BatchRefusal {
    BatchRefusal::TooLarge { size, limit: rules.max_message_bytes, recompressed }
}

/// Row 15, what the header alone shows.
fn check_header(header: &BatchHeader) -> Result<(), BatchRefusal> {
    let offsets = i64::from(header.last_offset_delta) + 1;
    if header.count <= 0 || offsets != i64::from(header.count) {
        return Err(BatchRefusal::Count { announced: header.count, offsets });
    }
    if header.is_control() {
        return Err(BatchRefusal::ControlRecords);
    }
    if header.producer_id.is_some() && header.base_sequence.0 < 0 {
        return Err(BatchRefusal::NegativeSequence { sequence: header.base_sequence });
    }
    Ok(())
}

/// Rows 15 and 16: every record. Returns the largest timestamp, -1 where no record has one.
fn check_records(
    header: &BatchHeader,
    plain: &[u8],
    rules: &CheckRules,
    now: WallMs,
) -> Result<i64, BatchRefusal> {
    let mut largest = -1;
    let mut misplaced = None;
    let mut faults = FaultyRecords::default();
    scan(header, plain, |index, record| {
        largest = largest.max(record.timestamp);
        if record.offset_delta != i64::from(index) && misplaced.is_none() {
            misplaced = Some(BatchRefusal::InnerOffset { index, found: record.offset_delta });
        }
        if let Some(fault) = fault_of(header, rules, now, record) {
            faults.note(index, fault);
        }
    })
    .map_err(|error| match error {
        RecordError::Fewer { .. } | RecordError::More { .. } => BatchRefusal::CountOfRecords(error),
        other => BatchRefusal::Unreadable(other),
    })?;
    if faults.total > 0 {
        return Err(BatchRefusal::Records(faults));
    }
    // Kafka stores such offsets as they are and serves them; here nothing is stored that its readers would take amiss.
    misplaced.map_or(Ok(largest), Err)
}

fn fault_of(
    header: &BatchHeader,
    rules: &CheckRules,
    now: WallMs,
    record: RecordFacts,
) -> Option<RecordFault> {
    if rules.compacted && record.key.is_none() {
        return Some(RecordFault::NoKey);
    }
    let RecordFacts { offset_delta, timestamp, key, value } = record;
    let offset = header.base_offset.plus(0).0.wrapping_add(offset_delta);
    if rules.timestamp_type == TimestampType::CreateTime && timestamp != -1 {
        let age = now.0.wrapping_sub(timestamp);
        let out_of_range =
            age > rules.timestamp_before_max_ms || age.wrapping_neg() > rules.timestamp_after_max_ms;
        return out_of_range.then_some(RecordFault::Timestamp {
            offset,
            timestamp,
            earliest: now.0.wrapping_sub(rules.timestamp_before_max_ms),
            latest: now.0.wrapping_add(rules.timestamp_after_max_ms),
        });
    }
    (header.timestamp_type() == TimestampType::LogAppendTime).then_some(RecordFault::StampedAsBroker {
        offset,
        timestamp,
        key: key.unwrap_or(0),
        value: value.unwrap_or(0),
    })
}

/// Kafka corrects a header whose largest timestamp (or kind of timestamp) is not that of its records.
fn with_max_timestamp(bytes: Bytes, header: BatchHeader, largest: i64, rules: &CheckRules) -> Batch<Checked> {
    let kind = rules.timestamp_type;
    if kind == TimestampType::LogAppendTime
        || (header.max_timestamp == largest && header.timestamp_type() == TimestampType::CreateTime)
    {
        return Batch::at(bytes, header);
    }
    let mut bytes = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    set_max_timestamp(&mut bytes, kind, largest);
    let header = BatchHeader::parse(&bytes).unwrap_or(header);
    Batch::at(bytes.freeze(), header)
}

/// Row 17: the records with the topic's codec.
fn recompressed(
    header: &BatchHeader,
    plain: &[u8],
    target: Compression,
    max_timestamp: i64,
    rules: &CheckRules,
) -> Result<Batch<Checked>, BatchRefusal> {
    const CODEC_AND_TIMESTAMP_BITS: i16 = 0x0f;
    let records = target
        .codec
        .compress_at(target.level, plain)
        .map_err(|e| BatchRefusal::NotCompressed(e.to_string()))?;
    let size = HEADER_BYTES + records.len();
    if size > rules.max_message_bytes {
        return Err(too_large(size, rules, true));
    }
    let attributes = (header.attributes & !CODEC_AND_TIMESTAMP_BITS) | target.codec.attributes();
    let header = BatchHeader { attributes, max_timestamp, ..*header };
    let mut bytes = BytesMut::with_capacity(size);
    bytes.resize(HEADER_BYTES, 0);
    bytes.extend_from_slice(&records);
    write_header(&header, &mut bytes);
    let bytes = bytes.freeze();
    let header = BatchHeader::parse(&bytes).unwrap_or(header);
    Ok(Batch::at(bytes, header))
}
