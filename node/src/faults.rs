//! The fault hook of the lab: delay, drop or hold traffic per peer and direction, stop fetching, slow the disk. Every fault expires, is
//! listed, and costs one atomic load where none is set.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

/// What a fault disturbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// The follower fetch stream.
    Replication,
    /// Heartbeats (and registration) between a broker and the controllers.
    Heartbeats,
    /// ISR proposals (AlterPartition).
    Isr,
    /// The metadata feed.
    Metadata,
    /// The fetcher threads of this broker; only with action `stop`.
    Fetching,
    /// Appends of this broker; only with action `slow`.
    Disk,
}

/// Which way, seen from this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// What arrives here.
    In,
    /// What leaves here.
    Out,
    /// Both ways.
    #[default]
    Both,
}

/// What happens to what is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Lost: the sender hears of it as of a broken connection or by its own time-out.
    Drop,
    /// Kept back until the fault ends.
    Hold,
    /// Late by `delay_ms`.
    Delay,
    /// Fetcher threads ask for nothing.
    Stop,
    /// Each append takes `delay_ms` longer.
    Slow,
}

/// A fault as it is asked for (`POST /v1/faults`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// What it disturbs.
    pub kind: FaultKind,
    /// Node id of the other side, or `*`.
    #[serde(default = "any_peer")]
    pub peer: String,
    /// Which way.
    #[serde(default)]
    pub direction: Direction,
    /// What happens.
    pub action: Action,
    /// For `delay` and `slow`: how much, in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// How long the fault lasts, in milliseconds; at most an hour.
    pub for_ms: u64,
}

fn any_peer() -> String {
    "*".to_owned()
}

/// The longest a fault may last.
const LONGEST: Duration = Duration::from_secs(3600);
/// How many faults may be set at a time.
const MOST: usize = 64;

/// A fault in force.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Names it for `DELETE /v1/faults?id=`.
    pub id: u64,
    /// As asked for.
    pub spec: FaultSpec,
    until: Instant,
    bitten: u64,
}

/// A fault as `GET /v1/faults` lists it.
#[derive(Debug, Clone, Serialize)]
pub struct ListedFault {
    /// Its number.
    pub id: u64,
    /// As asked for.
    #[serde(flatten)]
    pub spec: FaultSpec,
    /// Milliseconds until it ends by itself.
    pub expires_in_ms: u64,
    /// What it has disturbed so far: messages, appends, rounds of a fetcher. Zero where it is aimed at nothing that moves.
    pub bitten: u64,
}

/// What was to pass was dropped by a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("dropped by a fault of the lab")]
pub struct Blocked;

/// The table of faults of one node.
#[derive(Debug, Default)]
pub struct Faults {
    any: AtomicBool,
    table: Mutex<Table>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Table {
    faults: Vec<Fault>,
    next_id: u64,
}

impl Faults {
    /// No faults.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// Sets a fault; returns its number.
    ///
    /// # Errors
    /// A sentence that names what does not fit.
    pub fn set(&self, spec: FaultSpec) -> Result<u64, String> {
        let fits = match spec.kind {
            FaultKind::Fetching => spec.action == Action::Stop,
            FaultKind::Disk => spec.action == Action::Slow,
            _ => matches!(spec.action, Action::Drop | Action::Hold | Action::Delay),
        };
        if !fits {
            return Err(format!(
                "{:?} does not take the action {:?}: fetching takes stop, disk takes slow, the others drop, hold or delay",
                spec.kind, spec.action
            ));
        }
        if spec.peer != "*" && spec.peer.parse::<i32>().is_err() {
            return Err(format!("peer '{}' is neither a node id nor *", spec.peer));
        }
        if spec.for_ms == 0 || Duration::from_millis(spec.for_ms) > LONGEST {
            return Err(format!(
                "for_ms must lie between 1 and {}: every fault expires",
                LONGEST.as_millis()
            ));
        }
        if matches!(spec.action, Action::Delay | Action::Slow) && spec.delay_ms == 0 {
            return Err("delay_ms is missing".to_owned());
        }
        let mut table = self.table.lock();
        expire(&mut table);
        if table.faults.len() == MOST {
            return Err(format!("{MOST} faults are set already; clear some first"));
        }
        table.next_id += 1;
        let id = table.next_id;
        table.faults.push(Fault {
            id,
            until: Instant::now() + Duration::from_millis(spec.for_ms),
            spec,
            bitten: 0,
        });
        self.any.store(true, Ordering::Release);
        drop(table);
        self.changed.notify_waiters();
        Ok(id)
    }

    /// Ends one fault, or all of them; returns how many.
    pub fn clear(&self, id: Option<u64>) -> usize {
        let mut table = self.table.lock();
        let before = table.faults.len();
        table.faults.retain(|fault| id.is_some_and(|id| id != fault.id));
        let ended = before - table.faults.len();
        self.any.store(!table.faults.is_empty(), Ordering::Release);
        drop(table);
        self.changed.notify_waiters();
        ended
    }

    /// The faults in force.
    pub fn list(&self) -> Vec<ListedFault> {
        let mut table = self.table.lock();
        expire(&mut table);
        let now = Instant::now();
        let left = |fault: &Fault| fault.until.saturating_duration_since(now).as_millis() as u64;
        table
            .faults
            .iter()
            .map(|f| ListedFault { id: f.id, spec: f.spec.clone(), expires_in_ms: left(f), bitten: f.bitten })
            .collect()
    }

