//! ListPartitionReassignments (46).

wire_structs! {
    /// Asks which partitions are moving.
    pub struct ListPartitionReassignmentsRequest {
        /// Milliseconds to wait at most.
        timeout_ms: i32 = TimeoutMs(0+) default(60000),
        /// Topics wanted; null for all.
        topics: Option<Vec<ReassignmentsTopic>> = Topics(0+) null(0+) default(null),
    }

    /// Partitions of one topic.
    pub struct ReassignmentsTopic {
        name: String = Name(0+),
        partition_indexes: Vec<i32> = PartitionIndexes(0+),
    }

    /// The moving partitions.
    pub struct ListPartitionReassignmentsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+),
        topics: Vec<OngoingTopic> = Topics(0+),
    }

    /// Moving partitions of one topic.
    pub struct OngoingTopic {
        name: String = Name(0+),
        partitions: Vec<OngoingPartition> = Partitions(0+),
    }

    /// One moving partition.
    pub struct OngoingPartition {
        partition_index: i32 = PartitionIndex(0+),
        /// Node ids of the replicas.
        replicas: Vec<i32> = Replicas(0+),
        adding_replicas: Vec<i32> = AddingReplicas(0+),
        removing_replicas: Vec<i32> = RemovingReplicas(0+),
    }
}
