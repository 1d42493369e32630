//! Topics, configs, offsets and nodes: the calls behind the commands. Each returns one result per item asked for.

mod cluster;
mod configs;
mod offsets;
mod topics;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use minikafka_model::ErrorCode;
use tokio::time::Instant;

pub use cluster::{ClusterDescription, ClusterNode};
pub(crate) use configs::min_insync_replicas;
pub use configs::{ConfigEntry, ConfigResource, ConfigSource, ConfigSynonym};
pub use offsets::{EpochEnd, FoundOffset, OffsetSpec};
pub(crate) use offsets::{ask_epoch_ends, ask_offsets};
pub use topics::{CreatedTopic, NewTopic};

use crate::backoff::Backoff;
use crate::client::Shared;
use crate::connection::Connection;
use crate::error::Error;

/// Asks and changes the cluster. Cheap to clone.
#[derive(Clone)]
pub struct Admin {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Admin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admin").finish_non_exhaustive()
    }
}

/// Which failures are tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repeat {
    /// The call changes nothing: every failure that may pass.
    Question,
    /// The call changes something: only what certainly was not begun.
    Command,
}

impl Admin {
    pub(crate) fn new(shared: Arc<Shared>) -> Admin {
        Admin { shared }
    }

    /// Calls any broker, again and again while failures may pass, for at most `default.api.timeout.ms`. The closure is given the
    /// connection and the time that is left.
    async fn any_broker<T, F>(
        &self,
        what: &str,
        repeat: Repeat,
        mut call: impl FnMut(Arc<Connection>, Duration) -> F,
    ) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let config = &self.shared.config;
        let (limit, begun) = (config.default_api_timeout, Instant::now());
        let backoff = Backoff::new(config.retry_backoff, config.retry_backoff_max);
        let mut failures = 0;
        let mut last: Option<Error> = None;
        loop {
            let left = limit.saturating_sub(begun.elapsed());
            let one = async {
                let connection = self.shared.keeper.any().await?;
                call(connection, left).await
            };
            match tokio::time::timeout(left, one).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) if !may_repeat(repeat, &error) => return Err(error),
                Ok(Err(error)) => last = Some(error),
                Err(_) => {
                    let last = last.map(Box::new);
                    return Err(Error::TimedOut { what: what.to_owned(), after: limit, last });
                }
            }
            let pause = backoff.pause(failures);
            failures += 1;
            if begun.elapsed() + pause >= limit {
                let last = last.map(Box::new);
                return Err(Error::TimedOut { what: what.to_owned(), after: limit, last });
            }
            tokio::time::sleep(pause).await;
        }
    }
}

fn may_repeat(repeat: Repeat, error: &Error) -> bool {
    match repeat {
        Repeat::Question => error.is_retriable(),
        Repeat::Command => {
            matches!(error, Error::Unreachable { .. })
                || matches!(error, Error::Broker { error, .. } if error.code == ErrorCode::NotController)
        }
    }
}
