//! The data directory: logs, checkpoints, deletion. For the moment in memory, until the storage room has landed.
#![allow(missing_docs, clippy::unused_self, clippy::unnecessary_wraps, clippy::needless_pass_by_value)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use minikafka_model::{BrokerEpoch, ClusterId, DirectoryId, LeaderEpoch, Now, Offset, TopicPartition, Uuid};
use minikafka_replication::{Effect, LogError, Replica, ReplicaLog};

use crate::service::{ReplicaCell, TopicSettings};
use crate::settings::BrokerSettings;

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);

/// The data directory of a broker.
#[derive(Debug, Default)]
pub(crate) struct LogStore {
    failed: AtomicBool,
}

pub(crate) struct DirectoryIdentity {
    pub(crate) cluster: ClusterId,
    pub(crate) directory: DirectoryId,
    pub(crate) previous_epoch: Option<BrokerEpoch>,
}

pub(crate) struct FoundLog {
    pub(crate) at: TopicPartition,
    pub(crate) topic: Arc<str>,
    pub(crate) log: Result<ReplicaLog, String>,
    pub(crate) high_watermark: Option<Offset>,
}

pub(crate) struct OpenedStore {
    pub(crate) store: LogStore,
    pub(crate) identity: DirectoryIdentity,
    pub(crate) logs: Vec<FoundLog>,
    pub(crate) recovered: usize,
    pub(crate) clean: bool,
}

impl LogStore {
    pub(crate) fn open(settings: &BrokerSettings, _now: Now) -> Result<OpenedStore, StoreError> {
        let cluster = ClusterId(settings.cluster_id.clone().unwrap_or_default());
        let directory = DirectoryId(Uuid::from_random(rand::random()).unwrap_or(Uuid(77)));
        Ok(OpenedStore {
            store: LogStore::default(),
            identity: DirectoryIdentity { cluster, directory, previous_epoch: None },
            logs: Vec::new(),
            recovered: 0,
            clean: true,
        })
    }

    /// Marks the directory as failed. False: it was already.
    pub(crate) fn fail(&self) -> bool {
        !self.failed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub(crate) fn write_epochs(
        &self,
        _topic: &str,
        _at: TopicPartition,
        _entries: &[(LeaderEpoch, Offset)],
    ) -> Result<(), LogError> {
        Ok(())
    }

    pub(crate) fn create(
        &self,
        _topic: &str,
        _at: TopicPartition,
        _settings: &TopicSettings,
        _now: Now,
    ) -> Result<ReplicaLog, LogError> {
        Ok(ReplicaLog::default())
    }

    pub(crate) fn remove(
        &self,
        _topic: &str,
        _at: TopicPartition,
        _log: Option<ReplicaLog>,
        _stray: bool,
        _delay: Duration,
    ) -> Result<(), LogError> {
        Ok(())
    }

    pub(crate) fn reconfigure(
        &self,
        _replica: &mut Replica,
        _settings: &TopicSettings,
        _out: &mut Vec<Effect>,
    ) {
    }

    pub(crate) fn checkpoint_high_watermarks(&self, _cells: &[Arc<ReplicaCell>]) -> Result<(), LogError> {
        Ok(())
    }

    pub(crate) fn checkpoint_recovery_points(&self, _cells: &[Arc<ReplicaCell>]) -> Result<(), LogError> {
        Ok(())
    }

    pub(crate) fn remove_deleted(&self, _now: Now) -> Result<(), LogError> {
        Ok(())
    }

    pub(crate) fn close(&self, _cells: &[Arc<ReplicaCell>], _epoch: Option<BrokerEpoch>) {}
}
