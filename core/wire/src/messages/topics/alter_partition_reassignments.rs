//! AlterPartitionReassignments (45): moves partitions.

wire_structs! {
    /// Starts or cancels moves.
    pub struct AlterPartitionReassignmentsRequest {
        /// Milliseconds to wait at most.
        timeout_ms: i32 = TimeoutMs(0+) default(60000),
        /// Whether the number of replicas may change.
        allow_replication_factor_change: bool = AllowReplicationFactorChange(1+) default(true),
        topics: Vec<ReassignableTopic> = Topics(0+),
    }

    /// Partitions of one topic.
    pub struct ReassignableTopic {
        name: String = Name(0+),
        partitions: Vec<ReassignablePartition> = Partitions(0+),
    }

    /// One partition and where it shall live.
    pub struct ReassignablePartition {
        partition_index: i32 = PartitionIndex(0+),
        /// Node ids of the replicas; null cancels a move.
        replicas: Option<Vec<i32>> = Replicas(0+) null(0+) default(null),
    }

    /// What became of each.
    pub struct AlterPartitionReassignmentsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        /// Whether the number of replicas may change.
        allow_replication_factor_change: bool = AllowReplicationFactorChange(1+) default(true),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+),
        responses: Vec<TopicResponse> = Responses(0+),
    }

    /// Results of one topic.
    pub struct TopicResponse {
        name: String = Name(0+),
        partitions: Vec<PartitionResponse> = Partitions(0+),
    }

    /// Result of one partition.
    pub struct PartitionResponse {
        partition_index: i32 = PartitionIndex(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+),
    }
}
