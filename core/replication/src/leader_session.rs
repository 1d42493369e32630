//! The leader's end of one follower's stream: the fetch session. It remembers what the follower asked of each partition and
//! keeps a ready list, so that a round costs what the partitions with news cost, not what all partitions cost.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use minikafka_model::{BrokerEpoch, BrokerId, LeaderEpoch, Mono, Offset, TopicPartition};

use crate::{Ask, Bounds, FollowerAnswer, FollowerAsk, ReadLimit, ReadRecords, StreamId};

/// One request of a follower's stream. It lists only what has changed since the request before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRequest {
    /// Rises by one with each request.
    pub sequence: u64,
    /// Partitions whose ask is new, or whose records were written.
    pub partitions: Vec<(TopicPartition, Ask)>,
    /// Partitions that are no longer wanted.
    pub forgotten: Vec<TopicPartition>,
    /// `replica.fetch.wait.max.ms`.
    pub max_wait: Duration,
    /// `replica.fetch.response.max.bytes`.
    pub max_bytes: usize,
    /// `replica.fetch.max.bytes`.
    pub max_partition_bytes: usize,
    /// How many requests the follower keeps under way. One beyond that only amends what is asked, and the leader answers the
    /// oldest one at once.
    pub max_outstanding: usize,
}

/// A request that breaks the rules of the session; the stream is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// Requests come in order, without gaps.
    #[error("request {got} came where request {wanted} was due")]
    OutOfOrder {
        /// The number that came.
        got: u64,
        /// The number that was due.
        wanted: u64,
    },
    /// More requests than may wait.
    #[error("more than {0} requests are outstanding")]
    TooMany(usize),
    /// More partitions than a session may hold.
    #[error("more than {0} partitions in one session")]
    TooManyPartitions(usize),
}

/// Where a partition stands in its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// In the ready list.
    Ready,
    /// Being looked at; `woken` if a wake-up came meanwhile.
    Serving { woken: bool },
    /// Parked in the replica, which wakes it.
    Parked,
    /// As much is under way as the credit allows.
    Sent,
    /// Got an answer after which the follower has to ask anew.
    Answered,
}

#[derive(Debug)]
struct Entry {
    ask: Ask,
    /// Where the next read starts: ahead of the ask by what is under way.
    position: Offset,
    last_epoch: Option<LeaderEpoch>,
    /// Ends of what is under way and not acknowledged, oldest first; at most the credit.
    under_way: VecDeque<Offset>,
    /// A read at the present generation was answered with records: the leader may run ahead by credit.
    verified: bool,
    told: Option<(Offset, Offset)>,
    /// The ask came with a request and was not shown to the replica yet.
    fresh: bool,
    standing: Standing,
}

impl Entry {
    /// Whether as much is under way as is allowed: one read until the follower has written what the first one gave, then the
    /// credit.
    fn full(&self, credit: usize) -> bool {
        self.under_way.len() >= if self.verified { credit } else { 1 }
    }
}

/// What came of one partition's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// Records were read.
    Records {
        /// Their bytes.
        bytes: usize,
        /// Where they end, exclusive.
        end: Offset,
        /// Epoch of the last batch.
        last_epoch: LeaderEpoch,
        /// The marks that go with them.
        bounds: Bounds,
    },
    /// The read gave nothing: the next batch does not fit into what is left of the answer, or the log changed under the read.
    Nothing,
    /// As [`FollowerAnswer::Later`].
    Later,
    /// As [`FollowerAnswer::News`].
    News {
        /// The marks.
        bounds: Bounds,
    },
    /// As [`FollowerAnswer::Parked`].
    Parked,
    /// Diverging, out of range, or refused: the follower has to ask anew.
    Ended,
}

impl Served {
    /// What a read gave.
    pub fn read(records: &ReadRecords, bounds: Bounds) -> Served {
        match records.end.zip(records.last_epoch) {
            Some((end, last_epoch)) => Served::Records { bytes: records.bytes, end, last_epoch, bounds },
            None => Served::Nothing,
        }
    }

    /// What an answer without records comes to; for [`FollowerAnswer::Read`] run the plan and use [`Served::read`].
    pub fn other(answer: &FollowerAnswer) -> Served {
        match answer {
            FollowerAnswer::Read { .. } => Served::Nothing,
            FollowerAnswer::Later => Served::Later,
            FollowerAnswer::News { bounds } => Served::News { bounds: *bounds },
            FollowerAnswer::Parked => Served::Parked,
            FollowerAnswer::Diverging(_) | FollowerAnswer::OutOfRange | FollowerAnswer::Refused(_) => {
                Served::Ended
            }
        }
    }
}

