//! The leader: sends entries, counts who holds them, steps down without a majority.

use std::collections::BTreeMap;

use bytes::Bytes;
use minikafka_model::{ControllerId, DirectoryId, MetadataOffset, Mono, Ticket};

use crate::progress::Progress;
use crate::raft::{Leader, Raft, Role, Transfer};
use crate::{
    AppendRequest, AppendResponse, Broken, Conflict, Effect, Entry, Message, Payload, RaftEvent, RaftLog,
    RefusedProposal, StepDown, VoterSet,
};

impl Raft {
    pub(crate) fn lead(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        votes: BTreeMap<ControllerId, DirectoryId>,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        out.push(Effect::Event(RaftEvent::Elected {
            term: self.hard.term,
            votes: votes.keys().copied().collect(),
        }));
        let end = self.view.end();
        let progress = self.others().into_iter().map(|id| (id, Progress::new(end, now))).collect();
        self.role = Role::Leader(Leader {
            progress,
            sequence: 0,
            elected: now,
            uncommitted_bytes: 0,
            transfer: None,
        });
        self.following = None;
        // The first entry of a cluster is its voter set; of a later term, one that commits what earlier terms left.
        let first = if self.trusted().is_none() { Payload::Voters(VoterSet(votes)) } else { Payload::NoOp };
        self.append_own(vec![first], out);
        self.broadcast(now, log, true, out)
    }

    /// Appends entries of this term; returns the first offset.
    fn append_own(&mut self, payloads: Vec<Payload>, out: &mut Vec<Effect>) -> MetadataOffset {
        let first = self.view.end();
        let mut offset = first;
        let mut entries = Vec::with_capacity(payloads.len());
        for payload in payloads {
            entries.push(Entry { offset, term: self.hard.term, payload });
            offset = offset.next();
        }
        if let Role::Leader(leader) = &mut self.role {
            leader.uncommitted_bytes += entries.iter().map(|e| e.payload.len()).sum::<usize>();
        }
        self.view.append(&entries);
        out.push(Effect::Append(entries));
        out.push(Effect::Sync);
        first
    }

    pub(crate) fn propose(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        ticket: Ticket,
        payloads: Vec<Bytes>,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        let size: usize = payloads.iter().map(Bytes::len).sum();
        let why = match &self.role {
            Role::Leader(Leader { transfer: Some(transfer), .. }) => {
                Some(RefusedProposal::Transferring { to: transfer.to })
            }
            Role::Leader(leader)
                if leader.uncommitted_bytes + size > self.config.limits.uncommitted_bytes =>
            {
                Some(RefusedProposal::Busy)
            }
            Role::Leader(_) => None,
            Role::Follower | Role::Campaign { .. } => {
                Some(RefusedProposal::NotLeader { leader: self.leader() })
            }
        };
        if let Some(why) = why {
            out.push(Effect::Refused { ticket, why });
            return Ok(());
        }
        let first = self.append_own(payloads.into_iter().map(Payload::Command).collect(), out);
        out.push(Effect::Proposed { ticket, first, end: self.view.end(), term: self.hard.term });
        self.broadcast(now, log, false, out)
    }

    fn broadcast(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        heartbeat: bool,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        for to in self.others() {
            self.speak(now, log, to, heartbeat, out)?;
        }
        Ok(())
    }

    /// Sends a voter what it lacks, or a heartbeat if asked to.
    pub(crate) fn speak(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        to: ControllerId,
        heartbeat: bool,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        let (limits, term, committed) = (self.config.limits, self.hard.term, self.committed);
        let Role::Leader(leader) = &mut self.role else { return Ok(()) };
        let Some(progress) = leader.progress.get_mut(&to) else { return Ok(()) };
        let mut beat = heartbeat;
        loop {
            if progress.next < self.view.start() || self.view.term_before(progress.next).is_none() {
                return self.speak_snapshot(now, log, to, out);
            }
            let room = progress.in_flight.len() < if progress.found { limits.in_flight } else { 1 };
            let entries = if room && progress.next < self.view.end() {
                self.view.entries(log, progress.next, limits.append_bytes)?
            } else {
                Vec::new()
            };
            if entries.is_empty() && !beat {
                return Ok(());
            }
            let Some(start_term) = self.view.term_before(progress.next) else { return Ok(()) };
            leader.sequence += 1;
            let (start, sequence) = (progress.next, leader.sequence);
            if !entries.is_empty() {
                progress.in_flight.push_back(sequence);
                if progress.found {
                    progress.next = MetadataOffset(start.0 + entries.len() as i64);
                }
            }
            let more = !entries.is_empty() && progress.found;
            (progress.last_sent, beat) = (now, false);
            let request =
                AppendRequest { term, start, start_term, entries, committed, sequence, sent_at: now };
            out.push(Effect::Send { to, message: Message::AppendRequest(request) });
            if !more {
                return Ok(());
            }
        }
    }

