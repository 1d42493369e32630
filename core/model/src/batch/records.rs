//! Walking the records of a batch, bounded by what the bytes can hold.

use bytes::Bytes;

use crate::Offset;

use super::{
    BatchError, BatchHeader, CompressionType, DecompressError, HEADER_BYTES, MAX_DECOMPRESSED_BYTES,
    TimestampType,
};

/// The records of a batch cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The header is not one.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A codec that does not exist.
    #[error("records are compressed by the unknown codec {0}")]
    UnknownCodec(u8),
    /// The payload does not decompress.
    #[error(transparent)]
    Decompress(#[from] DecompressError),
    /// Fewer records than announced.
    #[error("the batch announces {announced} records and ends after {found}")]
    Fewer {
        /// By the header.
        announced: i32,
        /// Whole records found.
        found: i32,
    },
    /// Bytes are left over after the announced records.
    #[error("{left} bytes are left over after the {announced} announced records")]
    More {
        /// By the header.
        announced: i32,
        /// Bytes left.
        left: usize,
    },
    /// A record is not one.
    #[error("record {index} of the batch is malformed: {what}")]
    Malformed {
        /// Its place in the batch, from 0.
        index: i32,
        /// What does not fit.
        what: &'static str,
    },
}

/// A header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its key, UTF-8 by convention.
    pub key: Bytes,
    /// Its value; may be null.
    pub value: Option<Bytes>,
}

/// One record of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its offset.
    pub offset: Offset,
    /// Its timestamp in milliseconds.
    pub timestamp: i64,
    /// Its key; may be null.
    pub key: Option<Bytes>,
    /// Its value; null is a tombstone.
    pub value: Option<Bytes>,
    /// Its headers, in order.
    pub headers: Vec<Header>,
}

/// The decompressed records of one batch, to be walked once.
#[derive(Debug, Clone)]
pub struct Records {
    header: BatchHeader,
    plain: Bytes,
    at: usize,
    walked: i32,
    failed: bool,
}

impl Records {
    /// The records of the batch that begins at the first byte of `batch`, decompressed to at most [`MAX_DECOMPRESSED_BYTES`].
    ///
    /// # Errors
    /// The batch is cut short, or its payload does not decompress.
    pub fn of(batch: &Bytes) -> Result<Records, RecordError> {
        let header = BatchHeader::parse(batch)?;
        let codec = header.compression().map_err(RecordError::UnknownCodec)?;
        let packed = batch.slice(HEADER_BYTES..header.size);
        let plain = match codec {
            CompressionType::None => packed,
            _ => codec.decompress(&packed, MAX_DECOMPRESSED_BYTES)?.into(),
        };
        Ok(Records { header, plain, at: 0, walked: 0, failed: false })
    }

    /// The decompressed bytes of all records.
    pub fn plain(&self) -> &Bytes {
        &self.plain
    }

    fn next_record(&mut self) -> Result<Option<Record>, RecordError> {
        let announced = self.header.count.max(0);
        if self.walked == announced {
            let left = self.plain.len() - self.at;
            return if left == 0 { Ok(None) } else { Err(RecordError::More { announced, left }) };
        }
        let index = self.walked;
        let fewer = || RecordError::Fewer { announced, found: index };
        if self.at == self.plain.len() {
            return Err(fewer());
        }
        let malformed = |what| RecordError::Malformed { index, what };
        let mut outer = Cursor { bytes: &self.plain, at: self.at };
        let length = outer.varint().ok_or(malformed("its length is no number"))?;
        let length = usize::try_from(length).map_err(|_| malformed("its length is negative"))?;
        let end = outer.at.checked_add(length).filter(|end| *end <= self.plain.len()).ok_or_else(fewer)?;
        let mut cursor = Cursor { bytes: &self.plain[..end], at: outer.at };
        let record = self.body(&mut cursor).map_err(malformed)?;
        if cursor.at != end {
            return Err(malformed("bytes are left over at its end"));
        }
        self.at = end;
        self.walked += 1;
        Ok(Some(record))
    }

