//! DescribeCluster: the brokers.

use minikafka_model::ErrorCode;
use minikafka_wire::describe_cluster::{ClusterBroker, DescribeClusterRequest, DescribeClusterResponse};

use super::metadata::CLUSTER_OPERATIONS;
use crate::kafka::cluster_view::ClusterView;

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// Answers from the metadata as this broker has it.
pub(crate) fn handle(request: &DescribeClusterRequest, view: &ClusterView<'_>) -> DescribeClusterResponse {
    let refused = |code: ErrorCode, message: String| DescribeClusterResponse {
        error_code: code.code(),
        error_message: Some(message),
        ..DescribeClusterResponse::default()
    };
    match request.endpoint_type {
        BROKERS => {}
        CONTROLLERS => {
            return refused(
                ErrorCode::MismatchedEndpointType,
                "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
                    .to_owned(),
            );
        }
        other => {
            return refused(ErrorCode::UnsupportedEndpointType, format!("Unsupported endpoint type {other}"));
        }
    }
    let operations = request.include_cluster_authorized_operations;
    let fenced = request.include_fenced_brokers;
    DescribeClusterResponse {
        cluster_id: view.image.cluster().0.clone(),
        controller_id: view.controller().map_or(-1, |id| id.0),
        brokers: view
            .image
            .brokers()
            .keys()
            .filter_map(|id| view.endpoint(*id))
            .filter(|(broker, _)| fenced || !broker.fenced)
            .map(|(broker, at)| ClusterBroker {
                broker_id: broker.id.0,
                host: at.host.clone(),
                port: i32::from(at.port),
                rack: broker.rack.clone(),
                is_fenced: broker.fenced,
            })
            .collect(),
        cluster_authorized_operations: if operations { CLUSTER_OPERATIONS } else { i32::MIN },
        ..DescribeClusterResponse::default()
    }
}
