//! Produce (0): a producer writes batches of records.

use bytes::Bytes;
use minikafka_model::Uuid;

wire_structs! {
    /// A write of record batches to some partitions (Kafka semantics 1).
    pub struct ProduceRequest {
        /// Set by transactional producers only.
        transactional_id: Option<String> = TransactionalId(3+) null(3+) default(null),
        /// 0: no answer; 1: the leader has it; -1: all in-sync replicas have it.
        acks: i16 = Acks(0+),
        /// Milliseconds to wait at most.
        timeout_ms: i32 = TimeoutMs(0+),
        topic_data: Vec<TopicData> = TopicData(0+),
    }

    /// The batches for one topic.
    pub struct TopicData {
        name: String = Name(0-12),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(13+),
        partition_data: Vec<PartitionData> = PartitionData(0+),
    }

    /// The batches for one partition.
    pub struct PartitionData {
        index: i32 = Index(0+),
        /// Record batches as they are stored.
        records: Option<Bytes> = Records(0+) null(0+),
    }

    /// The answer to a write; with acks 0 none is sent.
    pub struct ProduceResponse {
        responses: Vec<TopicResponse> = Responses(0+),
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(1+) default(0),
        /// Addresses of the leaders named above.
        node_endpoints: Vec<NodeEndpoint> = NodeEndpoints(10+) tag(0),
    }

    /// What became of the writes to one topic.
    pub struct TopicResponse {
        name: String = Name(0-12),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(13+),
        partition_responses: Vec<PartitionResponse> = PartitionResponses(0+),
    }

    /// What became of the write to one partition.
    pub struct PartitionResponse {
        index: i32 = Index(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// Offset given to the first record; -1 on an error.
        base_offset: i64 = BaseOffset(0+),
        /// Time of the append if the topic uses it, else -1.
        log_append_time_ms: i64 = LogAppendTimeMs(2+) default(-1),
        /// First offset of the log; -1 if unknown.
        log_start_offset: i64 = LogStartOffset(5+) default(-1),
        record_errors: Vec<RecordError> = RecordErrors(8+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(8+) null(8+) default(null),
        /// Set where the client should ask another leader.
        current_leader: LeaderIdAndEpoch = CurrentLeader(10+) tag(0),
    }

    /// One record that was refused.
    pub struct RecordError {
        batch_index: i32 = BatchIndex(8+),
        batch_index_error_message: Option<String> = BatchIndexErrorMessage(8+) null(8+) default(null),
    }

    /// The leader the client should have asked (KIP-951); -1 and -1 if unknown.
    pub struct LeaderIdAndEpoch {
        /// Node id of the leader; -1 without one.
        leader_id: i32 = LeaderId(10+) default(-1),
        /// Epoch of the leader; -1 if unknown.
        leader_epoch: i32 = LeaderEpoch(10+) default(-1),
    }

    /// Address of a leader named in the answer.
    pub struct NodeEndpoint {
        /// Node id.
        node_id: i32 = NodeId(10+),
        /// Host name to connect to.
        host: String = Host(10+),
        /// Port to connect to.
        port: i32 = Port(10+),
        /// Rack, if configured.
        rack: Option<String> = Rack(10+) null(10+) default(null),
    }
}
