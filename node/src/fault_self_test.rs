//! The fault hook proves that it bites before a lesson relies on it.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::{Action, Blocked, Direction, FaultKind, FaultSpec, Faults};

const PEER: i32 = 2;
const OTHER: i32 = 3;
const DELAY: Duration = Duration::from_millis(2);
const NETWORK: [FaultKind; 4] =
    [FaultKind::Replication, FaultKind::Heartbeats, FaultKind::Isr, FaultKind::Metadata];

/// Tries every kind of fault on a table of its own: each must bite what it is aimed at, leave alone what it is not, and end. Run it
/// at the start of a node whose faults are enabled (about 20 ms); whether a fault in force has bitten real traffic is what
/// [`ListedFault::bitten`](crate::ListedFault::bitten) says.
///
/// # Errors
/// A sentence that names the fault that does not do what it says.
pub async fn fault_self_test() -> Result<(), String> {
    let faults = Faults::new();
    for kind in NETWORK {
        for action in [Action::Drop, Action::Delay, Action::Hold] {
            let fails = |what: &str| format!("the fault {kind:?} {action:?} {what}");
            expect(faults.pass(kind, PEER, Direction::Out).await.is_ok(), || {
                fails("bites before it is set")
            })?;
            let id = faults.set(spec(kind, action))?;
            let missed = faults.pass(kind, OTHER, Direction::Out).await.is_ok()
                && faults.pass(kind, PEER, Direction::In).await.is_ok();
            expect(missed, || fails("bites another peer or the other direction"))?;
            if action == Action::Hold {
                let mut passing = pin!(faults.pass(kind, PEER, Direction::Out));
                let held = poll_once(passing.as_mut()).is_pending();
                end(&faults, id, || fails("counts no bite"))?;
                expect(held && passing.await.is_ok(), || fails("does not hold, or holds beyond its end"))?;
            } else {
                expect(bites(&faults, kind, action).await, || fails("does not bite"))?;
                end(&faults, id, || fails("counts no bite"))?;
            }
            expect(faults.pass(kind, PEER, Direction::Out).await.is_ok(), || fails("outlives its end"))?;
        }
    }
    faults.set(spec(FaultKind::Fetching, Action::Stop))?;
    expect(faults.fetching_stopped().is_some(), || "fetching does not stop".to_owned())?;
    faults.set(spec(FaultKind::Disk, Action::Slow))?;
    expect(faults.disk_delay() == Some(DELAY), || "the disk does not slow down".to_owned())?;
    faults.clear(None);
    let ended = faults.fetching_stopped().is_none() && faults.disk_delay().is_none();
    expect(ended, || "fetching stays stopped, or the disk slow".to_owned())?;
    expires(&faults).await
}

async fn expires(faults: &Faults) -> Result<(), String> {
    faults.set(FaultSpec { for_ms: 1, ..spec(FaultKind::Replication, Action::Drop) })?;
    tokio::time::sleep(2 * DELAY).await;
    let over =
        faults.pass(FaultKind::Replication, PEER, Direction::Out).await.is_ok() && faults.list().is_empty();
    expect(over, || "a fault does not expire".to_owned())
}

fn expect(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// Ends a fault, which must have bitten once.
fn end(faults: &Faults, id: u64, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    let bitten = faults.list().iter().any(|fault| fault.id == id && fault.bitten == 1);
    faults.clear(Some(id));
    expect(bitten, otherwise)
}

async fn bites(faults: &Faults, kind: FaultKind, action: Action) -> bool {
    let begun = Instant::now();
    let passed = faults.pass(kind, PEER, Direction::Out).await;
    match action {
        Action::Drop => passed == Err(Blocked),
        _ => passed == Ok(()) && begun.elapsed() >= DELAY,
    }
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn spec(kind: FaultKind, action: Action) -> FaultSpec {
    FaultSpec {
        kind,
        peer: PEER.to_string(),
        direction: Direction::Out,
        action,
        delay_ms: u64::try_from(DELAY.as_millis()).unwrap_or(u64::MAX),
        for_ms: 60_000,
    }
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn the_hook_bites() {
        assert_eq!(super::fault_self_test().await, Ok(()));
    }
}
