//! The producer's mind: what waits in each partition, what is under way, sequence numbers, deadlines. It owns no socket and no clock;
//! the sender carries inputs in and requests out.
//!
//! Order within a partition is kept through every retry. With idempotence up to `max.in.flight` batches of a partition are under way
//! together, once the first of them is stored; after a failure the failed ones are sent again one by one, lowest first. Without idempotence only one batch of a partition
//! is under way (acks=0 aside, which is never sent again).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::SystemTime;

use minikafka_model::batch::ProducerStamp;
use minikafka_model::{BrokerId, PartitionIndex, ProducerEpoch, ProducerId, Sequence, WallMs};
use tokio::time::Instant;

use super::batch::{Batch, Order};
use super::delivery::{Delivery, Outcome, Verdict};
use super::failure::{Attempt, AttemptOutcome, GaveUp, PartitionState, Persisted, ProduceError};
use super::record::Record;
use super::rules::Rules;
use crate::error::Error;
use crate::metadata::ClusterView;

/// Id and epoch of an idempotent producer.
pub(crate) type Identity = (ProducerId, ProducerEpoch);

/// How many records were delivered, and how many were not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CloseReport {
    /// Records that are stored (with acks=0: that were sent).
    pub delivered: u64,
    /// Records whose delivery failed.
    pub failed: u64,
    /// Records that were given up because the time to close was over.
    pub unsent: u64,
}

/// One partition.
#[derive(Debug)]
pub(super) struct Queue {
    /// Takes records.
    pub(super) open: Option<Batch>,
    /// Full, never sent.
    pub(super) full: VecDeque<Batch>,
    /// Sent at least once and to be sent again, lowest order first.
    pub(super) again: VecDeque<Batch>,
    /// Under way.
    pub(super) in_flight: Vec<InFlight>,
    /// Identity under which this partition's sequences run.
    pub(super) identity: Option<Identity>,
    pub(super) next_sequence: Sequence,
    /// A batch was stored under this identity. Before that a leader that has never heard of the producer takes any first sequence
    /// (Kafka semantics 9.3), so that of several batches under way a later one could be stored first.
    pub(super) established: bool,
    /// A gap is certain: once nothing is under way, sequences begin anew under a raised epoch.
    pub(super) raise_epoch: bool,
}

/// A batch under way, as the partition remembers it.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) order: Order,
    pub(super) count: u32,
    pub(super) created: Instant,
    pub(super) outcome: Arc<Outcome>,
}

/// A request to be sent.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) broker: BrokerId,
    pub(crate) batches: Vec<Batch>,
    /// The first of the batches' deadlines: the broker should answer before.
    pub(crate) deadline: Instant,
}

/// What is to be done now.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) jobs: Vec<Job>,
    /// When to look again, if nothing happens before.
    pub(crate) wake_at: Option<Instant>,
    /// Something waits for a leader.
    pub(crate) needs_leader: bool,
    /// Something waits for a producer id.
    pub(crate) needs_identity: bool,
    /// Bytes of buffer memory that became free.
    pub(crate) released: usize,
}

/// What a queue could send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Again,
    Full,
    Open,
}

/// A batch that could be sent: its place in the order, its queue, and which of the queue's batches it is.
type Candidate = (Order, (Arc<str>, PartitionIndex), Next);

/// Everything that waits or is under way.
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(super) rules: Rules,
    pub(super) queues: BTreeMap<(Arc<str>, PartitionIndex), Queue>,
    names: BTreeSet<Arc<str>>,
    pub(super) identity: Option<Identity>,
    /// Why there is no identity yet.
    pub(super) identity_trouble: Option<Error>,
    next_order: u64,
    /// Batches up to this order do not linger.
    flush_upto: Option<u64>,
    pub(super) in_flight: BTreeMap<BrokerId, usize>,
    pub(super) unresolved: BTreeSet<Order>,
    pub(super) report: CloseReport,
    pub(super) min_isr: BTreeMap<Arc<str>, u16>,
}

impl Ledger {
    pub(crate) fn new(rules: Rules) -> Ledger {
        Ledger {
            rules,
            queues: BTreeMap::new(),
            names: BTreeSet::new(),
            identity: None,
            identity_trouble: None,
            next_order: 1,
            flush_upto: None,
            in_flight: BTreeMap::new(),
            unresolved: BTreeSet::new(),
            report: CloseReport::default(),
            min_isr: BTreeMap::new(),
        }
    }

    fn name(&mut self, topic: &str) -> Arc<str> {
        if let Some(name) = self.names.get(topic) {
            return name.clone();
        }
        let name: Arc<str> = topic.into();
        self.names.insert(name.clone());
        name
    }

