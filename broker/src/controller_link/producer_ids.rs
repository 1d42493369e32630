//! Producer ids: handed out from blocks that the controllers give, the next block fetched before the present one is used up
//! (Kafka semantics 9.1).

use std::sync::Arc;
use std::time::Duration;

use minikafka_model::{ErrorCode, ProducerId};
use minikafka_proto::cluster::AllocateProducerIdsRequest;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::controllers::{Controllers, with_deadline};
use super::heartbeats::BrokerEpochCell;

/// When this share of a block is used the next one is asked for.
const PREFETCH_AT: f64 = 0.9;
/// How long one call may take, and how long to wait after a failed one.
const CALL: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
struct Block {
    next: i64,
    end: i64,
    prefetch_at: i64,
}

#[derive(Debug, Default)]
struct Blocks {
    present: Option<Block>,
    following: Option<Block>,
}

/// The ids this broker may hand out.
#[derive(Debug, Default)]
pub(crate) struct ProducerIds {
    blocks: Mutex<Blocks>,
    wanted: Notify,
    arrived: Notify,
}

impl Block {
    fn of(first: i64, count: i32) -> Block {
        let used = (f64::from(count) * PREFETCH_AT) as i64;
        Block { next: first, end: first + i64::from(count), prefetch_at: first + used }
    }
}

impl ProducerIds {
    /// The next id; none until a block has come.
    pub(crate) fn next(&self) -> Option<ProducerId> {
        let mut blocks = self.blocks.lock();
        if blocks.present.is_none_or(|block| block.next == block.end) {
            blocks.present = blocks.following.take();
        }
        let id = blocks.present.as_mut().map(|block| {
            block.next += 1;
            ProducerId(block.next - 1)
        });
        let low = blocks.present.is_none_or(|block| block.next >= block.prefetch_at);
        if low && blocks.following.is_none() {
            self.wanted.notify_one();
        }
        id
    }

    /// The next id, waiting for a block for at most `most`.
    pub(crate) async fn next_within(&self, most: Duration) -> Option<ProducerId> {
        timeout(most, async {
            loop {
                let arrived = self.arrived.notified();
                tokio::pin!(arrived);
                arrived.as_mut().enable();
                match self.next() {
                    Some(id) => return id,
                    None => arrived.await,
                }
            }
        })
        .await
        .ok()
    }

    fn take_in(&self, block: Block) {
        let mut blocks = self.blocks.lock();
        if blocks.present.is_none() {
            blocks.present = Some(block);
        } else {
            blocks.following = Some(block);
        }
        drop(blocks);
        self.arrived.notify_waiters();
    }
}

/// Fetches a block whenever one is wanted, and one at the start.
pub(crate) async fn keep_supplied(
    ids: Arc<ProducerIds>,
    controllers: Arc<Controllers>,
    epoch: Arc<BrokerEpochCell>,
) {
    ids.wanted.notify_one();
    loop {
        ids.wanted.notified().await;
        loop {
            let broker_epoch = epoch.registered().await;
            let request =
                AllocateProducerIdsRequest { caller: controllers.caller(), broker_epoch: broker_epoch.0 };
            let call = async |mut client: super::controllers::Client| {
                client.allocate_producer_ids(with_deadline(request.clone(), CALL)).await
            };
            let answer = controllers.ask(None, Instant::now() + CALL, call).await;
            if let Ok(answer) = answer
                && answer
                    .status
                    .as_ref()
                    .is_none_or(|status| status.error_code == i32::from(ErrorCode::None.code()))
                && answer.count > 0
            {
                ids.take_in(Block::of(answer.first_id, answer.count));
                break;
            }
            sleep(RETRY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ids_come_from_blocks_and_the_next_block_is_asked_for_in_time() {
        let ids = ProducerIds::default();
        assert_eq!(ids.next(), None);
        ids.wanted.notified().await;
        ids.take_in(Block::of(1000, 10));
        for id in 1000..1008 {
            assert_eq!(ids.next(), Some(ProducerId(id)));
        }
        assert!(timeout(Duration::from_millis(5), ids.wanted.notified()).await.is_err());
        assert_eq!(ids.next(), Some(ProducerId(1008)));
        ids.wanted.notified().await;
        ids.take_in(Block::of(5000, 10));
        assert_eq!((ids.next(), ids.next()), (Some(ProducerId(1009)), Some(ProducerId(5000))));
    }
}
