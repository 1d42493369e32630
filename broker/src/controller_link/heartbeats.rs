//! Registration, heartbeats and controlled shutdown: carries out what [`BrokerLifecycle`] decides.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use minikafka_metadata::Image;
use minikafka_model::{BrokerEpoch, BrokerId, DirectoryId, ErrorCode, IncarnationId, MetadataOffset};
use minikafka_node::{Clock, FaultKind};
use minikafka_proto::cluster::{HeartbeatRequest, Listener, RegisterBrokerRequest, Status};
use minikafka_replication::{
    BrokerLifecycle, Heartbeat, HeartbeatAnswer, LifecycleConfig, LifecycleEffect, OwnRegistration, ShutDown,
};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

use super::controllers::{Client, Controllers, with_deadline};
use crate::event::{NodeEvent, reason_of};
use crate::service::Service;

/// The epoch of this broker's registration, once it has one.
#[derive(Debug)]
pub(crate) struct BrokerEpochCell {
    epoch: watch::Sender<Option<BrokerEpoch>>,
}

impl Default for BrokerEpochCell {
    fn default() -> BrokerEpochCell {
        BrokerEpochCell { epoch: watch::Sender::new(None) }
    }
}

impl BrokerEpochCell {
    /// The epoch; none before the registration.
    pub(crate) fn get(&self) -> Option<BrokerEpoch> {
        *self.epoch.borrow()
    }

    /// Waits for the registration.
    pub(crate) async fn registered(&self) -> BrokerEpoch {
        let mut receiver = self.epoch.subscribe();
        let registered = receiver.wait_for(Option::is_some).await;
        registered.ok().and_then(|epoch| *epoch).expect("the sender lives as long as this call")
    }

    fn set(&self, epoch: BrokerEpoch) {
        self.epoch.send_replace(Some(epoch));
    }
}

/// What a registration says of this broker.
#[derive(Debug, Clone)]
pub(crate) struct Registration {
    pub(crate) incarnation: IncarnationId,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) rack: Option<String>,
    pub(crate) directory: DirectoryId,
    /// From the clean-shutdown marker.
    pub(crate) previous_epoch: Option<BrokerEpoch>,
}

/// How the lifecycle ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifeEnd {
    /// The process may end.
    ShutDown(ShutDown),
    /// It was never taken in.
    GiveUp(Option<ErrorCode>),
}

/// The lifecycle with what carries it out. Lives on the link's thread.
pub(crate) struct Life {
    me: BrokerId,
    core: RefCell<BrokerLifecycle>,
    registration: Registration,
    controllers: Arc<Controllers>,
    service: Arc<Service>,
    epoch: Arc<BrokerEpochCell>,
    heartbeat_interval: Duration,
    session_timeout: Duration,
    /// Something changed that may have moved the alarm.
    changed: Notify,
    /// Unfenced or fenced, for whoever waits.
    unfenced: watch::Sender<bool>,
    end: watch::Sender<Option<LifeEnd>>,
}

impl Life {
    /// A life that begins.
    pub(crate) fn new(
        registration: Registration,
        controllers: Arc<Controllers>,
        service: Arc<Service>,
        epoch: Arc<BrokerEpochCell>,
        unfenced: watch::Sender<bool>,
        end: watch::Sender<Option<LifeEnd>>,
    ) -> Rc<Life> {
        let settings = &service.settings;
        let config = LifecycleConfig {
            heartbeat_interval: settings.heartbeat_interval,
            session_timeout: settings.session_timeout,
            registration_timeout: settings.registration_timeout,
            shutdown_timeout: settings.shutdown_timeout,
        };
        Rc::new(Life {
            me: service.id,
            core: RefCell::new(BrokerLifecycle::new(config, service.clock.mono())),
            heartbeat_interval: settings.heartbeat_interval,
            session_timeout: settings.session_timeout,
            registration,
            controllers,
            service,
            epoch,
            changed: Notify::new(),
            unfenced,
            end,
        })
    }

    /// Lets time pass until the life ends.
    pub(crate) async fn live(self: &Rc<Self>) {
        loop {
            self.input(|core, now, out| core.tick(now, out));
            if self.end.borrow().is_some() {
                return;
            }
            let wake = self.core.borrow().next_wake();
            let alarm = wake.map(|at| self.clock().instant(at));
            tokio::select! {
                () = self.changed.notified() => {}
                () = sleep_until(alarm.unwrap_or_else(|| Instant::now() + self.session_timeout)) => {}
            }
        }
    }

    fn clock(&self) -> &Clock {
        &self.service.clock
    }

    /// An input that may move the alarm.
    fn step<T>(
        self: &Rc<Self>,
        input: impl FnOnce(&mut BrokerLifecycle, minikafka_model::Mono, &mut Vec<LifecycleEffect>) -> T,
    ) -> T {
        let answer = self.input(input);
        self.changed.notify_one();
        answer
    }

    fn input<T>(
        self: &Rc<Self>,
        input: impl FnOnce(&mut BrokerLifecycle, minikafka_model::Mono, &mut Vec<LifecycleEffect>) -> T,
    ) -> T {
        let mut out = Vec::new();
        let answer = input(&mut self.core.borrow_mut(), self.clock().mono(), &mut out);
        for effect in out {
            self.perform(effect);
        }
        answer
    }

