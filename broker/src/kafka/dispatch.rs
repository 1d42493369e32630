//! Which handler a request goes to, and with which handles.

use std::sync::Arc;

use bytes::Bytes;
use minikafka_wire::{ApiKey, Request, RequestFrame, RequestRefusal, encode_api_versions_fallback};

use super::answer::{Answer, Asked, CloseReason};
use super::cluster_view::ClusterView;
use super::connection::{Begin, Client};
use super::fetch_sessions::FetchSessions;
use super::handlers::{
    api_versions, create_topics, delete_topics, describe_cluster, fetch, init_producer_id, list_offsets,
    metadata, offset_for_leader_epoch, produce,
};
use crate::controller_link::{Forwarder, ProducerIds};
use crate::event::NodeEvent;
use crate::service::Service;

/// Everything the handlers need; each is given only what it names.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(crate) service: Arc<Service>,
    pub(crate) sessions: Arc<FetchSessions>,
    pub(crate) forwarder: Forwarder,
    pub(crate) producer_ids: Arc<ProducerIds>,
}

impl Begin for Dispatch {
    fn begin(&self, client: &mut Client, frame: Bytes) -> Result<Answer, CloseReason> {
        let frame = match RequestFrame::parse(frame) {
            Ok(frame) => frame,
            Err(RequestRefusal::ApiVersionsFallback { correlation_id, .. }) => {
                return Ok(Answer::Now(encode_api_versions_fallback(correlation_id)));
            }
            Err(RequestRefusal::Malformed(error)) => return Err(error.into()),
            Err(
                refusal @ (RequestRefusal::UnknownApi { .. } | RequestRefusal::UnsupportedVersion { .. }),
            ) => {
                let reason = refusal.to_string();
                self.service
                    .tell(NodeEvent::RequestRefused { client: client.to_string(), reason: reason.clone() });
                return Err(CloseReason::NotServed(reason));
            }
        };
        let asked = Asked { correlation_id: frame.correlation_id, version: frame.version };
        match frame.key {
            ApiKey::Produce => produce::handle(read(frame)?, asked, &client.listener, &self.service),
            ApiKey::Fetch => {
                fetch::handle(read(frame)?, asked, &client.listener, &self.service, &self.sessions)
            }
            key => self.begin_other(key, frame, asked, client),
        }
    }
}

/// Decodes the body and lets go of the frame, so that a record batch in it can be completed in place.
fn read<R: Request>(frame: RequestFrame) -> Result<R, CloseReason> {
    let request = frame.decode::<R>()?;
    drop(frame);
    Ok(request)
}

impl Dispatch {
    fn begin_other(
        &self,
        key: ApiKey,
        frame: RequestFrame,
        asked: Asked,
        client: &mut Client,
    ) -> Result<Answer, CloseReason> {
        let image = self.service.image.load_full();
        let listener = Arc::clone(&client.listener);
        let view = ClusterView { image: &image, listener: &listener };
        let (settings, version) = (&self.service.settings, asked.version);
        match key {
            ApiKey::ApiVersions => {
                asked.now(&api_versions::handle(read(frame)?, version, client, self.service.id, &image))
            }
            ApiKey::Metadata => {
                asked.now(&metadata::handle(&read(frame)?, version, &view, settings, &self.forwarder))
            }
            ApiKey::ListOffsets => {
                asked.now(&list_offsets::handle(read(frame)?, version, &view, &self.service))
            }
            ApiKey::OffsetForLeaderEpoch => {
                asked.now(&offset_for_leader_epoch::handle(read(frame)?, &view, &self.service))
            }
            ApiKey::DescribeCluster => asked.now(&describe_cluster::handle(&read(frame)?, &view)),
            ApiKey::CreateTopics => Ok(asked.later(create_topics::handle(
                read(frame)?,
                Arc::clone(settings),
                self.forwarder.clone(),
            ))),
            ApiKey::DeleteTopics => Ok(asked.later(delete_topics::handle(
                read(frame)?,
                Arc::clone(settings),
                self.forwarder.clone(),
            ))),
            ApiKey::InitProducerId => match init_producer_id::refusal(&read(frame)?) {
                Some(refused) => asked.now(&refused),
                None => Ok(asked.later(init_producer_id::handle(Arc::clone(&self.producer_ids)))),
            },
            // Parsing lets only served APIs through, and these are the served ones.
            other => Err(CloseReason::NotServed(format!("{other} has no handler"))),
        }
    }
}
