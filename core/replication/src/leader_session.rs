//! The leader's end of one follower's stream: the fetch session. It remembers what the follower asked of each partition and
//! keeps a ready list, so that a round costs what the partitions with news cost, not what all partitions cost.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use minikafka_model::{BrokerEpoch, BrokerId, LeaderEpoch, Mono, Offset, TopicPartition};

use crate::{Ask, FollowerAnswer, FollowerAsk, ReadLimit, StreamId};

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
    /// More requests than the credit allows.
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
    answers: usize,
}

impl LeaderSession {
    /// How many partitions one session may hold.
    pub const MAX_PARTITIONS: usize = 100_000;

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
        // One more than the credit: a request that only amends what is asked takes the place of one that still waits.
        if self.requests.len() > self.credit {
            return Err(SessionError::TooMany(self.credit));
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
        let left = request.max_bytes.saturating_sub(self.round.bytes);
        // The first records of an answer may exceed both limits (KIP-74).
        let at_least_one = self.round.bytes == 0;
        let max_bytes = if left == 0 { 0 } else { left.min(request.max_partition_bytes) };
        let limit = ReadLimit { max_bytes, at_least_one: at_least_one && max_bytes > 0 };
        let partition = self.next_partition(left > 0)?;
        let (stream, broker, broker_epoch) = (self.stream, self.follower, self.broker_epoch);
        let entry = self.entries.get_mut(&partition)?;
        let acknowledged = entry.fresh.then_some(entry.ask.position);
        entry.fresh = false;
        let full = entry.under_way.len() >= self.credit || (!entry.verified && !entry.under_way.is_empty());
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

    /// What the replica said, for the partition of the last turn. `read` is what the read plan gave, for
    /// [`FollowerAnswer::Read`]: the number of bytes, the end offset and the epoch of the last batch. True: there is something
    /// to put into the answer for this partition, under the generation given back by [`LeaderSession::generation`].
    pub fn answered(
        &mut self,
        partition: TopicPartition,
        answer: &FollowerAnswer,
        read: Option<(usize, Offset, LeaderEpoch)>,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(&partition) else { return false };
        let Standing::Serving { woken } = entry.standing else { return false };
        let mut tells = true;
        match answer {
            FollowerAnswer::Read { bounds, .. } => match read {
                Some((bytes, end, last_epoch)) => {
                    self.round.bytes += bytes;
                    entry.position = end;
                    entry.last_epoch = Some(last_epoch);
                    entry.under_way.push_back(end);
                    entry.told = Some((bounds.high_watermark, bounds.log_start));
                    let full = !entry.verified || entry.under_way.len() >= self.credit;
                    entry.verified = true;
                    entry.standing = if full { Standing::Sent } else { Standing::Ready };
                }
                None => {
                    // The log changed under the read: look again.
                    tells = false;
                    entry.standing = Standing::Ready;
                }
            },
            FollowerAnswer::Later => {
                tells = false;
                let full =
                    entry.under_way.len() >= self.credit || (!entry.verified && !entry.under_way.is_empty());
                entry.standing = if full { Standing::Sent } else { Standing::Ready };
            }
            FollowerAnswer::News { bounds } => {
                entry.told = Some((bounds.high_watermark, bounds.log_start));
                entry.standing = Standing::Ready;
            }
            FollowerAnswer::Parked => {
                tells = false;
                entry.standing = if woken { Standing::Ready } else { Standing::Parked };
            }
            FollowerAnswer::Diverging(_) | FollowerAnswer::OutOfRange | FollowerAnswer::Refused(_) => {
                entry.standing = Standing::Answered;
            }
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
    /// to tell, if its time is over, or if a request beyond the credit wants its place.
    pub fn finish(&mut self, now: Mono) -> Option<u64> {
        let request = self.requests.front()?;
        if self.round.answers == 0 && now < request.deadline && self.requests.len() <= self.credit {
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
