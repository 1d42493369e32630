//! CreateTopics (19).

use minikafka_model::Uuid;

wire_structs! {
    /// Creates topics.
    pub struct CreateTopicsRequest {
        topics: Vec<CreatableTopic> = Topics(0+),
        /// Milliseconds to wait at most.
        timeout_ms: i32 = timeoutMs(0+) default(60000),
        /// Check only, change nothing.
        validate_only: bool = validateOnly(1+) default(false),
    }

    /// A topic to create.
    pub struct CreatableTopic {
        name: String = Name(0+),
        /// Number of partitions; -1 for the broker's default.
        num_partitions: i32 = NumPartitions(0+),
        /// Replicas of each partition; -1 for the broker's default.
        replication_factor: i16 = ReplicationFactor(0+),
        /// Replicas chosen by hand; then the two numbers above are -1.
        assignments: Vec<ReplicaAssignment> = Assignments(0+),
        /// Configs that differ from the defaults.
        configs: Vec<CreatableConfig> = Configs(0+),
    }

    /// Replicas chosen by hand for one partition.
    pub struct ReplicaAssignment {
        partition_index: i32 = PartitionIndex(0+),
        broker_ids: Vec<i32> = BrokerIds(0+),
    }

    /// A config of the new topic.
    pub struct CreatableConfig {
        name: String = Name(0+),
        value: Option<String> = Value(0+) null(0+),
    }

    /// What became of each topic.
    pub struct CreateTopicsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(2+),
        topics: Vec<TopicResult> = Topics(0+),
    }

    /// What became of one topic.
    pub struct TopicResult {
        name: String = Name(0+),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(7+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(1+) null(0+),
        topic_config_error_code: i16 = TopicConfigErrorCode(5+) tag(0),
        /// Number of partitions; -1 for the broker's default.
        num_partitions: i32 = NumPartitions(5+) default(-1),
        /// Replicas of each partition; -1 for the broker's default.
        replication_factor: i16 = ReplicationFactor(5+) default(-1),
        configs: Option<Vec<TopicConfig>> = Configs(5+) null(5+),
    }

    /// A config value in force for the new topic.
    pub struct TopicConfig {
        name: String = Name(5+),
        value: Option<String> = Value(5+) null(5+),
        /// Whether it cannot be changed while the broker runs.
        read_only: bool = ReadOnly(5+),
        /// 1: topic; 2: broker; 3: cluster default; 4: static; 5: built-in default.
        config_source: i8 = ConfigSource(5+) default(-1),
        /// Whether its value is kept secret (then null).
        is_sensitive: bool = IsSensitive(5+),
    }
}
