//! Follows the metadata: committed entries, or a snapshot where the controllers' log no longer reaches back, and applies them.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use minikafka_metadata::{Delta, Image, Position, decode_records, decode_snapshot};
use minikafka_model::{ControllerId, MetadataOffset, Term};
use minikafka_node::{Direction, FaultKind};
use minikafka_proto::cluster::metadata_chunk::Body;
use minikafka_proto::cluster::{FollowMetadataRequest, MetadataChunk, MetadataEntry, SnapshotPiece};
use tokio::time::{sleep, timeout};
use tonic::Request;

use super::controllers::{Controllers, Reached};
use super::heartbeats::Life;
use crate::event::NodeEvent;
use crate::service::Service;

/// Before the feed is asked for anew.
const RETRY: Duration = Duration::from_millis(50);
/// Controllers say at least this often what is committed; a feed that is silent for longer is given up.
const SILENCE: Duration = Duration::from_secs(5);
/// The largest snapshot that is taken.
const LARGEST_SNAPSHOT: u64 = 1 << 30;

/// The metadata as far as this broker has applied it.
pub(crate) struct Feed {
    service: Arc<Service>,
    controllers: Arc<Controllers>,
    life: Rc<Life>,
    image: Image,
    /// Replicas take roles: this process has seen its own registration.
    adopted: bool,
    /// Committed, by the controllers' last word.
    committed: Option<MetadataOffset>,
    caught_up_told: bool,
}

