//! Waiting times from a seed: the only chance in this room, and repeatable.

use std::time::Duration;

use crate::Span;

/// SplitMix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A time from the span, both ends included.
    pub(crate) fn draw(&mut self, span: Span) -> Duration {
        let (min, max) = (span.min.as_micros() as u64, span.max.as_micros() as u64);
        Duration::from_micros(min + self.next() % (max.saturating_sub(min) + 1))
    }
}