    /// Lets one message of `kind` between this node and `peer` pass, late or not at all.
    ///
    /// # Errors
    /// [`Blocked`] where a fault drops it.
    pub async fn pass(&self, kind: FaultKind, peer: i32, direction: Direction) -> Result<(), Blocked> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut counts = true;
        loop {
            let changed = self.changed.notified();
            match self.strongest(kind, Some(peer), direction, std::mem::take(&mut counts)) {
                None => return Ok(()),
                Some((Action::Drop, ..)) => return Err(Blocked),
                Some((Action::Delay, delay, _)) => {
                    tokio::time::sleep(delay).await;
                    return Ok(());
                }
                Some((_, _, until)) => {
                    tokio::select! { () = changed => {} () = tokio::time::sleep_until(until.into()) => {} }
                }
            }
        }
    }

    /// Is fetching stopped by a fault? Then also when that ends by itself.
    pub fn fetching_stopped(&self) -> Option<Instant> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.strongest(FaultKind::Fetching, None, Direction::Both, true).map(|(_, _, until)| until)
    }

    /// Completes when the table of faults changes.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// How much longer an append takes.
    pub fn disk_delay(&self) -> Option<Duration> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.strongest(FaultKind::Disk, None, Direction::Both, true).map(|(_, delay, _)| delay)
    }

    /// Drop before hold before the longest delay. It counts as a bite unless the same message was counted before.
    fn strongest(
        &self,
        kind: FaultKind,
        peer: Option<i32>,
        direction: Direction,
        counts: bool,
    ) -> Option<(Action, Duration, Instant)> {
        let mut table = self.table.lock();
        expire(&mut table);
        self.any.store(!table.faults.is_empty(), Ordering::Release);
        let strength = |fault: &&mut Fault| match fault.spec.action {
            Action::Drop => (2, 0),
            Action::Hold => (1, 0),
            Action::Delay | Action::Stop | Action::Slow => (0, fault.spec.delay_ms),
        };
        let fault = table
            .faults
            .iter_mut()
            .filter(|fault| hits(&fault.spec, kind, peer, direction))
            .max_by_key(strength)?;
        fault.bitten += u64::from(counts);
        Some((fault.spec.action, Duration::from_millis(fault.spec.delay_ms), fault.until))
    }
}

fn expire(table: &mut Table) {
    let now = Instant::now();
    table.faults.retain(|fault| fault.until > now);
}

fn hits(spec: &FaultSpec, kind: FaultKind, peer: Option<i32>, direction: Direction) -> bool {
    let way =
        spec.direction == Direction::Both || direction == Direction::Both || spec.direction == direction;
    let side = peer.is_none_or(|peer| spec.peer == "*" || spec.peer == peer.to_string());
    spec.kind == kind && way && side
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(kind: FaultKind, action: Action) -> FaultSpec {
        FaultSpec {
            kind,
            peer: "2".to_owned(),
            direction: Direction::Out,
            action,
            delay_ms: 30,
            for_ms: 60_000,
        }
    }

    #[tokio::test]
    async fn each_fault_bites_where_it_is_aimed_and_nowhere_else() {
        let faults = Faults::new();
        assert_eq!(faults.pass(FaultKind::Replication, 2, Direction::Out).await, Ok(()));
        faults.set(spec(FaultKind::Replication, Action::Drop)).expect("fits");
        assert_eq!(faults.pass(FaultKind::Replication, 2, Direction::Out).await, Err(Blocked));
        assert_eq!(faults.pass(FaultKind::Replication, 3, Direction::Out).await, Ok(()));
        assert_eq!(faults.pass(FaultKind::Replication, 2, Direction::In).await, Ok(()));
        assert_eq!(faults.pass(FaultKind::Heartbeats, 2, Direction::Out).await, Ok(()));
        assert_eq!(faults.clear(None), 1);
        assert_eq!(faults.pass(FaultKind::Replication, 2, Direction::Out).await, Ok(()));
    }

    #[tokio::test]
    async fn a_delay_delays_and_a_hold_lasts_until_it_is_lifted() {
        let faults = std::sync::Arc::new(Faults::new());
        faults.set(spec(FaultKind::Metadata, Action::Delay)).expect("fits");
        let begun = Instant::now();
        assert_eq!(faults.pass(FaultKind::Metadata, 2, Direction::Out).await, Ok(()));
        assert!(begun.elapsed() >= Duration::from_millis(30));
        faults.clear(None);
        faults.set(spec(FaultKind::Metadata, Action::Hold)).expect("fits");
        let waiting = tokio::spawn({
            let faults = faults.clone();
            async move { faults.pass(FaultKind::Metadata, 2, Direction::Out).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        faults.clear(None);
        assert_eq!(waiting.await.expect("the task lives"), Ok(()));
    }

    #[test]
    fn faults_expire_by_themselves() {
        let faults = Faults::new();
        faults.set(FaultSpec { for_ms: 1, ..spec(FaultKind::Disk, Action::Slow) }).expect("fits");
        let begun = Instant::now();
        while faults.disk_delay().is_some() {
            assert!(begun.elapsed() < Duration::from_secs(5), "a fault of 1 ms is still in force");
            std::thread::yield_now();
        }
        assert!(faults.list().is_empty());
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let faults = Faults::new();
        assert!(faults.set(spec(FaultKind::Fetching, Action::Drop)).unwrap_err().contains("stop"));
        assert!(
            faults
                .set(FaultSpec { for_ms: 0, ..spec(FaultKind::Disk, Action::Slow) })
                .unwrap_err()
                .contains("expires")
        );
        assert!(
            faults
                .set(FaultSpec { peer: "b".into(), ..spec(FaultKind::Isr, Action::Drop) })
                .unwrap_err()
                .contains("'b'")
        );
    }
}
