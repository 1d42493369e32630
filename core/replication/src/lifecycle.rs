//! A broker's life with the controllers (Kafka semantics 6.2, 6.3): registration, heartbeats, unfencing, controlled shutdown.

use std::time::Duration;

use minikafka_model::{BrokerEpoch, ErrorCode, MetadataOffset, Mono};

/// The settings of a broker's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LifecycleConfig {
    /// `broker.heartbeat.interval.ms`, also the time between registration attempts.
    pub heartbeat_interval: Duration,
    /// `broker.session.timeout.ms`: a shutdown that hears from no controller for so long goes on without.
    pub session_timeout: Duration,
    /// `initial.broker.registration.timeout.ms`.
    pub registration_timeout: Duration,
    /// The longest that a controlled shutdown may take.
    pub shutdown_timeout: Duration,
}

impl Default for LifecycleConfig {
    /// Kafka's defaults.
    fn default() -> LifecycleConfig {
        LifecycleConfig {
            heartbeat_interval: Duration::from_secs(2),
            session_timeout: Duration::from_secs(9),
            registration_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(300),
        }
    }
}

/// Between heartbeats while a controlled shutdown is under way.
const SHUTDOWN_HEARTBEAT: Duration = Duration::from_millis(50);
/// After a heartbeat that no active controller answered.
const RETRY_BACKOFF: Duration = Duration::from_millis(100);

/// What a broker's heartbeat says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// Its epoch.
    pub broker_epoch: BrokerEpoch,
    /// How far it has applied the metadata.
    pub metadata_offset: Option<MetadataOffset>,
    /// It is not ready to serve yet.
    pub want_fence: bool,
    /// It wants to end.
    pub want_shut_down: bool,
}

/// What the active controller answered to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatAnswer {
    /// The broker has applied its own registration.
    pub caught_up: bool,
    /// The broker is fenced.
    pub fenced: bool,
    /// The broker may end.
    pub should_shut_down: bool,
}

/// What the metadata says of this broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnRegistration {
    /// The epoch of the registration.
    pub broker_epoch: BrokerEpoch,
    /// Whether it is fenced.
    pub fenced: bool,
}

/// Why a broker may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutDown {
    /// The controller moved everything away and agreed.
    Granted,
    /// It was never registered.
    NotRegistered,
    /// No controller has answered for a session timeout: it ends without having handed over.
    NoController,
    /// It took longer than allowed.
    TimedOut,
}

/// What the shell has to do, or should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleEffect {
    /// Send a registration and bring the answer to [`BrokerLifecycle::registered`] with the attempt's number.
    Register {
        /// The attempt.
        attempt: u64,
    },
    /// Send a heartbeat and bring the answer to [`BrokerLifecycle::heartbeat_answered`]. There is one at a time.
    SendHeartbeat(Heartbeat),
    /// The applied metadata holds this life's registration: replicas take their roles from the image from now on, not before
    /// (see [`BrokerLifecycle::sees_itself`]). Comes once.
    SeesItself,
    /// The registration was accepted.
    Registered {
        /// The epoch.
        broker_epoch: BrokerEpoch,
    },
    /// An attempt failed; the next follows after the heartbeat interval.
    RegistrationFailed {
        /// The attempt.
        attempt: u64,
        /// Why; none when no controller answered.
        code: Option<ErrorCode>,
    },
    /// Not registered within the time allowed: the process ends.
    GiveUp {
        /// The code of the last answer.
        last: Option<ErrorCode>,
    },
    /// A heartbeat was refused.
    HeartbeatRefused {
        /// The code.
        code: ErrorCode,
    },
    /// The controller has unfenced this broker.
    Unfenced,
    /// The controller has fenced this broker.
    Fenced,
    /// The process may end now.
    ShutDownNow(ShutDown),
}

