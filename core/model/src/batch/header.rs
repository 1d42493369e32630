//! The 61 bytes in front of the records.

use crate::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence};

use super::CompressionType;

/// Bytes of a version 2 batch before its records.
pub const HEADER_BYTES: usize = 61;
/// Base offset and length: what the length field does not count.
pub const PREFIX_BYTES: usize = 12;

/// The CRC-32C (Castagnoli) of a batch covers everything from here.
const CRC_FROM: usize = 21;
const TIMESTAMP_TYPE_BIT: i16 = 0x08;
const TRANSACTIONAL_BIT: i16 = 0x10;
const CONTROL_BIT: i16 = 0x20;

/// Who stamped the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer.
    CreateTime,
    /// The broker, at the append.
    LogAppendTime,
}

/// Bytes that are not a version 2 batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Fewer bytes than the length field announces, or than a header needs.
    #[error("a record batch is cut short: {have} bytes of {want}")]
    CutShort {
        /// Bytes there.
        have: usize,
        /// Bytes wanted.
        want: usize,
    },
    /// The length field cannot be right.
    #[error("a record batch announces a length of {0} bytes, which no batch has")]
    BadLength(i32),
    /// Another format.
    #[error("a record batch has magic {0}; only 2 is read")]
    BadMagic(i8),
    /// The checksum does not fit the bytes.
    #[error(
        "a record batch at offset {base_offset} is damaged: CRC-32C {stored:08x} is stored, {computed:08x} computed"
    )]
    BadCrc {
        /// Its base offset.
        base_offset: i64,
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
}

/// The header of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record.
    pub base_offset: Offset,
    /// Bytes of the whole batch.
    pub size: usize,
    /// Epoch of the leader that appended it; none yet in what a client sends.
    pub leader_epoch: Option<LeaderEpoch>,
    /// CRC-32C as stored.
    pub crc: u32,
    /// All attribute bits.
    pub attributes: i16,
    /// Offset of the last record, less the base offset.
    pub last_offset_delta: i32,
    /// Timestamp of the first record, in milliseconds.
    pub base_timestamp: i64,
    /// Largest timestamp, in milliseconds; -1 stands for none.
    pub max_timestamp: i64,
    /// Id of the idempotent producer, if one.
    pub producer_id: Option<ProducerId>,
    /// Epoch of that producer as stored (-1 without one).
    pub producer_epoch: ProducerEpoch,
    /// Sequence of the first record as stored (-1 without one).
    pub base_sequence: Sequence,
    /// Number of records.
    pub count: i32,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// The CRC-32C of a whole batch, as its field 17..21 should hold it.
pub fn crc_of(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[CRC_FROM..])
}

impl BatchHeader {
    /// Bytes of the batch that begins here, from its length field; `None` while fewer than twelve bytes are there.
    ///
    /// # Errors
    /// The length cannot be right.
    pub fn size_of(bytes: &[u8]) -> Result<Option<usize>, BatchError> {
        if bytes.len() < PREFIX_BYTES {
            return Ok(None);
        }
        let length = i32::from_be_bytes(array(bytes, 8));
        match usize::try_from(length) {
            Ok(length) if length >= HEADER_BYTES - PREFIX_BYTES => Ok(Some(length + PREFIX_BYTES)),
            _ => Err(BatchError::BadLength(length)),
        }
    }

