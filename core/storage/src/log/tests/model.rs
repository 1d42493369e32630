//! The log against a list of batches, with crashes at any point.

use std::collections::BTreeMap;

use super::*;
use crate::testing::raw;
use minikafka_model::batch::Batch;
use minikafka_model::{ProducerId, Sequence};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Append {
        batches: usize,
        count: i32,
        value: usize,
        epoch: bool,
    },
    Sync,
    SyncSealed,
    SaveRecoveryPoint,
    Prepare,
    WriteEpochs,
    Truncate {
        percent: i64,
    },
    TruncateFully {
        ahead: i64,
    },
    AdvanceStart {
        percent: i64,
    },
    Retain,
    Restart,
    /// The process dies at one of the coming operations of the disk.
    Crash {
        after: u64,
    },
    PowerLoss {
        after: u64,
        torn: Option<u64>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => (1..4usize, 1..5i32, 0..60usize, prop::bool::weighted(0.3)).prop_map(|(batches, count, value, epoch)| {
            Step::Append { batches, count, value, epoch }
        }),
        2 => Just(Step::Sync),
        2 => Just(Step::SyncSealed),
        2 => Just(Step::SaveRecoveryPoint),
        1 => Just(Step::Prepare),
        1 => Just(Step::WriteEpochs),
        2 => (0..110i64).prop_map(|percent| Step::Truncate { percent }),
        1 => (0..30i64).prop_map(|ahead| Step::TruncateFully { ahead }),
        1 => (0..100i64).prop_map(|percent| Step::AdvanceStart { percent }),
        1 => Just(Step::Retain),
        1 => Just(Step::Restart),
        2 => (1..60u64).prop_map(|after| Step::Crash { after }),
        2 => ((1..60u64), prop::option::of(any::<u64>())).prop_map(|(after, torn)| Step::PowerLoss { after, torn }),
    ]
}

/// How the process is about to die.
#[derive(Debug, Clone, Copy)]
enum Death {
    Process,
    Power(Unsynced),
}

struct World {
    disk: SimDisk,
    log: Option<Log>,
    /// What the log holds, if no step is half done.
    batches: Vec<Bytes>,
    /// Every batch ever written, by offset.
    written: BTreeMap<i64, Vec<Bytes>>,
    epoch: i32,
    sequence: BTreeMap<i64, i32>,
    /// What the checkpoint of the directory says.
    saved: Offset,
    death: Option<Death>,
}

fn config() -> LogConfig {
    LogConfig { segment_bytes: 600, index_interval_bytes: 80, retention_bytes: Some(2000), ..small() }
}

fn header(batch: &Bytes) -> BatchHeader {
    BatchHeader::parse(batch).unwrap()
}

impl World {
    fn new() -> World {
        let disk = new_disk();
        let (log, _) = open_with(&disk, config(), unclean(0)).unwrap();
        World {
            disk,
            log: Some(log),
            batches: Vec::new(),
            written: BTreeMap::new(),
            epoch: 0,
            sequence: BTreeMap::new(),
            saved: Offset(0),
            death: None,
        }
    }