    /// Takes a record. True beside the delivery: the sender has something new to look at.
    pub(crate) fn append(
        &mut self,
        record: &Record,
        partition: PartitionIndex,
        timestamp: WallMs,
        size: usize,
        now: Instant,
    ) -> (Delivery, bool) {
        let topic = self.name(&record.topic);
        let queue = self.queues.entry((topic.clone(), partition)).or_insert_with(Queue::new);
        let mut news = false;
        if let Some(open) = queue.open.take_if(|open| open.size() + size > self.rules.batch_size) {
            queue.full.push_back(open);
            news = true;
        }
        let open = queue.open.get_or_insert_with(|| {
            let order = (self.next_order, 0);
            self.next_order += 1;
            self.unresolved.insert(order);
            news = true;
            Batch::new(topic, partition, order, now)
        });
        let delivery = open.push(record, timestamp, size);
        if open.size() >= self.rules.batch_size
            && let Some(open) = queue.open.take()
        {
            queue.full.push_back(open);
            news = true;
        }
        (delivery, news)
    }

    /// Everything taken so far is sent without lingering. The order to wait for.
    pub(crate) fn flush(&mut self) -> Order {
        let upto = self.next_order - 1;
        self.flush_upto = Some(upto);
        (upto, u32::MAX)
    }

    /// Whether everything up to this order has its verdict.
    pub(crate) fn is_resolved(&self, upto: Order) -> bool {
        self.unresolved.first().is_none_or(|first| *first > upto)
    }

    /// Records without a verdict.
    pub(crate) fn waiting(&self) -> u64 {
        let count = |batch: &Batch| u64::from(batch.count());
        let queues = self.queues.values().map(|queue| {
            let batches = queue.again.iter().chain(&queue.full).chain(&queue.open).map(count).sum::<u64>();
            let under_way = queue.in_flight.iter().filter(|flight| !flight.outcome.is_settled());
            batches + under_way.map(|flight| u64::from(flight.count)).sum::<u64>()
        });
        queues.sum()
    }

    /// Counts so far.
    pub(crate) fn report(&self) -> CloseReport {
        self.report
    }

    /// Remembers what a topic promises, for error messages.
    pub(crate) fn promise(&mut self, topic: &str, min_isr: u16) {
        let topic = self.name(topic);
        self.min_isr.insert(topic, min_isr);
    }

    /// An answer to InitProducerId.
    pub(crate) fn identify(&mut self, result: Result<Identity, Error>) {
        match result {
            Ok(identity) => {
                self.identity = Some(identity);
                self.identity_trouble = None;
            }
            Err(error) => self.identity_trouble = Some(error),
        }
    }

    /// What to send now: at most one request per broker; call again until there are no jobs.
    pub(crate) fn plan(&mut self, view: &ClusterView, now: Instant, short_of_memory: bool) -> Plan {
        let mut plan = Plan::default();
        plan.released += self.expire(view, now);
        let mut candidates: BTreeMap<BrokerId, Vec<Candidate>> = BTreeMap::new();
        for (key, queue) in &mut self.queues {
            raise_epoch(queue, &mut self.identity);
            let Some(next) = next_of(queue, &self.rules, self.flush_upto, now, short_of_memory, &mut plan)
            else {
                continue;
            };
            let Some(batch) = peek(queue, next) else { continue };
            if self.rules.idempotent && self.identity.is_none() {
                plan.needs_identity = true;
                continue;
            }
            match view.leader(&key.0, key.1) {
                Some(leader) => {
                    candidates.entry(leader.id).or_default().push((batch.order, key.clone(), next));
                }
                None => {
                    let outcome = AttemptOutcome::NoLeader;
                    batch.outcome.note(Attempt { at: SystemTime::now(), broker: None, outcome });
                    plan.needs_leader = true;
                }
            }
        }
        for (broker, candidates) in candidates {
            if self.in_flight.get(&broker).is_none_or(|count| *count < self.rules.max_in_flight) {
                plan.jobs.extend(self.fill(broker, candidates));
            }
        }
        plan
    }

    /// One request to one broker: the oldest batches first, as many as fit.
    fn fill(&mut self, broker: BrokerId, mut candidates: Vec<Candidate>) -> Option<Job> {
        candidates.sort_by_key(|(order, ..)| *order);
        let mut batches: Vec<Batch> = Vec::with_capacity(candidates.len());
        let mut bytes = 0;
        for (_, key, next) in candidates {
            let Some(queue) = self.queues.get_mut(&key) else { continue };
            let Some(size) = peek(queue, next).map(Batch::size) else { continue };
            if bytes > 0 && bytes + size > self.rules.max_request_size {
                break;
            }
            bytes += size;
            let taken = match next {
                Next::Again => queue.again.pop_front(),
                Next::Full => queue.full.pop_front(),
                Next::Open => queue.open.take(),
            };
            if let Some(batch) = taken {
                batches.push(begin(queue, batch, self.identity));
            }
        }
        let deadline = batches.iter().map(|batch| batch.created).min()? + self.rules.delivery_timeout;
        *self.in_flight.entry(broker).or_default() += 1;
        Some(Job { broker, batches, deadline })
    }

