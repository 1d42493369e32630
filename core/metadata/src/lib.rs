//! Cluster metadata: records, image, apply, delta, snapshot and a broker's local plan.
//!
//! The metadata log holds entries; an entry is one decision of the active controller: a list of [`Record`]s that apply together at
//! one [`Position`]. [`Image::apply`] is the only way from records to state, for controllers and brokers alike, so that equal logs
//! give equal images. It checks what must always hold ([`ApplyError`]); a violation means that the log or the program is broken and
//! the process has to stop.
//!
//! Topics are known by id in records; names exist in the [`Record::Topic`] record and at the doors.

mod apply;
mod broker;
mod codec;
mod delta;
mod error;
mod image;
mod partition;
mod plan;
mod record;
mod snapshot;

pub use broker::{BrokerRegistration, Listener};
pub use codec::{CodecError, MAX_RECORD_BYTES, decode_records, encode_records};
pub use delta::{BrokerDelta, Delta, PartitionDelta};
pub use error::{ApplyError, Violation};
pub use image::{Image, Position, TopicImage};
pub use partition::{PartitionChange, PartitionState, Recovery};
pub use plan::{LocalPlan, LocalReplica, local_plan};
pub use record::{
    BrokerChange, ConfigResource, ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION, Record, RegisterBroker,
};
pub use snapshot::{SNAPSHOT_FORMAT, SnapshotError, decode_snapshot, encode_snapshot};
