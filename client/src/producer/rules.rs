//! The part of the configuration that decides about batches.

use std::time::Duration;

use crate::backoff::Backoff;
use crate::config::{Acks, ClientConfig, Compression};

/// Copied out of the configuration once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) acks: Acks,
    pub(crate) idempotent: bool,
    pub(crate) compression: Compression,
    pub(crate) batch_size: usize,
    pub(crate) linger: Duration,
    pub(crate) delivery_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) max_in_flight: usize,
    pub(crate) max_request_size: usize,
    pub(crate) backoff: Backoff,
}

impl Rules {
    pub(crate) fn of(config: &ClientConfig) -> Rules {
        Rules {
            acks: config.acks,
            idempotent: config.enable_idempotence,
            compression: config.compression,
            batch_size: config.batch_size,
            linger: config.linger,
            delivery_timeout: config.delivery_timeout,
            request_timeout: config.request_timeout,
            retries: config.retries,
            max_in_flight: config.max_in_flight,
            max_request_size: config.max_request_size,
            backoff: Backoff::new(config.retry_backoff, config.retry_backoff_max),
        }
    }

    /// Whether several batches of one partition may be under way together without losing their order, given whether the leader knows
    /// this producer.
    pub(crate) fn pipelines(&self, established: bool) -> bool {
        (self.idempotent && established) || self.acks == Acks::None
    }
}
