//! What can be set about a replica. All of it may change while it runs.

use std::time::Duration;

/// The settings of one replica: broker keys, with the topic's overrides already applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaConfig {
    /// `min.insync.replicas` as configured; the effective value is capped by the number of replicas (Kafka semantics 1.3).
    pub min_insync_replicas: usize,
    /// `replica.lag.time.max.ms`.
    pub lag_time_max: Duration,
    /// `replica.fetch.backoff.ms`: how long a follower leaves a partition alone after an error.
    pub fetch_backoff: Duration,
    /// `segment.bytes`: a batch above it is refused (RECORD_LIST_TOO_LARGE).
    pub segment_bytes: usize,
    /// `message.timestamp.type=LogAppendTime`: the leader stamps the records.
    pub log_append_time: bool,
    /// The fault planted for a test of the tests.
    #[cfg(feature = "seeded-bugs")]
    pub seeded: Option<crate::SeededBug>,
}

impl Default for ReplicaConfig {
    /// Kafka's defaults.
    fn default() -> ReplicaConfig {
        ReplicaConfig {
            min_insync_replicas: 1,
            lag_time_max: Duration::from_secs(30),
            fetch_backoff: Duration::from_secs(1),
            segment_bytes: 1 << 30,
            log_append_time: false,
            #[cfg(feature = "seeded-bugs")]
            seeded: None,
        }
    }
}

impl ReplicaConfig {
    /// How often a leader looks for members that fell behind: half the lag limit (Kafka semantics 2.2).
    pub fn isr_check_interval(&self) -> Duration {
        self.lag_time_max / 2
    }
}
