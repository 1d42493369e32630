//! A quorum from a seed: nodes crash (losing what was not synced), restart, are cut off, and messages are delayed, dropped, repeated and
//! reordered. After every step: one leader per term, committed entries equal everywhere and for ever. After healing: progress.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use minikafka_model::{ControllerId, DirectoryId, MetadataOffset, Mono, Term, Ticket, Uuid};
use minikafka_raft::{
    Effect, Entry, HardState, Input, Limits, LogReadError, Message, Payload, Raft, RaftConfig, RaftLog,
    RoleName, SnapshotInfo, Timers, Waiting,
};

#[derive(Debug, Clone, Default)]
struct Disk {
    hard: HardState,
    start: i64,
    entries: Vec<Entry>,
    synced: usize,
    snapshot: Option<SnapshotInfo>,
}

impl RaftLog for Disk {
    fn start(&self) -> MetadataOffset {
        MetadataOffset(self.start)
    }
    fn end(&self) -> MetadataOffset {
        MetadataOffset(self.start + self.entries.len() as i64)
    }
    fn entries(&self, from: MetadataOffset, max_bytes: usize) -> Result<Vec<Entry>, LogReadError> {
        let skip =
            usize::try_from(from.0 - self.start).map_err(|_| LogReadError("before the start".into()))?;
        let mut bytes = 0;
        let mut fits = |entry: &&Entry| {
            let first = bytes == 0;
            bytes += entry.payload.len() + 1;
            first || bytes <= max_bytes
        };
        Ok(self.entries.iter().skip(skip).take_while(|e| fits(e)).cloned().collect())
    }
    fn snapshot(&self) -> Option<SnapshotInfo> {
        self.snapshot.clone()
    }
    fn snapshot_chunk(&self, _: MetadataOffset, position: u64, max: usize) -> Result<Bytes, LogReadError> {
        let size = self.snapshot.as_ref().map_or(0, |s| s.size);
        Ok(vec![7; usize::min((size - position) as usize, max)].into())
    }
}

impl Disk {
    fn last_term(&self) -> Term {
        let of_snapshot = self.snapshot.as_ref().map_or(Term(0), |s| s.last_term);
        self.entries.last().map_or(of_snapshot, |e| e.term)
    }

    /// Throws the oldest entries away behind a snapshot of the state before `end`.
    fn compact(&mut self, end: i64) -> bool {
        let keep = usize::try_from(end - self.start).unwrap_or(0).min(self.synced);
        let Some(last) = keep.checked_sub(1).map(|at| self.entries[at].term) else { return false };
        let Some(voters) = self.hard.voters.clone().filter(|set| set.offset.0 < end) else { return false };
        self.start += keep as i64;
        self.entries.drain(..keep);
        self.synced -= keep;
        self.snapshot =
            Some(SnapshotInfo { end: MetadataOffset(self.start), last_term: last, size: 1000, voters });
        true
    }
}

struct Node {
    id: ControllerId,
    directory: DirectoryId,
    disk: Disk,
    raft: Option<Raft>,
    persist_at: Option<u64>,
    pending_snapshot: Option<SnapshotInfo>,
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

struct World {
    rng: Rng,
    now: u64,
    nodes: BTreeMap<ControllerId, Node>,
    wire: Vec<(u64, ControllerId, ControllerId, Message)>,
    cut: BTreeSet<(ControllerId, ControllerId)>,
    lossy: bool,
    /// The one history: what was committed at each offset.
    history: BTreeMap<i64, Entry>,
    leaders: BTreeMap<Term, ControllerId>,
    tickets: u64,
    starts: u64,
    seen: BTreeMap<&'static str, u64>,
}

const IDS: [i32; 3] = [101, 102, 103];

impl World {
    fn new(seed: u64) -> World {
        let nodes = IDS.map(|id| {
            let directory = DirectoryId(Uuid(id as u128));
            let node = Node {
                id: ControllerId(id),
                directory,
                disk: Disk::default(),
                raft: None,
                persist_at: None,
                pending_snapshot: None,
            };
            (ControllerId(id), node)
        });
        World {
            rng: Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            now: 1_000_000,
            nodes: nodes.into(),
            wire: Vec::new(),
            cut: BTreeSet::new(),
            lossy: false,
            history: BTreeMap::new(),
            leaders: BTreeMap::new(),
            tickets: 0,
            starts: 0,
            seen: BTreeMap::new(),
        }
    }

