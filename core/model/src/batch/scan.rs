//! The one walk over a client's records before they are appended: numbers and lengths only, no bytes are taken out.

use super::records::{Cursor, RecordError};
use super::{BatchHeader, TimestampType};

/// What the checks want to know of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordFacts {
    /// Offset less the base offset, as the client wrote it.
    pub(super) offset_delta: i64,
    /// Milliseconds.
    pub(super) timestamp: i64,
    /// Length of the key; none where it is null.
    pub(super) key: Option<usize>,
    /// Length of the value; none where it is null.
    pub(super) value: Option<usize>,
}

/// Shows each of the announced records to `visit`, in order, with its place in the batch.
///
/// # Errors
/// A record is malformed, or there are more or fewer of them than announced. The records before it were shown.
pub(super) fn scan(
    header: &BatchHeader,
    plain: &[u8],
    mut visit: impl FnMut(i32, RecordFacts),
) -> Result<(), RecordError> {
    let announced = header.count.max(0);
    let mut cursor = Cursor { bytes: plain, at: 0 };
    for index in 0..announced {
        let fewer = RecordError::Fewer { announced, found: index };
        if cursor.at == plain.len() {
            return Err(fewer);
        }
        let malformed = |what| RecordError::Malformed { index, what };
        let length = cursor.varint().ok_or(malformed("its length is no number"))?;
        let length = usize::try_from(length).map_err(|_| malformed("its length is negative"))?;
        let Some(end) = cursor.at.checked_add(length).filter(|end| *end <= plain.len()) else {
            return Err(fewer);
        };
        let mut record = Cursor { bytes: &plain[..end], at: cursor.at };
        let facts = facts(header, &mut record).map_err(malformed)?;
        if record.at != end {
            return Err(malformed("bytes are left over at its end"));
        }
        visit(index, facts);
        cursor.at = end;
    }
    match plain.len() - cursor.at {
        0 => Ok(()),
        left => Err(RecordError::More { announced, left }),
    }
}

fn facts(header: &BatchHeader, cursor: &mut Cursor<'_>) -> Result<RecordFacts, &'static str> {
    cursor.byte().ok_or("it has no attributes")?;
    let timestamp_delta = cursor.varint().ok_or("its timestamp is no number")?;
    let offset_delta = cursor.varint().ok_or("its offset is no number")?;
    let key = skip(cursor, "its key is cut short")?;
    let value = skip(cursor, "its value is cut short")?;
    let headers = cursor.varint().ok_or("its number of headers is no number")?;
    if headers < 0 {
        return Err("its number of headers cannot be right");
    }
    // Each turn takes at least two bytes or ends the walk, whatever number was announced.
    for _ in 0..headers {
        skip(cursor, "a header's key is cut short")?.ok_or("a header has no key")?;
        skip(cursor, "a header's value is cut short")?;
    }
    let timestamp = match header.timestamp_type() {
        TimestampType::CreateTime => header.base_timestamp.wrapping_add(timestamp_delta),
        TimestampType::LogAppendTime => header.max_timestamp,
    };
    Ok(RecordFacts { offset_delta, timestamp, key, value })
}

fn skip(cursor: &mut Cursor<'_>, cut: &'static str) -> Result<Option<usize>, &'static str> {
    let length = cursor.varint().ok_or(cut)?;
    if length < 0 {
        return Ok(None);
    }
    let length = usize::try_from(length).map_err(|_| cut)?;
    cursor.at = cursor.at.checked_add(length).filter(|end| *end <= cursor.bytes.len()).ok_or(cut)?;
    Ok(Some(length))
}