    fn perform(self: &Rc<Self>, effect: LifecycleEffect) {
        match effect {
            LifecycleEffect::Register { attempt } => {
                let life = Rc::clone(self);
                tokio::task::spawn_local(async move { life.register(attempt).await });
            }
            LifecycleEffect::SendHeartbeat(heartbeat) => {
                let life = Rc::clone(self);
                tokio::task::spawn_local(async move { life.send_heartbeat(heartbeat).await });
            }
            LifecycleEffect::Registered { broker_epoch } => {
                self.epoch.set(broker_epoch);
                self.service.tell(NodeEvent::Registration { broker_epoch });
            }
            // The feed asks for it where it applies the metadata, so that the replicas get what came before first.
            LifecycleEffect::SeesItself => {}
            LifecycleEffect::RegistrationFailed { attempt, code } => {
                self.service.tell(NodeEvent::RegistrationRefused { attempt, reason: reason_of(code) });
            }
            LifecycleEffect::GiveUp { last } => {
                self.end.send_replace(Some(LifeEnd::GiveUp(last)));
            }
            LifecycleEffect::HeartbeatRefused { code } => {
                self.service.tell(NodeEvent::HeartbeatRefused { reason: code.to_string() });
            }
            LifecycleEffect::Unfenced => {
                self.service.tell(NodeEvent::Unfenced);
                self.unfenced.send_replace(true);
            }
            LifecycleEffect::Fenced => {
                self.service.tell(NodeEvent::Fenced);
                self.unfenced.send_replace(false);
            }
            LifecycleEffect::ShutDownNow(why) => {
                self.end.send_replace(Some(LifeEnd::ShutDown(why)));
            }
        }
    }

    async fn register(self: Rc<Self>, attempt: u64) {
        let within = self.heartbeat_interval.max(Duration::from_secs(1));
        let it = &self.registration;
        let request = RegisterBrokerRequest {
            caller: self.controllers.caller(),
            incarnation_id: it.incarnation.0.to_bytes().to_vec().into(),
            listeners: it.listeners.clone(),
            rack: it.rack.clone(),
            log_dirs: vec![it.directory.0.to_bytes().to_vec().into()],
            previous_broker_epoch: it.previous_epoch.map(|epoch| epoch.0),
            timeout_ms: i64::try_from(within.as_millis()).unwrap_or(i64::MAX),
        };
        let call =
            async |mut client: Client| client.register_broker(with_deadline(request.clone(), within)).await;
        let answer = self.controllers.ask(Some(FaultKind::Heartbeats), Instant::now() + within, call).await;
        let answer = match answer {
            Ok(answer) => match refusal(answer.status.as_ref()) {
                None => Ok(BrokerEpoch(answer.broker_epoch)),
                Some((code, message)) => {
                    tracing::warn!(
                        "broker {}: the controllers refuse the registration: {code}: {message}",
                        self.me
                    );
                    Err(Some(code))
                }
            },
            Err(_) => Err(None),
        };
        self.step(|core, now, out| core.registered(now, attempt, answer, out));
    }

    async fn send_heartbeat(self: Rc<Self>, heartbeat: Heartbeat) {
        // Long enough to find another controller, short enough to be heard within the session.
        let within = (self.session_timeout / 2).max(Duration::from_millis(200));
        let request = HeartbeatRequest {
            caller: self.controllers.caller(),
            broker_epoch: heartbeat.broker_epoch.0,
            metadata_offset: heartbeat.metadata_offset.map_or(-1, |offset| offset.0),
            want_fence: heartbeat.want_fence,
            want_shutdown: heartbeat.want_shut_down,
            offline_log_dirs: Vec::new(),
        };
        let call = async |mut client: Client| client.heartbeat(with_deadline(request.clone(), within)).await;
        let answer = self.controllers.ask(Some(FaultKind::Heartbeats), Instant::now() + within, call).await;
        let answer = match answer {
            Ok(answer) => match refusal(answer.status.as_ref()) {
                None => Ok(HeartbeatAnswer {
                    caught_up: answer.is_caught_up,
                    fenced: answer.is_fenced,
                    should_shut_down: answer.should_shut_down,
                }),
                Some((code, _)) => Err(Some(code)),
            },
            Err(_) => Err(None),
        };
        self.step(|core, now, out| core.heartbeat_answered(now, answer, out));
    }

    /// Metadata was applied up to here. True if the image holds this process's own registration.
    pub(crate) fn metadata(self: &Rc<Self>, offset: MetadataOffset, image: &Image) -> bool {
        let own = image
            .broker(self.me)
            .map(|broker| OwnRegistration { broker_epoch: broker.epoch, fenced: broker.fenced });
        self.step(|core, now, out| {
            core.metadata(now, offset, own, out);
            core.sees_itself()
        })
    }

    /// The doors are open and the metadata is applied.
    pub(crate) fn ready(self: &Rc<Self>) {
        self.step(|core, now, out| core.ready(now, out));
    }

    /// The process is asked to end.
    pub(crate) fn shut_down(self: &Rc<Self>) {
        self.step(|core, now, out| core.shut_down(now, out));
    }
}

/// An error in a controller's answer, if there is one.
pub(crate) fn refusal(status: Option<&Status>) -> Option<(ErrorCode, String)> {
    let status = status?;
    let code = i16::try_from(status.error_code).ok().and_then(ErrorCode::from_code);
    match code.unwrap_or(ErrorCode::UnknownServerError) {
        ErrorCode::None => None,
        code => Some((code, status.message.clone())),
    }
}