    fn start_all(&mut self) {
        for id in IDS {
            self.start(ControllerId(id));
        }
    }

    fn start(&mut self, id: ControllerId) {
        self.starts += 1;
        let now = Mono(self.now);
        let node = self.nodes.get_mut(&id).expect("a node");
        let config = RaftConfig {
            id,
            directory: node.directory,
            voters: IDS.map(ControllerId).into(),
            timers: Timers::default(),
            limits: Limits {
                append_bytes: 200,
                in_flight: 4,
                snapshot_chunk_bytes: 300,
                ..Limits::default()
            },
            seed: self.starts * 1000 + id.0 as u64,
        };
        node.disk.synced = node.disk.entries.len();
        node.raft = Some(Raft::new(config, node.disk.hard.clone(), &node.disk, now).expect("starts"));
        (node.persist_at, node.pending_snapshot) = (None, None);
    }

    /// Ends the process and loses what was not synced.
    fn crash(&mut self, id: ControllerId) {
        let node = self.nodes.get_mut(&id).expect("a node");
        if node.raft.take().is_none() {
            return;
        }
        let unsynced = node.disk.entries.len() - node.disk.synced;
        let kept =
            node.disk.synced + if unsynced > 0 { self.rng.below(unsynced as u64 + 1) as usize } else { 0 };
        node.disk.entries.truncate(kept);
        node.disk.synced = kept;
        self.wire.retain(|(_, from, ..)| *from != id);
        for other in IDS.map(ControllerId).into_iter().filter(|o| *o != id) {
            if !self.cut.contains(&(id, other)) {
                self.input(other, Input::PeerClosed(id));
            }
        }
    }

    fn input(&mut self, id: ControllerId, input: Input) {
        let now = Mono(self.now);
        let node = self.nodes.get_mut(&id).expect("a node");
        let Some(raft) = node.raft.as_mut() else { return };
        let effects = raft.step(now, &node.disk, input);
        for effect in effects {
            self.perform(id, effect);
        }
        self.check(id);
    }

    fn perform(&mut self, id: ControllerId, effect: Effect) {
        let node = self.nodes.get_mut(&id).expect("a node");
        match effect {
            Effect::SaveVote(hard) => node.disk.hard = hard,
            Effect::Truncate { to } => {
                assert!(to.0 >= node.disk.start, "a snapshot is never cut");
                node.disk.entries.truncate((to.0 - node.disk.start) as usize);
                node.disk.synced = node.disk.synced.min(node.disk.entries.len());
                *self.seen.entry("truncated").or_default() += 1;
            }
            Effect::Append(entries) => {
                for entry in entries {
                    assert_eq!(entry.offset, node.disk.end(), "entries are appended at the end");
                    node.disk.entries.push(entry);
                }
            }
            Effect::Sync => {
                let soon = self.now + 500 + self.rng.below(20_000);
                node.persist_at = Some(node.persist_at.map_or(soon, |at| at.min(soon)));
            }
            Effect::Send { to, message } => self.post(id, to, &message),
            Effect::Committed { end } => self.committed(id, end),
            Effect::InstallSnapshot(info) => node.pending_snapshot = Some(info),
            Effect::RoleChanged { role: RoleName::Leader, term, .. } => {
                let other = self.leaders.insert(term, id);
                assert!(other.is_none_or(|o| o == id), "two leaders in term {term}: {other:?} and {id}");
                *self.seen.entry("elected").or_default() += 1;
            }
            Effect::Halt(broken) => panic!("controller {id} halts: {broken}"),
            Effect::RoleChanged { .. }
            | Effect::Proposed { .. }
            | Effect::Refused { .. }
            | Effect::WriteSnapshot { .. }
            | Effect::Event(_) => {}
        }
    }

