//! The fetcher's end of its stream to one leader: which partitions it wants, and what has changed since the last request.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use minikafka_model::{Mono, TopicPartition};

use crate::{Ask, Next, SessionRequest};

/// Limits of one fetcher's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// `replica.fetch.wait.max.ms`.
    pub max_wait: Duration,
    /// `replica.fetch.response.max.bytes`.
    pub max_bytes: usize,
    /// `replica.fetch.max.bytes`.
    pub max_partition_bytes: usize,
    /// `minikafka.replica.fetch.max.outstanding`: requests under way at once.
    pub max_outstanding: usize,
}

impl Default for FetchLimits {
    /// Kafka's defaults, and Kafka's loop of one request at a time.
    fn default() -> FetchLimits {
        FetchLimits {
            max_wait: Duration::from_millis(500),
            max_bytes: 10_485_760,
            max_partition_bytes: 1_048_576,
            max_outstanding: 1,
        }
    }
}

#[derive(Debug)]
enum Wanted {
    /// To be listed in the next request.
    New(Ask),
    /// To be listed in the first request after the moment.
    NotBefore(Ask, Mono),
    /// The leader knows what is wanted.
    Asked { generation: u64 },
    /// Waits for something else: an epoch checkpoint, the leader's bounds, newer metadata.
    Idle,
}

/// The fetcher's end of its stream to one leader. A new stream needs a new session: every partition is asked for anew with
/// [`Replica::ask`](crate::Replica::ask).
#[derive(Debug)]
pub struct FollowerSession {
    limits: FetchLimits,
    wanted: BTreeMap<TopicPartition, Wanted>,
    forgotten: BTreeSet<TopicPartition>,
    /// Partitions that the leader was told of.
    known: BTreeSet<TopicPartition>,
    next_sequence: u64,
    outstanding: usize,
}

impl FollowerSession {
    /// A session for a stream just opened.
    pub fn new(limits: FetchLimits) -> FollowerSession {
        FollowerSession {
            limits,
            wanted: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            known: BTreeSet::new(),
            next_sequence: 0,
            outstanding: 0,
        }
    }

    /// Fetches this partition from now on, or asks for something else.
    pub fn add(&mut self, partition: TopicPartition, ask: Ask) {
        self.forgotten.remove(&partition);
        self.wanted.insert(partition, Wanted::New(ask));
    }

    /// Fetches this partition no longer.
    pub fn remove(&mut self, partition: TopicPartition) {
        if self.wanted.remove(&partition).is_some() && self.known.remove(&partition) {
            self.forgotten.insert(partition);
        }
    }

    /// Whether the session has no partitions left.
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The partitions of the session.
    pub fn partitions(&self) -> impl Iterator<Item = TopicPartition> {
        self.wanted.keys().copied()
    }

    /// The next request, if one may be sent now. One is under way all the time while there are partitions, so that the leader
    /// can answer as soon as it has news; one more may go if it amends what is asked, and the leader then answers the first.
    pub fn next_request(&mut self, now: Mono) -> Option<SessionRequest> {
        let most = self.limits.max_outstanding.max(1);
        if self.outstanding > most || (self.outstanding == most && !self.amends(now)) {
            return None;
        }
        let mut partitions = Vec::new();
        for (partition, wanted) in &mut self.wanted {
            let ask = match wanted {
                Wanted::New(ask) => *ask,
                Wanted::NotBefore(ask, at) if *at <= now => *ask,
                Wanted::NotBefore(..) | Wanted::Asked { .. } | Wanted::Idle => continue,
            };
            *wanted = Wanted::Asked { generation: ask.generation };
            self.known.insert(*partition);
            partitions.push((*partition, ask));
        }
        let forgotten: Vec<TopicPartition> = std::mem::take(&mut self.forgotten).into_iter().collect();
        let asked = self.wanted.values().any(|wanted| matches!(wanted, Wanted::Asked { .. }));
        if !asked && forgotten.is_empty() {
            return None;
        }
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.outstanding += 1;
        Some(SessionRequest {
            sequence,
            partitions,
            forgotten,
            max_wait: self.limits.max_wait,
            max_bytes: self.limits.max_bytes,
            max_partition_bytes: self.limits.max_partition_bytes,
            max_outstanding: most,
        })
    }

    /// A request was answered in full.
    pub fn answered(&mut self) {
        self.outstanding = self.outstanding.saturating_sub(1);
    }

    /// Whether an answer for this partition belongs to what is asked: a first look, without the replica's lock.
    pub fn expects(&self, partition: TopicPartition, generation: u64) -> bool {
        match self.wanted.get(&partition) {
            Some(Wanted::Asked { generation: asked }) => *asked == generation,
            // The leader may run ahead of what it was told last.
            Some(Wanted::New(ask)) => ask.generation == generation && self.known.contains(&partition),
            Some(Wanted::NotBefore(..) | Wanted::Idle) | None => false,
        }
    }

    fn amends(&self, now: Mono) -> bool {
        let due = |wanted: &Wanted| match wanted {
            Wanted::New(_) => true,
            Wanted::NotBefore(_, at) => *at <= now,
            Wanted::Asked { .. } | Wanted::Idle => false,
        };
        !self.forgotten.is_empty() || self.wanted.values().any(due)
    }

    /// What the replica said to an answer. [`Next::AskBounds`] is the shell's to carry out.
    pub fn next(&mut self, partition: TopicPartition, next: Next) {
        let Some(wanted) = self.wanted.get_mut(&partition) else { return };
        match next {
            Next::Ask(ask) => *wanted = Wanted::New(ask),
            Next::AskAt(ask, at) => *wanted = Wanted::NotBefore(ask, at),
            Next::Held | Next::AskBounds { .. } | Next::Stop => *wanted = Wanted::Idle,
            Next::Ignore => {}
        }
    }

    /// The next moment at which a partition that is left alone is to be asked for again.
    pub fn next_wake(&self, now: Mono) -> Option<Mono> {
        self.wanted
            .values()
            .filter_map(|wanted| match wanted {
                Wanted::NotBefore(_, at) if *at > now => Some(*at),
                Wanted::NotBefore(..) | Wanted::New(_) | Wanted::Asked { .. } | Wanted::Idle => None,
            })
            .min()
    }
}
