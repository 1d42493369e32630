//! DescribeConfigs (32).

wire_structs! {
    /// Asks for the configs of topics and brokers.
    pub struct DescribeConfigsRequest {
        resources: Vec<ConfigResource> = Resources(0+),
        /// Also tell where else a value could come from.
        include_synonyms: bool = IncludeSynonyms(1+) default(false),
        /// Also tell what each key means.
        include_documentation: bool = IncludeDocumentation(3+) default(false),
    }

    /// A topic or broker whose configs are asked for.
    pub struct ConfigResource {
        /// 2: topic; 4: broker; 8: broker logger.
        resource_type: i8 = ResourceType(0+),
        /// Topic name or broker id; the empty name stands for all brokers.
        resource_name: String = ResourceName(0+),
        /// Keys wanted; null for all.
        configuration_keys: Option<Vec<String>> = ConfigurationKeys(0+) null(0+),
    }

    /// The configs, each with its source.
    pub struct DescribeConfigsResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        results: Vec<ConfigResult> = Results(0+),
    }

    /// The configs of one resource.
    pub struct ConfigResult {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+),
        /// 2: topic; 4: broker; 8: broker logger.
        resource_type: i8 = ResourceType(0+),
        /// Topic name or broker id; the empty name stands for all brokers.
        resource_name: String = ResourceName(0+),
        configs: Vec<ConfigEntry> = Configs(0+),
    }

    /// One config key with the value in force.
    pub struct ConfigEntry {
        name: String = Name(0+),
        value: Option<String> = Value(0+) null(0+),
        /// Whether it cannot be changed while the broker runs.
        read_only: bool = ReadOnly(0+),
        /// 1: topic; 2: broker; 3: cluster default; 4: static; 5: built-in default.
        config_source: i8 = ConfigSource(1+) default(-1),
        /// Whether its value is kept secret (then null).
        is_sensitive: bool = IsSensitive(0+),
        synonyms: Vec<ConfigSynonym> = Synonyms(1+),
        /// 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password.
        config_type: i8 = ConfigType(3+) default(0),
        documentation: Option<String> = Documentation(3+) null(0+),
    }

    /// One of the places a value can come from, the strongest first.
    pub struct ConfigSynonym {
        name: String = Name(1+),
        value: Option<String> = Value(1+) null(0+),
        /// As the config source.
        source: i8 = Source(1+),
    }
}