    fn committed(&mut self, id: ControllerId, end: MetadataOffset) {
        let disk = &self.nodes[&id].disk;
        for offset in disk.start..end.0 {
            let entry = &disk.entries[(offset - disk.start) as usize];
            let known = self.history.entry(offset).or_insert_with(|| entry.clone());
            assert_eq!(known, entry, "committed twice, differently, seen at controller {id}");
        }
    }

    fn post(&mut self, from: ControllerId, to: ControllerId, message: &Message) {
        if self.cut.contains(&(from, to)) || (self.lossy && self.rng.below(10) == 0) {
            return;
        }
        let copies = if self.lossy && self.rng.below(20) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            let delay = 200 + self.rng.below(if self.lossy { 60_000 } else { 2_000 });
            self.wire.push((self.now + delay, from, to, message.clone()));
        }
    }

    /// What the leader of the newest term holds must contain everything committed.
    fn check(&self, id: ControllerId) {
        let Some(raft) = self.nodes[&id].raft.as_ref() else { return };
        let status = raft.status();
        assert!(status.committed <= status.log_end && status.log_start <= status.committed);
        let newest = self.leaders.keys().last();
        if status.role == RoleName::Leader && newest == Some(&status.term) {
            let last = self.history.keys().last().map_or(0, |o| o + 1);
            assert!(
                status.log_end.0 >= last,
                "the leader of term {} lacks committed entries: {} < {last}",
                status.term,
                status.log_end
            );
        }
    }

    fn leader(&self) -> Option<ControllerId> {
        let leads = |n: &&Node| n.raft.as_ref().is_some_and(|r| r.status().role == RoleName::Leader);
        self.nodes.values().filter(leads).max_by_key(|n| n.raft.as_ref().map(Raft::term)).map(|n| n.id)
    }

    fn propose(&mut self) {
        let Some(leader) = self.leader() else { return };
        self.tickets += 1;
        let payload = Bytes::from(format!("decision {}", self.tickets));
        self.input(leader, Input::Propose { ticket: Ticket(self.tickets), payloads: vec![payload] });
    }

    /// Advances to the next thing that happens, at most to `until`.
    fn advance(&mut self, until: u64) {
        let wire = self.wire.iter().map(|(at, ..)| *at).min();
        let timers = self.nodes.values().filter_map(|n| n.raft.as_ref().map(|r| r.deadline().0)).min();
        let syncs = self.nodes.values().filter_map(|n| n.persist_at).min();
        let next =
            [wire, timers, syncs].into_iter().flatten().min().unwrap_or(until).max(self.now + 1).min(until);
        self.now = next;
        let due: Vec<_> = (0..self.wire.len()).rev().filter(|i| self.wire[*i].0 <= next).collect();
        for at in due {
            let (_, from, to, message) = self.wire.swap_remove(at);
            self.input(to, Input::Message { from, message });
        }
        for id in IDS.map(ControllerId) {
            self.node_work(id);
        }
    }