/// The leader's end of one follower's stream.
#[derive(Debug)]
pub struct LeaderSession {
    stream: StreamId,
    follower: BrokerId,
    broker_epoch: BrokerEpoch,
    credit: usize,
    entries: BTreeMap<TopicPartition, Entry>,
    ready: VecDeque<TopicPartition>,
    /// Partitions with a fresh ask, to be looked at even when no bytes are left.
    fresh: VecDeque<TopicPartition>,
    requests: VecDeque<Waiting>,
    next_sequence: u64,
    max_outstanding: usize,
    round: Round,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    sequence: u64,
    deadline: Mono,
    max_bytes: usize,
    max_partition_bytes: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Round {
    bytes: usize,
    /// No more records fit in.
    full: bool,
    answers: usize,
}

impl LeaderSession {
    /// How many partitions one session may hold.
    pub const MAX_PARTITIONS: usize = 100_000;

    /// How many requests may wait in one session.
    pub const MAX_REQUESTS: usize = 64;

    /// A new stream of a follower. `credit` is `minikafka.replica.fetch.max.outstanding`.
    pub fn new(
        stream: StreamId,
        follower: BrokerId,
        broker_epoch: BrokerEpoch,
        credit: usize,
    ) -> LeaderSession {
        LeaderSession {
            stream,
            follower,
            broker_epoch,
            credit: credit.max(1),
            entries: BTreeMap::new(),
            ready: VecDeque::new(),
            fresh: VecDeque::new(),
            requests: VecDeque::new(),
            next_sequence: 0,
            max_outstanding: 1,
            round: Round::default(),
        }
    }

    /// The stream's id, as in [`Effect::WakeStream`](crate::Effect::WakeStream).
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// The follower at the other end.
    pub fn follower(&self) -> BrokerId {
        self.follower
    }

    /// Takes a request in. Then: [`LeaderSession::next_turn`] until it has none, and [`LeaderSession::finish`].
    pub fn request(&mut self, now: Mono, request: SessionRequest) -> Result<(), SessionError> {
        if request.sequence != self.next_sequence {
            return Err(SessionError::OutOfOrder { got: request.sequence, wanted: self.next_sequence });
        }
        if self.requests.len() >= LeaderSession::MAX_REQUESTS {
            return Err(SessionError::TooMany(LeaderSession::MAX_REQUESTS));
        }
        self.next_sequence += 1;
        for partition in request.forgotten {
            self.entries.remove(&partition);
        }
        for (partition, ask) in request.partitions {
            self.take_ask(partition, ask);
        }
        if self.entries.len() > LeaderSession::MAX_PARTITIONS {
            return Err(SessionError::TooManyPartitions(LeaderSession::MAX_PARTITIONS));
        }
        self.requests.push_back(Waiting {
            sequence: request.sequence,
            deadline: now.after(request.max_wait),
            max_bytes: request.max_bytes,
            max_partition_bytes: request.max_partition_bytes,
        });
        self.max_outstanding = request.max_outstanding.max(1);
        Ok(())
    }

    fn take_ask(&mut self, partition: TopicPartition, ask: Ask) {
        let continues =
            |entry: &Entry| entry.ask.generation == ask.generation && ask.position <= entry.position;
        match self.entries.get_mut(&partition) {
            Some(entry) if continues(entry) => {
                // The same generation: news of what was written. The read position stays where it is.
                entry.ask = ask;
                while entry.under_way.front().is_some_and(|end| *end <= ask.position) {
                    entry.under_way.pop_front();
                }
                entry.fresh = true;
                if matches!(entry.standing, Standing::Sent | Standing::Answered) {
                    entry.standing = Standing::Parked;
                }
            }
            _ => {
                let entry = Entry {
                    ask,
                    position: ask.position,
                    last_epoch: ask.last_epoch,
                    under_way: VecDeque::new(),
                    verified: false,
                    told: None,
                    fresh: true,
                    standing: Standing::Parked,
                };
                // A copy in the ready list from before is skipped when its turn comes.
                self.entries.insert(partition, entry);
            }
        }
        self.fresh.push_back(partition);
    }

    /// The replica has news of this partition ([`Effect::WakeStream`](crate::Effect::WakeStream)).
    pub fn wake(&mut self, partition: TopicPartition) {
        let Some(entry) = self.entries.get_mut(&partition) else { return };
        match &mut entry.standing {
            Standing::Parked => {
                entry.standing = Standing::Ready;
                self.ready.push_back(partition);
            }
            Standing::Serving { woken } => *woken = true,
            Standing::Ready | Standing::Sent | Standing::Answered => {}
        }
    }

