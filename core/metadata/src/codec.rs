//! Framing of records: type (u16), version (u8), length (u32), payload; big endian. The payload is postcard. A type or version that
//! this program does not know is an error that names it: skipping it would make this node's image differ from the others'.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use minikafka_model::{BrokerEpoch, BrokerId, ProducerId, TopicId, TopicPartition};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::partition::{PartitionChange, PartitionState};
use crate::record::{BrokerChange, ConfigResource, Record, RegisterBroker, type_name_of};

/// The newest version of every record type that this program writes and reads.
const VERSION: u8 = 1;
const HEADER: usize = 2 + 1 + 4;
/// The longest payload of one record.
pub const MAX_RECORD_BYTES: usize = 16 << 20;

/// Bytes that are not a list of records this program understands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A record type of a newer program, or one of Kafka's that is not kept here.
    #[error(
        "metadata record {name} (type {number}) at byte {position} is not known to this version of minikafka; it was written by a newer one"
    )]
    UnknownType {
        /// The type's number.
        number: u16,
        /// Its name where Kafka has one.
        name: &'static str,
        /// Where the record starts.
        position: usize,
    },
    /// A newer version of a known type.
    #[error(
        "metadata {name} at byte {position} has version {version}; this version of minikafka reads up to {VERSION}"
    )]
    NewerVersion {
        /// The type.
        name: &'static str,
        /// Its version.
        version: u8,
        /// Where the record starts.
        position: usize,
    },
    /// The bytes end inside a record.
    #[error("metadata records end inside the record at byte {position}")]
    Truncated {
        /// Where the record starts.
        position: usize,
    },
    /// The payload is not one of its type.
    #[error("metadata {name} at byte {position} is damaged")]
    Damaged {
        /// The type.
        name: &'static str,
        /// Where the record starts.
        position: usize,
    },
}

/// The records as they stand in one entry of the log.
pub fn encode_records(records: &[Record]) -> Bytes {
    let mut out = BytesMut::with_capacity(records.len() * 64);
    for record in records {
        out.put_u16(record.type_number());
        out.put_u8(VERSION);
        let payload = payload(record);
        out.put_u32(u32::try_from(payload.len()).expect("a record is far smaller than 4 GiB"));
        out.put_slice(&payload);
    }
    out.freeze()
}

fn bytes_of(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("writing plain data to memory")
}

fn payload(record: &Record) -> Vec<u8> {
    match record {
        Record::RegisterBroker(it) => bytes_of(it),
        Record::BrokerChange(it) => bytes_of(it),
        Record::UnregisterBroker { broker, epoch } => bytes_of(&(broker, epoch)),
        Record::Topic { id, name } => bytes_of(&(id, name)),
        Record::Partition { at, state } => bytes_of(&(at, state)),
        Record::PartitionChange(it) => bytes_of(it),
        Record::RemoveTopic { id } => bytes_of(id),
        Record::Config { resource, key, value } => bytes_of(&(resource, key, value)),
        Record::FeatureLevel { name, level } => bytes_of(&(name, level)),
        Record::ProducerIds { broker, epoch, next } => bytes_of(&(broker, epoch, next)),
        Record::NoOp => Vec::new(),
        Record::ClearElr { topic } => bytes_of(topic),
    }
}

/// Reads what [`encode_records`] wrote.
///
/// # Errors
/// An unknown type or version, or bytes that were cut or damaged. Nothing is skipped.
pub fn decode_records(bytes: &Bytes) -> Result<Vec<Record>, CodecError> {
    let mut rest: &[u8] = bytes;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let position = bytes.len() - rest.len();
        if rest.len() < HEADER {
            return Err(CodecError::Truncated { position });
        }
        let (number, version, length) = (rest.get_u16(), rest.get_u8(), rest.get_u32() as usize);
        if length > MAX_RECORD_BYTES || rest.len() < length {
            return Err(CodecError::Truncated { position });
        }
        let (payload, after) = rest.split_at(length);
        rest = after;
        records.push(decode_one(number, version, payload, position)?);
    }
    Ok(records)
}

