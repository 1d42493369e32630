//! OffsetForLeaderEpoch (23): where an epoch ended.

wire_structs! {
    /// Asks for the end offset of leader epochs (Kafka semantics 4.3).
    pub struct OffsetForLeaderEpochRequest {
        /// Node id of a replica; -1 for a consumer.
        replica_id: i32 = ReplicaId(3+) default(-2),
        topics: Vec<EpochTopic> = Topics(0+),
    }

    /// Partitions of one topic.
    pub struct EpochTopic {
        topic: String = Topic(0+),
        partitions: Vec<EpochPartition> = Partitions(0+),
    }

    /// The epoch asked about in one partition.
    pub struct EpochPartition {
        partition: i32 = Partition(0+),
        /// Epoch the asker believes in; -1 to skip the check.
        current_leader_epoch: i32 = CurrentLeaderEpoch(2+) default(-1),
        /// Epoch of the leader; -1 if unknown.
        leader_epoch: i32 = LeaderEpoch(0+),
    }

    /// The ends.
    pub struct OffsetForLeaderEpochResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(2+),
        topics: Vec<TopicResult> = Topics(0+),
    }

    /// Answers of one topic.
    pub struct TopicResult {
        topic: String = Topic(0+),
        partitions: Vec<EpochEndOffset> = Partitions(0+),
    }

    /// The end of an epoch in one partition.
    pub struct EpochEndOffset {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        partition: i32 = Partition(0+),
        /// Epoch of the leader; -1 if unknown.
        leader_epoch: i32 = LeaderEpoch(1+) default(-1),
        /// End of the epoch, exclusive; -1 if unknown.
        end_offset: i64 = EndOffset(0+) default(-1),
    }
}
