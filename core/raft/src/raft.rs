//! One node of the quorum.

use std::collections::BTreeMap;

use minikafka_model::{ControllerId, DirectoryId, MetadataOffset, Mono, Term};

use crate::progress::Progress;
use crate::random::Random;
use crate::view::View;
use crate::{
    Broken, ConfigError, Effect, HardState, Input, Message, RaftConfig, RaftEvent, RaftLog, RoleName,
    SnapshotInfo, Span, Status, StepDown, VoterStatus, Waiting,
};

#[derive(Debug, Clone)]
pub(crate) enum Role {
    Follower,
    /// Pre-vote (`pre`) or election. Who granted, with the directory each named.
    Campaign {
        pre: bool,
        transfer: bool,
        granted: BTreeMap<ControllerId, DirectoryId>,
        answered: BTreeMap<ControllerId, bool>,
    },
    Leader(Leader),
}

#[derive(Debug, Clone)]
pub(crate) struct Leader {
    pub(crate) progress: BTreeMap<ControllerId, Progress>,
    pub(crate) sequence: u64,
    pub(crate) elected: Mono,
    pub(crate) uncommitted_bytes: usize,
    pub(crate) transfer: Option<Transfer>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer {
    pub(crate) to: ControllerId,
    pub(crate) until: Mono,
    pub(crate) asked: bool,
}

/// What a follower remembers of its leader's stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Following {
    pub(crate) leader: ControllerId,
    pub(crate) heard: Mono,
    /// Up to here the log equals the leader's.
    pub(crate) verified: MetadataOffset,
    pub(crate) sequence: u64,
    pub(crate) sent_at: Mono,
}

/// A Raft node. Drive it as the crate's documentation says.
#[derive(Debug, Clone)]
pub struct Raft {
    pub(crate) config: RaftConfig,
    pub(crate) hard: HardState,
    pub(crate) view: View,
    pub(crate) role: Role,
    pub(crate) following: Option<Following>,
    pub(crate) committed: MetadataOffset,
    pub(crate) durable: MetadataOffset,
    pub(crate) receiving: Option<(SnapshotInfo, u64)>,
    pub(crate) deadline: Mono,
    pub(crate) random: Random,
    told: (RoleName, Term, Option<ControllerId>),
    halted: bool,
}

impl Raft {
    /// A node as it stands on disk. Everything in the log is durable at this moment.
    ///
    /// # Errors
    /// The node is not among the configured voters, the log belongs to other voters, or it cannot be read.
    pub fn new(
        config: RaftConfig,
        hard: HardState,
        log: &dyn RaftLog,
        now: Mono,
    ) -> Result<Raft, ConfigError> {
        let ids = |set: &mut dyn Iterator<Item = ControllerId>| set.map(|id| id.0).collect::<Vec<_>>();
        if !config.voters.contains(&config.id) {
            return Err(ConfigError::NotAVoter {
                id: config.id,
                voters: ids(&mut config.voters.iter().copied()),
            });
        }
        let view = View::read(log)?;
        if let Some(set) = hard.voters.as_ref().or_else(|| view.first_voters())
            && !set.voters.0.keys().eq(config.voters.iter())
        {
            let configured = ids(&mut config.voters.iter().copied());
            return Err(ConfigError::OtherVoters {
                configured,
                founded: ids(&mut set.voters.0.keys().copied()),
            });
        }
        let mut random = Random::new(config.seed);
        let deadline = now.after(random.draw(config.timers.hurry));
        let told = (RoleName::Follower, hard.term, None);
        Ok(Raft {
            committed: view.start(),
            durable: view.end(),
            config,
            hard,
            view,
            role: Role::Follower,
            following: None,
            receiving: None,
            deadline,
            random,
            told,
            halted: false,
        })
    }

    /// Handles one input. The effects are to be performed in order.
    pub fn step(&mut self, now: Mono, log: &dyn RaftLog, input: Input) -> Vec<Effect> {
        let mut out = Vec::new();
        if self.halted {
            return out;
        }
        if let Err(broken) = self.handle(now, log, input, &mut out) {
            self.halted = true;
            out.push(Effect::Halt(broken));
            return out;
        }
        let current = (self.role_name(), self.hard.term, self.leader());
        if current != self.told {
            self.told = current;
            out.push(Effect::RoleChanged { role: current.0, term: current.1, leader: current.2 });
        }
        out
    }

