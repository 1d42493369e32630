//! Which operation fails, and how.

use std::collections::BTreeMap;
use std::io;

/// Kinds of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum SimOp {
    Open,
    Create,
    Read,
    Write,
    SetLen,
    Allocate,
    Sync,
    SyncDir,
    List,
    Rename,
    Remove,
}

/// How an operation fails. A write that fails has written half of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimFault {
    /// The device reports an error (EIO).
    Io,
    /// No space is left (ENOSPC).
    NoSpace,
    /// The process dies here: this and every later operation fails, until a crash is declared.
    Crash,
}

impl SimFault {
    fn error(self) -> io::Error {
        match self {
            SimFault::Io => io::Error::other("input/output error (simulated)"),
            SimFault::NoSpace => io::Error::from(io::ErrorKind::StorageFull),
            SimFault::Crash => io::Error::other("the process is dead (simulated)"),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    count: u64,
    at: BTreeMap<u64, SimFault>,
    next: BTreeMap<SimOp, SimFault>,
    dead: bool,
}

impl Faults {
    pub(super) fn at(&mut self, nth: u64, fault: SimFault) {
        self.at.insert(self.count + nth, fault);
    }

    pub(super) fn next(&mut self, op: SimOp, fault: SimFault) {
        self.next.insert(op, fault);
    }

    pub(super) fn clear(&mut self) {
        self.at.clear();
        self.next.clear();
        self.dead = false;
    }

    /// Whether the process died of one of them.
    pub(super) fn dead(&self) -> bool {
        self.dead
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn check(&mut self, op: SimOp) -> io::Result<()> {
        self.count += 1;
        if self.dead {
            return Err(SimFault::Crash.error());
        }
        let Some(fault) = self.at.remove(&self.count).or_else(|| self.next.remove(&op)) else {
            return Ok(());
        };
        self.dead = fault == SimFault::Crash;
        Err(fault.error())
    }
}
