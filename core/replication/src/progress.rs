//! What a leader remembers of its followers (Kafka semantics 2.1, with our refinement: only the *acknowledged* log end counts,
//! and the time a follower was last caught up comes from samples of the leader's own log end).

use std::collections::VecDeque;
use std::time::Duration;

use minikafka_model::{BrokerEpoch, Mono, Offset};

/// How many samples a leader keeps. Closer ones than the lag limit divided by this are merged, which makes a follower look
/// caught up earlier than it was, never later, by at most that much.
const SAMPLES: u32 = 128;

/// Moments and the leader's log end at each: a follower that has acknowledged that log end was caught up at that moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct CaughtUpSamples {
    samples: VecDeque<(Mono, Offset)>,
}

impl CaughtUpSamples {
    /// At `now` the log ended at `log_end`. Called before each append and at each answer.
    pub(crate) fn take(&mut self, now: Mono, log_end: Offset, lag_time_max: Duration) {
        if let Some((time, end)) = self.samples.back_mut()
            && *end == log_end
        {
            *time = now.max(*time);
            return;
        }
        if let Some((time, _)) = self.samples.iter().rev().nth(1)
            && now.since(*time) < lag_time_max / SAMPLES
        {
            // Too close to the last but one: the newest is replaced, so that the list stays short.
            self.samples.pop_back();
        }
        self.samples.push_back((now, log_end));
        while self.samples.len() > SAMPLES as usize * 2
            || self.samples.front().is_some_and(|(time, _)| now.since(*time) > lag_time_max * 2)
        {
            self.samples.pop_front();
        }
    }

    /// The newest sample that `acknowledged` covers.
    pub(crate) fn covered_by(&self, acknowledged: Offset) -> Option<Mono> {
        self.samples.iter().rev().find(|(_, end)| *end <= acknowledged).map(|(time, _)| *time)
    }
}

/// One follower as the leader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Where its log ends, by its own word; unknown until it has asked in this leader epoch.
    pub acknowledged: Option<Offset>,
    /// Where its log starts, by its own word.
    pub log_start: Option<Offset>,
    /// The epoch of the process that asked.
    pub broker_epoch: Option<BrokerEpoch>,
    /// When it last had all that the leader had; never, if it did not in this leader epoch.
    pub caught_up: Option<Mono>,
    /// When it last asked.
    pub asked: Option<Mono>,
}

impl Progress {
    /// A follower at the start of a leader epoch: members of the ISR are given a full lag time.
    pub(crate) fn at_epoch_start(member: bool, now: Mono) -> Progress {
        Progress { caught_up: member.then_some(now), ..Progress::default() }
    }

    /// Whether it has fallen behind: its log end differs from the leader's, and it last had everything longer ago than the
    /// limit. Equal log ends always count as in sync (KAFKA-7152).
    pub(crate) fn out_of_sync(&self, now: Mono, log_end: Offset, limit: Duration) -> bool {
        self.acknowledged != Some(log_end) && !self.caught_up_within(now, limit)
    }

    /// Whether it had everything not longer ago than the limit.
    pub(crate) fn caught_up_within(&self, now: Mono, limit: Duration) -> bool {
        self.caught_up.is_some_and(|time| now.since(time) <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG: Duration = Duration::from_secs(10);

    fn at(ms: u64) -> Mono {
        Mono(ms * 1000)
    }

    #[test]
    fn a_follower_that_is_always_a_little_behind_stays_caught_up() {
        let mut samples = CaughtUpSamples::default();
        for n in 0..1000 {
            samples.take(at(n * 20), Offset(n as i64), LAG);
        }
        // It has acknowledged what the log held half a second ago.
        let caught_up = samples.covered_by(Offset(975)).expect("a sample");
        assert!(caught_up <= at(975 * 20) && at(975 * 20).since(caught_up) <= LAG / 64, "{caught_up:?}");
        assert!(samples.samples.len() <= 2 * SAMPLES as usize + 1);
        // One that stands still is not: its sample fell out.
        assert_eq!(samples.covered_by(Offset(3)), None);
    }

    #[test]
    fn the_newest_covered_sample_counts() {
        let mut samples = CaughtUpSamples::default();
        samples.take(at(0), Offset(0), LAG);
        samples.take(at(100), Offset(5), LAG);
        samples.take(at(300), Offset(9), LAG);
        assert_eq!(samples.covered_by(Offset(5)), Some(at(100)));
        assert_eq!(samples.covered_by(Offset(8)), Some(at(100)));
        assert_eq!(samples.covered_by(Offset(9)), Some(at(300)));
        samples.take(at(900), Offset(9), LAG);
        assert_eq!(samples.covered_by(Offset(9)), Some(at(900)));
    }

    #[test]
    fn equal_log_ends_are_in_sync_for_ever() {
        let mut progress = Progress::at_epoch_start(true, at(0));
        assert!(!progress.out_of_sync(at(9_000), Offset(5), LAG), "it has a full lag time to show up");
        assert!(progress.out_of_sync(at(10_001), Offset(5), LAG));
        progress.acknowledged = Some(Offset(5));
        assert!(!progress.out_of_sync(at(10_000_000), Offset(5), LAG));
        assert!(progress.out_of_sync(at(10_000_000), Offset(6), LAG));
    }
}
