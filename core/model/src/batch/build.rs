//! Building a batch: what a producer does.

use bytes::Bytes;

use crate::{Offset, ProducerEpoch, ProducerId, Sequence};

use super::CompressionType;
use super::header::{BatchHeader, HEADER_BYTES, write_header};
use super::records::{Header, put_varint};

/// Id, epoch and first sequence of an idempotent producer's batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProducerStamp {
    /// The id.
    pub id: ProducerId,
    /// Its epoch.
    pub epoch: ProducerEpoch,
    /// Sequence of the first record.
    pub sequence: Sequence,
}

/// Collects records and makes one batch of them, as a client sends it: base offset 0, no leader epoch.
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    /// Room for the header, then the records.
    bytes: Vec<u8>,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl Default for BatchBuilder {
    fn default() -> BatchBuilder {
        BatchBuilder::new()
    }
}

impl BatchBuilder {
    /// Empty.
    pub fn new() -> BatchBuilder {
        BatchBuilder::with_capacity(0)
    }

    /// Empty, with room for a batch of this size.
    pub fn with_capacity(bytes: usize) -> BatchBuilder {
        let mut room = Vec::with_capacity(bytes.max(HEADER_BYTES));
        room.resize(HEADER_BYTES, 0);
        BatchBuilder { bytes: room, count: 0, base_timestamp: 0, max_timestamp: 0 }
    }

    /// Adds a record; `timestamp` in milliseconds.
    pub fn push(&mut self, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header]) {
        if self.count == 0 {
            (self.base_timestamp, self.max_timestamp) = (timestamp, timestamp);
        }
        self.max_timestamp = self.max_timestamp.max(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(self.base_timestamp);
        let offset_delta = i64::from(self.count);
        let header_bytes =
            |header: &Header| bytes_len(Some(&header.key)) + bytes_len(header.value.as_deref());
        let length = 1
            + varint_len(timestamp_delta)
            + varint_len(offset_delta)
            + bytes_len(key)
            + bytes_len(value)
            + varint_len(headers.len() as i64)
            + headers.iter().map(header_bytes).sum::<usize>();
        let out = &mut self.bytes;
        put_varint(out, length as i64);
        // The attributes of a record have no meaning yet.
        out.push(0);
        put_varint(out, timestamp_delta);
        put_varint(out, offset_delta);
        put_bytes(out, key);
        put_bytes(out, value);
        put_varint(out, headers.len() as i64);
        for header in headers {
            put_bytes(out, Some(&header.key));
            put_bytes(out, header.value.as_deref());
        }
        self.count += 1;
    }

    /// Records so far.
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Bytes of the batch if it is not compressed.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// An upper bound of what one more record would add.
    pub fn size_of_record(key: Option<&[u8]>, value: Option<&[u8]>, headers: &[Header]) -> usize {
        const NUMBERS: usize = 5 + 1 + 10 + 5 + 5 + 5 + 5;
        let header = |h: &Header| 10 + h.key.len() + h.value.as_ref().map_or(0, Bytes::len);
        NUMBERS
            + key.map_or(0, <[u8]>::len)
            + value.map_or(0, <[u8]>::len)
            + headers.iter().map(header).sum::<usize>()
    }

    /// The finished batch.
    ///
    /// # Errors
    /// The codec's.
    pub fn build(&self, codec: CompressionType, producer: Option<ProducerStamp>) -> std::io::Result<Bytes> {
        match codec {
            CompressionType::None => self.clone().finish(codec, producer),
            _ => self.compressed(codec, producer),
        }
    }

    /// As [`BatchBuilder::build`], without a copy where nothing is compressed.
    ///
    /// # Errors
    /// The codec's.
    pub fn finish(
        mut self,
        codec: CompressionType,
        producer: Option<ProducerStamp>,
    ) -> std::io::Result<Bytes> {
        if codec != CompressionType::None {
            return self.compressed(codec, producer);
        }
        let header = self.header(codec, producer);
        write_header(&header, &mut self.bytes);
        Ok(self.bytes.into())
    }

    fn compressed(&self, codec: CompressionType, producer: Option<ProducerStamp>) -> std::io::Result<Bytes> {
        let records = codec.compress(&self.bytes[HEADER_BYTES..])?;
        let mut batch = Vec::with_capacity(HEADER_BYTES + records.len());
        batch.resize(HEADER_BYTES, 0);
        batch.extend(records);
        write_header(&self.header(codec, producer), &mut batch);
        Ok(batch.into())
    }

    fn header(&self, codec: CompressionType, producer: Option<ProducerStamp>) -> BatchHeader {
        BatchHeader {
            base_offset: Offset(0),
            size: 0,
            leader_epoch: None,
            crc: 0,
            attributes: codec.attributes(),
            last_offset_delta: self.count - 1,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: producer.map(|p| p.id),
            producer_epoch: producer.map_or(ProducerEpoch(-1), |p| p.epoch),
            base_sequence: producer.map_or(Sequence(-1), |p| p.sequence),
            count: self.count,
        }
    }
}

