//! Elections: pre-vote, vote, and what a voter grants (Kafka semantics 8.3, KIP-996).

use std::collections::BTreeMap;

use minikafka_model::{ControllerId, Mono, Term};

use crate::raft::{Raft, Role};
use crate::{Broken, Effect, HardState, Message, RaftEvent, RaftLog, VoteRefusal, VoteRequest, VoteResponse};

impl Raft {
    /// Asks the voters: whether an election would be won (`pre`), or for their votes.
    pub(crate) fn campaign(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        pre: bool,
        transfer: bool,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        let term = self.hard.term.next();
        if !pre {
            self.hard = HardState { term, voted_for: Some(self.config.id), voters: self.hard.voters.take() };
            out.push(Effect::SaveVote(self.hard.clone()));
        }
        out.push(Effect::Event(if pre {
            RaftEvent::PreVoteStarted { term }
        } else {
            RaftEvent::ElectionStarted { term, transfer }
        }));
        self.following = None;
        self.receiving = None;
        let own = (self.config.id, self.config.directory);
        self.role = Role::Campaign { pre, transfer, granted: [own].into(), answered: BTreeMap::new() };
        self.wait(now, self.config.timers.retry);
        for to in self.others() {
            let request = VoteRequest {
                term,
                pre_vote: pre,
                log: self.view.log_end(),
                directory: self.config.directory,
                expected: self.expected(to),
                transfer,
            };
            out.push(Effect::Send { to, message: Message::VoteRequest(request) });
        }
        self.count_votes(now, log, out)
    }

    pub(crate) fn others(&self) -> Vec<ControllerId> {
        self.config.voters.iter().copied().filter(|id| *id != self.config.id).collect()
    }

    fn count_votes(&mut self, now: Mono, log: &dyn RaftLog, out: &mut Vec<Effect>) -> Result<(), Broken> {
        let Role::Campaign { pre, transfer, granted, .. } = &self.role else { return Ok(()) };
        // The first start needs everyone (see `membership`).
        let needed = if self.trusted().is_none() { self.config.voters.len() } else { self.majority() };
        if granted.len() < needed {
            return Ok(());
        }
        match (*pre, *transfer) {
            (true, transfer) => self.campaign(now, log, false, transfer, out),
            (false, _) => {
                let granted = granted.clone();
                self.lead(now, log, granted, out)
            }
        }
    }

    /// Whether this voter gives its vote, and why not.
    fn judge(&self, now: Mono, from: ControllerId, request: &VoteRequest) -> Option<VoteRefusal> {
        if request.term < self.hard.term || (request.pre_vote && request.term == self.hard.term) {
            return Some(VoteRefusal::OldTerm);
        }
        // A node in contact with a leader helps nobody to an election, unless that leader asked for it.
        let lease = self.config.timers.patience.min;
        let in_contact = self.following.is_some_and(|f| f.leader != from && now.since(f.heard) < lease);
        let leads = matches!(self.role, Role::Leader(_));
        if !request.transfer && (in_contact || leads) {
            return Some(VoteRefusal::HasLeader);
        }
        let wrong_directory = request.expected.is_some_and(|directory| directory != self.config.directory);
        let candidate_unknown = self.trusted().is_some() && !self.counts(from, request.directory);
        // A candidate without a log founds a cluster: only with voters that have none either.
        let founding = request.log.is_empty() && !self.view.log_end().is_empty();
        if wrong_directory || candidate_unknown || founding || !self.admitted() {
            return Some(VoteRefusal::NotAdmitted);
        }
        if request.log < self.view.log_end() {
            return Some(VoteRefusal::LogBehind);
        }
        let voted = self.hard.voted_for.filter(|_| request.term == self.hard.term);
        if !request.pre_vote && voted.is_some_and(|other| other != from) {
            return Some(VoteRefusal::AlreadyVoted);
        }
        None
    }

    pub(crate) fn vote_request(
        &mut self,
        now: Mono,
        from: ControllerId,
        request: &VoteRequest,
        out: &mut Vec<Effect>,
    ) {
        let refusal = self.judge(now, from, request);
        // A refusal for contact with a leader leaves the term alone: the candidate cannot depose a leader that a majority hears.
        let ignore = matches!(refusal, Some(VoteRefusal::HasLeader | VoteRefusal::OldTerm));
        if !request.pre_vote && !ignore {
            self.adopt_term(now, request.term, from, out);
        }
        if refusal.is_none() && !request.pre_vote {
            if self.hard.voted_for != Some(from) {
                self.hard.voted_for = Some(from);
                out.push(Effect::SaveVote(self.hard.clone()));
            }
            self.role = Role::Follower;
            self.following = None;
            self.wait(now, self.config.timers.patience);
        }
        if let Some(why) = refusal {
            let (term, pre_vote) = (request.term, request.pre_vote);
            out.push(Effect::Event(RaftEvent::VoteRefused { candidate: from, term, pre_vote, why }));
        }
        let response = VoteResponse {
            term: if refusal.is_none() { request.term } else { self.hard.term },
            pre_vote: request.pre_vote,
            refusal,
            directory: self.config.directory,
            log_is_empty: self.view.log_end().is_empty(),
            committed: self.committed,
        };
        out.push(Effect::Send { to: from, message: Message::VoteResponse(response) });
    }

    pub(crate) fn vote_response(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        from: ControllerId,
        response: &VoteResponse,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        if response.refusal.is_some() {
            self.adopt_term(now, response.term, from, out);
        }
        let founding = self.trusted().is_none();
        let trusted = self.counts(from, response.directory);
        let asked: Term = match &self.role {
            Role::Campaign { pre: true, .. } => self.hard.term.next(),
            Role::Campaign { .. } => self.hard.term,
            Role::Follower | Role::Leader(_) => return Ok(()),
        };
        let Role::Campaign { pre, granted, answered, .. } = &mut self.role else { return Ok(()) };
        if response.pre_vote != *pre {
            return Ok(());
        }
        answered.insert(from, response.refusal.is_none());
        let counts = trusted && (!founding || response.log_is_empty);
        if response.refusal.is_none() && response.term == asked && counts {
            if response.committed > self.view.end() {
                return Err(Broken::LostCommitted { peer: from, end: response.committed });
            }
            granted.insert(from, response.directory);
        }
        self.count_votes(now, log, out)
    }
}