/// The state of a broker's life.
#[derive(Debug)]
pub struct BrokerLifecycle {
    config: LifecycleConfig,
    started: Mono,
    phase: Phase,
    attempt: u64,
    last_code: Option<ErrorCode>,
    metadata_offset: Option<MetadataOffset>,
    own: Option<OwnRegistration>,
    ready: bool,
    fenced: bool,
    heartbeat_under_way: bool,
    /// Something to say has changed while a heartbeat was under way.
    again: bool,
    next: Mono,
    stopping: Option<Stopping>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Registering,
    Registered(BrokerEpoch),
    Ended,
}

#[derive(Debug, Clone, Copy)]
struct Stopping {
    since: Mono,
    heard: Mono,
}

impl BrokerLifecycle {
    /// A process that starts. Call [`BrokerLifecycle::tick`] at once.
    pub fn new(config: LifecycleConfig, now: Mono) -> BrokerLifecycle {
        BrokerLifecycle {
            config,
            started: now,
            phase: Phase::Registering,
            attempt: 0,
            last_code: None,
            metadata_offset: None,
            own: None,
            ready: false,
            fenced: true,
            heartbeat_under_way: false,
            again: false,
            next: now,
            stopping: None,
        }
    }

    /// The epoch, once registered.
    pub fn broker_epoch(&self) -> Option<BrokerEpoch> {
        match self.phase {
            Phase::Registered(epoch) => Some(epoch),
            Phase::Registering | Phase::Ended => None,
        }
    }

    /// Whether the controller has this broker fenced, by its last answer.
    pub fn fenced(&self) -> bool {
        self.fenced
    }

    /// Whether the applied metadata holds this process's own registration. Before that no replica takes a role: what older
    /// metadata says of this broker is about an earlier life (KAFKA-10527).
    pub fn sees_itself(&self) -> bool {
        matches!((self.phase, self.own), (Phase::Registered(epoch), Some(own)) if own.broker_epoch == epoch)
    }

    /// When [`BrokerLifecycle::tick`] has something to do.
    pub fn next_wake(&self) -> Option<Mono> {
        let stop = self.stopping.map(|stopping| self.stop_limit(stopping));
        let own = match self.phase {
            Phase::Registering => Some(self.next.min(self.started.after(self.config.registration_timeout))),
            Phase::Registered(_) if self.heartbeat_under_way => None,
            Phase::Registered(_) => Some(self.next),
            Phase::Ended => return None,
        };
        own.into_iter().chain(stop).min()
    }

    fn stop_limit(&self, stopping: Stopping) -> Mono {
        stopping
            .since
            .after(self.config.shutdown_timeout)
            .min(stopping.heard.after(self.config.session_timeout))
    }

    /// Time passes.
    pub fn tick(&mut self, now: Mono, out: &mut Vec<LifecycleEffect>) {
        if let Some(stopping) = self.stopping
            && self.phase != Phase::Ended
            && now >= self.stop_limit(stopping)
        {
            let timed_out = now >= stopping.since.after(self.config.shutdown_timeout);
            self.end(if timed_out { ShutDown::TimedOut } else { ShutDown::NoController }, out);
        }
        match self.phase {
            Phase::Registering => {
                if now >= self.started.after(self.config.registration_timeout) {
                    self.phase = Phase::Ended;
                    out.push(LifecycleEffect::GiveUp { last: self.last_code });
                } else if now >= self.next {
                    self.attempt += 1;
                    self.next = now.after(self.config.heartbeat_interval);
                    out.push(LifecycleEffect::Register { attempt: self.attempt });
                }
            }
            Phase::Registered(broker_epoch) => {
                if !self.heartbeat_under_way && now >= self.next {
                    self.heartbeat_under_way = true;
                    self.again = false;
                    self.next = now.after(self.config.heartbeat_interval);
                    out.push(LifecycleEffect::SendHeartbeat(Heartbeat {
                        broker_epoch,
                        metadata_offset: self.metadata_offset,
                        want_fence: !self.ready,
                        want_shut_down: self.stopping.is_some(),
                    }));
                }
            }
            Phase::Ended => {}
        }
    }

