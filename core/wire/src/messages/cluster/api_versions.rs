//! ApiVersions (18): the first thing a client asks.

wire_structs! {
    /// Says who the client is and asks what is served here.
    pub struct ApiVersionsRequest {
        /// Name of the client library.
        client_software_name: String = ClientSoftwareName(3+),
        /// Version of the client library.
        client_software_version: String = ClientSoftwareVersion(3+),
        /// The cluster the client believes to talk to; null skips the check (error 129).
        cluster_id: Option<String> = ClusterId(5+) null(5+) default(null),
        /// The node the client believes to talk to; -1 skips the check (error 129).
        node_id: i32 = NodeId(5+) default(-1),
    }

    /// What is served here. Its header never has tagged fields.
    pub struct ApiVersionsResponse {
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        api_keys: Vec<ApiVersion> = ApiKeys(0+),
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(1+),
        supported_features: Vec<SupportedFeature> = SupportedFeatures(3+) tag(0),
        /// Metadata offset at which the levels below were true; -1 if unknown.
        finalized_features_epoch: i64 = FinalizedFeaturesEpoch(3+) tag(1) default(-1),
        finalized_features: Vec<FinalizedFeature> = FinalizedFeatures(3+) tag(2),
        zk_migration_ready: bool = ZkMigrationReady(3+) tag(3) default(false),
    }

    /// One API and the versions served.
    pub struct ApiVersion {
        api_key: i16 = ApiKey(0+),
        /// Lowest.
        min_version: i16 = MinVersion(0+),
        /// Highest.
        max_version: i16 = MaxVersion(0+),
    }

    /// A feature this node knows, with the levels it can work at.
    pub struct SupportedFeature {
        name: String = Name(3+),
        /// Lowest.
        min_version: i16 = MinVersion(3+),
        /// Highest.
        max_version: i16 = MaxVersion(3+),
    }

    /// A feature level the cluster has agreed on.
    pub struct FinalizedFeature {
        name: String = Name(3+),
        max_version_level: i16 = MaxVersionLevel(3+),
        min_version_level: i16 = MinVersionLevel(3+),
    }
}