    /// Reads the header of the batch that begins at the first byte. More bytes may follow it.
    ///
    /// # Errors
    /// The bytes do not begin with a whole version 2 batch. The checksum is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        let header = BatchHeader::parse_prefix(bytes)?;
        if bytes.len() < header.size {
            return Err(BatchError::CutShort { have: bytes.len(), want: header.size });
        }
        Ok(header)
    }

    /// Reads the header alone: the records need not be there.
    ///
    /// # Errors
    /// The bytes do not begin with the header of a version 2 batch.
    pub fn parse_prefix(bytes: &[u8]) -> Result<BatchHeader, BatchError> {
        let size = BatchHeader::size_of(bytes)?;
        if bytes.len() < HEADER_BYTES {
            return Err(BatchError::CutShort { have: bytes.len(), want: size.unwrap_or(HEADER_BYTES) });
        }
        let size = size.unwrap_or(HEADER_BYTES);
        let magic = i8::from_be_bytes([bytes[16]]);
        if magic != 2 {
            return Err(BatchError::BadMagic(magic));
        }
        let leader_epoch = i32::from_be_bytes(array(bytes, 12));
        let producer_id = i64::from_be_bytes(array(bytes, 43));
        Ok(BatchHeader {
            base_offset: Offset(i64::from_be_bytes(array(bytes, 0))),
            size,
            leader_epoch: (leader_epoch >= 0).then_some(LeaderEpoch(leader_epoch)),
            crc: u32::from_be_bytes(array(bytes, 17)),
            attributes: i16::from_be_bytes(array(bytes, 21)),
            last_offset_delta: i32::from_be_bytes(array(bytes, 23)),
            base_timestamp: i64::from_be_bytes(array(bytes, 27)),
            max_timestamp: i64::from_be_bytes(array(bytes, 35)),
            producer_id: (producer_id >= 0).then_some(ProducerId(producer_id)),
            producer_epoch: ProducerEpoch(i16::from_be_bytes(array(bytes, 51))),
            base_sequence: Sequence(i32::from_be_bytes(array(bytes, 53))),
            count: i32::from_be_bytes(array(bytes, 57)),
        })
    }

    /// Compares the stored checksum with the bytes of this batch.
    ///
    /// # Errors
    /// [`BatchError::BadCrc`].
    pub fn verify(&self, batch: &[u8]) -> Result<(), BatchError> {
        let computed = crc_of(&batch[..self.size]);
        if computed == self.crc {
            return Ok(());
        }
        Err(BatchError::BadCrc { base_offset: self.base_offset.0, stored: self.crc, computed })
    }

    /// Offset of the last record (inclusive). Stays at the end of the number line where the header is nonsense.
    pub fn last_offset(&self) -> Offset {
        Offset(self.base_offset.0.saturating_add(i64::from(self.last_offset_delta)))
    }

    /// Offset after the last record.
    pub fn next_offset(&self) -> Offset {
        Offset(self.last_offset().0.saturating_add(1))
    }

    /// Sequence of the last record of an idempotent producer.
    pub fn last_sequence(&self) -> Sequence {
        self.base_sequence.plus(self.last_offset_delta)
    }

    /// The codec of the records, or its number where there is no such codec.
    ///
    /// # Errors
    /// The number, 5 to 7.
    pub fn compression(&self) -> Result<CompressionType, u8> {
        CompressionType::from_attributes(self.attributes)
    }

    /// Who stamped the records.
    pub const fn timestamp_type(&self) -> TimestampType {
        if self.attributes & TIMESTAMP_TYPE_BIT == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Part of a transaction?
    pub const fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL_BIT != 0
    }

    /// Holds control records (transaction markers)?
    pub const fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }
}

pub(super) fn set_offset_and_epoch(batch: &mut [u8], base: Offset, epoch: LeaderEpoch) {
    batch[0..8].copy_from_slice(&base.0.to_be_bytes());
    batch[12..16].copy_from_slice(&epoch.0.to_be_bytes());
}

pub(super) fn set_max_timestamp(batch: &mut [u8], kind: TimestampType, millis: i64) {
    let mut attributes = i16::from_be_bytes(array(batch, 21));
    attributes = match kind {
        TimestampType::CreateTime => attributes & !TIMESTAMP_TYPE_BIT,
        TimestampType::LogAppendTime => attributes | TIMESTAMP_TYPE_BIT,
    };
    batch[21..23].copy_from_slice(&attributes.to_be_bytes());
    batch[35..43].copy_from_slice(&millis.to_be_bytes());
    set_crc(batch);
}

pub(super) fn set_crc(batch: &mut [u8]) {
    let crc = crc_of(batch);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

/// Writes a whole header over the first [`HEADER_BYTES`] bytes of a batch whose records are in place; the checksum included.
pub(super) fn write_header(header: &BatchHeader, batch: &mut [u8]) {
    let length = (batch.len() - PREFIX_BYTES) as i32;
    batch[0..8].copy_from_slice(&header.base_offset.0.to_be_bytes());
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    batch[12..16].copy_from_slice(&header.leader_epoch.map_or(-1, |e| e.0).to_be_bytes());
    batch[16] = 2;
    batch[21..23].copy_from_slice(&header.attributes.to_be_bytes());
    batch[23..27].copy_from_slice(&header.last_offset_delta.to_be_bytes());
    batch[27..35].copy_from_slice(&header.base_timestamp.to_be_bytes());
    batch[35..43].copy_from_slice(&header.max_timestamp.to_be_bytes());
    batch[43..51].copy_from_slice(&header.producer_id.map_or(-1, |id| id.0).to_be_bytes());
    batch[51..53].copy_from_slice(&header.producer_epoch.0.to_be_bytes());
    batch[53..57].copy_from_slice(&header.base_sequence.0.to_be_bytes());
    batch[57..61].copy_from_slice(&header.count.to_be_bytes());
    set_crc(batch);
}
