//! A broker's life, step by step.

use super::*;

fn at(ms: u64) -> Mono {
    Mono(ms * 1000)
}

const EPOCH: BrokerEpoch = BrokerEpoch(17);

struct Life {
    life: BrokerLifecycle,
    out: Vec<LifecycleEffect>,
}

impl Life {
    fn new() -> Life {
        Life { life: BrokerLifecycle::new(LifecycleConfig::default(), at(0)), out: Vec::new() }
    }

    fn took(&mut self) -> Vec<LifecycleEffect> {
        std::mem::take(&mut self.out)
    }

    /// Registered at 10 ms, caught up at 20 ms, ready at 30 ms, unfenced.
    fn unfenced() -> Life {
        let mut it = Life::new();
        it.life.tick(at(0), &mut it.out);
        it.life.registered(at(10), 1, Ok(EPOCH), &mut it.out);
        it.life.heartbeat_answered(at(15), Ok(answer(true, false)), &mut it.out);
        let own = OwnRegistration { broker_epoch: EPOCH, fenced: true };
        it.life.metadata(at(20), MetadataOffset(17), Some(own), &mut it.out);
        it.life.heartbeat_answered(at(25), Ok(answer(true, false)), &mut it.out);
        it.life.ready(at(30), &mut it.out);
        it.life.heartbeat_answered(at(35), Ok(answer(false, false)), &mut it.out);
        assert!(!it.life.fenced() && it.life.sees_itself());
        it
    }
}

fn answer(fenced: bool, should_shut_down: bool) -> HeartbeatAnswer {
    HeartbeatAnswer { caught_up: true, fenced, should_shut_down }
}

fn wants(effect: Option<&LifecycleEffect>) -> (bool, bool) {
    match effect {
        Some(LifecycleEffect::SendHeartbeat(heartbeat)) => (heartbeat.want_fence, heartbeat.want_shut_down),
        other => panic!("a heartbeat was due, not {other:?}"),
    }
}

#[test]
fn registration_is_tried_each_interval_and_given_up_after_a_minute() {
    let mut it = Life::new();
    it.life.tick(at(0), &mut it.out);
    assert_eq!(it.took(), [LifecycleEffect::Register { attempt: 1 }]);
    let code = Some(ErrorCode::DuplicateBrokerRegistration);
    it.life.registered(at(5), 1, Err(code), &mut it.out);
    assert_eq!(it.took(), [LifecycleEffect::RegistrationFailed { attempt: 1, code }]);
    assert_eq!(it.life.next_wake(), Some(at(2000)));
    it.life.tick(at(2000), &mut it.out);
    assert_eq!(it.took(), [LifecycleEffect::Register { attempt: 2 }]);
    it.life.tick(at(60_000), &mut it.out);
    assert_eq!(it.took(), [LifecycleEffect::GiveUp { last: code }]);
    assert_eq!(it.life.next_wake(), None);
}

#[test]
fn heartbeats_go_at_once_when_there_is_something_to_say() {
    let mut it = Life::new();
    it.life.tick(at(0), &mut it.out);
    it.life.registered(at(10), 1, Ok(EPOCH), &mut it.out);
    assert_eq!(wants(it.took().last()), (true, false));
    assert!(!it.life.sees_itself(), "the image is older than the registration");
    // Ready while the first heartbeat is under way: the second follows its answer.
    it.life.ready(at(12), &mut it.out);
    assert!(it.took().is_empty());
    it.life.heartbeat_answered(at(15), Ok(answer(true, false)), &mut it.out);
    assert_eq!(wants(it.took().last()), (false, false));
    it.life.heartbeat_answered(at(20), Ok(answer(true, false)), &mut it.out);
    // Its own registration arrives: again at once.
    let own = OwnRegistration { broker_epoch: EPOCH, fenced: true };
    it.life.metadata(at(30), MetadataOffset(18), Some(own), &mut it.out);
    assert_eq!(wants(it.took().last()), (false, false));
    it.life.heartbeat_answered(at(33), Ok(answer(false, false)), &mut it.out);
    assert_eq!(it.took(), [LifecycleEffect::Unfenced]);
    assert_eq!(it.life.next_wake(), Some(at(2030)));
}

#[test]
fn an_older_life_in_the_image_is_not_this_one() {
    let mut it = Life::new();
    it.life.tick(at(0), &mut it.out);
    let older = OwnRegistration { broker_epoch: BrokerEpoch(3), fenced: false };
    it.life.metadata(at(5), MetadataOffset(9), Some(older), &mut it.out);
    it.life.registered(at(10), 1, Ok(EPOCH), &mut it.out);
    assert!(!it.life.sees_itself());
}

#[test]
fn a_controlled_shutdown_hands_over_first() {
    let mut it = Life::unfenced();
    it.took();
    it.life.shut_down(at(1000), &mut it.out);
    assert_eq!(wants(it.took().last()), (false, true));
    it.life.heartbeat_answered(at(1010), Ok(answer(false, false)), &mut it.out);
    assert_eq!(it.life.next_wake(), Some(at(1060)));
    it.life.tick(at(1060), &mut it.out);
    assert_eq!(wants(it.took().last()), (false, true));
    it.life.heartbeat_answered(at(1070), Ok(answer(true, true)), &mut it.out);
    assert_eq!(it.took(), [LifecycleEffect::Fenced, LifecycleEffect::ShutDownNow(ShutDown::Granted)]);
}

#[test]
fn without_a_quorum_the_shutdown_is_bounded() {
    let mut it = Life::unfenced();
    it.took();
    it.life.shut_down(at(1000), &mut it.out);
    for n in 0..80 {
        it.life.heartbeat_answered(at(1000 + n * 100), Err(None), &mut it.out);
        it.life.tick(at(1100 + n * 100), &mut it.out);
    }
    assert!(it.took().iter().all(|effect| matches!(effect, LifecycleEffect::SendHeartbeat(_))));
    it.life.tick(at(10_000), &mut it.out);
    assert_eq!(it.took().last(), Some(&LifecycleEffect::ShutDownNow(ShutDown::NoController)));
}

#[test]
fn who_is_not_registered_may_end_at_once() {
    let mut it = Life::new();
    it.life.tick(at(0), &mut it.out);
    it.took();
    it.life.shut_down(at(5), &mut it.out);
    assert_eq!(it.took(), [LifecycleEffect::ShutDownNow(ShutDown::NotRegistered)]);
}
