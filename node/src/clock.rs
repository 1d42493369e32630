//! The process's clocks, read at the rim and handed inwards as values.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use minikafka_model::{Mono, Now, WallMs};

/// Reads both clocks. The origin of the monotonic one is the moment the clock was made, plus one hour, so that "an hour ago" can be said.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

const HEAD_START_US: u64 = 3_600_000_000;

impl Clock {
    /// A clock that starts now.
    pub fn new() -> Clock {
        Clock { origin: Instant::now() }
    }

    /// Both clocks at this moment.
    pub fn now(&self) -> Now {
        Now { mono: self.mono(), wall: self.wall() }
    }

    /// The monotonic clock.
    pub fn mono(&self) -> Mono {
        Mono(HEAD_START_US + u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX / 2))
    }

    /// The wall clock. A machine whose clock stands before 1970 is told as 1970.
    pub fn wall(&self) -> WallMs {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// The tokio instant at which the monotonic clock shows `moment`, for timers of the shell.
    pub fn instant(&self, moment: Mono) -> tokio::time::Instant {
        let since_origin = std::time::Duration::from_micros(moment.0.saturating_sub(HEAD_START_US));
        tokio::time::Instant::from_std(self.origin + since_origin)
    }
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::new()
    }
}
