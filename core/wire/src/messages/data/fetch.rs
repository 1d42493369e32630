//! Fetch (1): consumers read records.

use minikafka_model::Uuid;

use crate::Records;

wire_structs! {
    /// A read, or one step of a fetch session (Kafka semantics 5.3, 5.4).
    pub struct FetchRequest {
        /// Checked by controllers only.
        cluster_id: Option<String> = ClusterId(12+) null(12+) tag(0) default(null),
        /// Node id of a replica; -1 for a consumer.
        replica_id: i32 = ReplicaId(0-14) default(-1),
        replica_state: ReplicaState = ReplicaState(15+) tag(1),
        /// Milliseconds to wait for `min_bytes`.
        max_wait_ms: i32 = MaxWaitMs(0+),
        /// Fewest bytes worth an answer before the wait is over.
        min_bytes: i32 = MinBytes(0+),
        /// Most bytes in the whole answer, except that the first batch always fits.
        max_bytes: i32 = MaxBytes(3+) default(0x7fffffff),
        /// 0: read_uncommitted; 1: read_committed.
        isolation_level: i8 = IsolationLevel(4+) default(0),
        /// Fetch session; 0 for none.
        session_id: i32 = SessionId(7+) default(0),
        /// Step of the session: 0 opens one, -1 closes it or does without.
        session_epoch: i32 = SessionEpoch(7+) default(-1),
        topics: Vec<FetchTopic> = Topics(0+),
        forgotten_topics_data: Vec<ForgottenTopic> = ForgottenTopicsData(7+),
        /// Rack of the consumer, to let it read from a near follower.
        rack_id: String = RackId(11+) default(String::new()),
    }

    /// Who fetches, if it is a replica (KIP-903). A broker here never lets it move progress.
    pub struct ReplicaState {
        /// Node id of a replica; -1 for a consumer.
        replica_id: i32 = ReplicaId(15+) default(-1),
        /// Broker epoch of the follower; -1 to skip its check.
        replica_epoch: i64 = ReplicaEpoch(15+) default(-1),
    }

    /// What is wanted of one topic.
    pub struct FetchTopic {
        topic: String = Topic(0-12),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(13+),
        partitions: Vec<FetchPartition> = Partitions(0+),
    }

    /// What is wanted of one partition.
    pub struct FetchPartition {
        partition: i32 = Partition(0+),
        /// Epoch the asker believes in; -1 to skip the check.
        current_leader_epoch: i32 = CurrentLeaderEpoch(9+) default(-1),
        /// First offset wanted.
        fetch_offset: i64 = FetchOffset(0+),
        /// Epoch of the last record the asker has; -1 to skip the check for divergence.
        last_fetched_epoch: i32 = LastFetchedEpoch(12+) default(-1),
        /// First offset of the log; -1 if unknown.
        log_start_offset: i64 = LogStartOffset(5+) default(-1),
        /// Most bytes of this partition.
        partition_max_bytes: i32 = PartitionMaxBytes(0+),
        /// Log directory of the follower.
        replica_directory_id: Uuid = ReplicaDirectoryId(17+) tag(0),
        /// High watermark the follower knows (KIP-1166).
        high_watermark: i64 = HighWatermark(18+) tag(1) default(9223372036854775807),
    }

    /// Partitions that leave the fetch session.
    pub struct ForgottenTopic {
        topic: String = Topic(7-12),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(13+),
        partitions: Vec<i32> = Partitions(7+),
    }

    /// Records and where each partition stands.
    pub struct FetchResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(1+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(7+),
        /// Fetch session; 0 for none.
        session_id: i32 = SessionId(7+) default(0),
        responses: Vec<TopicResponse> = Responses(0+),
        /// Addresses of the leaders named above.
        node_endpoints: Vec<NodeEndpoint> = NodeEndpoints(16+) tag(0),
    }

    /// What was read of one topic.
    pub struct TopicResponse {
        topic: String = Topic(0-12),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(13+),
        partitions: Vec<PartitionResponse> = Partitions(0+),
    }

    /// What was read of one partition.
    pub struct PartitionResponse {
        partition_index: i32 = PartitionIndex(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// End of what is committed.
        high_watermark: i64 = HighWatermark(0+),
        /// End of what `read_committed` sees; here the high watermark.
        last_stable_offset: i64 = LastStableOffset(4+) default(-1),
        /// First offset of the log; -1 if unknown.
        log_start_offset: i64 = LogStartOffset(5+) default(-1),
        /// Set if the asker's log has left the leader's.
        diverging_epoch: EpochEndOffset = DivergingEpoch(12+) tag(0),
        /// Set where the client should ask another leader.
        current_leader: LeaderIdAndEpoch = CurrentLeader(12+) tag(1),
        snapshot_id: SnapshotId = SnapshotId(12+) tag(2),
        /// Empty without transactions; null for `read_uncommitted`.
        aborted_transactions: Option<Vec<AbortedTransaction>> = AbortedTransactions(4+) null(4+),
        /// Replica to read from instead; -1 for this one.
        preferred_read_replica: i32 = PreferredReadReplica(11+) default(-1),
        /// Record batches, as slices of the log.
        records: Records = Records(0+) null(0+),
    }

    /// The newest epoch not after the one asked for, with its end: the asker truncates there. -1 and -1 if nothing diverges.
    pub struct EpochEndOffset {
        epoch: i32 = Epoch(12+) default(-1),
        /// End of the epoch, exclusive; -1 if unknown.
        end_offset: i64 = EndOffset(12+) default(-1),
    }

    /// The leader the client should ask (KIP-951); -1 and -1 if unknown.
    pub struct LeaderIdAndEpoch {
        /// Node id of the leader; -1 without one.
        leader_id: i32 = LeaderId(12+) default(-1),
        /// Epoch of the leader; -1 if unknown.
        leader_epoch: i32 = LeaderEpoch(12+) default(-1),
    }

    /// A metadata snapshot to fetch first; only between controllers.
    pub struct SnapshotId {
        /// End of the epoch, exclusive; -1 if unknown.
        end_offset: i64 = EndOffset(0+) default(-1),
        epoch: i32 = Epoch(0+) default(-1),
    }

    /// A transaction whose records a `read_committed` consumer skips.
    pub struct AbortedTransaction {
        /// Id of the producer; -1 for none.
        producer_id: i64 = ProducerId(4+),
        first_offset: i64 = FirstOffset(4+),
    }

    /// Address of a leader named in the answer.
    pub struct NodeEndpoint {
        /// Node id.
        node_id: i32 = NodeId(16+),
        /// Host name to connect to.
        host: String = Host(16+),
        /// Port to connect to.
        port: i32 = Port(16+),
        /// Rack, if configured.
        rack: Option<String> = Rack(16+) null(16+) default(null),
    }
}
