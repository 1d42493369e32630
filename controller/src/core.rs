//! The raft thread: it owns Raft, the disk, the image and the mind of the active controller, and alone writes to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use bytes::Bytes;
use minikafka_control::{Answer, Command, Control, Decision, Moment};
use minikafka_metadata::{Image, Position, Record, decode_records, encode_records, encode_snapshot};
use minikafka_model::{ControllerId, MetadataOffset, Mono, Term, Ticket};
use minikafka_node::{Clock, EventRing};
use minikafka_raft::{
    Effect, Entry, HardState, Input, Payload, Raft, RaftLog, RoleName, SnapshotInfo, Status,
};
use minikafka_storage::LogReader;
use tokio::sync::{oneshot, watch};

use crate::event::ControllerEvent;
use crate::metadata_log::MetadataLog;
use crate::peers::{FromPeers, Peers};
use crate::vote_file::VoteFile;

/// Messages taken from the inbox before the log is synced.
const ROUND: usize = 512;
/// Bytes of committed entries read at once.
const APPLY_BYTES: usize = 4 << 20;
/// A round begins at least this often.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);

/// Why a command has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeskError {
    /// Another controller is active, or none, or this one is not ready yet. The command had no effect.
    #[error("this controller is not active{}", active.map_or_else(String::new, |id| format!(", controller {id} is")))]
    NotActive {
        /// Who is, if known.
        active: Option<ControllerId>,
    },
    /// Too much is waiting. The command had no effect.
    #[error("the controller has too much to do")]
    Busy,
    /// The command may or may not take effect: this controller stopped being active, or the answer did not come in time.
    #[error("the outcome is unknown: the controller lost its leadership or did not commit in time")]
    OutcomeUnknown,
}

pub(crate) type Reply = Result<Answer, DeskError>;

/// What the raft thread is told.
pub(crate) enum ToCore {
    Peers(FromPeers),
    Command { command: Box<Command>, arrived: Mono, deadline: Mono, reply: oneshot::Sender<Reply> },
    Stop,
}

/// What everybody may look at.
#[derive(Debug, Clone)]
pub(crate) struct Published {
    pub(crate) image: Image,
    pub(crate) status: Status,
    pub(crate) applied: MetadataOffset,
    pub(crate) log: LogReader,
    pub(crate) snapshot: Option<(MetadataOffset, Term, Bytes)>,
}

struct Waiter {
    reply: oneshot::Sender<Reply>,
    answer: Answer,
}

/// Everything the thread owns.
pub(crate) struct Core {
    pub(crate) raft: Raft,
    pub(crate) log: MetadataLog,
    pub(crate) vote: VoteFile,
    pub(crate) hard: HardState,
    pub(crate) image: Image,
    pub(crate) control: Control,
    pub(crate) clock: Clock,
    pub(crate) peers: Peers,
    pub(crate) inbox: Receiver<ToCore>,
    pub(crate) published: watch::Sender<Arc<Published>>,
    pub(crate) events: Arc<EventRing<ControllerEvent>>,
    pub(crate) idle_interval: Duration,
    pub(crate) snapshot_bytes: u64,
    pub(crate) desk: Desk,
}

/// What is decided and not committed.
#[derive(Default)]
pub(crate) struct Desk {
    /// Exclusive.
    applied: i64,
    pending: Vec<Bytes>,
    waiting: BTreeMap<MetadataOffset, Vec<Waiter>>,
    last_entry: Mono,
    sync_due: bool,
    bytes_since_snapshot: u64,
    receiving: Vec<u8>,
    stopping: bool,
    refused: bool,
}

/// The published view at the start.
pub(crate) fn first_view(raft: &Raft, log: &MetadataLog, image: &Image) -> Published {
    let (applied, snapshot) = snapshot_of(log);
    Published { image: image.clone(), status: raft.status(), applied, log: log.reader(), snapshot }
}

type SnapshotView = Option<(MetadataOffset, Term, Bytes)>;

fn snapshot_of(log: &MetadataLog) -> (MetadataOffset, SnapshotView) {
    let snapshot = log.snapshot_image().map(|(info, bytes)| (info.end, info.last_term, bytes));
    (snapshot.as_ref().map_or(MetadataOffset(0), |s| s.0), snapshot)
}

impl Core {
    /// Runs until told to stop.
    ///
    /// # Errors
    /// The disk failed or a rule of Raft was found broken: the process has to end.
    pub(crate) fn run(mut self) -> anyhow::Result<()> {
        self.desk.applied = snapshot_of(&self.log).0.0;
        loop {
            let mut round = self.wait();
            self.contacts(&round);
            for message in round.drain(..) {
                self.take(message)?;
            }
            self.tick()?;
            self.flush()?;
            while std::mem::take(&mut self.desk.sync_due) {
                self.log.sync()?;
                let persisted = Input::Persisted { end: self.log.end(), last_term: self.log.last_term() };
                self.step(persisted)?;
            }
            self.snapshot_if_due()?;
            self.publish();
            if self.desk.stopping {
                return self.stop();
            }
        }
    }

