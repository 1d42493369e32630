//! What any process needs: OS disk, clock, configuration, telemetry, HTTP, shutdown, named threads.
//!
//! Nothing here knows which role it serves. The one room where `unsafe` is allowed, for two calls of the C library.

mod clock;
mod dir_lock;
mod event_ring;
mod fault_self_test;
mod faults;
mod http;
mod load_config;
mod memory;
mod os_disk;
mod parent;
mod properties;
mod ready_file;
mod shutdown;
mod telemetry;
mod threads;

pub use clock::Clock;
pub use dir_lock::{DirLock, DirLockError, LOCK_FILE};
pub use event_ring::{EventRing, Told};
pub use fault_self_test::fault_self_test;
pub use faults::{Action, Blocked, Direction, Fault, FaultKind, FaultSpec, Faults, ListedFault};
pub use http::{HttpServer, Surface};
pub use load_config::{ConfigProblems, LoadedConfig, load_config, load_config_text};
pub use memory::raise_malloc_thresholds;
pub use os_disk::OsDisk;
pub use parent::end_with_parent;
pub use ready_file::{ReadyFile, ReadyFileError};
pub use shutdown::Shutdown;
pub use telemetry::{LogFormat, init_telemetry};
pub use threads::{block_on_thread, spawn_named};
