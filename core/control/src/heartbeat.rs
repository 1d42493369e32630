//! Heartbeats: who is fenced, who is on its way out, who may end (Kafka semantics 6.3).

use minikafka_metadata::{BrokerChange, BrokerRegistration, Record};
use minikafka_model::{BrokerId, DirectoryId, ErrorCode, MetadataOffset};

use crate::answer::{Answer, HeartbeatReply, Refusal};
use crate::command::Heartbeat;
use crate::draft::Draft;
use crate::event::ControlEvent;
use crate::registration::not_registered;
use crate::seeded::SeededBug;
use crate::session::{Session, Sessions};

/// A broker's state as the controller sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Fenced,
    Unfenced,
    ControlledShutdown,
    /// Fenced, and it may end.
    ShutdownNow,
}

impl State {
    fn of(broker: &BrokerRegistration) -> State {
        match (broker.fenced, broker.in_controlled_shutdown) {
            (true, _) => State::Fenced,
            (false, true) => State::ControlledShutdown,
            (false, false) => State::Unfenced,
        }
    }
}

impl Draft<'_> {
    pub(crate) fn heartbeat(&mut self, sessions: &mut Sessions, it: &Heartbeat) -> Answer {
        let broker = it.from.broker;
        let Some(known) = self.image.broker(broker).cloned() else {
            return Answer::Refused(not_registered(broker));
        };
        if known.epoch != it.from.epoch {
            return Answer::Refused(Refusal::new(
                ErrorCode::StaleBrokerEpoch,
                format!("broker {broker} has broker epoch {}, not {}", known.epoch, it.from.epoch),
            ));
        }
        let session = sessions.contact(broker, known.epoch, self.at.now.mono);
        session.metadata_offset = session.metadata_offset.max(it.metadata_offset);
        let session = *session;
        let caught_up = session.metadata_offset >= Some(known.registered_at())
            || self.config.faults.has(SeededBug::UnfencedTooEarly);
        let next = self.next_state(sessions, &session, &known, it, caught_up);
        self.enter(&known, next, &session);
        if next == State::ControlledShutdown && session.shutdown_offset.is_none() {
            let shutdown_offset = Some(self.shutdown_offset());
            sessions.contact(broker, known.epoch, self.at.now.mono).shutdown_offset = shutdown_offset;
        }
        if next == State::ShutdownNow {
            // It said farewell: the next process need not wait for the end of this one's session.
            sessions.end(broker);
        }
        self.take_dirs_offline(broker, &it.offline_log_dirs);
        Answer::Heartbeat(HeartbeatReply {
            caught_up,
            fenced: matches!(next, State::Fenced | State::ShutdownNow),
            should_shut_down: next == State::ShutdownNow,
        })
    }

    /// The entry that the other brokers must have applied before this one may end: the one being decided, or the last one.
    fn shutdown_offset(&self) -> MetadataOffset {
        if self.records.is_empty() {
            self.image.offset().unwrap_or(self.at.next.offset)
        } else {
            self.at.next.offset
        }
    }

    fn next_state(
        &self,
        sessions: &Sessions,
        session: &Session,
        known: &BrokerRegistration,
        it: &Heartbeat,
        caught_up: bool,
    ) -> State {
        match State::of(known) {
            State::Fenced | State::ShutdownNow if it.want_shut_down => State::ShutdownNow,
            State::Fenced | State::ShutdownNow if !it.want_fence && caught_up => State::Unfenced,
            State::Fenced | State::ShutdownNow => State::Fenced,
            State::Unfenced if it.want_fence && it.want_shut_down => State::ShutdownNow,
            State::Unfenced if it.want_fence => State::Fenced,
            State::Unfenced if it.want_shut_down && self.leaderships(known.id) > 0 => {
                State::ControlledShutdown
            }
            State::Unfenced if it.want_shut_down => State::ShutdownNow,
            State::Unfenced => State::Unfenced,
            State::ControlledShutdown if self.leaderships(known.id) > 0 => State::ControlledShutdown,
            State::ControlledShutdown => {
                let known_by_all =
                    session.shutdown_offset.is_some_and(|at| self.all_active_know(sessions, at))
                        || self.config.faults.has(SeededBug::EndsTooEarly);
                if known_by_all { State::ShutdownNow } else { State::ControlledShutdown }
            }
        }
    }

    /// Every active broker has applied the metadata up to this entry, so that nobody sends clients to the old leader any more.
    fn all_active_know(&self, sessions: &Sessions, at: MetadataOffset) -> bool {
        self.image.brokers().values().filter(|broker| broker.is_active()).all(|broker| {
            sessions.get(broker.id, broker.epoch).is_some_and(|session| session.metadata_offset >= Some(at))
        })
    }

    fn enter(&mut self, known: &BrokerRegistration, next: State, session: &Session) {
        let (broker, broker_epoch) = (known.id, known.epoch);
        match (State::of(known), next) {
            (State::Fenced | State::ShutdownNow, State::ShutdownNow) => {
                self.tell(ControlEvent::Shutdown { broker, broker_epoch });
            }
            (from, next) if from == next => {}
            (_, State::Fenced) => self.fence(known, "it asked for it", None),
            (_, State::ShutdownNow) => {
                self.fence(known, "it shuts down", None);
                self.tell(ControlEvent::Shutdown { broker, broker_epoch });
            }
            (_, State::Unfenced) => {
                let metadata_offset = session.metadata_offset;
                self.tell(ControlEvent::Unfencing { broker, broker_epoch, metadata_offset });
                self.change(known, Some(false), Some(false));
                self.elect_where_leaderless("a broker was unfenced");
            }
            (_, State::ControlledShutdown) => {
                let led = self.leaderships(broker);
                self.tell(ControlEvent::ControlledShutdown { broker, broker_epoch, led });
                self.change(known, None, Some(true));
                self.remove_from_isrs(broker, "controlled shutdown");
            }
        }
    }

    /// Takes the broker out of every ISR, and then fences it.
    pub(crate) fn fence(&mut self, known: &BrokerRegistration, reason: &'static str, silent_ms: Option<u64>) {
        let (broker, broker_epoch) = (known.id, known.epoch);
        self.tell(ControlEvent::Fencing { broker, broker_epoch, reason, silent_ms });
        self.remove_from_isrs(broker, "its broker was fenced");
        self.change(known, Some(true), None);
    }

    fn change(&mut self, known: &BrokerRegistration, fenced: Option<bool>, leaving: Option<bool>) {
        self.put(Record::BrokerChange(BrokerChange {
            broker: known.id,
            epoch: known.epoch,
            fenced,
            in_controlled_shutdown: leaving.filter(|leaving| *leaving != known.in_controlled_shutdown),
            log_dirs: None,
        }));
    }

    fn take_dirs_offline(&mut self, broker: BrokerId, offline: &[DirectoryId]) {
        let Some(known) = self.image.broker(broker) else { return };
        let (failed, left): (Vec<DirectoryId>, Vec<DirectoryId>) =
            known.log_dirs.iter().copied().partition(|dir| offline.contains(dir));
        if failed.is_empty() {
            return;
        }
        let epoch = known.epoch;
        self.tell(ControlEvent::LogDirsOffline { broker, failed: failed.len(), left: left.len() });
        self.put(Record::BrokerChange(BrokerChange {
            broker,
            epoch,
            fenced: None,
            in_controlled_shutdown: None,
            log_dirs: Some(left),
        }));
        self.remove_from_failed_dirs(broker, &failed, "its log directory failed");
    }
}
