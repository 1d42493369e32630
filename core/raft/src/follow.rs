//! A follower: takes the leader's entries and says what it holds.

use minikafka_model::{ControllerId, MetadataOffset, Mono, Term};

use crate::raft::{Following, Raft, Role};
use crate::{AppendRequest, AppendResponse, Broken, Conflict, Effect, Entry, Message, RaftEvent};

impl Raft {
    /// Somebody acts as leader of `term`. False where it is an old one.
    pub(crate) fn hear_leader(
        &mut self,
        now: Mono,
        from: ControllerId,
        term: Term,
        out: &mut Vec<Effect>,
    ) -> bool {
        if term < self.hard.term {
            return false;
        }
        self.adopt_term(now, term, from, out);
        if self.following.is_none_or(|f| f.leader != from) {
            self.role = Role::Follower;
            self.receiving = None;
            out.push(Effect::Event(RaftEvent::Following { leader: from, term }));
            let verified = MetadataOffset::ZERO;
            self.following =
                Some(Following { leader: from, heard: now, verified, sequence: 0, sent_at: Mono(0) });
        }
        if let Some(following) = &mut self.following {
            following.heard = now;
        }
        self.wait(now, self.config.timers.patience);
        true
    }

    pub(crate) fn append_request(
        &mut self,
        now: Mono,
        from: ControllerId,
        request: AppendRequest,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        if matches!(self.role, Role::Leader(_)) && request.term == self.hard.term {
            return Err(Broken::TwoLeaders { other: from, term: request.term });
        }
        let (sequence, sent_at) = (request.sequence, request.sent_at);
        if !self.hear_leader(now, from, request.term, out) {
            let answer = self.append_answer(MetadataOffset::ZERO, None, sequence, sent_at);
            out.push(Effect::Send { to: from, message: answer });
            return Ok(());
        }
        if let Some(following) = &mut self.following
            && sequence > following.sequence
        {
            (following.sequence, following.sent_at) = (sequence, sent_at);
        }
        if let Some(conflict) = self.conflict(&request) {
            let answer = self.append_answer(self.verified(), Some(conflict), sequence, sent_at);
            out.push(Effect::Send { to: from, message: answer });
            return Ok(());
        }
        let end = MetadataOffset(request.start.0 + request.entries.len() as i64);
        self.take(from, request.entries, out)?;
        if let Some(following) = &mut self.following {
            following.verified = following.verified.max(end);
        }
        let verified = self.verified();
        self.commit(request.committed.min(verified), out);
        let answer = self.append_answer(verified, None, sequence, sent_at);
        out.push(Effect::Send { to: from, message: answer });
        Ok(())
    }

    fn verified(&self) -> MetadataOffset {
        self.following.map_or(MetadataOffset::ZERO, |f| f.verified)
    }

    fn conflict(&self, request: &AppendRequest) -> Option<Conflict> {
        // What lies before the log's start is in a snapshot, and so committed: it cannot differ.
        if request.start < self.view.start() {
            return None;
        }
        match self.view.term_before(request.start) {
            Some(term) if term == request.start_term => None,
            Some(term) => Some(Conflict { term: Some(term), offset: self.view.run_start(request.start) }),
            None => Some(Conflict { term: None, offset: self.view.end() }),
        }
    }

    /// Appends what is new; removes what contradicts the leader.
    fn take(&mut self, from: ControllerId, entries: Vec<Entry>, out: &mut Vec<Effect>) -> Result<(), Broken> {
        let known = |entry: &Entry| {
            entry.offset < self.view.start()
                || (entry.offset < self.view.end()
                    && self.view.term_before(entry.offset.next()) == Some(entry.term))
        };
        let new: Vec<Entry> = entries.into_iter().skip_while(known).collect();
        let Some(first) = new.first().map(|entry| entry.offset) else { return Ok(()) };
        if first < self.view.end() {
            if first < self.committed {
                return Err(Broken::CommittedConflict { leader: from, term: self.hard.term, offset: first });
            }
            out.push(Effect::Event(RaftEvent::Truncated { from: self.view.end(), to: first, leader: from }));
            out.push(Effect::Truncate { to: first });
            self.view.truncate(first);
            self.durable = self.durable.min(first);
        }
        self.view.append(&new);
        out.push(Effect::Append(new));
        out.push(Effect::Sync);
        Ok(())
    }

    fn append_answer(
        &self,
        received: MetadataOffset,
        conflict: Option<Conflict>,
        sequence: u64,
        sent_at: Mono,
    ) -> Message {
        Message::AppendResponse(AppendResponse {
            term: self.hard.term,
            durable: received.min(self.durable),
            received,
            conflict,
            directory: self.config.directory,
            sequence,
            sent_at,
        })
    }

    /// The log is durable up to `end`.
    pub(crate) fn persisted(
        &mut self,
        end: MetadataOffset,
        last_term: Term,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        if end > self.view.end() || self.view.term_before(end) != Some(last_term) || end <= self.durable {
            return Ok(());
        }
        self.durable = end;
        self.view.forget_tail_below(self.committed.min(end));
        if matches!(self.role, Role::Leader(_)) {
            self.advance_commit(out);
        } else if let Some(following) = self.following {
            let answer = self.append_answer(following.verified, None, following.sequence, following.sent_at);
            out.push(Effect::Send { to: following.leader, message: answer });
        }
        Ok(())
    }
}
