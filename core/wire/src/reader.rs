//! Bounded reading: no bytes can make it panic, loop or reserve more than a small multiple of their own length.

use bytes::Bytes;
use minikafka_model::Uuid;

use crate::{Problem, WireError};

/// Memory a decoded message may take per byte of its frame. The densest honest messages (thousands of topics with names of one
/// letter) take 17.
pub const MEMORY_PER_BYTE: usize = 20;

/// Memory any message may take, however short.
pub const MEMORY_FLOOR: usize = 4096;

/// A cursor over one frame, with the version it is read in and what memory decoding may still take.
#[derive(Debug)]
pub struct Reader<'a> {
    frame: &'a Bytes,
    at: usize,
    end: usize,
    memory: usize,
    version: i16,
    flexible: bool,
}

impl<'a> Reader<'a> {
    /// Reads `frame` from its first byte. `flexible`: compact lengths and tagged fields.
    pub fn new(frame: &'a Bytes, version: i16, flexible: bool) -> Reader<'a> {
        let memory = MEMORY_FLOOR + frame.len().saturating_mul(MEMORY_PER_BYTE);
        Reader { frame, at: 0, end: frame.len(), memory, version, flexible }
    }

    /// Goes on from byte `at` (or the end of the frame, if that comes first).
    pub(crate) fn starting_at(mut self, at: usize) -> Reader<'a> {
        self.at = at.min(self.end);
        self
    }

    /// The version that is read.
    pub fn version(&self) -> i16 {
        self.version
    }

    /// Whether lengths are compact and tagged fields follow each structure.
    pub fn flexible(&self) -> bool {
        self.flexible
    }

    /// Position in the frame.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes not read yet.
    pub fn left(&self) -> usize {
        self.end - self.at
    }

    pub(crate) fn fail<T>(&self, problem: Problem) -> Result<T, WireError> {
        Err(WireError::new(self.at, problem))
    }

    fn advance(&mut self, wanted: usize) -> Result<usize, WireError> {
        if wanted > self.left() {
            return self.fail(Problem::Truncated { wanted, left: self.left() });
        }
        let from = self.at;
        self.at += wanted;
        Ok(from)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let from = self.advance(N)?;
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.frame[from..from + N]);
        Ok(bytes)
    }

    /// One signed byte.
    pub fn int8(&mut self) -> Result<i8, WireError> {
        self.array().map(i8::from_be_bytes)
    }

    /// Two bytes, signed.
    pub fn int16(&mut self) -> Result<i16, WireError> {
        self.array().map(i16::from_be_bytes)
    }

    /// Two bytes, unsigned.
    pub fn uint16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes, signed.
    pub fn int32(&mut self) -> Result<i32, WireError> {
        self.array().map(i32::from_be_bytes)
    }

    /// Eight bytes, signed.
    pub fn int64(&mut self) -> Result<i64, WireError> {
        self.array().map(i64::from_be_bytes)
    }

    /// Sixteen bytes.
    pub fn uuid(&mut self) -> Result<Uuid, WireError> {
        self.array().map(Uuid::from_bytes)
    }

    /// An unsigned number of seven bits a byte, at most five bytes and 2^32 - 1.
    pub fn uvarint(&mut self) -> Result<u32, WireError> {
        let start = self.at;
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return match u32::try_from(value) {
                    Ok(value) => Ok(value),
                    Err(_) => Err(WireError::new(start, Problem::VarintTooLong)),
                };
            }
        }
        Err(WireError::new(start, Problem::VarintTooLong))
    }

    fn length(&mut self, short: bool) -> Result<Option<usize>, WireError> {
        let start = self.at;
        let length = match (self.flexible, short) {
            (true, _) => i64::from(self.uvarint()?) - 1,
            (false, true) => i64::from(self.int16()?),
            (false, false) => i64::from(self.int32()?),
        };
        match length {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => Ok(Some(length)),
                Err(_) => Err(WireError::new(start, Problem::NegativeLength(length))),
            },
        }
    }

    /// Takes `bytes` out of what decoding may still reserve.
    pub(crate) fn charge(&mut self, bytes: usize) -> Result<(), WireError> {
        match self.memory.checked_sub(bytes) {
            Some(rest) => {
                self.memory = rest;
                Ok(())
            }
            None => {
                let len = self.frame.len();
                self.fail(Problem::TooMuchMemory {
                    limit: MEMORY_FLOOR + len.saturating_mul(MEMORY_PER_BYTE),
                    len,
                })
            }
        }
    }

    /// A text, or `None` for null. Bytes that are not UTF-8 become U+FFFD, as in Kafka: the name is then judged by its rules.
    pub fn string(&mut self) -> Result<Option<String>, WireError> {
        let Some(length) = self.length(true)? else { return Ok(None) };
        let from = self.advance(length)?;
        let frame = self.frame;
        let text = String::from_utf8_lossy(&frame[from..from + length]);
        self.charge(text.len())?;
        Ok(Some(text.into_owned()))
    }

    /// Bytes, or `None` for null: a slice of the frame, nothing is copied.
    pub fn bytes(&mut self) -> Result<Option<Bytes>, WireError> {
        let Some(length) = self.length(false)? else { return Ok(None) };
        let from = self.advance(length)?;
        Ok(Some(self.frame.slice(from..from + length)))
    }

    /// The number of elements of an array, or `None` for null. An element takes at least `least` bytes on the wire and
    /// `size` bytes in memory; a number that the bytes left cannot hold is refused before anything is reserved.
    pub(crate) fn count(&mut self, least: usize, size: usize) -> Result<Option<usize>, WireError> {
        let start = self.at;
        let Some(count) = self.length(false)? else { return Ok(None) };
        let most = self.left() / least.max(1);
        if count > most {
            let left = self.left();
            return Err(WireError::new(start, Problem::TooManyElements { count, left, most }));
        }
        self.charge(count.saturating_mul(size))?;
        Ok(Some(count))
    }

    /// Reads what comes before the fields of a structure that may be null; false for null.
    pub(crate) fn present(&mut self) -> Result<bool, WireError> {
        Ok(self.int8()? >= 0)
    }

    /// The tagged fields after a structure: `known` reads the one with the number given, from nothing but its own bytes, or
    /// leaves it; what it leaves is skipped.
    pub(crate) fn tagged(
        &mut self,
        mut known: impl FnMut(u32, &mut Reader<'a>) -> Result<(), WireError>,
    ) -> Result<(), WireError> {
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            let size = self.uvarint()? as usize;
            let from = self.advance(size)?;
            let (after, end) = (self.at, self.end);
            (self.at, self.end) = (from, after);
            known(tag, self)?;
            (self.at, self.end) = (after, end);
        }
        Ok(())
    }
}
