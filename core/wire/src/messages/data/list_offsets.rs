//! ListOffsets (2): the first, the last, or the first offset at a time.

wire_structs! {
    /// Looks offsets up by time or by the special times -1 to -6.
    pub struct ListOffsetsRequest {
        /// Node id of a replica; -1 for a consumer.
        replica_id: i32 = ReplicaId(0+),
        /// 0: read_uncommitted; 1: read_committed.
        isolation_level: i8 = IsolationLevel(2+),
        topics: Vec<ListOffsetsTopic> = Topics(0+),
        /// Milliseconds to wait at most.
        timeout_ms: i32 = TimeoutMs(10+),
    }

    /// Partitions of one topic.
    pub struct ListOffsetsTopic {
        name: String = Name(0+),
        partitions: Vec<ListOffsetsPartition> = Partitions(0+),
    }

    /// What is asked of one partition.
    pub struct ListOffsetsPartition {
        partition_index: i32 = PartitionIndex(0+),
        /// Epoch the asker believes in; -1 to skip the check.
        current_leader_epoch: i32 = CurrentLeaderEpoch(4+) default(-1),
        /// Milliseconds since 1970, or a special time: -1 latest, -2 earliest, -3 of the greatest time.
        timestamp: i64 = Timestamp(0+),
    }

    /// The offsets found.
    pub struct ListOffsetsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(2+),
        topics: Vec<TopicResponse> = Topics(0+),
    }

    /// Answers of one topic.
    pub struct TopicResponse {
        name: String = Name(0+),
        partitions: Vec<PartitionResponse> = Partitions(0+),
    }

    /// The offset found in one partition.
    pub struct PartitionResponse {
        partition_index: i32 = PartitionIndex(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// Time of the record found; -1 if none.
        timestamp: i64 = Timestamp(1+) default(-1),
        offset: i64 = Offset(1+) default(-1),
        /// Epoch of the leader; -1 if unknown.
        leader_epoch: i32 = LeaderEpoch(4+) default(-1),
    }
}
