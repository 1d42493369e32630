//! DescribeLogDirs (35).

wire_structs! {
    /// Asks a broker for its log directories and the replicas in them.
    pub struct DescribeLogDirsRequest {
        /// Topics wanted; null for all.
        topics: Option<Vec<DescribableTopic>> = Topics(0+) null(0+),
    }

    /// Partitions of one topic.
    pub struct DescribableTopic {
        topic: String = Topic(0+),
        partitions: Vec<i32> = Partitions(0+),
    }

    /// The log directories.
    pub struct DescribeLogDirsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(3+),
        results: Vec<LogDirResult> = Results(0+),
    }

    /// One log directory.
    pub struct LogDirResult {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        log_dir: String = LogDir(0+),
        topics: Vec<LogDirTopic> = Topics(0+),
        /// Bytes of the volume; -1 if unknown.
        total_bytes: i64 = TotalBytes(4+) default(-1),
        /// Bytes free; -1 if unknown.
        usable_bytes: i64 = UsableBytes(4+) default(-1),
        is_cordoned: bool = IsCordoned(5+) default(false),
    }

    /// Replicas of one topic in it.
    pub struct LogDirTopic {
        name: String = Name(0+),
        partitions: Vec<LogDirPartition> = Partitions(0+),
    }

    /// One replica in it.
    pub struct LogDirPartition {
        partition_index: i32 = PartitionIndex(0+),
        /// Bytes of its segments.
        partition_size: i64 = PartitionSize(0+),
        /// How far it is behind the high watermark (or, a future replica, behind the current one).
        offset_lag: i64 = OffsetLag(0+),
        /// Whether it is a copy on its way into this directory.
        is_future_key: bool = IsFutureKey(0+),
    }
}
