//! Record batches, format version 2 (Kafka semantics 10.1): header, records, checks, building.
//!
//! A batch goes through typed stages. A leader takes `Batch<Received>` from a client, checks it once ([`Batch::check`]), and assigns
//! offsets and its epoch: `Batch<Received> -> Batch<Checked> -> Batch<Assigned>`. A follower takes `Batch<Replicated>` from its leader.
//! Only the last two can be appended to a log.

mod build;
mod check;
#[cfg(test)]
mod check_tests;
mod compression;
mod header;
mod records;
mod refusal;
mod scan;
mod stage;

pub use build::{BatchBuilder, ProducerStamp, restamp};
pub use check::{CheckRules, Compression};
pub use compression::{CompressionType, DecompressError, UnknownCompression};
pub use header::{BatchError, BatchHeader, HEADER_BYTES, PREFIX_BYTES, TimestampType, crc_of};
pub use records::{Header, Record, RecordError as RecordFormatError, Records, split_batches};
pub use refusal::{BatchRefusal, FaultyRecords, RecordFault};
pub use stage::{Assigned, Batch, Checked, Received, Replicated, Stored};

/// Most bytes that the records of one batch may decompress to: more than any request may hold, so that only a bomb is refused.
pub const MAX_DECOMPRESSED_BYTES: usize = 128 << 20;