    /// Fails what has waited longer than `delivery.timeout.ms`; bytes of buffer memory that become free.
    fn expire(&mut self, view: &ClusterView, now: Instant) -> usize {
        let Some(limit) = now.checked_sub(self.rules.delivery_timeout) else { return 0 };
        let why = GaveUp::Deadline { limit: self.rules.delivery_timeout };
        let is_late = |batch: &Batch| batch.created <= limit;
        let mut late: Vec<Batch> = Vec::new();
        let mut under_way: Vec<Doomed> = Vec::new();
        for ((topic, partition), queue) in &mut self.queues {
            for batches in [&mut queue.again, &mut queue.full] {
                let count = batches.iter().take_while(|batch| is_late(batch)).count();
                late.extend(batches.drain(..count));
            }
            late.extend(queue.open.take_if(|batch| is_late(batch)));
            // What is under way has its verdict now; what the answer says when it comes is used for the sequences alone, and the
            // memory is freed then.
            let flights = queue.in_flight.iter().filter(|flight| flight.created <= limit);
            under_way.extend(
                flights
                    .filter(|flight| !flight.outcome.is_settled())
                    .map(|flight| Doomed::in_flight(topic, *partition, flight)),
            );
        }
        for batch in &late {
            if batch.outcome.history().is_empty()
                && let Some(error) = self.identity_trouble.clone()
            {
                let outcome = AttemptOutcome::NotSent(error);
                batch.outcome.note(Attempt { at: SystemTime::now(), broker: None, outcome });
            }
            self.fail(batch, why.clone(), view);
        }
        for doomed in &under_way {
            let broker = view.partition(&doomed.topic, doomed.partition).and_then(|known| known.leader);
            let waited = Error::TimedOut {
                what: "the answer to a write".to_owned(),
                after: self.rules.delivery_timeout,
                last: None,
            };
            let outcome = AttemptOutcome::NoAnswer(waited);
            doomed.outcome.note(Attempt { at: SystemTime::now(), broker, outcome });
            self.doom(doomed, why.clone(), view);
        }
        late.iter().map(|batch| batch.reserved).sum()
    }

    pub(super) fn state_of(
        &self,
        view: &ClusterView,
        topic: &str,
        partition: PartitionIndex,
    ) -> Option<PartitionState> {
        PartitionState::of(view, topic, partition, self.min_isr.get(topic).copied())
    }

    /// Gives a batch the verdict "failed". Its sequences are given back where that leaves no gap.
    pub(super) fn fail(&mut self, batch: &Batch, why: GaveUp, view: &ClusterView) {
        if batch.outcome.history().persisted() == Persisted::No
            && let Some(queue) = self.queues.get_mut(&(batch.topic.clone(), batch.partition))
        {
            give_back(queue, batch);
        }
        self.doom(&Doomed::batch(batch), why, view);
    }

    fn doom(&mut self, doomed: &Doomed, why: GaveUp, view: &ClusterView) {
        let Doomed { topic, partition, order, count, outcome } = doomed;
        let state = self.state_of(view, topic, *partition);
        let closed = why == GaveUp::Closed;
        let error = ProduceError::new(topic.clone(), *partition, why, outcome.history(), state);
        if outcome.settle(Verdict::Failed(error)) {
            let counter = if closed { &mut self.report.unsent } else { &mut self.report.failed };
            *counter += u64::from(*count);
        }
        self.unresolved.remove(order);
    }

    /// Gives everything that has no verdict the verdict "closed".
    pub(crate) fn close(&mut self, view: &ClusterView) {
        let mut left: Vec<Doomed> = Vec::new();
        for ((topic, partition), queue) in &mut self.queues {
            for flight in queue.in_flight.drain(..) {
                let outcome = AttemptOutcome::NoAnswer(Error::Closed);
                flight.outcome.note(Attempt { at: SystemTime::now(), broker: None, outcome });
                left.push(Doomed::in_flight(topic, *partition, &flight));
            }
            let waiting = queue.again.drain(..).chain(queue.full.drain(..)).chain(queue.open.take());
            left.extend(waiting.map(|batch| Doomed::batch(&batch)));
        }
        for doomed in &left {
            self.doom(doomed, GaveUp::Closed, view);
        }
    }
}

/// What a verdict needs to know of a batch.
struct Doomed {
    topic: Arc<str>,
    partition: PartitionIndex,
    order: Order,
    count: u32,
    outcome: Arc<Outcome>,
}