    fn wait(&mut self) -> Vec<ToCore> {
        let now = self.clock.mono();
        let mut until = self.raft.deadline().min(now.after(LONGEST_SLEEP));
        if let Some(wake) = self.control.next_wake() {
            until = until.min(wake);
        }
        let mut round = Vec::new();
        match self.inbox.recv_timeout(until.since(now)) {
            Ok(first) => round.push(first),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => round.push(ToCore::Stop),
        }
        round.extend(self.inbox.try_iter().take(ROUND));
        round
    }

    /// Heartbeats count from their arrival, whatever stands before them in the queue.
    fn contacts(&mut self, round: &[ToCore]) {
        for message in round {
            if let ToCore::Command { command, arrived, .. } = message
                && let Command::Heartbeat(beat) = &**command
            {
                self.control.contact(*arrived, beat.from.broker, beat.from.epoch);
            }
        }
    }

    fn take(&mut self, message: ToCore) -> anyhow::Result<()> {
        let input = match message {
            ToCore::Peers(FromPeers::Message(from, message)) => Input::Message { from, message },
            ToCore::Peers(FromPeers::Opened(peer)) => Input::PeerOpened(peer),
            ToCore::Peers(FromPeers::Closed(peer)) => Input::PeerClosed(peer),
            ToCore::Command { command, deadline, reply, .. } => {
                self.decide(*command, deadline, reply);
                return Ok(());
            }
            ToCore::Stop => {
                self.desk.stopping = true;
                return Ok(());
            }
        };
        // What was decided gets its place in the log before anything else can take it.
        self.flush()?;
        self.step(input)
    }

    fn next(&self) -> Position {
        let pending = i64::try_from(self.desk.pending.len()).unwrap_or(i64::MAX);
        Position { offset: MetadataOffset(self.log.end().0 + pending), term: self.raft.term() }
    }

    fn moment(&self, deadline: Option<Mono>) -> Moment {
        Moment { now: self.clock.now(), next: self.next(), seed: rand::random(), deadline }
    }

    fn decide(&mut self, command: Command, deadline: Mono, reply: oneshot::Sender<Reply>) {
        if !self.control.is_active() {
            // Whoever asked may be gone.
            let _gone = reply.send(Err(DeskError::NotActive { active: self.other_leader() }));
            return;
        }
        let decision = self.control.handle(&self.moment(Some(deadline)), command);
        self.settle(decision, Some(reply));
    }

    fn other_leader(&self) -> Option<ControllerId> {
        self.raft.leader().filter(|leader| *leader != self.raft.status().id)
    }

    fn settle(&mut self, decision: Decision, reply: Option<oneshot::Sender<Reply>>) {
        let Decision { records, answer, events } = decision;
        let wall = self.clock.wall();
        for event in events {
            self.events.tell(wall, ControllerEvent::Control(event));
        }
        if !records.is_empty() {
            self.desk.pending.push(encode_records(&records));
        }
        let Some(reply) = reply else { return };
        let end = self.next().offset;
        if end.0 <= self.desk.applied {
            // Whoever asked may be gone.
            let _gone = reply.send(Ok(answer));
        } else {
            self.desk.waiting.entry(end).or_default().push(Waiter { reply, answer });
        }
    }

    fn tick(&mut self) -> anyhow::Result<()> {
        let now = self.clock.mono();
        if self.raft.deadline() <= now {
            self.flush()?;
            self.step(Input::Tick)?;
        }
        self.activate_if_ready();
        if !self.control.is_active() {
            return Ok(());
        }
        while self.control.next_wake().is_some_and(|wake| wake <= now) {
            let Some(decision) = self.control.tick(&self.moment(None)) else { break };
            self.settle(decision, None);
        }
        if !self.idle_interval.is_zero()
            && self.desk.pending.is_empty()
            && now.since(self.desk.last_entry) >= self.idle_interval
        {
            self.control.advance(self.next());
            self.desk.pending.push(encode_records(&[Record::NoOp]));
        }
        Ok(())
    }

    /// Active once everything in the log, the no-op of this term included, is applied.
    fn activate_if_ready(&mut self) {
        let leads = self.raft.status().role == RoleName::Leader;
        let own_term = self.image.position().is_some_and(|at| at.term == self.raft.term());
        if leads && own_term && !self.control.is_active() && self.desk.applied == self.log.end().0 {
            self.control.activate(self.clock.mono(), self.image.clone());
            self.desk.last_entry = self.clock.mono();
            self.events.tell(self.clock.wall(), ControllerEvent::active(self.raft.term()));
        }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if self.desk.pending.is_empty() {
            return Ok(());
        }
        let payloads = std::mem::take(&mut self.desk.pending);
        self.desk.last_entry = self.clock.mono();
        self.step(Input::Propose { ticket: Ticket(0), payloads })?;
        if std::mem::take(&mut self.desk.refused) {
            // The mind is ahead of the log now: it starts again from what is committed.
            let end = self.log.end();
            let lost = self.desk.waiting.split_off(&end.next());
            self.control.deactivate();
            let active = self.other_leader();
            for waiter in lost.into_values().flatten() {
                let _gone = waiter.reply.send(Err(DeskError::NotActive { active }));
            }
        }
        Ok(())
    }

