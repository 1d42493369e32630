//! ElectLeaders (43): preferred or unclean elections by hand.

wire_structs! {
    /// Asks for elections.
    pub struct ElectLeadersRequest {
        /// 0: preferred; 1: unclean.
        election_type: i8 = ElectionType(1+),
        /// Partitions; null for all.
        topic_partitions: Option<Vec<TopicPartitions>> = TopicPartitions(0+) null(0+),
        /// Milliseconds to wait at most.
        timeout_ms: i32 = TimeoutMs(0+) default(60000),
    }

    /// Partitions of one topic.
    pub struct TopicPartitions {
        topic: String = Topic(0+),
        partitions: Vec<i32> = Partitions(0+),
    }

    /// What became of each election.
    pub struct ElectLeadersResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(1+),
        replica_election_results: Vec<ElectionResult> = ReplicaElectionResults(0+),
    }

    /// Results of one topic.
    pub struct ElectionResult {
        topic: String = Topic(0+),
        partition_result: Vec<PartitionResult> = PartitionResult(0+),
    }

    /// Result of one partition.
    pub struct PartitionResult {
        partition_id: i32 = PartitionId(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+),
    }
}
