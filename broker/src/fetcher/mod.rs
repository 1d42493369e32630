//! The fetcher threads: real OS threads that pull from leaders, `num.replica.fetchers` for each source broker.

mod pool;
mod spread;
mod stream;
mod thread;

pub(crate) use pool::{FetcherPool, Identity};
