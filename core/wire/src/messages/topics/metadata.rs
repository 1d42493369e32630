//! Metadata (3): brokers, topics, leaders.

use minikafka_model::Uuid;

wire_structs! {
    /// Asks for the cluster and for some or all topics.
    pub struct MetadataRequest {
        /// Topics wanted; null (version 0: empty) for all.
        topics: Option<Vec<RequestTopic>> = Topics(0+) null(1+),
        /// Create missing topics if the broker allows it.
        allow_auto_topic_creation: bool = AllowAutoTopicCreation(4+) default(true),
        /// Also tell what the asker may do with the cluster.
        include_cluster_authorized_operations: bool = IncludeClusterAuthorizedOperations(8-10),
        /// Also tell what the asker may do with each topic.
        include_topic_authorized_operations: bool = IncludeTopicAuthorizedOperations(8+),
    }

    /// A topic asked for by name or, from version 10, by id.
    pub struct RequestTopic {
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(10+),
        name: Option<String> = Name(0+) null(10+),
    }

    /// Brokers, topics and partitions.
    pub struct MetadataResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(3+),
        brokers: Vec<MetadataBroker> = Brokers(0+),
        /// Id of the cluster.
        cluster_id: Option<String> = ClusterId(2+) null(2+) default(null),
        /// The node to send admin requests to; -1 if unknown.
        controller_id: i32 = ControllerId(1+) default(-1),
        topics: Vec<MetadataTopic> = Topics(0+),
        /// Bits of what the asker may do; -2147483648 if not asked.
        cluster_authorized_operations: i32 = ClusterAuthorizedOperations(8-10) default(-2147483648),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(13+),
    }

    /// A broker that is not fenced.
    pub struct MetadataBroker {
        /// Node id.
        node_id: i32 = NodeId(0+),
        /// Host name to connect to.
        host: String = Host(0+),
        /// Port to connect to.
        port: i32 = Port(0+),
        /// Rack, if configured.
        rack: Option<String> = Rack(1+) null(1+) default(null),
    }

    /// One topic.
    pub struct MetadataTopic {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        name: Option<String> = Name(0+) null(12+),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(10+),
        /// Whether Kafka itself uses it.
        is_internal: bool = IsInternal(1+) default(false),
        partitions: Vec<MetadataPartition> = Partitions(0+),
        /// Bits of what the asker may do; -2147483648 if not asked.
        topic_authorized_operations: i32 = TopicAuthorizedOperations(8+) default(-2147483648),
    }

    /// One partition.
    pub struct MetadataPartition {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        partition_index: i32 = PartitionIndex(0+),
        /// Node id of the leader; -1 without one.
        leader_id: i32 = LeaderId(0+),
        /// Epoch of the leader; -1 if unknown.
        leader_epoch: i32 = LeaderEpoch(7+) default(-1),
        /// Replicas in order of preference.
        replica_nodes: Vec<i32> = ReplicaNodes(0+),
        /// In-sync replicas.
        isr_nodes: Vec<i32> = IsrNodes(0+),
        /// Replicas that cannot serve.
        offline_replicas: Vec<i32> = OfflineReplicas(5+),
    }
}
