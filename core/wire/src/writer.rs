//! Writing: header parts into one buffer, record sets beside it, so that records are never copied.

use bytes::{BufMut, Bytes, BytesMut};
use minikafka_model::Uuid;

use crate::{Frame, Problem, WireError};

/// Records up to this many bytes are copied into the header part: a slice of its own costs more than the copy.
pub const INLINE_RECORDS: usize = 512;

/// Initial capacity of the header part.
const HEAD_CAPACITY: usize = 256;

/// Where one frame is put together.
#[derive(Debug)]
pub struct Writer {
    head: BytesMut,
    /// Slices of records and the position in `head` before which each belongs.
    slices: Vec<(usize, Bytes)>,
    slices_len: usize,
    version: i16,
    flexible: bool,
    /// The first thing that could not be written; reported by `finish`.
    failure: Option<WireError>,
}

impl Writer {
    /// A writer for a body in this version. `flexible`: compact lengths and tagged fields.
    pub fn new(version: i16, flexible: bool) -> Writer {
        let mut head = BytesMut::with_capacity(HEAD_CAPACITY);
        head.put_i32(0);
        Writer { head, slices: Vec::new(), slices_len: 0, version, flexible, failure: None }
    }

    /// The version that is written.
    pub fn version(&self) -> i16 {
        self.version
    }

    /// Whether lengths are compact and tagged fields follow each structure.
    pub fn flexible(&self) -> bool {
        self.flexible
    }

    fn position(&self) -> usize {
        self.head.len() + self.slices_len
    }

    fn too_long(&mut self, what: &'static str, len: usize, most: usize) {
        let at = self.position();
        self.failure.get_or_insert_with(|| WireError::new(at, Problem::TooLong { what, len, most }));
    }

    /// One signed byte.
    pub fn int8(&mut self, value: i8) {
        self.head.put_i8(value);
    }

    /// Two bytes, signed.
    pub fn int16(&mut self, value: i16) {
        self.head.put_i16(value);
    }

    /// Two bytes, unsigned.
    pub fn uint16(&mut self, value: u16) {
        self.head.put_u16(value);
    }

    /// Four bytes, signed.
    pub fn int32(&mut self, value: i32) {
        self.head.put_i32(value);
    }

    /// Eight bytes, signed.
    pub fn int64(&mut self, value: i64) {
        self.head.put_i64(value);
    }

    /// Sixteen bytes.
    pub fn uuid(&mut self, value: Uuid) {
        self.head.put_slice(&value.to_bytes());
    }

    /// An unsigned number of seven bits a byte.
    pub fn uvarint(&mut self, mut value: u32) {
        while value > 0x7f {
            self.head.put_u8(value as u8 & 0x7f | 0x80);
            value >>= 7;
        }
        self.head.put_u8(value as u8);
    }

    fn length(&mut self, length: Option<usize>, what: &'static str, most: usize) {
        let fits = length.filter(|&length| length <= most);
        if let (Some(len), None) = (length, fits) {
            self.too_long(what, len, most);
        }
        match (self.flexible, fits) {
            (true, None) => self.uvarint(0),
            (true, Some(length)) => self.uvarint(length as u32 + 1),
            (false, length) => self.int32(length.map_or(-1, |length| length as i32)),
        }
    }

    /// A text, or null.
    pub fn string(&mut self, text: Option<&str>) {
        if !self.flexible {
            return self.short_string(text);
        }
        self.length(text.map(str::len), "bytes of text", i32::MAX as usize - 1);
        self.head.put_slice(text.unwrap_or_default().as_bytes());
    }

    /// A text or null with two bytes of length, whatever the version: the client id of every request header.
    pub(crate) fn short_string(&mut self, text: Option<&str>) {
        match text.map(str::len) {
            None => self.int16(-1),
            Some(len) if len > i16::MAX as usize => {
                return self.too_long("bytes of text", len, i16::MAX as usize);
            }
            Some(len) => self.int16(len as i16),
        }
        self.head.put_slice(text.unwrap_or_default().as_bytes());
    }

    /// The length before bytes.
    pub(crate) fn bytes_length(&mut self, length: Option<usize>) {
        self.length(length, "bytes", i32::MAX as usize - 1);
    }

    /// The number before the elements of an array, or null.
    pub(crate) fn count(&mut self, count: Option<usize>) {
        self.length(count, "elements", i32::MAX as usize - 1);
    }

    /// Bytes as they are: a slice of their own in the frame if they are many.
    pub fn raw(&mut self, bytes: &Bytes) {
        if bytes.len() <= INLINE_RECORDS {
            self.head.put_slice(bytes);
        } else {
            self.slices_len += bytes.len();
            self.slices.push((self.head.len(), bytes.clone()));
        }
    }

    /// A tagged field: number, size, then what `write` writes. Record sets cannot stand in a tagged field.
    pub(crate) fn tagged(&mut self, tag: u32, write: impl FnOnce(&mut Writer)) {
        self.uvarint(tag);
        let start = self.head.len();
        write(self);
        let size = self.head.len() - start;
        self.uvarint(size as u32);
        self.head[start..].rotate_left(size);
    }

    /// The finished frame with its four length bytes in front.
    ///
    /// # Errors
    /// The first text, byte string or array that did not fit its length field, or a frame beyond 2^31 - 1 bytes.
    pub fn finish(mut self) -> Result<Frame, WireError> {
        let len = self.position() - 4;
        if len > i32::MAX as usize {
            self.too_long("bytes of frame", len, i32::MAX as usize);
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        self.head[..4].copy_from_slice(&(len as i32).to_be_bytes());
        let head = self.head.freeze();
        if self.slices.is_empty() {
            return Ok(Frame::new(vec![head]));
        }
        let mut chunks = Vec::with_capacity(self.slices.len() * 2 + 1);
        let mut from = 0;
        for (at, slice) in self.slices {
            if at > from {
                chunks.push(head.slice(from..at));
            }
            chunks.push(slice);
            from = at;
        }
        if from < head.len() {
            chunks.push(head.slice(from..));
        }
        Ok(Frame::new(chunks))
    }
}
