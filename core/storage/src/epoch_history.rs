//! Which leader epoch began at which offset (Kafka semantics 4.1).

use minikafka_model::{LeaderEpoch, Offset};

/// One epoch and the offset at which it began: of its first record, or the log end at which its leader took over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpochEntry {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// Where it began.
    pub start: Offset,
}

/// The epochs of a log. Both columns rise; a subset of what the log holds, but for an epoch at the end in which nothing was appended
/// yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpochHistory {
    entries: Vec<EpochEntry>,
}

impl EpochHistory {
    /// Of entries that rise.
    pub(crate) fn from_entries(entries: Vec<EpochEntry>) -> EpochHistory {
        EpochHistory { entries }
    }

    /// Oldest first.
    pub fn entries(&self) -> &[EpochEntry] {
        &self.entries
    }

    /// Nothing known?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The newest epoch.
    pub fn last_epoch(&self) -> Option<LeaderEpoch> {
        self.entries.last().map(|entry| entry.epoch)
    }

    /// Whether [`EpochHistory::assign`] would change anything.
    pub fn would_assign(&self, epoch: LeaderEpoch, start: Offset) -> bool {
        !self.entries.last().is_some_and(|last| last.epoch == epoch && last.start <= start)
    }

    /// Records that `epoch` began at `start`. Entries that cannot be true beside it (of an epoch not lower, or of a start not lower)
    /// go: an older epoch erases newer ones. Returns whether anything changed.
    pub fn assign(&mut self, epoch: LeaderEpoch, start: Offset) -> bool {
        if !self.would_assign(epoch, start) {
            return false;
        }
        while self.entries.last().is_some_and(|last| last.epoch >= epoch || last.start >= start) {
            self.entries.pop();
        }
        self.entries.push(EpochEntry { epoch, start });
        true
    }

    /// Where the records of `epoch` end: the epoch that is meant (the greatest one known that is not above) and the end. `None` if it
    /// cannot be known: for an epoch newer than all, and without any entry. An epoch below the oldest ends where the oldest begins.
    pub fn end_offset_for(&self, epoch: LeaderEpoch, log_end: Offset) -> Option<(LeaderEpoch, Offset)> {
        if self.last_epoch()? == epoch {
            return Some((epoch, log_end));
        }
        let next = self.entries.partition_point(|entry| entry.epoch <= epoch);
        let end = self.entries.get(next)?.start;
        Some((if next == 0 { epoch } else { self.entries[next - 1].epoch }, end))
    }

    /// The epoch of the record at `offset`; `None` below the first entry.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        let after = self.entries.partition_point(|entry| entry.start <= offset);
        after.checked_sub(1).map(|at| self.entries[at].epoch)
    }

    /// Whether a batch of `epoch` at `base` is what the history says; what lies before its first entry was cut off at the log start.
    pub(crate) fn knows(&self, epoch: LeaderEpoch, base: Offset) -> bool {
        match self.entries.first() {
            Some(first) if base < first.start => epoch <= first.epoch,
            _ => self.epoch_at(base) == Some(epoch),
        }
    }

    /// The log now ends at `end`: drops entries that begin there or later. Returns whether anything changed.
    pub fn truncate_end(&mut self, end: Offset) -> bool {
        let keep = self.entries.partition_point(|entry| entry.start < end);
        let changed = keep < self.entries.len();
        self.entries.truncate(keep);
        changed
    }

    /// The log now starts at `start`: of the entries that begin before, the last one stays and begins there. Returns whether anything
    /// changed.
    pub fn truncate_start(&mut self, start: Offset) -> bool {
        let before = self.entries.partition_point(|entry| entry.start <= start);
        let Some(last) = before.checked_sub(1) else { return false };
        let changed = last > 0 || self.entries[last].start != start;
        self.entries.drain(..last);
        self.entries[0].start = start;
        changed
    }

    /// Drops everything. Returns whether anything changed.
    pub fn clear(&mut self) -> bool {
        let changed = !self.entries.is_empty();
        self.entries.clear();
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(entries: &[(i32, i64)]) -> EpochHistory {
        let mut history = EpochHistory::default();
        for (epoch, start) in entries {
            history.assign(LeaderEpoch(*epoch), Offset(*start));
        }
        history
    }

    fn shown(history: &EpochHistory) -> Vec<(i32, i64)> {
        history.entries().iter().map(|entry| (entry.epoch.0, entry.start.0)).collect()
    }

    #[test]
    fn assigning_an_older_epoch_or_an_earlier_start_erases_what_contradicts_it() {
        assert_eq!(shown(&history(&[(1, 0), (2, 10), (3, 20), (2, 15)])), [(1, 0), (2, 15)]);
        assert_eq!(shown(&history(&[(1, 0), (2, 10), (3, 20), (4, 10)])), [(1, 0), (4, 10)]);
        assert_eq!(shown(&history(&[(1, 0), (2, 10), (2, 30)])), [(1, 0), (2, 10)], "known already");
        assert_eq!(shown(&history(&[(1, 5), (1, 3)])), [(1, 3)], "an earlier start of the newest epoch");
    }

    #[test]
    fn the_end_of_an_epoch_is_the_start_of_the_next_higher_one() {
        let history = history(&[(2, 10), (4, 20), (6, 40)]);
        let end = |epoch| history.end_offset_for(LeaderEpoch(epoch), Offset(50)).map(|(e, o)| (e.0, o.0));
        assert_eq!(end(6), Some((6, 50)));
        assert_eq!(end(7), None, "newer than known: never a guess");
        assert_eq!(end(5), Some((4, 40)));
        assert_eq!(end(4), Some((4, 40)));
        assert_eq!(end(3), Some((2, 20)));
        assert_eq!(end(1), Some((1, 10)), "below the oldest");
        assert_eq!(EpochHistory::default().end_offset_for(LeaderEpoch(0), Offset(0)), None);
        assert_eq!(history.epoch_at(Offset(39)), Some(LeaderEpoch(4)));
        assert_eq!(history.epoch_at(Offset(9)), None);
    }

    #[test]
    fn trimming_keeps_the_history_within_the_log() {
        let mut at_end = history(&[(1, 0), (2, 10), (3, 20)]);
        assert!(at_end.truncate_end(Offset(10)));
        assert_eq!(shown(&at_end), [(1, 0)]);
        assert!(!at_end.truncate_end(Offset(10)));

        let mut at_start = history(&[(1, 0), (2, 10), (3, 20)]);
        assert!(at_start.truncate_start(Offset(15)));
        assert_eq!(shown(&at_start), [(2, 15), (3, 20)]);
        assert!(at_start.truncate_start(Offset(20)));
        assert_eq!(shown(&at_start), [(3, 20)]);
        assert!(!at_start.truncate_start(Offset(20)));
        assert!(!history(&[(5, 30)]).truncate_start(Offset(7)));
    }
}
