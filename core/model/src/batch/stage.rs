//! The stages of a batch as types: what has not been checked cannot be appended.

use std::marker::PhantomData;

use bytes::{Bytes, BytesMut};

use crate::{LeaderEpoch, Offset, WallMs};

use super::BatchError;
use super::header::{BatchHeader, TimestampType, set_max_timestamp, set_offset_and_epoch};

/// As a client sent it: exactly one batch of format 2, nothing more is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {}
/// Checked and in its final form but for offset and epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {}
/// With its offset and the leader's epoch: ready for the leader's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assigned {}
/// From the leader, checksum verified: ready for a follower's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replicated {}

/// The stages that may be appended to a log.
pub trait Stored: private::Sealed {}
impl Stored for Assigned {}
impl Stored for Replicated {}

mod private {
    pub trait Sealed {}
    impl Sealed for super::Assigned {}
    impl Sealed for super::Replicated {}
}

/// One batch at a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<Stage> {
    pub(super) bytes: Bytes,
    pub(super) header: BatchHeader,
    pub(super) stage: PhantomData<Stage>,
}

impl<Stage> Batch<Stage> {
    /// Its header.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Its bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Its bytes, for good.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    pub(super) fn at(bytes: Bytes, header: BatchHeader) -> Batch<Stage> {
        Batch { bytes, header, stage: PhantomData }
    }
}

impl Batch<Checked> {
    /// Gives the batch its offset and epoch, in place where nobody else holds the bytes. With `log_append_time` the broker's stamp
    /// replaces the producer's (`message.timestamp.type=LogAppendTime`).
    pub fn assign(
        self,
        base: Offset,
        epoch: LeaderEpoch,
        log_append_time: Option<WallMs>,
    ) -> Batch<Assigned> {
        let mut bytes = self.bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        let mut header = self.header;
        set_offset_and_epoch(&mut bytes, base, epoch);
        (header.base_offset, header.leader_epoch) = (base, Some(epoch));
        if let Some(WallMs(now)) = log_append_time {
            set_max_timestamp(&mut bytes, TimestampType::LogAppendTime, now);
            header = BatchHeader::parse(&bytes).unwrap_or(header);
        }
        Batch::at(bytes.freeze(), header)
    }
}

impl Batch<Replicated> {
    /// Takes exactly one batch that a leader sent: shape, checksum and the presence of a leader epoch are checked.
    ///
    /// # Errors
    /// What does not fit.
    pub fn from_leader(bytes: Bytes) -> Result<Batch<Replicated>, BatchError> {
        let header = BatchHeader::parse(&bytes)?;
        if header.size != bytes.len() {
            return Err(BatchError::CutShort { have: bytes.len(), want: header.size });
        }
        header.verify(&bytes)?;
        Ok(Batch::at(bytes, header))
    }
}
