//! CreatePartitions (37).

wire_structs! {
    /// Adds partitions to topics.
    pub struct CreatePartitionsRequest {
        topics: Vec<PartitionsTopic> = Topics(0+),
        /// Milliseconds to wait at most.
        timeout_ms: i32 = TimeoutMs(0+),
        /// Check only, change nothing.
        validate_only: bool = ValidateOnly(0+),
    }

    /// A topic that gets more partitions.
    pub struct PartitionsTopic {
        name: String = Name(0+),
        count: i32 = Count(0+),
        /// Replicas chosen by hand; then the two numbers above are -1.
        assignments: Option<Vec<PartitionsAssignment>> = Assignments(0+) null(0+),
    }

    /// Replicas of one new partition.
    pub struct PartitionsAssignment {
        broker_ids: Vec<i32> = BrokerIds(0+),
    }

    /// What became of each topic.
    pub struct CreatePartitionsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        results: Vec<TopicResult> = Results(0+),
    }

    /// What became of one topic.
    pub struct TopicResult {
        name: String = Name(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+) default(null),
    }
}