    fn node_work(&mut self, id: ControllerId) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).expect("a node");
        if node.raft.is_none() {
            return;
        }
        if let Some(info) = node.pending_snapshot.take() {
            let hard = node.disk.hard.clone();
            node.disk = Disk {
                hard,
                start: info.end.0,
                entries: Vec::new(),
                synced: 0,
                snapshot: Some(info.clone()),
            };
            *self.seen.entry("installed").or_default() += 1;
            self.input(id, Input::SnapshotInstalled(info));
        }
        let node = self.nodes.get_mut(&id).expect("a node");
        if node.persist_at.is_some_and(|at| at <= now) {
            node.persist_at = None;
            node.disk.synced = node.disk.entries.len();
            let (end, last_term) = (node.disk.end(), node.disk.last_term());
            self.input(id, Input::Persisted { end, last_term });
        }
        if self.nodes[&id].raft.as_ref().is_some_and(|r| r.deadline().0 <= now) {
            self.input(id, Input::Tick);
        }
    }

    fn run_until(&mut self, what: &str, within: Duration, done: impl Fn(&World) -> bool) {
        let end = self.now + within.as_micros() as u64;
        while !done(self) {
            assert!(
                self.now < end,
                "not within {within:?}: {what}; {:?}",
                self.nodes.values().map(|n| n.raft.as_ref().map(Raft::status)).collect::<Vec<_>>()
            );
            self.advance(end);
        }
    }

    fn disturb(&mut self) {
        let id = ControllerId(IDS[self.rng.below(3) as usize]);
        let other = ControllerId(IDS[self.rng.below(3) as usize]);
        match self.rng.below(12) {
            0 | 1 => self.crash(id),
            2 | 3 if self.nodes[&id].raft.is_none() => self.start(id),
            4 => drop(self.cut.insert((id, other))),
            5 => self.cut.extend(IDS.iter().flat_map(|o| [(id, ControllerId(*o)), (ControllerId(*o), id)])),
            6 | 7 => self.cut.clear(),
            8 => self.lossy = !self.lossy,
            9 => self.compact(id),
            10 => self.input(id, Input::TransferLeadership { to: None }),
            _ => self.propose(),
        }
    }

    fn compact(&mut self, id: ControllerId) {
        let node = self.nodes.get_mut(&id).expect("a node");
        let Some(end) = node.raft.as_ref().map(|r| r.committed().0) else { return };
        if node.disk.compact(end) {
            let start = node.disk.start();
            self.input(id, Input::Trimmed { start });
        }
    }

    fn heal(&mut self) {
        self.cut.clear();
        self.lossy = false;
        for id in IDS.map(ControllerId) {
            if self.nodes[&id].raft.is_none() {
                self.start(id);
            }
        }
    }

    fn agreed(&self) -> bool {
        let statuses: Vec<_> =
            self.nodes.values().filter_map(|n| n.raft.as_ref().map(Raft::status)).collect();
        let last = self.history.keys().last().map_or(0, |o| o + 1);
        statuses.len() == 3
            && self.leader().is_some()
            && statuses.iter().all(|s| {
                s.committed == s.log_end && s.committed == statuses[0].committed && s.committed.0 >= last
            })
    }
}

fn campaign(seed: u64) -> World {
    let mut world = World::new(seed);
    world.start_all();
    world.run_until("a first leader", Duration::from_secs(20), |w| w.leader().is_some());
    for _ in 0..120 {
        world.disturb();
        let until = world.now + 1_000 + world.rng.below(300_000);
        while world.now < until {
            world.advance(until);
        }
    }
    world.heal();
    world.run_until("a leader after healing", Duration::from_secs(20), |w| w.leader().is_some());
    world.run_until("agreement after healing", Duration::from_secs(30), World::agreed);
    // A proposal during a handover is refused, so a client tries again.
    let last = world.history.keys().last().copied();
    for _ in 0..20 {
        world.propose();
        let until = world.now + 500_000;
        while world.now < until {
            world.advance(until);
        }
    }
    let new = |w: &World| {
        w.history.iter().any(|(o, e)| Some(*o) > last && matches!(e.payload, Payload::Command(_)))
    };
    world.run_until("progress after healing", Duration::from_secs(20), |w| new(w) && w.agreed());
    world
}

#[test]
fn many_seeds() {
    let mut seen: BTreeMap<&'static str, u64> = BTreeMap::new();
    for seed in 1..=60 {
        for (what, times) in campaign(seed).seen {
            *seen.entry(what).or_default() += times;
        }
    }
    // A run in which too little happened shows nothing.
    for what in ["elected", "truncated", "installed"] {
        assert!(seen.get(what).copied().unwrap_or(0) > 20, "too little happened: {seen:?}");
    }
}

