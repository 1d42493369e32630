//! The one table of API keys and versions: what this codec reads and writes, and what a broker serves.

use std::fmt;

use crate::codec::Codec;
use crate::messages::{
    alter_configs, alter_partition_reassignments, api_versions, create_partitions, create_topics,
    delete_topics, describe_cluster, describe_configs, describe_log_dirs, describe_quorum,
    describe_topic_partitions, elect_leaders, fetch, incremental_alter_configs, init_producer_id,
    list_offsets, list_partition_reassignments, metadata, offset_for_leader_epoch, produce,
    unregister_broker, update_features,
};
use crate::table::Table;
use crate::{Versions, WireError};

/// A request of the Kafka protocol.
pub trait Request: Codec + Default + Clone + fmt::Debug {
    /// Its API.
    const KEY: ApiKey;
    /// What answers it.
    type Response: Response;
}

/// An answer of the Kafka protocol.
pub trait Response: Codec + Default + Clone + fmt::Debug {
    /// Its API.
    const KEY: ApiKey;
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Api {
    /// The API.
    pub key: ApiKey,
    /// Kafka's name of it.
    pub name: &'static str,
    /// Versions this codec reads and writes.
    pub versions: Versions,
    /// Versions with compact lengths and tagged fields.
    pub flexible: Versions,
    /// Whether a broker serves it. An API that does not work is absent from the ApiVersions answer.
    pub served: bool,
    /// The lowest version named in the ApiVersions answer: lower than `versions.min` only for Produce.
    pub advertised_min: i16,
    /// Fields of the request.
    pub request: &'static Table,
    /// Fields of the answer.
    pub response: &'static Table,
}

macro_rules! apis {
    ($($name:ident = $code:literal, $min:literal - $max:literal, flexible $flexible:literal +, $served:ident
        $(advertised $advertised:literal)?, $module:ident :: $request:ident => $response:ident;)*) => {
        /// An API known to this codec.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i16)]
        pub enum ApiKey {$(
            #[doc = concat!("Key ", stringify!($code), ".")]
            $name = $code,
        )*}

        /// Every API, in the order of the keys.
        pub const APIS: &[Api] = &[$(Api {
            key: ApiKey::$name,
            name: stringify!($name),
            versions: Versions::between($min, $max),
            flexible: Versions::from($flexible),
            served: apis!(@served $served),
            advertised_min: apis!(@min $min $($advertised)?),
            request: &$module::$request::TABLE,
            response: &$module::$response::TABLE,
        },)*];

        impl ApiKey {
            /// The API with this number.
            pub const fn from_code(code: i16) -> Option<ApiKey> {
                match code { $($code => Some(ApiKey::$name),)* _ => None }
            }

            /// Its row of the table.
            pub fn api(self) -> &'static Api {
                match self { $(ApiKey::$name => &const { apis!(@row ApiKey::$name) },)* }
            }
        }

        $(
            impl Request for $module::$request {
                const KEY: ApiKey = ApiKey::$name;
                type Response = $module::$response;
            }

            impl Response for $module::$response {
                const KEY: ApiKey = ApiKey::$name;
            }
        )*

        /// Reads a body of any known API and writes it again: what the tests and fuzzers of all doors share. The body must
        /// begin at the first byte of `body`.
        ///
        /// # Errors
        /// What is wrong with the bytes.
        pub fn rewrite(key: ApiKey, direction: Direction, version: i16, body: &bytes::Bytes) -> Result<bytes::Bytes, WireError> {
            match (key, direction) {$(
                (ApiKey::$name, Direction::Request) => crate::message::rewrite::<$module::$request>(key, version, body),
                (ApiKey::$name, Direction::Response) => crate::message::rewrite::<$module::$response>(key, version, body),
            )*}
        }
    };
    (@served served) => { true };
    (@served later) => { false };
    (@min $min:literal) => { $min };
    (@min $min:literal $advertised:literal) => { $advertised };
    (@row $key:expr) => {{
        let mut at = 0;
        while APIS[at].key as i16 != $key as i16 {
            at += 1;
        }
        APIS[at]
    }};
}