    /// An attempt to register was answered; an error of none means that no controller answered. Answers to earlier attempts of
    /// this process are as good: it is the same incarnation.
    pub fn registered(
        &mut self,
        now: Mono,
        attempt: u64,
        answer: Result<BrokerEpoch, Option<ErrorCode>>,
        out: &mut Vec<LifecycleEffect>,
    ) {
        if self.phase != Phase::Registering {
            return;
        }
        match answer {
            Ok(broker_epoch) => {
                self.phase = Phase::Registered(broker_epoch);
                self.next = now;
                out.push(LifecycleEffect::Registered { broker_epoch });
                if self.sees_itself() {
                    // The metadata was faster than the answer.
                    out.push(LifecycleEffect::SeesItself);
                }
                self.tick(now, out);
            }
            Err(code) => {
                self.last_code = code.or(self.last_code);
                out.push(LifecycleEffect::RegistrationFailed { attempt, code });
            }
        }
    }

    /// The broker has applied the metadata up to here.
    pub fn metadata(
        &mut self,
        now: Mono,
        offset: MetadataOffset,
        own: Option<OwnRegistration>,
        out: &mut Vec<LifecycleEffect>,
    ) {
        let saw_itself = self.sees_itself();
        self.metadata_offset = self.metadata_offset.max(Some(offset));
        self.own = own;
        if !saw_itself && self.sees_itself() {
            out.push(LifecycleEffect::SeesItself);
            self.at_once(now, out);
        }
        if self.stopping.is_some() {
            // The controller waits until this broker has seen its leaderships go.
            self.at_once(now, out);
        }
    }

    /// Logs are loaded and the doors are open: the broker wants to be unfenced.
    pub fn ready(&mut self, now: Mono, out: &mut Vec<LifecycleEffect>) {
        self.ready = true;
        self.at_once(now, out);
    }

    /// The process is asked to end: leadership and ISR membership are handed over first.
    pub fn shut_down(&mut self, now: Mono, out: &mut Vec<LifecycleEffect>) {
        if self.stopping.is_some() || self.phase == Phase::Ended {
            return;
        }
        self.stopping = Some(Stopping { since: now, heard: now });
        match self.phase {
            Phase::Registered(_) => self.at_once(now, out),
            Phase::Registering | Phase::Ended => self.end(ShutDown::NotRegistered, out),
        }
    }

    /// A heartbeat was answered; an error of none means that no active controller answered.
    pub fn heartbeat_answered(
        &mut self,
        now: Mono,
        answer: Result<HeartbeatAnswer, Option<ErrorCode>>,
        out: &mut Vec<LifecycleEffect>,
    ) {
        self.heartbeat_under_way = false;
        if self.phase == Phase::Ended {
            return;
        }
        match answer {
            Ok(answer) => {
                if answer.fenced != self.fenced {
                    self.fenced = answer.fenced;
                    out.push(if answer.fenced { LifecycleEffect::Fenced } else { LifecycleEffect::Unfenced });
                }
                if let Some(stopping) = &mut self.stopping {
                    stopping.heard = now;
                    if answer.should_shut_down {
                        self.end(ShutDown::Granted, out);
                        return;
                    }
                    self.next = self.next.min(now.after(SHUTDOWN_HEARTBEAT));
                }
            }
            Err(code) => {
                self.next = self.next.min(now.after(RETRY_BACKOFF));
                if let Some(code) = code {
                    out.push(LifecycleEffect::HeartbeatRefused { code });
                }
            }
        }
        if self.again {
            self.at_once(now, out);
        }
    }

    /// Sends a heartbeat at once, or right after the one under way.
    fn at_once(&mut self, now: Mono, out: &mut Vec<LifecycleEffect>) {
        if !matches!(self.phase, Phase::Registered(_)) {
            return;
        }
        if self.heartbeat_under_way {
            self.again = true;
        } else {
            self.next = now;
            self.tick(now, out);
        }
    }

    fn end(&mut self, why: ShutDown, out: &mut Vec<LifecycleEffect>) {
        self.phase = Phase::Ended;
        out.push(LifecycleEffect::ShutDownNow(why));
    }
}

#[cfg(test)]
#[path = "lifecycle_tests.rs"]
mod tests;