    pub(crate) fn append_response(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        from: ControllerId,
        response: &AppendResponse,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        self.adopt_term(now, response.term, from, out);
        if response.term < self.hard.term {
            return Ok(());
        }
        let (end, view) = (self.view.end(), &self.view);
        let Role::Leader(leader) = &mut self.role else { return Ok(()) };
        let Some(progress) = leader.progress.get_mut(&from) else { return Ok(()) };
        let wiped = progress.directory.is_some_and(|known| known != response.directory);
        if wiped {
            *progress = Progress::new(MetadataOffset::ZERO, now);
        }
        progress.directory = Some(response.directory);
        progress.answered(response.sequence, response.sent_at);
        match response.conflict {
            Some(Conflict { term, offset }) => {
                let own = term.and_then(|term| view.end_of_term(term)).map(|own| own.min(progress.next));
                let next = own.unwrap_or(offset).max(progress.matched).min(end);
                progress.probe(if next < progress.next { next } else { offset.min(progress.next) });
            }
            None => {
                progress.received = progress.received.max(response.received.min(end));
                progress.matched = progress.matched.max(response.durable.min(end));
                progress.found = true;
                progress.next = progress.next.max(progress.received);
                if response.received >= end {
                    progress.caught_up = Some(response.sent_at);
                }
            }
        }
        if let Some((set, old)) = self.set_to_admit(from, response.directory) {
            let (voter, new) = (from, response.directory);
            out.push(Effect::Event(RaftEvent::AdmittingVoter { voter, old, new }));
            self.append_own(vec![Payload::Voters(set)], out);
        }
        self.advance_commit(out);
        self.try_transfer(out);
        self.speak(now, log, from, false, out)
    }

    /// An entry is committed once a majority holds it durably and it, or a later one, is of this term (KAFKA-12619, Raft figure 8).
    pub(crate) fn advance_commit(&mut self, out: &mut Vec<Effect>) {
        let Role::Leader(leader) = &self.role else { return };
        let mut held: Vec<MetadataOffset> = leader
            .progress
            .iter()
            .filter(|(id, p)| p.directory.is_some_and(|directory| self.counts(**id, directory)))
            .map(|(_, p)| p.matched)
            .collect();
        if self.admitted() {
            held.push(self.durable);
        }
        held.sort_unstable_by(|a, b| b.cmp(a));
        let Some(&end) = held.get(self.majority() - 1) else { return };
        if end <= self.committed || self.view.term_before(end) != Some(self.hard.term) {
            return;
        }
        self.commit(end, out);
        let rest = match &self.role {
            Role::Leader(_) => self.view.entries_bytes_from(end),
            Role::Follower | Role::Campaign { .. } => 0,
        };
        if let Role::Leader(leader) = &mut self.role {
            leader.uncommitted_bytes = rest;
        }
    }

    pub(crate) fn leader_tick(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        let needed = self.majority();
        let timers = self.config.timers;
        let Role::Leader(leader) = &mut self.role else { return Ok(()) };
        let in_contact = |p: &&Progress| now.since(p.contact.unwrap_or(leader.elected)) < timers.check_quorum;
        let reachable = 1 + leader.progress.values().filter(in_contact).count();
        if reachable < needed {
            let why = StepDown::NoMajority { reachable, needed };
            out.push(Effect::Event(RaftEvent::SteppedDown { term: self.hard.term, why }));
            self.become_follower(now);
            return Ok(());
        }
        if let Some(transfer) = leader.transfer
            && now >= transfer.until
        {
            leader.transfer = None;
            out.push(Effect::Event(RaftEvent::TransferGivenUp { to: transfer.to }));
        }
        let due = |p: &Progress| now.since(p.last_sent) >= timers.heartbeat;
        let silent: Vec<ControllerId> =
            leader.progress.iter().filter(|(_, p)| due(p)).map(|(id, _)| *id).collect();
        if leader.progress.is_empty() {
            self.deadline = now.after(timers.check_quorum);
        }
        for to in silent {
            self.speak(now, log, to, true, out)?;
        }
        Ok(())
    }

    pub(crate) fn transfer(
        &mut self,
        now: Mono,
        to: Option<ControllerId>,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        let until = now.after(self.config.timers.transfer);
        let Role::Leader(leader) = &mut self.role else { return Ok(()) };
        let best = leader
            .progress
            .iter()
            .filter(|(_, p)| p.contact.is_some())
            .max_by_key(|(_, p)| p.matched)
            .map(|(id, _)| *id);
        let Some(to) = to.filter(|id| leader.progress.contains_key(id)).or(best) else { return Ok(()) };
        leader.transfer = Some(Transfer { to, until, asked: false });
        out.push(Effect::Event(RaftEvent::TransferStarted { to }));
        self.try_transfer(out);
        Ok(())
    }

    /// The chosen voter campaigns at once, as soon as it holds everything.
    fn try_transfer(&mut self, out: &mut Vec<Effect>) {
        let (end, term) = (self.view.end(), self.hard.term);
        let Role::Leader(leader) = &mut self.role else { return };
        let Some(transfer) = &mut leader.transfer else { return };
        if !transfer.asked && leader.progress.get(&transfer.to).is_some_and(|p| p.matched == end) {
            transfer.asked = true;
            out.push(Effect::Send { to: transfer.to, message: Message::TimeoutNow { term } });
        }
    }
}