/// The same batch with another stamp: only header fields and the checksum change.
///
/// # Panics
/// On bytes that are not a whole batch.
pub fn restamp(batch: &Bytes, producer: Option<ProducerStamp>) -> Bytes {
    let mut header = BatchHeader::parse(batch).expect("a batch that was built before");
    header.producer_id = producer.map(|p| p.id);
    header.producer_epoch = producer.map_or(ProducerEpoch(-1), |p| p.epoch);
    header.base_sequence = producer.map_or(Sequence(-1), |p| p.sequence);
    let mut bytes = batch.to_vec();
    write_header(&header, &mut bytes);
    bytes.into()
}

fn varint_len(value: i64) -> usize {
    let zigzag = ((value << 1) ^ (value >> 63)) as u64;
    (64 - (zigzag | 1).leading_zeros() as usize).div_ceil(7)
}

fn bytes_len(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| varint_len(bytes.len() as i64) + bytes.len())
}

fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => put_varint(out, -1),
        Some(bytes) => {
            put_varint(out, bytes.len() as i64);
            out.extend(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Records;

    fn builder() -> BatchBuilder {
        let mut builder = BatchBuilder::new();
        let header = Header { key: "h".into(), value: Some("x".into()) };
        builder.push(1000, Some(b"key"), Some(b"value"), &[header]);
        builder.push(990, None, Some(&[7; 300]), &[]);
        builder.push(70_000, Some(b""), None, &[Header { key: "n".into(), value: None }]);
        builder
    }

    #[test]
    fn every_codec_gives_the_records_back() {
        let plain: Vec<_> = Records::of(&builder().build(CompressionType::None, None).expect("built"))
            .expect("records")
            .map(|record| record.expect("a record"))
            .collect();
        assert_eq!(plain.len(), 3);
        assert_eq!((plain[0].timestamp, plain[1].timestamp, plain[2].timestamp), (1000, 990, 70_000));
        assert_eq!(plain[1].value.as_ref().map(Bytes::len), Some(300));
        assert_eq!((plain[2].key.as_deref(), plain[2].value.as_deref()), (Some(&b""[..]), None));
        assert_eq!((plain[2].offset, plain[2].headers.len()), (Offset(2), 1));
        for codec in
            [CompressionType::Gzip, CompressionType::Snappy, CompressionType::Lz4, CompressionType::Zstd]
        {
            let batch = builder().build(codec, None).expect("built");
            let header = BatchHeader::parse(&batch).expect("a header");
            header.verify(&batch).expect("the checksum fits");
            assert_eq!((header.compression(), header.count, header.max_timestamp), (Ok(codec), 3, 70_000));
            let records: Vec<_> =
                Records::of(&batch).expect("records").map(|record| record.expect("a record")).collect();
            assert_eq!(records, plain, "{codec}");
        }
    }

    #[test]
    fn a_stamp_can_be_changed() {
        let stamp = |sequence: i32| {
            Some(ProducerStamp { id: ProducerId(9), epoch: ProducerEpoch(2), sequence: Sequence(sequence) })
        };
        let first = builder().finish(CompressionType::Lz4, stamp(5)).expect("built");
        let second = restamp(&first, stamp(0));
        assert_eq!(second, builder().finish(CompressionType::Lz4, stamp(0)).expect("built"));
        let header = BatchHeader::parse(&second).expect("a header");
        assert_eq!((header.producer_id, header.last_sequence()), (Some(ProducerId(9)), Sequence(2)));
    }

    #[test]
    fn the_bound_of_a_record_holds() {
        let headers = [Header { key: "k".into(), value: Some("v".into()) }];
        let mut builder = BatchBuilder::new();
        let before = builder.size();
        builder.push(i64::MAX, Some(b"key"), Some(&[0; 70_000]), &headers);
        let bound = BatchBuilder::size_of_record(Some(b"key"), Some(&[0; 70_000]), &headers);
        assert!(builder.size() - before <= bound);
    }

    #[test]
    fn lengths_of_numbers_are_known_beforehand() {
        for value in [0, -1, 1, 63, -64, 64, 8191, 8192, i64::from(i32::MAX), i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(varint_len(value), out.len(), "{value}");
        }
    }
}