/// Why the feed stops for good.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FeedError {
    #[error("the metadata cannot be applied: {0}")]
    Apply(#[from] minikafka_metadata::ApplyError),
    #[error("a metadata entry cannot be read: {0}")]
    Codec(#[from] minikafka_metadata::CodecError),
    #[error("a metadata snapshot cannot be read: {0}")]
    Snapshot(#[from] minikafka_metadata::SnapshotError),
    #[error("the controllers belong to cluster {theirs}, this broker's data to {ours}")]
    Cluster { ours: String, theirs: String },
}

enum Interrupted {
    /// Ask again.
    Retry(String),
    Fatal(FeedError),
}

impl<E: Into<FeedError>> From<E> for Interrupted {
    fn from(error: E) -> Interrupted {
        Interrupted::Fatal(error.into())
    }
}

impl Feed {
    /// A feed that has applied nothing yet.
    pub(crate) fn new(service: Arc<Service>, controllers: Arc<Controllers>, life: Rc<Life>) -> Feed {
        let image = Image::clone(&service.image.load());
        Feed { service, controllers, life, image, adopted: false, committed: None, caught_up_told: false }
    }

    /// Follows until the metadata cannot be applied, which ends the process.
    pub(crate) async fn follow(mut self) -> FeedError {
        let mut last = String::new();
        loop {
            match self.follow_one().await {
                Interrupted::Fatal(error) => return error,
                Interrupted::Retry(why) => {
                    if why != last {
                        tracing::info!("the metadata feed is asked for anew: {why}");
                        last = why;
                    }
                }
            }
            sleep(RETRY).await;
        }
    }

    async fn follow_one(&mut self) -> Interrupted {
        let mut reached = match self.controllers.reach().await {
            Ok(reached) => reached,
            Err(why) => return Interrupted::Retry(why),
        };
        let from = self.image.offset().map_or(0, |applied| applied.0 + 1);
        let request = FollowMetadataRequest { caller: self.controllers.caller(), from_offset: from };
        let opened = timeout(SILENCE, reached.client.follow_metadata(Request::new(request))).await;
        let mut stream = match opened {
            Ok(Ok(stream)) => stream.into_inner(),
            Ok(Err(status)) => return self.lost(&reached, status.message()),
            Err(_) => return self.lost(&reached, "no answer"),
        };
        self.service.tell(NodeEvent::MetadataFeed { controller: reached.voter.address.clone(), from });
        let peer = reached.voter.id.map_or(-1, |id: ControllerId| id.0);
        let mut snapshot = BytesMut::new();
        loop {
            let chunk = match timeout(SILENCE, stream.message()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return self.lost(&reached, "it ended the feed"),
                Ok(Err(status)) => return self.lost(&reached, status.message()),
                Err(_) => return self.lost(&reached, "it fell silent"),
            };
            if self.service.faults.pass(FaultKind::Metadata, peer, Direction::In).await.is_err() {
                return Interrupted::Retry("dropped by a fault of the lab".to_owned());
            }
            if let Err(interrupted) = self.chunk(chunk, &mut snapshot, &reached) {
                return interrupted;
            }
        }
    }

    fn lost(&self, reached: &Reached, why: &str) -> Interrupted {
        self.controllers.give_up_on(reached);
        Interrupted::Retry(format!("controller at {}: {why}", reached.voter.address))
    }

    fn chunk(
        &mut self,
        chunk: MetadataChunk,
        snapshot: &mut BytesMut,
        reached: &Reached,
    ) -> Result<(), Interrupted> {
        match chunk.body {
            Some(Body::Entry(entry)) => self.entry(&entry),
            Some(Body::Snapshot(piece)) => self.snapshot_piece(&piece, snapshot),
            Some(Body::Progress(progress)) => {
                self.committed = Some(MetadataOffset(progress.committed));
                self.look_caught_up();
                Ok(())
            }
            Some(Body::Refused(status)) => {
                self.controllers.redirected(reached, &status);
                Err(Interrupted::Retry(format!(
                    "controller at {}: {}",
                    reached.voter.address, status.message
                )))
            }
            None => Ok(()),
        }
    }

    fn entry(&mut self, entry: &MetadataEntry) -> Result<(), Interrupted> {
        let at = Position { offset: MetadataOffset(entry.offset), term: Term(entry.term) };
        if self.image.offset().is_some_and(|applied| at.offset <= applied) {
            return Ok(());
        }
        let records = decode_records(&entry.records)?;
        let delta = self.image.apply(at, &records)?;
        self.applied(&delta);
        Ok(())
    }

    fn snapshot_piece(&mut self, piece: &SnapshotPiece, snapshot: &mut BytesMut) -> Result<(), Interrupted> {
        if piece.position == 0 {
            snapshot.clear();
        }
        if piece.total > LARGEST_SNAPSHOT || piece.position != snapshot.len() as u64 {
            return Err(Interrupted::Retry(format!(
                "a snapshot of {} bytes came with a piece for {} where {} was due",
                piece.total,
                piece.position,
                snapshot.len()
            )));
        }
        snapshot.extend_from_slice(&piece.chunk);
        if (snapshot.len() as u64) < piece.total {
            return Ok(());
        }
        let image = decode_snapshot(&std::mem::take(snapshot).freeze())?;
        if image.cluster() != self.image.cluster() && !self.image.cluster().0.is_empty() {
            let (ours, theirs) = (self.image.cluster().0.clone(), image.cluster().0.clone());
            return Err(Interrupted::Fatal(FeedError::Cluster { ours, theirs }));
        }
        let delta = Delta::between(&self.image, &image);
        self.image = image;
        self.applied(&delta);
        Ok(())
    }

    fn applied(&mut self, delta: &Delta) {
        if self.adopted {
            self.service.apply(&self.image, delta);
        } else {
            self.service.show(&self.image);
        }
        let Some(offset) = self.image.offset() else { return };
        // Seeing oneself comes after the replicas have what came before.
        if self.life.metadata(offset, &self.image) && !self.adopted {
            self.adopted = true;
            self.service.adopt(&self.image);
        }
        self.look_caught_up();
    }

    /// Once everything committed so far is applied the broker is ready to serve.
    fn look_caught_up(&mut self) {
        let (Some(applied), Some(committed)) = (self.image.offset(), self.committed) else { return };
        if self.adopted && applied >= committed && !self.caught_up_told {
            self.caught_up_told = true;
            self.service.tell(NodeEvent::CaughtUp { offset: applied });
            self.life.ready();
        }
    }
}