impl Doomed {
    fn batch(batch: &Batch) -> Doomed {
        let Batch { topic, partition, order, outcome, .. } = batch;
        Doomed {
            topic: topic.clone(),
            partition: *partition,
            order: *order,
            count: batch.count(),
            outcome: outcome.clone(),
        }
    }

    fn in_flight(topic: &Arc<str>, partition: PartitionIndex, flight: &InFlight) -> Doomed {
        let InFlight { order, count, outcome, .. } = flight;
        Doomed { topic: topic.clone(), partition, order: *order, count: *count, outcome: outcome.clone() }
    }
}

/// Puts a batch under way: a stamp if it needs one, and an entry among those in flight.
fn begin(queue: &mut Queue, mut batch: Batch, identity: Option<Identity>) -> Batch {
    if batch.stamp.is_none()
        && let Some(identity) = identity
    {
        let (id, epoch) = *queue.identity.get_or_insert(identity);
        batch.stamp = Some(ProducerStamp { id, epoch, sequence: queue.next_sequence });
        // A batch never holds more records than an i32 counts.
        queue.next_sequence = queue.next_sequence.plus(batch.count().cast_signed());
    }
    batch.tries += 1;
    batch.not_before = None;
    queue.in_flight.push(InFlight {
        order: batch.order,
        count: batch.count(),
        created: batch.created,
        outcome: batch.outcome.clone(),
    });
    batch
}

/// Takes a failed batch's sequences back if no later ones were given out.
pub(super) fn give_back(queue: &mut Queue, batch: &Batch) {
    if let Some(stamp) = batch.stamp
        && queue.identity == Some((stamp.id, stamp.epoch))
        && stamp.sequence.plus(batch.count().cast_signed()) == queue.next_sequence
    {
        queue.next_sequence = stamp.sequence;
    }
}

/// Begins sequences anew, once nothing is under way: the next epoch of the same id, as the protocol lets an idempotent producer choose
/// by itself (Kafka semantics 9.5).
fn raise_epoch(queue: &mut Queue, identity: &mut Option<Identity>) {
    if !queue.raise_epoch || !queue.in_flight.is_empty() {
        return;
    }
    queue.raise_epoch = false;
    if queue.identity == *identity {
        *identity =
            identity.and_then(|(id, epoch)| epoch.0.checked_add(1).map(|next| (id, ProducerEpoch(next))));
        if let Some((id, epoch)) = identity {
            tracing::info!("producer {id}: sequences begin anew under epoch {epoch}");
        }
    }
    queue.identity = *identity;
    queue.next_sequence = Sequence(0);
    queue.established = false;
    queue.again.iter_mut().for_each(|batch| batch.stamp = None);
}

/// Which batch of a queue may be sent now; notes in the plan when to look again.
fn next_of(
    queue: &Queue,
    rules: &Rules,
    flush_upto: Option<u64>,
    now: Instant,
    short_of_memory: bool,
    plan: &mut Plan,
) -> Option<Next> {
    let mut wake =
        |moment: Instant| plan.wake_at = Some(plan.wake_at.map_or(moment, |known| known.min(moment)));
    let waiting = queue.again.front().into_iter().chain(queue.full.front()).chain(&queue.open);
    let oldest = waiting.map(|batch| batch.created).chain(queue.unsettled_since()).min()?;
    wake(oldest + rules.delivery_timeout);
    if queue.raise_epoch {
        return None;
    }
    if let Some(first) = queue.again.front() {
        if !queue.in_flight.is_empty() {
            return None;
        }
        return match first.not_before {
            Some(moment) if moment > now => {
                wake(moment);
                None
            }
            _ => Some(Next::Again),
        };
    }
    let most = if rules.pipelines(queue.established) { rules.max_in_flight } else { 1 };
    if queue.in_flight.len() >= most {
        return None;
    }
    if !queue.full.is_empty() {
        return Some(Next::Full);
    }
    let open = queue.open.as_ref()?;
    let due = open.created + rules.linger;
    if due <= now || short_of_memory || flush_upto.is_some_and(|upto| open.order.0 <= upto) {
        return Some(Next::Open);
    }
    wake(due);
    None
}

fn peek(queue: &Queue, next: Next) -> Option<&Batch> {
    match next {
        Next::Again => queue.again.front(),
        Next::Full => queue.full.front(),
        Next::Open => queue.open.as_ref(),
    }
}

impl Queue {
    fn new() -> Queue {
        Queue {
            open: None,
            full: VecDeque::new(),
            again: VecDeque::new(),
            in_flight: Vec::new(),
            identity: None,
            next_sequence: Sequence(0),
            established: false,
            raise_epoch: false,
        }
    }

    /// When the oldest batch under way that has no verdict was made.
    fn unsettled_since(&self) -> Option<Instant> {
        let unsettled = self.in_flight.iter().filter(|flight| !flight.outcome.is_settled());
        unsettled.map(|flight| flight.created).min()
    }
}
