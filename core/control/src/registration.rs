//! Brokers come and go for good (Kafka semantics 6.2).

use std::collections::BTreeSet;

use minikafka_metadata::{
    BrokerRegistration, PartitionState, Record, RegisterBroker as RegisterBrokerRecord,
};
use minikafka_model::{BrokerEpoch, BrokerId, ErrorCode};

use crate::answer::{Answer, Refusal};
use crate::command::RegisterBroker;
use crate::draft::{Draft, Exclusion};
use crate::election::Wish;
use crate::event::ControlEvent;
use crate::seeded::SeededBug;
use crate::session::Sessions;

/// Directory ids below this are reserved for "unassigned", "lost" and the like (KIP-858).
const RESERVED_DIRECTORY_IDS: u128 = 100;

impl Draft<'_> {
    pub(crate) fn register_broker(&mut self, sessions: &mut Sessions, it: RegisterBroker) -> Answer {
        if let Err(refusal) = self.check_registration(sessions, &it) {
            self.tell(ControlEvent::RegistrationRefused {
                broker: it.broker,
                code: refusal.code.code(),
                reason: refusal.message.clone().unwrap_or_default(),
            });
            return Answer::Refused(refusal);
        }
        let known = self.image.broker(it.broker).cloned();
        match known {
            Some(known) if known.incarnation == it.incarnation => self.amend(&known, it),
            Some(known) => {
                self.clean_up_after(&known, it.previous_epoch);
                sessions.end(it.broker);
                self.register_anew(it)
            }
            None => self.register_anew(it),
        }
    }

    fn check_registration(&self, sessions: &Sessions, it: &RegisterBroker) -> Result<(), Refusal> {
        if it.cluster != *self.image.cluster() {
            return Err(Refusal::new(
                ErrorCode::InconsistentClusterId,
                format!(
                    "broker {} has cluster id {}, this cluster has {}",
                    it.broker,
                    it.cluster,
                    self.image.cluster()
                ),
            ));
        }
        let other = self.image.broker(it.broker).filter(|known| known.incarnation != it.incarnation);
        // A process in controlled shutdown is expected to go: its successor need not wait.
        if let Some(known) = other.filter(|known| !known.in_controlled_shutdown) {
            let (now, timeout) = (self.at.now.mono, self.config.session_timeout);
            if let Some(left) = sessions.left(it.broker, known.epoch, now, timeout)
                && !self.config.faults.has(SeededBug::LiveBrokerReplaced)
            {
                return Err(Refusal::new(
                    ErrorCode::DuplicateBrokerRegistration,
                    format!(
                        "another process is registered as broker {}; its session ends in {} ms unless it is alive",
                        it.broker,
                        left.as_millis()
                    ),
                ));
            }
        }
        self.check_log_dirs(it).map_err(|text| Refusal::new(ErrorCode::InvalidRegistration, text))
    }

    fn check_log_dirs(&self, it: &RegisterBroker) -> Result<(), String> {
        if it.log_dirs.is_empty() {
            return Err("the registration names no log directory".into());
        }
        let distinct: BTreeSet<_> = it.log_dirs.iter().collect();
        if distinct.len() < it.log_dirs.len() {
            return Err("the registration names a log directory twice".into());
        }
        for dir in &it.log_dirs {
            if dir.0.0 < RESERVED_DIRECTORY_IDS {
                return Err(format!("the directory id {dir} is reserved"));
            }
            let owner = self
                .image
                .brokers()
                .values()
                .find(|other| other.id != it.broker && other.log_dirs.contains(dir));
            if let Some(owner) = owner {
                return Err(format!("the log directory {dir} belongs to broker {}", owner.id));
            }
        }
        Ok(())
    }

    /// The same process again: its addresses may be new, its epoch and its state are not.
    fn amend(&mut self, known: &BrokerRegistration, it: RegisterBroker) -> Answer {
        let same = known.listeners == it.listeners && known.rack == it.rack && known.log_dirs == it.log_dirs;
        if !same {
            self.put_registration(it, known.epoch, known.fenced, known.in_controlled_shutdown);
        }
        self.tell(ControlEvent::Registration {
            broker: known.id,
            broker_epoch: known.epoch,
            reason: "the same incarnation again",
        });
        Answer::Registered(known.epoch)
    }

    /// The records about the old life come first, the new registration last.
    fn clean_up_after(&mut self, known: &BrokerRegistration, previous_epoch: Option<BrokerEpoch>) {
        if self.config.faults.has(SeededBug::NewLifeKeepsIsr) {
            return;
        }
        if self.image.elr_enabled() && previous_epoch != Some(known.epoch) {
            self.remove_unclean(known.id, "it was not shut down cleanly");
        } else {
            self.remove_from_isrs(known.id, "a new incarnation registered");
        }
    }

    fn register_anew(&mut self, it: RegisterBroker) -> Answer {
        let (broker, epoch) = (it.broker, BrokerEpoch(self.at.next.offset.0));
        self.put_registration(it, epoch, true, false);
        self.move_to_known_dirs(broker);
        self.tell(ControlEvent::Registration { broker, broker_epoch: epoch, reason: "a new incarnation" });
        Answer::Registered(epoch)
    }

    /// Replicas whose directory the broker does not have any more (a new disk) lie where the broker puts them now: in its one
    /// directory, or where it will say.
    fn move_to_known_dirs(&mut self, broker: BrokerId) {
        let Some(known) = self.image.broker(broker).cloned() else { return };
        let gone = |state: &PartitionState| {
            state.directory(broker).is_some_and(|dir| !known.log_dirs.contains(&dir))
        };
        let now = self.only_directory(broker);
        for (at, state) in self.partitions_where(gone) {
            let place = |id: BrokerId| if id == broker { now } else { state.directory(id) };
            let replicas = state.replicas.iter().map(|id| (*id, place(*id))).collect();
            let wish = Wish { replicas: Some(replicas), ..Wish::default() };
            let kind = self.usual_kind(at.topic);
            self.edit(at, wish, kind, Exclusion::default(), "its broker has another log directory");
        }
    }

    fn put_registration(&mut self, it: RegisterBroker, epoch: BrokerEpoch, fenced: bool, leaving: bool) {
        self.put(Record::RegisterBroker(RegisterBrokerRecord {
            broker: it.broker,
            epoch,
            incarnation: it.incarnation,
            listeners: it.listeners,
            rack: it.rack,
            log_dirs: it.log_dirs,
            fenced,
            in_controlled_shutdown: leaving,
        }));
    }

    /// Removes a broker from every ISR and ELR, and then for good. Its replicas stay assigned.
    pub(crate) fn unregister_broker(&mut self, sessions: &mut Sessions, broker: BrokerId) -> Answer {
        let Some(known) = self.image.broker(broker).cloned() else {
            return Answer::Refused(not_registered(broker));
        };
        self.remove_unclean(broker, "unregistered");
        self.put(Record::UnregisterBroker { broker, epoch: known.epoch });
        self.tell(ControlEvent::Unregistration { broker, broker_epoch: known.epoch });
        sessions.end(broker);
        Answer::Unregistered
    }
}

pub(crate) fn not_registered(broker: BrokerId) -> Refusal {
    Refusal::new(ErrorCode::BrokerIdNotRegistered, format!("Broker ID {broker} is not currently registered"))
}