#[test]
fn the_first_start_needs_every_voter() {
    let mut world = World::new(7);
    world.start(ControllerId(101));
    world.start(ControllerId(102));
    let until = world.now + 10_000_000;
    while world.now < until {
        world.advance(until);
    }
    assert_eq!(world.leader(), None);
    let waiting = world.nodes[&ControllerId(101)].raft.as_ref().expect("runs").status().waiting;
    assert!(matches!(waiting, Some(Waiting::FirstStart { missing }) if missing.contains(&ControllerId(103))));
    world.start(ControllerId(103));
    world.run_until("a leader", Duration::from_secs(5), World::agreed);
}

#[test]
fn a_killed_leader_is_replaced_within_a_second_and_a_silent_one_within_two_and_a_half() {
    for seed in 1..20 {
        let mut world = World::new(seed);
        world.start_all();
        world.run_until("a leader", Duration::from_secs(5), World::agreed);
        let old = world.leader().expect("leads");
        world.crash(old);
        world.run_until("a new leader after kill -9", Duration::from_secs(1), |w| {
            w.leader().is_some_and(|l| l != old)
        });
        world.start(old);
        world.run_until("whole", Duration::from_secs(5), World::agreed);
        let old = world.leader().expect("leads");
        world.cut.extend(IDS.iter().flat_map(|o| [(old, ControllerId(*o)), (ControllerId(*o), old)]));
        let term = world.nodes[&old].raft.as_ref().expect("runs").term();
        world.run_until("a new leader after silence", Duration::from_millis(2500), |w| {
            w.leaders.keys().last().is_some_and(|t| *t > term)
        });
        let leads =
            |w: &World| w.nodes[&old].raft.as_ref().is_some_and(|r| r.status().role == RoleName::Leader);
        world.run_until("the cut off leader steps down", Duration::from_millis(2500), |w| !leads(w));
    }
}

#[test]
fn a_wiped_voter_neither_votes_nor_counts_until_it_is_admitted() {
    let mut world = World::new(3);
    world.start_all();
    world.run_until("a leader", Duration::from_secs(5), World::agreed);
    for _ in 0..5 {
        world.propose();
    }
    world.run_until("agreement", Duration::from_secs(5), World::agreed);
    let leader = world.leader().expect("leads");
    let [wiped, other] = <[ControllerId; 2]>::try_from(
        IDS.map(ControllerId).into_iter().filter(|i| *i != leader).collect::<Vec<_>>(),
    )
    .expect("two");
    // The wiped one comes back while only the leader's peer is missing: two processes run, but they are no majority that remembers.
    world.crash(wiped);
    world.crash(other);
    world.crash(leader);
    let node = world.nodes.get_mut(&wiped).expect("a node");
    node.disk = Disk::default();
    node.directory = DirectoryId(Uuid(999));
    world.start(wiped);
    world.start(other);
    let until = world.now + 10_000_000;
    while world.now < until {
        world.advance(until);
    }
    assert_eq!(world.leader(), None, "one that remembers and one that does not elect nobody");
    world.start(leader);
    world.run_until("a leader", Duration::from_secs(10), World::agreed);
    let known = |w: &World| {
        w.nodes.values().all(|n| {
            n.disk.hard.voters.as_ref().and_then(|v| v.voters.directory(wiped))
                == Some(DirectoryId(Uuid(999)))
        })
    };
    world.run_until("the new directory is committed", Duration::from_secs(10), |w| known(w) && w.agreed());
    world.crash(leader);
    world.run_until("it votes again", Duration::from_secs(5), |w| w.leader().is_some_and(|l| l != leader));
}

#[test]
fn leadership_is_handed_over_without_a_gap() {
    let mut world = World::new(11);
    world.start_all();
    world.run_until("a leader", Duration::from_secs(5), World::agreed);
    let old = world.leader().expect("leads");
    world.input(old, Input::TransferLeadership { to: None });
    world.run_until("another leads", Duration::from_millis(200), |w| w.leader().is_some_and(|l| l != old));
}