    fn body(&self, cursor: &mut Cursor<'_>) -> Result<Record, &'static str> {
        cursor.byte().ok_or("it has no attributes")?;
        let timestamp_delta = cursor.varint().ok_or("its timestamp is no number")?;
        let offset_delta = cursor.varint().ok_or("its offset is no number")?;
        let offset_delta = i32::try_from(offset_delta).map_err(|_| "its offset is out of range")?;
        let key = self.nullable(cursor, "its key is cut short")?;
        let value = self.nullable(cursor, "its value is cut short")?;
        let count = cursor.varint().ok_or("its number of headers is no number")?;
        // A header takes two bytes at least.
        let room = ((cursor.bytes.len() - cursor.at) / 2) as i64;
        if !(0..=room).contains(&count) {
            return Err("its number of headers cannot be right");
        }
        let mut headers = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let key = self.nullable(cursor, "a header's key is cut short")?.ok_or("a header has no key")?;
            let value = self.nullable(cursor, "a header's value is cut short")?;
            headers.push(Header { key, value });
        }
        let timestamp = match self.header.timestamp_type() {
            TimestampType::CreateTime => self.header.base_timestamp.wrapping_add(timestamp_delta),
            TimestampType::LogAppendTime => self.header.max_timestamp,
        };
        let offset = Offset(self.header.base_offset.0.wrapping_add(i64::from(offset_delta)));
        Ok(Record { offset, timestamp, key, value, headers })
    }

    fn nullable(&self, cursor: &mut Cursor<'_>, cut: &'static str) -> Result<Option<Bytes>, &'static str> {
        let length = cursor.varint().ok_or(cut)?;
        if length < 0 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| cut)?;
        let end = cursor.at.checked_add(length).filter(|end| *end <= cursor.bytes.len()).ok_or(cut)?;
        let bytes = self.plain.slice(cursor.at..end);
        cursor.at = end;
        Ok(Some(bytes))
    }
}

impl Iterator for Records {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.next_record().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}

pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl Cursor<'_> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A zig-zag number of at most ten bytes.
    pub(super) fn varint(&mut self) -> Option<i64> {
        let mut value: u64 = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        None
    }
}

pub(super) fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Cuts a record set into its batches. A part of a batch at the end is left out, as consumers must expect one; a length that cannot be
/// right ends the walk with an error.
pub fn split_batches(mut set: Bytes) -> impl Iterator<Item = Result<Bytes, BatchError>> {
    std::iter::from_fn(move || match BatchHeader::size_of(&set) {
        Ok(Some(size)) if size <= set.len() => Some(Ok(set.split_to(size))),
        Ok(_) => None,
        Err(error) => {
            set.clear();
            Some(Err(error))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::BatchBuilder;

    fn batch(values: &[&str]) -> Bytes {
        let mut builder = BatchBuilder::new();
        values.iter().for_each(|value| builder.push(1, None, Some(value.as_bytes()), &[]));
        builder.build(CompressionType::None, None).expect("built")
    }

    #[test]
    fn a_record_set_is_cut_into_its_batches() {
        let (first, second) = (batch(&["a"]), batch(&["b", "c"]));
        let mut set = first.to_vec();
        set.extend(&second[..]);
        set.extend(&second[..second.len() - 1]);
        let batches: Vec<Bytes> = split_batches(set.into()).map(|batch| batch.expect("whole")).collect();
        assert_eq!(batches, [first, second], "the part at the end is left out");
        let mut nonsense = batch(&["a"]).to_vec();
        nonsense[8..12].copy_from_slice(&(-1_i32).to_be_bytes());
        let walked: Vec<_> = split_batches(nonsense.into()).collect();
        assert!(matches!(walked[..], [Err(BatchError::BadLength(-1))]));
    }

    #[test]
    fn announced_and_found_records_must_agree() {
        for (count, wanted) in [(3, "ends after 2"), (1, "left over")] {
            let mut bytes = batch(&["a", "b"]).to_vec();
            bytes[57..61].copy_from_slice(&i32::to_be_bytes(count));
            let error =
                Records::of(&bytes.into()).expect("a header").find_map(Result::err).expect("an error");
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }

    #[test]
    fn no_bytes_make_the_walk_panic() {
        let good = batch(&["hello", "world"]);
        for at in HEADER_BYTES..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = good.to_vec();
                bytes[at] = value;
                let walked = Records::of(&bytes.into()).expect("a header").count();
                assert!(walked <= 3);
            }
        }
    }
}
