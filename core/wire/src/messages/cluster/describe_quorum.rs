//! DescribeQuorum (55): the controllers and how far each has come.

use minikafka_model::Uuid;

wire_structs! {
    /// Asks for the state of the controller quorum.
    pub struct DescribeQuorumRequest {
        topics: Vec<QuorumTopic> = Topics(0+),
    }

    /// A topic; the only one there is, is `__cluster_metadata`.
    pub struct QuorumTopic {
        topic_name: String = TopicName(0+),
        partitions: Vec<QuorumPartition> = Partitions(0+),
    }

    /// A partition; the only one there is, is 0.
    pub struct QuorumPartition {
        partition_index: i32 = PartitionIndex(0+),
    }

    /// The state of the quorum.
    pub struct DescribeQuorumResponse {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(2+) null(2+),
        topics: Vec<TopicState> = Topics(0+),
        nodes: Vec<QuorumNode> = Nodes(2+),
    }

    /// State of one topic.
    pub struct TopicState {
        topic_name: String = TopicName(0+),
        partitions: Vec<PartitionState> = Partitions(0+),
    }

    /// State of the quorum.
    pub struct PartitionState {
        partition_index: i32 = PartitionIndex(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(2+) null(2+),
        /// Node id of the leader; -1 without one.
        leader_id: i32 = LeaderId(0+),
        /// Term of the leader.
        leader_epoch: i32 = LeaderEpoch(0+),
        /// End of what is committed.
        high_watermark: i64 = HighWatermark(0+),
        current_voters: Vec<ReplicaState> = CurrentVoters(0+),
        observers: Vec<ReplicaState> = Observers(0+),
    }

    /// One member as the leader sees it.
    pub struct ReplicaState {
        /// Node id.
        replica_id: i32 = ReplicaId(0+),
        /// Log directory of the follower.
        replica_directory_id: Uuid = ReplicaDirectoryId(2+),
        /// Its log end; -1 if unknown.
        log_end_offset: i64 = LogEndOffset(0+),
        /// When it last fetched; -1 if unknown.
        last_fetch_timestamp: i64 = LastFetchTimestamp(1+) default(-1),
        /// When it last had all; -1 if unknown.
        last_caught_up_timestamp: i64 = LastCaughtUpTimestamp(1+) default(-1),
    }

    /// A voter and where it listens.
    pub struct QuorumNode {
        /// Node id.
        node_id: i32 = NodeId(2+),
        listeners: Vec<NodeListener> = Listeners(2+),
    }

    /// One listener of a voter.
    pub struct NodeListener {
        name: String = Name(2+),
        /// Host name to connect to.
        host: String = Host(2+),
        /// Port to connect to.
        port: u16 = Port(2+),
    }
}