    /// When `step` wants a `Tick` at the latest.
    pub fn deadline(&self) -> Mono {
        match &self.role {
            Role::Leader(leader) => {
                let heartbeat = leader.progress.values().map(|p| p.last_sent).min();
                heartbeat.map_or(self.deadline, |sent| sent.after(self.config.timers.heartbeat))
            }
            Role::Follower | Role::Campaign { .. } => self.deadline,
        }
    }

    /// Who leads, if known.
    pub fn leader(&self) -> Option<ControllerId> {
        match &self.role {
            Role::Leader(_) => Some(self.config.id),
            Role::Follower => self.following.map(|f| f.leader),
            Role::Campaign { .. } => None,
        }
    }

    /// The newest term this node has heard of.
    pub fn term(&self) -> Term {
        self.hard.term
    }

    /// What is known to be committed (exclusive).
    pub fn committed(&self) -> MetadataOffset {
        self.committed
    }

    fn role_name(&self) -> RoleName {
        match &self.role {
            Role::Follower => RoleName::Follower,
            Role::Campaign { pre: true, .. } => RoleName::PreCandidate,
            Role::Campaign { .. } => RoleName::Candidate,
            Role::Leader(_) => RoleName::Leader,
        }
    }

    fn handle(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        input: Input,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        match input {
            Input::Tick => self.tick(now, log, out),
            Input::Message { from, message } => self.message(now, log, from, message, out),
            Input::Propose { ticket, payloads } => self.propose(now, log, ticket, payloads, out),
            Input::Persisted { end, last_term } => self.persisted(end, last_term, out),
            Input::PeerClosed(peer) => {
                self.peer_closed(now, peer, out);
                Ok(())
            }
            Input::PeerOpened(peer) => self.peer_opened(now, log, peer, out),
            Input::TransferLeadership { to } => self.transfer(now, to, out),
            Input::Trimmed { start } => {
                self.view.trim(start);
                Ok(())
            }
            Input::SnapshotInstalled(info) => {
                self.snapshot_installed(&info, out);
                Ok(())
            }
            Input::SnapshotRejected(info) => {
                if self.receiving.as_ref().is_some_and(|(known, _)| *known == info) {
                    self.receiving = None;
                }
                Ok(())
            }
        }
    }

    fn message(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        from: ControllerId,
        message: Message,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        if !self.config.voters.contains(&from) || from == self.config.id {
            return Ok(());
        }
        match message {
            Message::VoteRequest(request) => {
                self.vote_request(now, from, &request, out);
                Ok(())
            }
            Message::VoteResponse(response) => self.vote_response(now, log, from, &response, out),
            Message::AppendRequest(request) => self.append_request(now, from, request, out),
            Message::AppendResponse(response) => self.append_response(now, log, from, &response, out),
            Message::SnapshotRequest(request) => {
                self.snapshot_request(now, from, request, out);
                Ok(())
            }
            Message::SnapshotResponse(response) => self.snapshot_response(now, log, from, &response, out),
            Message::TimeoutNow { term } => {
                if term == self.hard.term
                    && self.following.is_some_and(|f| f.leader == from)
                    && self.admitted()
                {
                    return self.campaign(now, log, false, true, out);
                }
                Ok(())
            }
        }
    }

    fn tick(&mut self, now: Mono, log: &dyn RaftLog, out: &mut Vec<Effect>) -> Result<(), Broken> {
        if matches!(self.role, Role::Leader(_)) {
            return self.leader_tick(now, log, out);
        }
        if now < self.deadline {
            return Ok(());
        }
        if let Some(following) = self.following.take() {
            let (leader, term) = (following.leader, self.hard.term);
            out.push(Effect::Event(RaftEvent::LeaderLost { leader, term, closed: false }));
        }
        if self.admitted() {
            self.campaign(now, log, true, false, out)
        } else {
            self.role = Role::Follower;
            self.wait(now, self.config.timers.retry);
            Ok(())
        }
    }

    pub(crate) fn wait(&mut self, now: Mono, span: Span) {
        self.deadline = now.after(self.random.draw(span));
    }

