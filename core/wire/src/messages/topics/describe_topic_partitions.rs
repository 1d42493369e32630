//! DescribeTopicPartitions (75): topics page by page, with eligible leader replicas.

use minikafka_model::Uuid;

wire_structs! {
    /// Asks for topics, a page at a time.
    pub struct DescribeTopicPartitionsRequest {
        topics: Vec<RequestTopic> = Topics(0+),
        /// Most partitions in one page.
        response_partition_limit: i32 = ResponsePartitionLimit(0+) default(2000),
        cursor: Option<Cursor> = Cursor(0+) null(0+) default(null),
    }

    /// A topic asked for by name.
    pub struct RequestTopic {
        name: String = Name(0+),
    }

    /// The partition to go on with.
    pub struct Cursor {
        topic_name: String = TopicName(0+),
        partition_index: i32 = PartitionIndex(0+),
    }

    /// One page of topics.
    pub struct DescribeTopicPartitionsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        topics: Vec<TopicResult> = Topics(0+),
        /// Where the next page begins; null after the last.
        next_cursor: Option<Cursor> = NextCursor(0+) null(0+) default(null),
    }

    /// One topic.
    pub struct TopicResult {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        name: Option<String> = Name(0+) null(0+),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(0+),
        /// Whether Kafka itself uses it.
        is_internal: bool = IsInternal(0+) default(false),
        partitions: Vec<PartitionResult> = Partitions(0+),
        /// Bits of what the asker may do; -2147483648 if not asked.
        topic_authorized_operations: i32 = TopicAuthorizedOperations(0+) default(-2147483648),
    }

    /// One partition.
    pub struct PartitionResult {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        partition_index: i32 = PartitionIndex(0+),
        /// Node id of the leader; -1 without one.
        leader_id: i32 = LeaderId(0+),
        /// Epoch of the leader; -1 if unknown.
        leader_epoch: i32 = LeaderEpoch(0+) default(-1),
        /// Replicas in order of preference.
        replica_nodes: Vec<i32> = ReplicaNodes(0+),
        /// In-sync replicas.
        isr_nodes: Vec<i32> = IsrNodes(0+),
        /// Replicas outside the ISR that may still lead (KIP-966).
        eligible_leader_replicas: Option<Vec<i32>> = EligibleLeaderReplicas(0+) null(0+) default(null),
        /// Former members of the ELR, kept as a hint.
        last_known_elr: Option<Vec<i32>> = LastKnownElr(0+) null(0+) default(null),
        /// Replicas that cannot serve.
        offline_replicas: Vec<i32> = OfflineReplicas(0+),
    }
}
