//! Records of one partition on their way: collected, encoded once, and sent as often as it takes.

use std::sync::Arc;

use bytes::Bytes;
use minikafka_model::batch::{BatchBuilder, CompressionType, Header, ProducerStamp, Records, restamp};
use minikafka_model::{PartitionIndex, WallMs};
use tokio::time::Instant;

use super::delivery::{Delivery, Outcome};
use super::record::Record;
use crate::config::Compression;

/// Place of a batch in the order of sending: of its creation, and within a batch that was split, of its first record.
pub(crate) type Order = (u64, u32);

/// A batch and what became of it so far.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: PartitionIndex,
    pub(crate) order: Order,
    pub(crate) outcome: Arc<Outcome>,
    /// When its first record came.
    pub(crate) created: Instant,
    /// Bytes of `buffer.memory` that it holds.
    pub(crate) reserved: usize,
    /// Times it was sent.
    pub(crate) tries: u32,
    /// It is not sent again before.
    pub(crate) not_before: Option<Instant>,
    /// Id, epoch and first sequence, once it was sent by an idempotent producer.
    pub(crate) stamp: Option<ProducerStamp>,
    content: Content,
    count: u32,
}

#[derive(Debug)]
enum Content {
    Open(BatchBuilder),
    Encoded { bytes: Bytes, stamp: Option<ProducerStamp> },
}

impl Batch {
    pub(crate) fn new(topic: Arc<str>, partition: PartitionIndex, order: Order, now: Instant) -> Batch {
        Batch {
            topic,
            partition,
            order,
            outcome: Arc::default(),
            created: now,
            reserved: 0,
            tries: 0,
            not_before: None,
            stamp: None,
            content: Content::Open(BatchBuilder::new()),
            count: 0,
        }
    }

    /// Adds a record that holds `reserved` bytes of buffer memory.
    pub(crate) fn push(&mut self, record: &Record, timestamp: WallMs, reserved: usize) -> Delivery {
        self.reserved += reserved;
        self.push_parts(timestamp, record.key.as_deref(), record.value.as_deref(), &record.headers);
        let index = self.count - 1;
        Delivery::new(self.outcome.clone(), index, self.topic.clone(), self.partition, timestamp)
    }

    fn push_parts(
        &mut self,
        timestamp: WallMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[Header],
    ) {
        if let Content::Open(builder) = &mut self.content {
            builder.push(timestamp.0, key, value, headers);
            self.count += 1;
        }
    }

    /// Records in it.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Bytes it takes in a request, before compression.
    pub(crate) fn size(&self) -> usize {
        match &self.content {
            Content::Open(builder) => builder.size(),
            Content::Encoded { bytes, .. } => bytes.len(),
        }
    }

    /// The bytes to send, with the stamp it has now.
    ///
    /// # Errors
    /// The codec's.
    pub(crate) fn encode(&mut self, compression: Compression) -> Result<Bytes, String> {
        let encoded = match &mut self.content {
            Content::Encoded { bytes, stamp } if *stamp == self.stamp => return Ok(bytes.clone()),
            Content::Encoded { bytes, .. } => restamp(bytes, self.stamp),
            Content::Open(builder) => std::mem::take(builder)
                .finish(codec(compression), self.stamp)
                .map_err(|error| format!("the records cannot be compressed: {error}"))?,
        };
        self.content = Content::Encoded { bytes: encoded.clone(), stamp: self.stamp };
        Ok(encoded)
    }

    /// Two halves of a batch that was too large; their deliveries follow. `None` for a single record.
    pub(crate) fn split(&mut self, compression: Compression) -> Option<[Batch; 2]> {
        let at = self.count / 2;
        if at == 0 {
            return None;
        }
        let bytes = self.encode(compression).ok()?;
        let half = |first: u32| {
            let order = (self.order.0, self.order.1 + first);
            let mut batch = Batch::new(self.topic.clone(), self.partition, order, self.created);
            batch.tries = self.tries;
            batch
        };
        let mut halves = [half(0), half(at)];
        for (index, record) in (0_u32..).zip(Records::of(&bytes).ok()?) {
            let record = record.ok()?;
            let half = &mut halves[usize::from(index >= at)];
            half.push_parts(
                WallMs(record.timestamp),
                record.key.as_deref(),
                record.value.as_deref(),
                &record.headers,
            );
        }
        // What the whole held is shared out, and no byte of it is lost.
        halves[0].reserved = self.reserved / 2;
        halves[1].reserved = self.reserved - halves[0].reserved;
        self.reserved = 0;
        Some(halves)
    }
}

fn codec(compression: Compression) -> CompressionType {
    match compression {
        Compression::None => CompressionType::None,
        Compression::Gzip => CompressionType::Gzip,
        Compression::Snappy => CompressionType::Snappy,
        Compression::Lz4 => CompressionType::Lz4,
        Compression::Zstd => CompressionType::Zstd,
    }
}

#[cfg(test)]
mod tests {
    use minikafka_model::batch::BatchHeader;
    use minikafka_model::{ProducerEpoch, ProducerId, Sequence};

    use super::*;

    fn batch(values: &[&'static str]) -> Batch {
        let mut batch = Batch::new("t".into(), PartitionIndex(0), (1, 0), Instant::now());
        for value in values {
            drop(batch.push(&Record::to("t").value(*value).header("h", "x"), WallMs(7), 10));
        }
        batch
    }

    fn values(bytes: &Bytes) -> Vec<Bytes> {
        let records = Records::of(bytes).expect("a batch");
        records.map(|record| record.expect("a record").value.expect("a value")).collect()
    }

    #[tokio::test]
    async fn a_new_stamp_changes_the_header_alone() {
        let mut batch = batch(&["a", "b"]);
        let plain = batch.encode(Compression::Lz4).expect("encoded");
        batch.stamp =
            Some(ProducerStamp { id: ProducerId(9), epoch: ProducerEpoch(1), sequence: Sequence(5) });
        let stamped = batch.encode(Compression::Lz4).expect("encoded");
        assert_eq!(values(&plain), values(&stamped));
        let header = BatchHeader::parse(&stamped).expect("a header");
        header.verify(&stamped).expect("the checksum fits");
        assert_eq!((header.producer_id, header.base_sequence), (Some(ProducerId(9)), Sequence(5)));
    }

    #[tokio::test]
    async fn halves_hold_everything_in_order() {
        let mut whole = batch(&["a", "b", "c"]);
        let [mut first, mut second] = whole.split(Compression::Gzip).expect("three records");
        assert_eq!(values(&first.encode(Compression::None).expect("encoded")), ["a"]);
        assert_eq!(values(&second.encode(Compression::None).expect("encoded")), ["b", "c"]);
        assert!(whole.order <= first.order && first.order < second.order);
        assert_eq!(first.reserved + second.reserved, 30);
        assert!(batch(&["alone"]).split(Compression::None).is_none());
    }
}