    fn log(&mut self) -> &mut Log {
        self.log.as_mut().unwrap()
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Crash { after } => self.will_die(*after, Death::Process),
            Step::PowerLoss { after, torn } => {
                self.will_die(*after, Death::Power(torn.map_or(Unsynced::Lost, Unsynced::Torn)));
            }
            step => {
                let before = self.batches.clone();
                if let Err(error) = self.act(step) {
                    assert!(self.death.is_some(), "{step:?}: {error}");
                    self.die(&before);
                } else if self.death.is_none() {
                    self.check();
                }
            }
        }
    }

    fn will_die(&mut self, after: u64, death: Death) {
        if self.death.is_none() {
            self.death = Some(death);
            self.disk.fail_op(after, SimFault::Crash);
        }
    }

    fn append(&mut self, batches: usize, count: i32, value: usize, epoch: bool) -> Result<(), LogError> {
        self.epoch += i32::from(epoch);
        let mut base = self.log().end_offset().0;
        let mut all = Vec::new();
        for i in 0..batches {
            let producer = (base + i as i64) % 3;
            let next = self.sequence.entry(producer).or_insert(0);
            let bytes = raw(base, self.epoch, count, value, Some((producer, 0, *next)));
            *next += count;
            base += i64::from(count);
            self.written.entry(header(&bytes).base_offset.0).or_default().push(bytes.clone());
            all.push(bytes);
        }
        self.batches.extend(all.iter().cloned());
        let all: Vec<_> = all.into_iter().map(|bytes| Batch::from_leader(bytes).unwrap()).collect();
        self.log().append(&all, now()).map(|_| ())
    }

    fn act(&mut self, step: &Step) -> Result<(), LogError> {
        let (start, end) = (self.log().start_offset().0, self.log().end_offset().0);
        let at = |percent: i64| Offset(start + (end - start) * percent / 100);
        match step {
            Step::Append { batches, count, value, epoch } => {
                return self.append(*batches, *count, *value, *epoch);
            }
            Step::Sync => self.log().sync()?,
            Step::SyncSealed => {
                if let Some(plan) = self.log().sync_plan(SyncUpto::Sealed) {
                    let synced = plan.run()?;
                    self.log().synced(synced);
                }
            }
            Step::SaveRecoveryPoint => {
                // The directory's file is replaced in one step: take the moment after it.
                self.saved = self.log().recovery_point();
                let saved = self.saved;
                self.log().recovery_point_saved(saved)?;
            }
            Step::Prepare => {
                let prepared = self.log().next_segment().run()?;
                self.log().install_next(prepared);
            }
            Step::WriteEpochs => self.log().epoch_checkpoint().run()?,
            Step::Truncate { percent } => {
                let to = at(*percent);
                self.batches.retain(|batch| header(batch).last_offset() < to);
                let truncated = self.log().truncate_to(to, now())?;
                truncated.removal.run(&self.disk)?;
                self.epoch += 1;
            }
            Step::TruncateFully { ahead } => {
                self.batches.clear();
                let truncated = self.log().truncate_fully_at(Offset(end + ahead), now())?;
                truncated.removal.run(&self.disk)?;
            }
            Step::AdvanceStart { percent } => {
                let to = at(*percent);
                let _ = self.log().advance_start(to)?;
            }
            Step::Retain => {
                let end = self.log().end_offset();
                let retained = self.log().retain(now(), end)?;
                let first = self.log().first_segment();
                self.batches.retain(|batch| header(batch).last_offset() >= first);
                retained.removal.run(&self.disk)?;
            }
            Step::Restart => {
                let log = self.log.take().unwrap();
                let start = log.start_to_checkpoint();
                self.saved = log.close()?;
                let opening = Opening { start_offset: start, ..clean(self.saved.0) };
                let (log, report) = open_with(&self.disk, config(), opening)?;
                assert_eq!((report.torn, report.scanned_segments), (None, 0));
                assert_eq!(log.end_offset(), self.saved);
                self.log = Some(log);
            }
            Step::Crash { .. } | Step::PowerLoss { .. } => {}
        }
        // What a read of the whole log finds is compared from the log start on.
        Ok(())
    }

    fn held(&self) -> Vec<Bytes> {
        let start = self.log.as_ref().unwrap().start_offset();
        self.batches.iter().filter(|batch| header(batch).last_offset() >= start).cloned().collect()
    }

    fn check(&mut self) {
        let held = self.held();
        let log = self.log.as_ref().unwrap();
        assert_eq!(read_all(log), held);
        check_epochs(log);
        self.check_producers();
    }

    fn check_producers(&self) {
        let log = self.log.as_ref().unwrap();
        for producer in 0..3 {
            let newest =
                self.batches.iter().rev().map(header).find(|it| it.producer_id == Some(ProducerId(producer)));
            let known =
                log.producers().entries().get(&ProducerId(producer)).and_then(|entry| entry.last_sequence());
            // Producers outlive the batches that retention takes.
            if let Some(newest) = newest {
                assert_eq!(known, Some(newest.last_sequence()), "producer {producer}");
            }
        }
    }

    /// The process is dead: opens the log again and compares.
    fn die(&mut self, before: &[Bytes]) {
        let old = self.log.take();
        let death = self.death.take().unwrap();
        match death {
            Death::Process => self.disk.process_crash(),
            Death::Power(unsynced) => self.disk.power_loss(unsynced),
        }
        drop(old);
        let (log, report) = open_with(&self.disk, config(), unclean(self.saved.0))
            .unwrap_or_else(|error| panic!("{death:?}: {error}"));
        let found = read_all(&log);
        check_epochs(&log);
        for batch in &found {
            let known = self.written.get(&header(batch).base_offset.0);
            assert!(
                known.is_some_and(|known| known.contains(batch)),
                "{death:?}: a batch that was never written"
            );
        }
        assert!(
            found.windows(2).all(|w| header(&w[0]).next_offset() == header(&w[1]).base_offset),
            "no hole"
        );
        if matches!(death, Death::Process) {
            self.check_process_crash(before, &found, &report);
        }
        // Deleted segments and an advanced start may come back: what was found is what is there now.
        self.batches = found;
        self.log = Some(log);
        self.check_producers();
        self.resume();
    }

    fn check_process_crash(&self, before: &[Bytes], found: &[Bytes], report: &RecoveryReport) {
        // The log is as it was before the step, as it would be after, or on the way: what both have in common is there.
        let common: Vec<&Bytes> = before.iter().filter(|batch| self.batches.contains(batch)).collect();
        let first = found.first().map(|batch| header(batch).base_offset);
        for batch in common {
            let retained = first.is_none_or(|first| header(batch).base_offset < first);
            assert!(retained || found.contains(batch), "an acknowledged batch is lost: {report:?}");
        }
        let known = |batch: &Bytes| before.contains(batch) || self.batches.contains(batch);
        let behind = before.first().map_or(Offset(0), |batch| header(batch).base_offset);
        assert!(found.iter().all(|batch| known(batch) || header(batch).base_offset < behind));
    }

    /// Goes on as a cluster would: with a new epoch, and with the sequences that the log holds.
    fn resume(&mut self) {
        self.epoch = self.epoch.max(self.log().last_epoch().map_or(0, |epoch| epoch.0)) + 1;
        self.sequence.clear();
        for producer in 0..3 {
            let entry = self.log().producers().entries().get(&ProducerId(producer));
            let last = entry.and_then(|entry| entry.last_sequence());
            self.sequence.insert(producer, last.map_or(0, |Sequence(last)| last + 1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_log_is_what_was_written_to_it_whenever_it_dies(steps in prop::collection::vec(step(), 1..40)) {
        let mut world = World::new();
        for step in &steps {
            world.run(step);
        }
        let before = world.batches.clone();
        if world.death.is_none() {
            world.death = Some(Death::Process);
        }
        world.die(&before);
        world.check();
    }
}