    fn step(&mut self, input: Input) -> anyhow::Result<()> {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for effect in self.raft.step(self.clock.mono(), &self.log, input) {
                if let Some(next) = self.perform(effect)? {
                    inputs.push(next);
                }
            }
        }
        Ok(())
    }

    fn perform(&mut self, effect: Effect) -> anyhow::Result<Option<Input>> {
        let wall = self.clock.wall();
        match effect {
            Effect::SaveVote(hard) => {
                self.vote.save(&hard)?;
                self.hard = hard;
            }
            Effect::Truncate { to } => self.log.truncate(to, wall)?,
            Effect::Append(entries) => {
                self.log.append(&entries, wall)?;
                for entry in entries.iter().filter(|e| !matches!(e.payload, Payload::Command(_))) {
                    self.control.advance(Position { offset: entry.offset, term: entry.term });
                }
            }
            Effect::Sync => self.desk.sync_due = true,
            Effect::Send { to, message } => self.peers.send(to, &message),
            Effect::Committed { end } => self.apply(end)?,
            Effect::RoleChanged { role, .. } => self.role_changed(role),
            Effect::Proposed { .. } => {}
            Effect::Refused { .. } => self.desk.refused = true,
            Effect::WriteSnapshot { position, chunk, .. } => {
                let at = usize::try_from(position)?;
                self.desk.receiving.truncate(at);
                self.desk.receiving.extend_from_slice(&chunk);
            }
            Effect::InstallSnapshot(info) => return self.install(info).map(Some),
            Effect::Event(event) => self.events.tell(wall, ControllerEvent::of_raft(&event)),
            Effect::Halt(broken) => anyhow::bail!("the quorum's rules are broken: {broken}"),
        }
        Ok(None)
    }

    fn install(&mut self, info: SnapshotInfo) -> anyhow::Result<Input> {
        let bytes = Bytes::from(std::mem::take(&mut self.desk.receiving));
        let Some(image) = self.log.install_snapshot(&info, bytes, self.clock.wall())? else {
            return Ok(Input::SnapshotRejected(info));
        };
        self.image = image;
        self.desk.applied = info.end.0;
        Ok(Input::SnapshotInstalled(info))
    }

    fn role_changed(&mut self, role: RoleName) {
        if role == RoleName::Leader {
            return;
        }
        self.control.deactivate();
        self.desk.pending.clear();
        for waiter in std::mem::take(&mut self.desk.waiting).into_values().flatten() {
            let _gone = waiter.reply.send(Err(DeskError::OutcomeUnknown));
        }
    }

    fn apply(&mut self, end: MetadataOffset) -> anyhow::Result<()> {
        while self.desk.applied < end.0 {
            let entries = self.log.entries(MetadataOffset(self.desk.applied), APPLY_BYTES)?;
            anyhow::ensure!(!entries.is_empty(), "committed entry {} is missing", self.desk.applied);
            for entry in entries.into_iter().filter(|entry| entry.offset < end) {
                self.apply_one(entry)?;
            }
        }
        let mut released = self.desk.waiting.split_off(&end.next());
        std::mem::swap(&mut released, &mut self.desk.waiting);
        for waiter in released.into_values().flatten() {
            let _gone = waiter.reply.send(Ok(waiter.answer));
        }
        Ok(())
    }

    fn apply_one(&mut self, entry: Entry) -> anyhow::Result<()> {
        let at = Position { offset: entry.offset, term: entry.term };
        self.desk.bytes_since_snapshot += entry.payload.len() as u64;
        match entry.payload {
            Payload::Command(bytes) => {
                self.image.apply(at, &decode_records(&bytes)?)?;
            }
            Payload::NoOp | Payload::Voters(_) => self.image.advance(at),
        }
        self.desk.applied = entry.offset.0 + 1;
        Ok(())
    }

    fn snapshot_if_due(&mut self) -> anyhow::Result<()> {
        if self.desk.bytes_since_snapshot < self.snapshot_bytes {
            return Ok(());
        }
        let (Some(voters), Some(at)) = (self.hard.voters.clone(), self.image.position()) else {
            return Ok(());
        };
        self.desk.bytes_since_snapshot = 0;
        let image = encode_snapshot(&self.image);
        let end = at.offset.next();
        self.log.take_snapshot(end, at.term, &voters, &image, self.clock.wall())?;
        self.step(Input::Trimmed { start: end })
    }

    fn publish(&self) {
        let status = self.raft.status();
        let applied = MetadataOffset(self.desk.applied);
        let (_, snapshot) = snapshot_of(&self.log);
        let view = Published { image: self.image.clone(), status, applied, log: self.log.reader(), snapshot };
        self.published.send_replace(Arc::new(view));
    }

    /// Hands leadership over, so that nobody waits for a timeout, and ends.
    fn stop(mut self) -> anyhow::Result<()> {
        if self.raft.status().role == RoleName::Leader {
            self.step(Input::TransferLeadership { to: None })?;
        }
        self.log.sync()?;
        Ok(())
    }
}