    /// The next partition to look at for the request that is due, and what to show its replica. After it comes
    /// [`LeaderSession::answered`]. None: nothing more to look at now.
    pub fn next_turn(&mut self) -> Option<(TopicPartition, FollowerAsk)> {
        let request = *self.requests.front()?;
        let left = if self.round.full { 0 } else { request.max_bytes.saturating_sub(self.round.bytes) };
        // The first records of an answer may exceed both limits (KIP-74).
        let at_least_one = self.round.bytes == 0;
        let max_bytes = if left == 0 { 0 } else { left.min(request.max_partition_bytes) };
        let limit = ReadLimit { max_bytes, at_least_one: at_least_one && max_bytes > 0 };
        let partition = self.next_partition(left > 0)?;
        let (stream, broker, broker_epoch) = (self.stream, self.follower, self.broker_epoch);
        let entry = self.entries.get_mut(&partition)?;
        let acknowledged = entry.fresh.then_some(entry.ask.position);
        entry.fresh = false;
        let full = entry.full(self.credit);
        entry.standing = Standing::Serving { woken: false };
        let ask = FollowerAsk {
            broker,
            broker_epoch,
            stream,
            leader_epoch: entry.ask.leader_epoch,
            position: entry.position,
            last_epoch: entry.last_epoch,
            acknowledged,
            log_start: entry.ask.log_start,
            told: entry.told,
            limit: if full { ReadLimit { max_bytes: 0, at_least_one: false } } else { limit },
        };
        Some((partition, ask))
    }

    fn next_partition(&mut self, bytes_left: bool) -> Option<TopicPartition> {
        while let Some(partition) = self.fresh.pop_front() {
            if let Some(entry) = self.entries.get_mut(&partition)
                && entry.fresh
            {
                if entry.standing == Standing::Ready {
                    // Its place in the ready list is given up; it is looked at now.
                    self.ready.retain(|ready| *ready != partition);
                }
                return Some(partition);
            }
        }
        while bytes_left && let Some(partition) = self.ready.pop_front() {
            if self.entries.get(&partition).is_some_and(|entry| entry.standing == Standing::Ready) {
                return Some(partition);
            }
        }
        None
    }

    /// What came of the last turn of this partition. True: it is something to put into the answer, under the generation given
    /// by [`LeaderSession::generation`].
    pub fn answered(&mut self, partition: TopicPartition, served: Served) -> bool {
        let credit = self.credit;
        let Some(entry) = self.entries.get_mut(&partition) else { return false };
        let Standing::Serving { woken } = entry.standing else { return false };
        let mut tells = true;
        match served {
            Served::Records { bytes, end, last_epoch, bounds } => {
                self.round.bytes += bytes;
                entry.position = end;
                entry.last_epoch = Some(last_epoch);
                entry.under_way.push_back(end);
                entry.told = Some((bounds.high_watermark, bounds.log_start));
                let full = entry.full(credit);
                entry.verified = true;
                entry.standing = if full { Standing::Sent } else { Standing::Ready };
            }
            Served::Later => {
                tells = false;
                entry.standing = if entry.full(credit) { Standing::Sent } else { Standing::Ready };
            }
            Served::Nothing => {
                tells = false;
                // While nothing was read the limits do not hold, so it was the log that changed: look again.
                self.round.full = self.round.bytes > 0;
                entry.standing = Standing::Ready;
            }
            Served::News { bounds } => {
                entry.told = Some((bounds.high_watermark, bounds.log_start));
                entry.standing = Standing::Ready;
            }
            Served::Parked => {
                tells = false;
                entry.standing = if woken { Standing::Ready } else { Standing::Parked };
            }
            Served::Ended => entry.standing = Standing::Answered,
        }
        if entry.standing == Standing::Ready {
            self.ready.push_back(partition);
        }
        self.round.answers += usize::from(tells);
        tells
    }

    /// The generation of the ask that the last turn of this partition served.
    pub fn generation(&self, partition: TopicPartition) -> Option<u64> {
        self.entries.get(&partition).map(|entry| entry.ask.generation)
    }

    /// After the turns: whether the request that is due is to be answered now, with its number: if a partition has something
    /// to tell, if its time is over, or if a request that only amends has come in.
    pub fn finish(&mut self, now: Mono) -> Option<u64> {
        let request = self.requests.front()?;
        if self.round.answers == 0 && now < request.deadline && self.requests.len() <= self.max_outstanding {
            return None;
        }
        let sequence = request.sequence;
        self.requests.pop_front();
        self.round = Round::default();
        Some(sequence)
    }

    /// Whether [`LeaderSession::next_turn`] has something to look at.
    pub fn has_turns(&self) -> bool {
        let nothing = self.fresh.is_empty() && self.ready.is_empty();
        !(self.requests.is_empty() || nothing)
    }

    /// When the request that is due has to be answered at the latest.
    pub fn deadline(&self) -> Option<Mono> {
        self.requests.front().map(|request| request.deadline)
    }
}
