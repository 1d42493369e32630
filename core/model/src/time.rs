//! Time as the quiet rooms see it: an argument, never a question to the machine.

use serde::{Deserialize, Serialize};

/// A moment on a monotonic clock, in microseconds since an origin that only the process (or the simulator) knows. For
/// time-outs, leases and lag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mono(pub u64);

impl Mono {
    /// This moment moved on by `span`; stays at the end of time instead of overflowing.
    #[must_use]
    pub fn after(self, span: std::time::Duration) -> Mono {
        Mono(self.0.saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)))
    }

    /// The span from `earlier` to here; zero when `earlier` is later.
    pub fn since(self, earlier: Mono) -> std::time::Duration {
        std::time::Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// Wall-clock time in milliseconds since 1970 (UTC): for record timestamps and retention, and for what people read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallMs(pub i64);

/// Both clocks at one moment, as handed to every core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock.
    pub mono: Mono,
    /// The wall clock.
    pub wall: WallMs,
}