fn decode_one(number: u16, version: u8, payload: &[u8], position: usize) -> Result<Record, CodecError> {
    let known = type_name_of(number);
    let name = known.unwrap_or("of an unknown kind");
    let unknown = CodecError::UnknownType { number, name, position };
    if !matches!(number, 0..=5 | 9 | 12 | 15 | 17 | 20 | 28) {
        return Err(unknown);
    }
    if version != VERSION {
        return Err(CodecError::NewerVersion { name, version, position });
    }
    let damaged = CodecError::Damaged { name, position };
    Ok(match number {
        0 => Record::RegisterBroker(value::<RegisterBroker>(payload).ok_or(damaged)?),
        1 => {
            let (broker, epoch) = value::<(BrokerId, BrokerEpoch)>(payload).ok_or(damaged)?;
            Record::UnregisterBroker { broker, epoch }
        }
        2 => {
            let (id, name) = value::<(TopicId, String)>(payload).ok_or(damaged)?;
            Record::Topic { id, name }
        }
        3 => {
            let (at, state) = value::<(TopicPartition, PartitionState)>(payload).ok_or(damaged)?;
            Record::Partition { at, state }
        }
        4 => {
            let (resource, key, value) =
                value::<(ConfigResource, String, Option<String>)>(payload).ok_or(damaged)?;
            Record::Config { resource, key, value }
        }
        5 => Record::PartitionChange(value::<PartitionChange>(payload).ok_or(damaged)?),
        9 => Record::RemoveTopic { id: value::<TopicId>(payload).ok_or(damaged)? },
        12 => {
            let (name, level) = value::<(String, u16)>(payload).ok_or(damaged)?;
            Record::FeatureLevel { name, level }
        }
        15 => {
            let (broker, epoch, next) =
                value::<(BrokerId, BrokerEpoch, ProducerId)>(payload).ok_or(damaged)?;
            Record::ProducerIds { broker, epoch, next }
        }
        17 => Record::BrokerChange(value::<BrokerChange>(payload).ok_or(damaged)?),
        20 if payload.is_empty() => Record::NoOp,
        20 => return Err(damaged),
        28 => Record::ClearElr { topic: value::<Option<TopicId>>(payload).ok_or(damaged)? },
        _ => return Err(unknown),
    })
}

/// A value that takes the payload to its last byte.
fn value<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(payload).ok()?;
    rest.is_empty().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_type_is_named() {
        let mut bytes = BytesMut::new();
        bytes.put_u16(18);
        bytes.put_u8(1);
        bytes.put_u32(0);
        let error = decode_records(&bytes.freeze()).unwrap_err();
        assert!(error.to_string().contains("AccessControlEntryRecord (type 18)"), "{error}");
        let error = decode_records(&Bytes::from_static(&[9, 9, 1, 0, 0, 0, 0])).unwrap_err();
        assert!(error.to_string().contains("type 2313"), "{error}");
    }

    #[test]
    fn a_newer_version_and_cut_bytes_are_refused() {
        let good = encode_records(&[Record::RemoveTopic { id: TopicId(minikafka_model::Uuid(7)) }]);
        assert_eq!(decode_records(&good).unwrap().len(), 1);
        for cut in 1..good.len() {
            assert_eq!(
                decode_records(&good.slice(..cut)).unwrap_err(),
                CodecError::Truncated { position: 0 },
                "cut at {cut}"
            );
        }
        let mut newer = good.to_vec();
        newer[2] = VERSION + 1;
        assert!(matches!(decode_records(&newer.into()), Err(CodecError::NewerVersion { .. })));
        let mut longer = good.to_vec();
        longer.push(0);
        longer[6] += 1;
        assert!(matches!(decode_records(&longer.into()), Err(CodecError::Damaged { .. })));
    }
}
