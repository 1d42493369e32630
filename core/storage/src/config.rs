//! The settings of one log.

/// Settings of a log, from the topic's and the broker's keys of the names given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is rolled before it would grow beyond.
    pub segment_bytes: u32,
    /// `segment.ms`, less the jitter that the caller drew from `segment.jitter.ms`.
    pub segment_ms: i64,
    /// `index.interval.bytes`.
    pub index_interval_bytes: u32,
    /// `segment.index.bytes`: size to which the active segment's index files are preallocated, and the most they may take.
    pub segment_index_bytes: u32,
    /// `retention.ms`; `None` keeps for ever.
    pub retention_ms: Option<i64>,
    /// `retention.bytes`; `None` is no limit.
    pub retention_bytes: Option<u64>,
    /// Whether `cleanup.policy` names `delete`: only then retention by time and size applies.
    pub delete: bool,
    /// Whether `cleanup.policy` names `compact`: only then offsets may be missing between segments.
    pub compact: bool,
    /// `file.delete.delay.ms`: how long a deleted file stays with the suffix `.deleted`.
    pub file_delete_delay_ms: u64,
    /// `flush.messages`: a sync is due after so many records; `None` leaves it to the system.
    pub flush_messages: Option<u64>,
    /// `preallocate`: reserve the space of a segment when it is made.
    pub preallocate: bool,
    /// `producer.id.expiration.ms`.
    pub producer_expiration_ms: i64,
}

impl Default for LogConfig {
    /// Kafka's defaults.
    fn default() -> LogConfig {
        LogConfig {
            segment_bytes: 1 << 30,
            segment_ms: 7 * 24 * 3_600_000,
            index_interval_bytes: 4096,
            segment_index_bytes: 10 << 20,
            retention_ms: Some(7 * 24 * 3_600_000),
            retention_bytes: None,
            delete: true,
            compact: false,
            file_delete_delay_ms: 60_000,
            flush_messages: None,
            preallocate: false,
            producer_expiration_ms: 86_400_000,
        }
    }
}