    /// A newer term ends every role.
    pub(crate) fn adopt_term(&mut self, now: Mono, term: Term, peer: ControllerId, out: &mut Vec<Effect>) {
        if term <= self.hard.term {
            return;
        }
        if matches!(self.role, Role::Leader(_)) {
            let why = StepDown::NewerTerm { peer, term };
            out.push(Effect::Event(RaftEvent::SteppedDown { term: self.hard.term, why }));
        }
        self.hard = HardState { term, voted_for: None, voters: self.hard.voters.take() };
        out.push(Effect::SaveVote(self.hard.clone()));
        self.become_follower(now);
    }

    pub(crate) fn become_follower(&mut self, now: Mono) {
        self.role = Role::Follower;
        self.following = None;
        self.receiving = None;
        self.wait(now, self.config.timers.patience);
    }

    fn peer_closed(&mut self, now: Mono, peer: ControllerId, out: &mut Vec<Effect>) {
        if let Role::Leader(leader) = &mut self.role {
            if let Some(progress) = leader.progress.get_mut(&peer) {
                progress.probe(progress.received);
            }
        } else if self.following.is_some_and(|f| f.leader == peer) {
            self.following = None;
            out.push(Effect::Event(RaftEvent::LeaderLost {
                leader: peer,
                term: self.hard.term,
                closed: true,
            }));
            self.wait(now, self.config.timers.hurry);
        }
    }

    fn peer_opened(
        &mut self,
        now: Mono,
        log: &dyn RaftLog,
        peer: ControllerId,
        out: &mut Vec<Effect>,
    ) -> Result<(), Broken> {
        if matches!(self.role, Role::Leader(_)) {
            return self.speak(now, log, peer, true, out);
        }
        if self.leader().is_none() {
            let soon = now.after(self.random.draw(self.config.timers.hurry));
            self.deadline = self.deadline.min(soon);
        }
        Ok(())
    }

    /// Raises what is committed; never lowers it.
    pub(crate) fn commit(&mut self, end: MetadataOffset, out: &mut Vec<Effect>) {
        if end <= self.committed {
            return;
        }
        self.committed = end;
        out.push(Effect::Committed { end });
        self.view.forget_tail_below(end.min(self.durable));
        self.learn_committed_voters(out);
    }

    /// The whole picture.
    pub fn status(&self) -> Status {
        let leader = match &self.role {
            Role::Leader(leader) => Some(leader),
            Role::Follower | Role::Campaign { .. } => None,
        };
        let voter = |id: &ControllerId| {
            let progress = leader.and_then(|l| l.progress.get(id));
            let me = *id == self.config.id;
            let directory = if me {
                Some(self.config.directory)
            } else {
                progress.and_then(|p| p.directory).or(self.expected(*id))
            };
            VoterStatus {
                id: *id,
                directory,
                match_end: if me {
                    Some(self.durable)
                } else {
                    progress.filter(|p| p.contact.is_some()).map(|p| p.matched)
                },
                last_contact: progress.and_then(|p| p.contact),
                last_caught_up: progress.and_then(|p| p.caught_up),
                counts: directory.is_some_and(|d| self.counts(*id, d)),
                snapshot: progress.is_some_and(|p| p.snapshot.is_some()),
            }
        };
        Status {
            id: self.config.id,
            role: self.role_name(),
            term: self.hard.term,
            leader: self.leader(),
            committed: self.committed,
            log_start: self.view.start(),
            log_end: self.view.end(),
            durable: self.durable,
            voters: self.config.voters.iter().map(voter).collect(),
            waiting: self.waiting(),
            transferring_to: leader.and_then(|l| l.transfer).map(|t| t.to),
        }
    }

    fn waiting(&self) -> Option<Waiting> {
        if self.leader().is_some() {
            return None;
        }
        if let Some(set) = self.trusted()
            && !self.admitted()
        {
            let known = set.voters.directory(self.config.id)?;
            return Some(Waiting::Admission { known, own: self.config.directory });
        }
        let helped = |id: &ControllerId| match &self.role {
            Role::Campaign { granted, .. } => granted.contains_key(id),
            Role::Follower | Role::Leader(_) => false,
        };
        let missing =
            self.config.voters.iter().filter(|id| **id != self.config.id && !helped(id)).copied().collect();
        Some(if self.trusted().is_none() {
            Waiting::FirstStart { missing }
        } else {
            Waiting::Majority { missing }
        })
    }
}
