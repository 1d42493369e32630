//! The nodes of the cluster and what each offers.

use std::collections::BTreeMap;

use minikafka_model::BrokerId;
use minikafka_wire::ApiKey;
use minikafka_wire::describe_cluster::DescribeClusterRequest;

use super::{Admin, Repeat};
use crate::connection::{Lane, OfferedVersions};
use crate::error::{BrokerError, Error};
use crate::metadata::{Broker, ClusterView, broker_from_wire, node};

/// One broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterNode {
    /// Id, address, rack.
    pub broker: Broker,
    /// Whether it is fenced; none if the broker that was asked is too old to tell.
    pub fenced: Option<bool>,
}

/// The cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterDescription {
    /// Its id.
    pub cluster_id: Option<String>,
    /// The broker that takes admin requests.
    pub controller: Option<BrokerId>,
    /// Its brokers, also fenced ones where the broker tells them.
    pub nodes: BTreeMap<BrokerId, ClusterNode>,
}

/// First version of DescribeCluster that tells of fenced brokers.
const FIRST_WITH_FENCED: i16 = 2;

impl Admin {
    /// Id, controller and brokers of the cluster.
    ///
    /// # Errors
    /// Nobody to ask, no answer.
    pub async fn describe_cluster(&self) -> Result<ClusterDescription, Error> {
        let keeper = self.shared.keeper.clone();
        self.any_broker("describing the cluster", Repeat::Question, |connection, left| {
            let keeper = keeper.clone();
            async move {
                let Some(version) = connection.offered().common(ApiKey::DescribeCluster, i16::MAX) else {
                    let answer = keeper.metadata(Some(Vec::new()), false).await?;
                    return Ok(ClusterDescription::from_view(ClusterView::from_wire(&answer)));
                };
                let request = DescribeClusterRequest {
                    endpoint_type: 1,
                    include_fenced_brokers: true,
                    ..DescribeClusterRequest::default()
                };
                let answer = connection.exchange(version, &request, left).await?;
                BrokerError::check(answer.error_code, answer.error_message)
                    .map_err(|error| Error::broker("the cluster", error))?;
                let tells_fenced = version >= FIRST_WITH_FENCED;
                let nodes = answer.brokers.iter().filter_map(|found| {
                    let broker =
                        broker_from_wire(found.broker_id, &found.host, found.port, found.rack.as_deref())?;
                    Some((broker.id, ClusterNode { broker, fenced: tells_fenced.then_some(found.is_fenced) }))
                });
                Ok(ClusterDescription {
                    cluster_id: Some(answer.cluster_id.clone()),
                    controller: node(answer.controller_id),
                    nodes: nodes.collect(),
                })
            }
        })
        .await
    }

    /// What each broker offers; a broker that cannot be asked has the reason in its place.
    ///
    /// # Errors
    /// Nobody to ask for the list of brokers.
    pub async fn api_versions(&self) -> Result<Vec<(Broker, Result<OfferedVersions, Error>)>, Error> {
        let keeper = self.shared.keeper.clone();
        let view = self
            .any_broker("asking for metadata", Repeat::Question, |_, _| {
                let keeper = keeper.clone();
                async move { Ok(ClusterView::from_wire(&keeper.metadata(Some(Vec::new()), false).await?)) }
            })
            .await?;
        let mut found = Vec::new();
        for broker in view.brokers.into_values() {
            let offered = self.shared.pool.broker(broker.id, &broker.address, Lane::Control).await;
            let offered = offered.map(|connection| connection.offered().clone());
            found.push((broker, offered));
        }
        Ok(found)
    }
}

impl ClusterDescription {
    fn from_view(view: ClusterView) -> ClusterDescription {
        let nodes = view.brokers.into_iter().map(|(id, broker)| (id, ClusterNode { broker, fenced: None }));
        ClusterDescription {
            cluster_id: view.cluster_id,
            controller: view.controller,
            nodes: nodes.collect(),
        }
    }
}
