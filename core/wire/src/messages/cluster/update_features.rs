//! UpdateFeatures (57).

wire_structs! {
    /// Raises or lowers feature levels.
    pub struct UpdateFeaturesRequest {
        /// Milliseconds to wait at most.
        timeout_ms: i32 = timeoutMs(0+) default(60000),
        feature_updates: Vec<FeatureUpdate> = FeatureUpdates(0+),
        /// Check only, change nothing.
        validate_only: bool = ValidateOnly(1+) default(false),
    }

    /// One feature and the level wanted.
    pub struct FeatureUpdate {
        feature: String = Feature(0+),
        max_version_level: i16 = MaxVersionLevel(0+),
        allow_downgrade: bool = AllowDowngrade(0),
        /// 1: upgrade; 2: safe downgrade; 3: unsafe downgrade.
        upgrade_type: i8 = UpgradeType(1+) default(1),
    }

    /// What became of each feature.
    pub struct UpdateFeaturesResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+),
        results: Vec<FeatureResult> = Results(0-1),
    }

    /// What became of one feature.
    pub struct FeatureResult {
        feature: String = Feature(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+),
    }
}
