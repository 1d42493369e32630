//! Pauses that double from try to try, with a fifth of chance in them, so that clients do not come back in step.

use std::time::Duration;

/// How far a pause strays from its nominal length, as in the Java client.
const JITTER: f64 = 0.2;
/// Doublings after which every limit is reached.
const MOST_DOUBLINGS: u32 = 20;

/// A first pause and a longest one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    first: Duration,
    most: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, most: Duration) -> Backoff {
        Backoff { first, most: most.max(first) }
    }

    /// The pause after `failures` earlier failures (0 for the first).
    pub(crate) fn pause(self, failures: u32) -> Duration {
        let nominal = self.first.saturating_mul(1 << failures.min(MOST_DOUBLINGS)).min(self.most);
        let stray = 1.0 + JITTER * (2.0 * rand::random::<f64>() - 1.0);
        nominal.mul_f64(stray)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(1000));
        for (failures, nominal) in [(0, 100), (1, 200), (3, 800), (4, 1000), (1_000_000, 1000)] {
            let pause = backoff.pause(failures).as_millis();
            assert!(pause >= nominal * 8 / 10 && pause <= nominal * 12 / 10, "{failures}: {pause}");
        }
    }
}
