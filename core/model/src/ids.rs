//! Newtypes for every id, offset and epoch. There are no conversions between kinds, and no sentinels: "none" is `Option`,
//! the -1 and -2 of the protocol live in the codecs.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Id of a broker (`node.id` of a process with the broker role).
    BrokerId(i32)
);
number!(
    /// Id of a controller, a voter of the metadata quorum (`node.id` of a process with the controller role).
    ControllerId(i32)
);
number!(
    /// Index of a partition within its topic, from 0.
    PartitionIndex(i32)
);
number!(
    /// Position of a record in a partition's log. A log end offset is exclusive, a last offset inclusive.
    Offset(i64)
);
number!(
    /// Per partition, raised by the controller at every change of leader (Kafka semantics 6.5).
    LeaderEpoch(i32)
);
number!(
    /// Per partition, raised by the controller at every accepted change of that partition.
    PartitionEpoch(i32)
);
number!(
    /// Names one life of a broker process: the metadata offset at which its registration was decided. Strictly rising per broker.
    BrokerEpoch(i64)
);
number!(
    /// Raft term of the metadata quorum (Kafka calls it the epoch of the quorum leader).
    Term(i32)
);
number!(
    /// Position of an entry in the metadata log; one entry holds all records of one decision.
    MetadataOffset(i64)
);
number!(
    /// Id of an idempotent producer, unique in the cluster.
    ProducerId(i64)
);
number!(
    /// Epoch of a producer id.
    ProducerEpoch(i16)
);
number!(
    /// Sequence number of a record of an idempotent producer in one partition; wraps from `i32::MAX` to 0.
    Sequence(i32)
);
number!(
    /// Names a caller that waits for an answer. The shell that issued it knows whom it means.
    Ticket(u64)
);

macro_rules! counts_up {
    ($($name:ident),*) => { $(impl $name {
        /// The first value.
        pub const ZERO: $name = $name(0);
        /// The next value.
        #[must_use]
        pub const fn next(self) -> $name {
            $name(self.0 + 1)
        }
    })* };
}
counts_up!(Offset, LeaderEpoch, PartitionEpoch, Term, MetadataOffset, Ticket, PartitionIndex);

impl Offset {
    /// This offset moved on by `count` records.
    #[must_use]
    pub const fn plus(self, count: i64) -> Offset {
        Offset(self.0 + count)
    }

    /// How many records lie from `earlier` up to here; negative when `earlier` is later.
    pub const fn since(self, earlier: Offset) -> i64 {
        self.0 - earlier.0
    }
}

impl Sequence {
    /// This sequence moved on by `count` records, wrapping from `i32::MAX` to 0 as Kafka does.
    #[must_use]
    pub const fn plus(self, count: i32) -> Sequence {
        Sequence(self.0.wrapping_add(count) & i32::MAX)
    }
}

/// 128 bits (zero by default) with Kafka's text form: URL-safe base64 without padding, 22 characters.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uuid(pub u128);

/// A text that is not a Kafka UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a UUID: 22 characters of URL-safe base64 are wanted")]
pub struct ParseUuidError(pub String);

impl Uuid {
    /// All bits zero: "no id" on the wire.
    pub const ZERO: Uuid = Uuid(0);

    /// The sixteen bytes, big endian, as on the wire.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// From sixteen bytes, big endian.
    pub const fn from_bytes(bytes: [u8; 16]) -> Uuid {
        Uuid(u128::from_be_bytes(bytes))
    }

    /// A version 4 UUID from random bits. Kafka never hands out an id whose text starts with a dash; the caller draws again
    /// while this is `None`.
    pub fn from_random(bits: u128) -> Option<Uuid> {
        let uuid = Uuid((bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62));
        if uuid.to_string().starts_with('-') { None } else { Some(uuid) }
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.to_bytes()))
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uuid({self})")
    }
}

impl FromStr for Uuid {
    type Err = ParseUuidError;

    fn from_str(text: &str) -> Result<Uuid, ParseUuidError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| ParseUuidError(text.to_owned()))?;
        let bytes: [u8; 16] = bytes.try_into().map_err(|_| ParseUuidError(text.to_owned()))?;
        Ok(Uuid::from_bytes(bytes))
    }
}

macro_rules! uuid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

uuid!(
    /// Id of a topic: a topic created anew under an old name has another id.
    TopicId
);
uuid!(
    /// Id of a log directory, or of a controller's metadata directory (`directory.id` in `meta.properties`).
    DirectoryId
);
uuid!(
    /// Drawn at each start of a broker process.
    IncarnationId
);

/// Id of the cluster, as in `meta.properties`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClusterId(pub String);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One partition of one topic, by id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TopicPartition {
    /// The topic.
    pub topic: TopicId,
    /// The partition within it.
    pub partition: PartitionIndex,
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_kafkas_text() {
        let uuid = Uuid::from_bytes([0xff, 0xee, 0xdd, 0xcc, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(uuid.to_string(), "_-7dzAABAgMEBQYHCAkKCw");
        assert_eq!("_-7dzAABAgMEBQYHCAkKCw".parse(), Ok(uuid));
        assert!("nonsense".parse::<Uuid>().is_err());
    }

    #[test]
    fn sequences_wrap_to_zero() {
        assert_eq!(Sequence(i32::MAX).plus(1), Sequence(0));
        assert_eq!(Sequence(5).plus(3), Sequence(8));
    }
}
