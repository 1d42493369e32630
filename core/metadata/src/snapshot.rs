//! An image as a file or a transfer. Big endian: magic, format version (u16), position, cluster id, records, CRC-32 of all before.
//!
//! The body is the same records as in the log, so that a type from a newer program is named here too.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use minikafka_model::{BrokerEpoch, BrokerId, ClusterId, MetadataOffset, ProducerId, Term, TopicPartition};

use crate::codec::{CodecError, decode_records, encode_records};
use crate::error::ApplyError;
use crate::image::{Image, Position};
use crate::record::{Record, RegisterBroker};

const MAGIC: &[u8; 8] = b"mkimage\n";
/// The format version that this program writes, and the newest that it reads.
pub const SNAPSHOT_FORMAT: u16 = 1;
const CHECKSUM: usize = 4;
const FIXED: usize = MAGIC.len() + 2 + 8 + 4 + 2;

/// Bytes that are not a snapshot this program can take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Not a snapshot of ours.
    #[error("not a metadata snapshot of minikafka")]
    NotASnapshot,
    /// Written by a newer program.
    #[error("metadata snapshot has format {0}; this version of minikafka reads up to {SNAPSHOT_FORMAT}")]
    Newer(u16),
    /// Cut or changed.
    #[error("metadata snapshot is damaged: its checksum does not match")]
    Damaged,
    /// A record that this program does not know.
    #[error("metadata snapshot: {0}")]
    Record(#[from] CodecError),
    /// Its records contradict each other.
    #[error("metadata snapshot: {0}")]
    Apply(#[from] ApplyError),
}

/// The image as bytes. Equal images give equal bytes.
///
/// The image has a position: a snapshot of nothing is never taken; an empty image is written as position 0, term 0.
pub fn encode_snapshot(image: &Image) -> Bytes {
    let at = image.position().unwrap_or(Position { offset: MetadataOffset(0), term: Term::ZERO });
    let body = encode_records(&records_of(image));
    let cluster = image.cluster().0.as_bytes();
    let mut out = BytesMut::with_capacity(FIXED + cluster.len() + body.len() + CHECKSUM);
    out.put_slice(MAGIC);
    out.put_u16(SNAPSHOT_FORMAT);
    out.put_i64(at.offset.0);
    out.put_i32(at.term.0);
    out.put_u16(u16::try_from(cluster.len()).expect("a cluster id is a short text"));
    out.put_slice(cluster);
    out.put_slice(&body);
    let checksum = crc32fast::hash(&out);
    out.put_u32(checksum);
    out.freeze()
}

/// Reads what [`encode_snapshot`] wrote.
///
/// # Errors
/// Bytes that are cut, changed, foreign or from a newer program.
pub fn decode_snapshot(bytes: &Bytes) -> Result<Image, SnapshotError> {
    let mut rest: &[u8] = bytes.strip_prefix(MAGIC.as_slice()).ok_or(SnapshotError::NotASnapshot)?;
    if rest.len() < FIXED - MAGIC.len() + CHECKSUM {
        return Err(SnapshotError::Damaged);
    }
    let format = rest.get_u16();
    if format > SNAPSHOT_FORMAT {
        return Err(SnapshotError::Newer(format));
    }
    let (covered, mut checksum) = bytes.split_at(bytes.len() - CHECKSUM);
    if crc32fast::hash(covered) != checksum.get_u32() {
        return Err(SnapshotError::Damaged);
    }
    let position = Position { offset: MetadataOffset(rest.get_i64()), term: Term(rest.get_i32()) };
    let length = usize::from(rest.get_u16());
    let cluster = rest.get(..length).and_then(|text| std::str::from_utf8(text).ok());
    let cluster = ClusterId(cluster.ok_or(SnapshotError::Damaged)?.to_owned());
    let from = FIXED + length;
    if from > covered.len() {
        return Err(SnapshotError::Damaged);
    }
    let records = decode_records(&bytes.slice(from..covered.len()))?;
    let mut image = Image::empty(cluster);
    image.apply(position, &records)?;
    Ok(image)
}

/// The records that make this image out of an empty one.
fn records_of(image: &Image) -> Vec<Record> {
    let mut records = Vec::new();
    for (name, level) in image.features() {
        records.push(Record::FeatureLevel { name: name.clone(), level: *level });
    }
    for (id, broker) in image.brokers() {
        records.push(Record::RegisterBroker(RegisterBroker {
            broker: *id,
            epoch: broker.epoch,
            incarnation: broker.incarnation,
            listeners: broker.listeners.clone(),
            rack: broker.rack.clone(),
            log_dirs: broker.log_dirs.clone(),
            fenced: broker.fenced,
            in_controlled_shutdown: broker.in_controlled_shutdown,
        }));
    }
    for (id, topic) in image.topics() {
        records.push(Record::Topic { id: *id, name: topic.name.to_string() });
        for (index, state) in &topic.partitions {
            let at = TopicPartition { topic: *id, partition: *index };
            records.push(Record::Partition { at, state: state.as_ref().clone() });
        }
    }
    for (resource, values) in image.configs.iter() {
        for (key, value) in values.iter() {
            records.push(Record::Config {
                resource: *resource,
                key: key.clone(),
                value: Some(value.clone()),
            });
        }
    }
    if image.next_producer_id() > ProducerId(0) {
        records.push(Record::ProducerIds {
            broker: BrokerId(0),
            epoch: BrokerEpoch(0),
            next: image.next_producer_id(),
        });
    }
    records
}
