//! IncrementalAlterConfigs (44): changes single configs.

wire_structs! {
    /// Changes configs.
    pub struct IncrementalAlterConfigsRequest {
        resources: Vec<ConfigResource> = Resources(0+),
        /// Check only, change nothing.
        validate_only: bool = ValidateOnly(0+),
    }

    /// A resource whose configs change.
    pub struct ConfigResource {
        /// 2: topic; 4: broker; 8: broker logger.
        resource_type: i8 = ResourceType(0+),
        /// Topic name or broker id; the empty name stands for all brokers.
        resource_name: String = ResourceName(0+),
        configs: Vec<ConfigChange> = Configs(0+),
    }

    /// One change of one config key.
    pub struct ConfigChange {
        name: String = Name(0+),
        /// 0: set; 1: delete; 2: append; 3: subtract.
        config_operation: i8 = ConfigOperation(0+),
        value: Option<String> = Value(0+) null(0+),
    }

    /// What became of each resource.
    pub struct IncrementalAlterConfigsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        responses: Vec<ResourceResponse> = Responses(0+),
    }

    /// What became of one resource.
    pub struct ResourceResponse {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+),
        /// 2: topic; 4: broker; 8: broker logger.
        resource_type: i8 = ResourceType(0+),
        /// Topic name or broker id; the empty name stands for all brokers.
        resource_name: String = ResourceName(0+),
    }
}
