//! UnregisterBroker (64): forgets a broker for good.

wire_structs! {
    /// Removes a broker's registration.
    pub struct UnregisterBrokerRequest {
        broker_id: i32 = BrokerId(0+),
    }

    /// What became of it.
    pub struct UnregisterBrokerResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+),
    }
}