// Key, versions this codec reads and writes, first flexible version, whether a broker serves it, structures.
// A handler in the broker and the word `served` here come in one commit, and docs/protocol.md is written anew.
// Produce is advertised from 0 although 0-2 are refused: clients gate compression on it (KAFKA-18659).
apis! {
    Produce = 0, 3-13, flexible 9+, served advertised 0, produce::ProduceRequest => ProduceResponse;
    Fetch = 1, 4-18, flexible 12+, served, fetch::FetchRequest => FetchResponse;
    ListOffsets = 2, 1-11, flexible 6+, served, list_offsets::ListOffsetsRequest => ListOffsetsResponse;
    Metadata = 3, 0-13, flexible 9+, served, metadata::MetadataRequest => MetadataResponse;
    ApiVersions = 18, 0-5, flexible 3+, served, api_versions::ApiVersionsRequest => ApiVersionsResponse;
    CreateTopics = 19, 2-7, flexible 5+, served, create_topics::CreateTopicsRequest => CreateTopicsResponse;
    DeleteTopics = 20, 1-6, flexible 4+, served, delete_topics::DeleteTopicsRequest => DeleteTopicsResponse;
    InitProducerId = 22, 0-5, flexible 2+, served,
        init_producer_id::InitProducerIdRequest => InitProducerIdResponse;
    OffsetForLeaderEpoch = 23, 2-4, flexible 4+, served,
        offset_for_leader_epoch::OffsetForLeaderEpochRequest => OffsetForLeaderEpochResponse;
    DescribeConfigs = 32, 1-4, flexible 4+, served,
        describe_configs::DescribeConfigsRequest => DescribeConfigsResponse;
    AlterConfigs = 33, 0-2, flexible 2+, later, alter_configs::AlterConfigsRequest => AlterConfigsResponse;
    DescribeLogDirs = 35, 1-5, flexible 2+, later,
        describe_log_dirs::DescribeLogDirsRequest => DescribeLogDirsResponse;
    CreatePartitions = 37, 0-3, flexible 2+, later,
        create_partitions::CreatePartitionsRequest => CreatePartitionsResponse;
    ElectLeaders = 43, 0-2, flexible 2+, later, elect_leaders::ElectLeadersRequest => ElectLeadersResponse;
    IncrementalAlterConfigs = 44, 0-1, flexible 1+, later,
        incremental_alter_configs::IncrementalAlterConfigsRequest => IncrementalAlterConfigsResponse;
    AlterPartitionReassignments = 45, 0-1, flexible 0+, later,
        alter_partition_reassignments::AlterPartitionReassignmentsRequest => AlterPartitionReassignmentsResponse;
    ListPartitionReassignments = 46, 0-0, flexible 0+, later,
        list_partition_reassignments::ListPartitionReassignmentsRequest => ListPartitionReassignmentsResponse;
    DescribeQuorum = 55, 0-2, flexible 0+, later,
        describe_quorum::DescribeQuorumRequest => DescribeQuorumResponse;
    UpdateFeatures = 57, 0-2, flexible 0+, later,
        update_features::UpdateFeaturesRequest => UpdateFeaturesResponse;
    DescribeCluster = 60, 0-2, flexible 0+, served,
        describe_cluster::DescribeClusterRequest => DescribeClusterResponse;
    UnregisterBroker = 64, 0-0, flexible 0+, later,
        unregister_broker::UnregisterBrokerRequest => UnregisterBrokerResponse;
    DescribeTopicPartitions = 75, 0-0, flexible 0+, later,
        describe_topic_partitions::DescribeTopicPartitionsRequest => DescribeTopicPartitionsResponse;
}

/// Question or answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From a client to a broker.
    Request,
    /// From a broker to a client.
    Response,
}

impl ApiKey {
    /// The number on the wire.
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Kafka's name of it.
    pub fn name(self) -> &'static str {
        self.api().name
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Api {
    /// Whether `version` has compact lengths and tagged fields.
    pub const fn is_flexible(&self, version: i16) -> bool {
        self.flexible.contains(version)
    }

    /// The version a client speaks with a broker that advertises this range: the highest that both know.
    pub fn common_version(&self, advertised: Versions) -> Option<i16> {
        let common =
            Versions::between(self.versions.min.max(advertised.min), self.versions.max.min(advertised.max));
        (!common.is_empty()).then_some(common.max)
    }

    /// Fields of the request or of the answer.
    pub const fn table(&self, direction: Direction) -> &'static Table {
        match direction {
            Direction::Request => self.request,
            Direction::Response => self.response,
        }
    }
}

/// The APIs a broker serves, in the order of the keys.
pub fn served() -> impl Iterator<Item = &'static Api> {
    APIS.iter().filter(|api| api.served)
}

/// The table of the ApiVersions answer: exactly what is served.
pub fn advertised() -> Vec<api_versions::ApiVersion> {
    served()
        .map(|api| api_versions::ApiVersion {
            api_key: api.key.code(),
            min_version: api.advertised_min,
            max_version: api.versions.max,
        })
        .collect()
}
