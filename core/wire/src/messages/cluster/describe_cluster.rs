//! DescribeCluster (60).

wire_structs! {
    /// Asks for the nodes of the cluster.
    pub struct DescribeClusterRequest {
        /// Also tell what the asker may do with the cluster.
        include_cluster_authorized_operations: bool = IncludeClusterAuthorizedOperations(0+),
        /// 1: brokers; 2: controllers.
        endpoint_type: i8 = EndpointType(1+) default(1),
        /// Also tell of fenced brokers.
        include_fenced_brokers: bool = IncludeFencedBrokers(2+),
    }

    /// The nodes of the cluster.
    pub struct DescribeClusterResponse {
        /// Milliseconds the client was throttled; 0 here as there are no quotas.
        throttle_time_ms: i32 = ThrottleTimeMs(0+),
        /// 0, or what went wrong (`ErrorCode`).
        error_code: i16 = ErrorCode(0+),
        /// What went wrong, in words.
        error_message: Option<String> = ErrorMessage(0+) null(0+) default(null),
        /// 1: brokers; 2: controllers.
        endpoint_type: i8 = EndpointType(1+) default(1),
        /// Id of the cluster.
        cluster_id: String = ClusterId(0+),
        /// The node to send admin requests to; -1 if unknown.
        controller_id: i32 = ControllerId(0+) default(-1),
        brokers: Vec<ClusterBroker> = Brokers(0+),
        /// Bits of what the asker may do; -2147483648 if not asked.
        cluster_authorized_operations: i32 = ClusterAuthorizedOperations(0+) default(-2147483648),
    }

    /// One broker.
    pub struct ClusterBroker {
        broker_id: i32 = BrokerId(0+),
        /// Host name to connect to.
        host: String = Host(0+),
        /// Port to connect to.
        port: i32 = Port(0+),
        /// Rack, if configured.
        rack: Option<String> = Rack(0+) null(0+) default(null),
        /// Whether it is fenced.
        is_fenced: bool = IsFenced(2+),
    }
}
