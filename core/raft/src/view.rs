//! What Raft remembers of its log: bounds, the term of every entry as spans, the voter sets, and the entries not committed yet.

use std::collections::VecDeque;

use minikafka_model::{MetadataOffset, Term};

use crate::{Entry, LogEnd, LogReadError, Payload, RaftLog, SnapshotInfo, VotersAt};

const READ_BYTES: usize = 4 << 20;

#[derive(Debug, Clone)]
pub(crate) struct View {
    start: MetadataOffset,
    end: MetadataOffset,
    /// Term of the entry before `start`: the snapshot's.
    before_start: Term,
    /// First offset of each run of entries of one term, ascending.
    spans: VecDeque<(MetadataOffset, Term)>,
    /// Voter sets of the snapshot and of the log, ascending.
    voters: VecDeque<VotersAt>,
    /// The entries at the end of the log that were written by this process and may not be readable or committed yet.
    tail: VecDeque<Entry>,
}

impl View {
    pub(crate) fn read(log: &dyn RaftLog) -> Result<View, LogReadError> {
        let snapshot = log.snapshot();
        let mut view = View {
            start: log.start(),
            end: log.start(),
            before_start: snapshot.as_ref().map_or(Term(0), |s| s.last_term),
            spans: VecDeque::new(),
            voters: snapshot.map(|s| s.voters).into_iter().collect(),
            tail: VecDeque::new(),
        };
        while view.end < log.end() {
            let entries = log.entries(view.end, READ_BYTES)?;
            if entries.is_empty() {
                return Err(LogReadError(format!("no entry at {} of {}", view.end, log.end())));
            }
            entries.iter().for_each(|entry| view.note(entry));
        }
        Ok(view)
    }

    fn note(&mut self, entry: &Entry) {
        debug_assert_eq!(entry.offset, self.end, "entries come in order");
        if self.spans.back().is_none_or(|(_, term)| *term != entry.term) {
            self.spans.push_back((entry.offset, entry.term));
        }
        if let Payload::Voters(voters) = &entry.payload
            && self.voters.back().is_none_or(|known| known.offset < entry.offset)
        {
            self.voters.push_back(VotersAt { offset: entry.offset, voters: voters.clone() });
        }
        self.end = entry.offset.next();
    }

    pub(crate) fn append(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.note(entry);
            self.tail.push_back(entry.clone());
        }
    }

    pub(crate) fn truncate(&mut self, to: MetadataOffset) {
        self.end = to;
        self.spans.retain(|(first, _)| *first < to);
        self.voters.retain(|set| set.offset < to);
        self.tail.retain(|entry| entry.offset < to);
    }

    /// Entries below are committed and on their way to the disk of a majority: they are read from the log from now on.
    pub(crate) fn forget_tail_below(&mut self, offset: MetadataOffset) {
        while self.tail.front().is_some_and(|entry| entry.offset < offset) {
            self.tail.pop_front();
        }
    }

    pub(crate) fn trim(&mut self, start: MetadataOffset) {
        if start <= self.start || start > self.end {
            return;
        }
        self.before_start = self.term_before(start).unwrap_or(self.before_start);
        self.start = start;
        while self.spans.get(1).is_some_and(|(first, _)| *first <= start) {
            self.spans.pop_front();
        }
        if self.end == start {
            self.spans.clear();
        }
        while self.voters.get(1).is_some_and(|set| set.offset < start) {
            self.voters.pop_front();
        }
    }

    pub(crate) fn install(&mut self, info: &SnapshotInfo) {
        *self = View {
            start: info.end,
            end: info.end,
            before_start: info.last_term,
            spans: VecDeque::new(),
            voters: [info.voters.clone()].into(),
            tail: VecDeque::new(),
        };
    }

    pub(crate) fn start(&self) -> MetadataOffset {
        self.start
    }

    pub(crate) fn end(&self) -> MetadataOffset {
        self.end
    }

    pub(crate) fn log_end(&self) -> LogEnd {
        LogEnd { last_term: self.term_before(self.end).unwrap_or(Term(0)), end: self.end }
    }

    /// Term of the entry just before `offset`; `Term(0)` before the first one, `None` where it is not known any more or not yet.
    pub(crate) fn term_before(&self, offset: MetadataOffset) -> Option<Term> {
        if offset == MetadataOffset::ZERO {
            return Some(Term(0));
        }
        if offset == self.start {
            return Some(self.before_start);
        }
        if offset < self.start || offset > self.end {
            return None;
        }
        let last = MetadataOffset(offset.0 - 1);
        self.spans.iter().rev().find(|(first, _)| *first <= last).map(|(_, term)| *term)
    }

    /// First offset of the run that the entry before `offset` belongs to.
    pub(crate) fn run_start(&self, offset: MetadataOffset) -> MetadataOffset {
        let last = MetadataOffset(offset.0 - 1);
        self.spans
            .iter()
            .rev()
            .find(|(first, _)| *first <= last)
            .map_or(self.start, |(first, _)| (*first).max(self.start))
    }

    /// End of the last run of this term, if there is one.
    pub(crate) fn end_of_term(&self, term: Term) -> Option<MetadataOffset> {
        let at = self.spans.iter().position(|(_, t)| *t == term)?;
        Some(self.spans.get(at + 1).map_or(self.end, |(first, _)| *first))
    }

    pub(crate) fn first_voters(&self) -> Option<&VotersAt> {
        self.voters.front()
    }

    pub(crate) fn last_voters(&self) -> Option<&VotersAt> {
        self.voters.back()
    }

    /// The newest voter set below `end`.
    pub(crate) fn voters_below(&self, end: MetadataOffset) -> Option<&VotersAt> {
        self.voters.iter().rev().find(|set| set.offset < end)
    }

    /// Entries from `from` on, from memory where they are there, else from the log.
    pub(crate) fn entries(
        &self,
        log: &dyn RaftLog,
        from: MetadataOffset,
        max_bytes: usize,
    ) -> Result<Vec<Entry>, LogReadError> {
        let Some(first) = self.tail.front().filter(|first| first.offset <= from) else {
            let upto = self.tail.front().map_or(self.end, |first| first.offset);
            let mut entries = log.entries(from, max_bytes)?;
            entries.retain(|entry| entry.offset < upto);
            return Ok(entries);
        };
        let skip = (from.0 - first.offset.0) as usize;
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            let first = bytes == 0;
            bytes += entry.payload.len() + 1;
            first || bytes <= max_bytes
        };
        Ok(self.tail.iter().skip(skip).take_while(fits).cloned().collect())
    }
}

impl View {
    /// Payload bytes of the entries at the end that are still in memory, from `from` on.
    pub(crate) fn entries_bytes_from(&self, from: MetadataOffset) -> usize {
        self.tail.iter().filter(|entry| entry.offset >= from).map(|entry| entry.payload.len()).sum()
    }
}
