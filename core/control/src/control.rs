//! The active controller: its image, its sessions, and the one door for commands.

use std::time::Duration;

use minikafka_metadata::{Image, Position, Record};
use minikafka_model::{BrokerEpoch, BrokerId, ErrorCode, Mono, Now};

use crate::answer::{Answer, Refusal};
use crate::command::{BrokerIdentity, Command};
use crate::config::ControlConfig;
use crate::draft::Draft;
use crate::event::ControlEvent;
use crate::seeded::SeededBug;
use crate::session::Sessions;

/// When and where a decision is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time.
    pub now: Now,
    /// Where the decision's entry will stand in the log: the offset after everything that this controller has proposed. A broker
    /// epoch is this offset, so it has to be right.
    pub next: Position,
    /// Random bits, drawn anew for each decision.
    pub seed: u128,
    /// When the caller stops waiting. A command that comes later is answered with `REQUEST_TIMED_OUT` and nothing is decided.
    pub deadline: Option<Mono>,
}

/// What the controller decided: one entry for the log (where there are records), the answer, and what to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The records of one entry. Without any there is no entry; the answer then waits for all entries proposed before it.
    pub records: Vec<Record>,
    /// For whoever asked.
    pub answer: Answer,
    /// For the log and the ring.
    pub events: Vec<ControlEvent>,
}

impl Decision {
    pub(crate) fn refused(refusal: Refusal) -> Decision {
        Decision { records: Vec::new(), answer: Answer::Refused(refusal), events: Vec::new() }
    }
}

/// The controller's mind. It decides only while it is active.
#[derive(Debug)]
pub struct Control {
    pub(crate) config: ControlConfig,
    pub(crate) active: Option<Active>,
}

/// What an active controller knows.
#[derive(Debug)]
pub(crate) struct Active {
    /// Committed metadata and what was decided on top of it.
    pub(crate) image: Image,
    pub(crate) sessions: Sessions,
    pub(crate) next_sweep: Mono,
    pub(crate) next_unclean: Mono,
    pub(crate) next_rebalance: Mono,
}

/// The controller looks at the sessions eight times in a session.
const SWEEPS_IN_A_SESSION: u32 = 8;

impl Control {
    /// A controller that is not active.
    pub fn new(config: ControlConfig) -> Control {
        Control { config, active: None }
    }

    /// This controller leads the quorum from now on. `image` is everything in the log up to the start of its term, committed by it. Every unfenced
    /// broker gets a fresh session (Kafka semantics 6.3).
    pub fn activate(&mut self, now: Mono, image: Image) {
        self.active = Some(Active {
            sessions: if self.config.faults.has(SeededBug::NoFreshSessions) {
                Sessions::default()
            } else {
                Sessions::fresh(&image, now)
            },
            image,
            next_sweep: now.after(self.sweep_period()),
            next_unclean: now.after(self.config.unclean_interval),
            next_rebalance: now.after(self.config.rebalance_interval),
        });
    }

    /// It leads no more. What it decided and did not commit is forgotten; callers are answered by the desk.
    pub fn deactivate(&mut self) {
        self.active = None;
    }

    /// Whether it decides.
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Committed metadata with all of its own decisions applied; none while it is not active.
    pub fn image(&self) -> Option<&Image> {
        self.active.as_ref().map(|active| &active.image)
    }

    /// The settings.
    pub fn config(&self) -> &ControlConfig {
        &self.config
    }

    pub(crate) fn sweep_period(&self) -> Duration {
        self.config.session_timeout / SWEEPS_IN_A_SESSION
    }

    /// A heartbeat of a broker arrived at this moment. The desk notes arrivals outside its queue and brings them here before it
    /// asks for anything else, so that a busy controller fences nobody who is alive.
    pub fn contact(&mut self, arrived: Mono, broker: BrokerId, epoch: BrokerEpoch) {
        if let Some(active) = &mut self.active
            && active.image.broker(broker).is_some_and(|known| known.epoch == epoch)
        {
            active.sessions.contact(broker, epoch, arrived);
        }
    }

    /// How much is left of a broker's session; none where it has none.
    pub fn session_left(&self, broker: BrokerId, now: Mono) -> Option<Duration> {
        let active = self.active.as_ref()?;
        let epoch = active.image.broker(broker)?.epoch;
        active.sessions.left(broker, epoch, now, self.config.session_timeout)
    }

    /// Takes note that an entry without metadata (Raft's own) was written at this position.
    pub fn advance(&mut self, to: Position) {
        if let Some(active) = &mut self.active {
            active.image.advance(to);
        }
    }

    /// Decides a command. What it decides is at once the ground for the next command.
    ///
    /// # Panics
    /// If the decision breaks an invariant of the metadata: the process has to stop before it is written.
    pub fn handle(&mut self, at: &Moment, command: Command) -> Decision {
        let Some(active) = &mut self.active else {
            return Decision::refused(Refusal::bare(ErrorCode::NotController));
        };
        if at.deadline.is_some_and(|deadline| deadline <= at.now.mono) {
            return Decision::refused(Refusal::bare(ErrorCode::RequestTimedOut));
        }
        let mut draft = Draft::new(&self.config, at, active.image.clone());
        let answer = draft.decide(&mut active.sessions, command);
        active.settle(at, draft, answer)
    }
}

impl Active {
    /// Makes a draft the ground for what comes next.
    pub(crate) fn settle(&mut self, at: &Moment, draft: Draft<'_>, answer: Answer) -> Decision {
        let Draft { records, events, .. } = draft;
        if !records.is_empty()
            && let Err(error) = self.image.apply(at.next, &records)
        {
            panic!("the controller decided an entry that does not apply: {error}");
        }
        Decision { records, answer, events }
    }
}

impl Draft<'_> {
    fn decide(&mut self, sessions: &mut Sessions, command: Command) -> Answer {
        match command {
            Command::RegisterBroker(it) => self.register_broker(sessions, it),
            Command::Heartbeat(it) => self.heartbeat(sessions, &it),
            Command::AlterPartition(it) => self.alter_partition(&it),
            Command::AllocateProducerIds(from) => self.allocate_producer_ids(from),
            Command::CreateTopics(it) => self.create_topics(it),
            Command::DeleteTopics(it) => self.delete_topics(&it),
            Command::CreatePartitions(it) => self.create_partitions(&it),
            Command::ElectLeaders(it) => self.elect_leaders(it),
            Command::ReassignPartitions(it) => self.reassign_partitions(it),
            Command::ListReassignments(which) => self.list_reassignments(which.as_deref()),
            Command::IncrementalAlterConfigs(it) => self.incremental_alter_configs(it),
            Command::AlterConfigs(it) => self.alter_configs(it),
            Command::UnregisterBroker(broker) => self.unregister_broker(sessions, broker),
            Command::UpdateFeatures(it) => self.update_features(it),
        }
    }

    /// The sender is who it says it is: its epoch is that of the registration (Kafka semantics 2.6, rule 0).
    pub(crate) fn check_identity(&self, from: BrokerIdentity) -> Result<(), Refusal> {
        match self.image.broker(from.broker) {
            Some(known) if known.epoch == from.epoch => Ok(()),
            Some(known) => Err(Refusal::new(
                ErrorCode::StaleBrokerEpoch,
                format!("broker {} has broker epoch {}, not {}", from.broker, known.epoch, from.epoch),
            )),
            None => Err(Refusal::new(
                ErrorCode::StaleBrokerEpoch,
                format!("broker {} is not registered", from.broker),
            )),
        }
    }
}
