//! A record on its way to a topic.

use bytes::Bytes;
use minikafka_model::batch::{BatchBuilder, Header};
use minikafka_model::{PartitionIndex, WallMs};

/// A record to be sent.
///
/// ```
/// use minikafka_client::Record;
///
/// let record = Record::to("orders").key("customer-7").value("{}").header("trace", "abc");
/// assert_eq!(record.topic, "orders");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Record {
    /// The topic.
    pub topic: String,
    /// The partition; without one the partitioner chooses.
    pub partition: Option<PartitionIndex>,
    /// The key: records of one key go to one partition.
    pub key: Option<Bytes>,
    /// The value; without one the record is a tombstone.
    pub value: Option<Bytes>,
    /// Headers in order; keys may repeat.
    pub headers: Vec<Header>,
    /// When it happened; without it, the moment of `send`.
    pub timestamp: Option<WallMs>,
}

impl Record {
    /// A record for this topic, with no key and no value yet.
    pub fn to(topic: impl Into<String>) -> Record {
        Record {
            topic: topic.into(),
            partition: None,
            key: None,
            value: None,
            headers: Vec::new(),
            timestamp: None,
        }
    }

    /// With this key.
    pub fn key(mut self, key: impl Into<Bytes>) -> Record {
        self.key = Some(key.into());
        self
    }

    /// With this value.
    pub fn value(mut self, value: impl Into<Bytes>) -> Record {
        self.value = Some(value.into());
        self
    }

    /// For this partition, whatever the key.
    pub fn partition(mut self, partition: i32) -> Record {
        self.partition = Some(PartitionIndex(partition));
        self
    }

    /// With one more header.
    pub fn header(mut self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Record {
        self.headers.push(Header { key: key.into(), value: Some(value.into()) });
        self
    }

    /// With this timestamp, in milliseconds since 1970.
    pub fn timestamp(mut self, millis: i64) -> Record {
        self.timestamp = Some(WallMs(millis));
        self
    }

    /// An upper bound of its bytes in a batch.
    pub(crate) fn size(&self) -> usize {
        BatchBuilder::size_of_record(self.key.as_deref(), self.value.as_deref(), &self.headers)
    }
}
