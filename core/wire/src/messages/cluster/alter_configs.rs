//! AlterConfigs (33): replaces all configs of a resource.

wire_structs! {
    /// Replaces configs.
    pub struct AlterConfigsRequest {
        resources: Vec<ConfigResource> = Resources(0+),
        /// Check only, change nothing.
        validate_only: bool = ValidateOnly(0+),
    }

    /// A resource whose configs are replaced as a whole.
    pub struct ConfigResource {
        /// 2: topic; 4: broker; 8: broker logger.
        resource_type: i8 = ResourceType(0+),
        /// Topic name or broker id; the empty name stands for all brokers.
        resource_name: String = ResourceName(0+),
        configs: Vec<ConfigValue> = Configs(0+),
    }

    /// One config key and its value.
    pub struct ConfigValue {
        name: String = Name(0+),
        value: Option<String> = Value(0+) null(0+),
    }

    /// What became of each resource.
    pub struct AlterConfigsResponse {
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
