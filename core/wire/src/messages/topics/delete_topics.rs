//! DeleteTopics (20).

use minikafka_model::Uuid;

wire_structs! {
    /// Deletes topics.
    pub struct DeleteTopicsRequest {
        topics: Vec<DeleteTopicState> = Topics(6+),
        topic_names: Vec<String> = TopicNames(0-5),
        /// Milliseconds to wait at most.
        timeout_ms: i32 = TimeoutMs(0+),
    }

    /// A topic to delete, by name or by id.
    pub struct DeleteTopicState {
        name: Option<String> = Name(6+) null(6+) default(null),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(6+),
    }

    /// What became of each topic.
    pub struct DeleteTopicsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(1+),
        responses: Vec<TopicResult> = Responses(0+),
    }

    /// What became of one topic.
    pub struct TopicResult {
        name: Option<String> = Name(0+) null(6+),
        /// Id of the topic; zero if it is asked for by name.
        topic_id: Uuid = TopicId(6+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(5+) null(5+) default(null),
    }
}
