//! Why a record was not delivered: every attempt, the state of the partition, and whether it may have been stored all the same.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use minikafka_model::{BrokerId, ErrorCode, LeaderEpoch, PartitionIndex};

use crate::error::{BrokerError, Error, is_retriable};
use crate::metadata::ClusterView;

/// Attempts that are kept one by one; of more, the first and the newest are kept.
pub(crate) const MAX_ATTEMPTS_KEPT: usize = 256;

/// Whether a record that failed may have been stored all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persisted {
    /// Every attempt was a definite no.
    No,
    /// At least one attempt has an unknown outcome.
    Maybe,
}

/// What one attempt came to.
#[derive(Debug, Clone)]
pub enum AttemptOutcome {
    /// The broker answered with an error.
    Refused {
        /// The error.
        error: BrokerError,
        /// Whether the broker may have stored the records before it gave up.
        may_be_stored: bool,
    },
    /// The request was sent, but no answer came.
    NoAnswer(Error),
    /// The request was not sent.
    NotSent(Error),
    /// The partition had no leader, so nobody could be asked.
    NoLeader,
}

/// One attempt to deliver.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// When it ended.
    pub at: SystemTime,
    /// The broker that was asked, if one was.
    pub broker: Option<BrokerId>,
    /// What it came to.
    pub outcome: AttemptOutcome,
}

impl Attempt {
    fn may_be_stored(&self) -> bool {
        match &self.outcome {
            AttemptOutcome::Refused { may_be_stored, .. } => *may_be_stored,
            AttemptOutcome::NoAnswer(_) => true,
            AttemptOutcome::NotSent(_) | AttemptOutcome::NoLeader => false,
        }
    }

    fn code(&self) -> Option<ErrorCode> {
        match &self.outcome {
            AttemptOutcome::Refused { error, .. } => Some(error.code),
            AttemptOutcome::NotSent(error) | AttemptOutcome::NoAnswer(error) => error.kafka_code(),
            AttemptOutcome::NoLeader => None,
        }
    }
}

/// All attempts of one batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    attempts: Vec<Attempt>,
    left_out: usize,
    may_be_stored: bool,
}

impl History {
    /// Adds an attempt. A partition without a leader is one attempt, however often it was looked at.
    pub(crate) fn add(&mut self, attempt: Attempt) {
        self.may_be_stored |= attempt.may_be_stored();
        if let (Some(last), AttemptOutcome::NoLeader) = (self.attempts.last_mut(), &attempt.outcome)
            && matches!(last.outcome, AttemptOutcome::NoLeader)
        {
            last.at = attempt.at;
            return;
        }
        if self.attempts.len() == MAX_ATTEMPTS_KEPT {
            self.attempts.remove(1);
            self.left_out += 1;
        }
        self.attempts.push(attempt);
    }

    pub(crate) fn persisted(&self) -> Persisted {
        if self.may_be_stored { Persisted::Maybe } else { Persisted::No }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }
}

/// Why the producer gave up.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GaveUp {
    /// A broker's answer that no retry can change.
    Refused,
    /// `delivery.timeout.ms` has passed.
    Deadline {
        /// How long it is.
        limit: Duration,
    },
    /// `retries` are used up.
    Retries,
    /// The producer was closed.
    Closed,
    /// The records could not be made into a request.
    Unsendable(String),
}

/// What was last known of the partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionState {
    /// Its leader.
    pub leader: Option<BrokerId>,
    /// The leader's epoch.
    pub leader_epoch: Option<LeaderEpoch>,
    /// Its in-sync replicas.
    pub isr: Vec<BrokerId>,
    /// The effective `min.insync.replicas`, where the producer has asked for it.
    pub min_isr: Option<u16>,
}

impl PartitionState {
    pub(crate) fn of(
        view: &ClusterView,
        topic: &str,
        partition: PartitionIndex,
        min_isr: Option<u16>,
    ) -> Option<PartitionState> {
        let known = view.partition(topic, partition)?;
        Some(PartitionState {
            leader: known.leader,
            leader_epoch: known.leader_epoch,
            isr: known.isr.clone(),
            min_isr,
        })
    }
}

impl fmt::Display for PartitionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.leader {
            Some(leader) => write!(f, "leader {leader}")?,
            None => write!(f, "no leader")?,
        }
        if let Some(epoch) = self.leader_epoch {
            write!(f, ", epoch {epoch}")?;
        }
        let isr: Vec<String> = self.isr.iter().map(BrokerId::to_string).collect();
        write!(f, ", ISR {}", isr.join(","))?;
        match self.min_isr {
            Some(min) => write!(f, ", min ISR {min}"),
            None => Ok(()),
        }
    }
}

/// A record that was not delivered. Cheap to clone: the records of a batch share it.
#[derive(Debug, Clone)]
pub struct ProduceError(Arc<Detail>);

#[derive(Debug)]
struct Detail {
    topic: Arc<str>,
    partition: PartitionIndex,
    why: GaveUp,
    history: History,
    last_known: Option<PartitionState>,
}

impl ProduceError {
    pub(crate) fn new(
        topic: Arc<str>,
        partition: PartitionIndex,
        why: GaveUp,
        history: History,
        last_known: Option<PartitionState>,
    ) -> ProduceError {
        ProduceError(Arc::new(Detail { topic, partition, why, history, last_known }))
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.0.topic
    }

    /// The partition.
    pub fn partition(&self) -> PartitionIndex {
        self.0.partition
    }

    /// Why the producer gave up.
    pub fn gave_up(&self) -> &GaveUp {
        &self.0.why
    }

    /// Every attempt, oldest first (of very many, the first and the newest).
    pub fn attempts(&self) -> &[Attempt] {
        &self.0.history.attempts
    }

    /// Attempts that were made but are not listed.
    pub fn attempts_left_out(&self) -> usize {
        self.0.history.left_out
    }

    /// The last error a broker answered, also where a deadline came after it.
    pub fn last_answer(&self) -> Option<&BrokerError> {
        self.0.history.attempts.iter().rev().find_map(|attempt| match &attempt.outcome {
            AttemptOutcome::Refused { error, .. } => Some(error),
            _ => None,
        })
    }

    /// The code of the last error a broker answered.
    pub fn kafka_code(&self) -> Option<ErrorCode> {
        self.last_answer()
            .map(|error| error.code)
            .or_else(|| self.0.history.attempts.iter().rev().find_map(Attempt::code))
    }

    /// Whether the same record may well be delivered later.
    pub fn is_retriable(&self) -> bool {
        match self.0.why {
            GaveUp::Refused => self.kafka_code().is_some_and(is_retriable),
            GaveUp::Deadline { .. } | GaveUp::Retries => true,
            GaveUp::Closed | GaveUp::Unsendable(_) => false,
        }
    }

    /// Whether this producer cannot go on at all.
    pub fn is_fatal(&self) -> bool {
        self.0.why == GaveUp::Closed
    }

    /// Whether the record may have been stored all the same.
    pub fn persisted(&self) -> Persisted {
        self.0.history.persisted()
    }

    /// What was last known of the partition.
    pub fn last_known(&self) -> Option<&PartitionState> {
        self.0.last_known.as_ref()
    }

    fn cause(&self) -> String {
        let attempts = &self.0.history.attempts;
        let Some(last) = attempts.last() else {
            return "it was not sent".to_owned();
        };
        let name = |broker: Option<BrokerId>| {
            broker.map_or_else(|| "no broker".to_owned(), |id| format!("broker {id}"))
        };
        let current = match &last.outcome {
            AttemptOutcome::Refused { error, .. } => {
                let same = attempts.iter().filter(|attempt| attempt.code() == Some(error.code)).count();
                let times = if same > 1 { format!(", {same} times") } else { String::new() };
                let meaning = meaning(error.code);
                return format!("{} answered {error}{meaning}{times}", name(last.broker));
            }
            AttemptOutcome::NoAnswer(error) => format!("{} gave no answer ({error})", name(last.broker)),
            AttemptOutcome::NotSent(error) => error.to_string(),
            AttemptOutcome::NoLeader => "the partition has no leader".to_owned(),
        };
        // What happened last does not hide what a broker said before.
        match self.last_answer() {
            Some(error) => format!("{current}; before that a broker answered {error}{}", meaning(error.code)),
            None => current,
        }
    }
}

/// A few words beside the codes that are the heart of the matter.
fn meaning(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NotEnoughReplicas => " (too few in-sync replicas: nothing is stored)",
        ErrorCode::NotEnoughReplicasAfterAppend => " (stored by the leader, then too few in-sync replicas)",
        ErrorCode::RequestTimedOut => {
            " (stored by the leader, but an in-sync replica has not copied it, and the ISR did not change)"
        }
        _ => "",
    }
}

impl fmt::Display for ProduceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Detail { topic, partition, why, last_known, .. } = &*self.0;
        write!(f, "{topic}-{partition}: ")?;
        match why {
            GaveUp::Refused => write!(f, "refused: {}", self.cause())?,
            GaveUp::Deadline { limit } => {
                write!(f, "not delivered within {} ms: {}", limit.as_millis(), self.cause())?;
            }
            GaveUp::Retries => write!(f, "no retries are left: {}", self.cause())?,
            GaveUp::Closed => write!(f, "the producer was closed: {}", self.cause())?,
            GaveUp::Unsendable(reason) => f.write_str(reason)?,
        }
        if let Some(state) = last_known {
            write!(f, " [{state}]")?;
        }
        match self.persisted() {
            Persisted::No => f.write_str("; it is not stored"),
            Persisted::Maybe => f.write_str("; it may be stored"),
        }
    }
}

impl std::error::Error for ProduceError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i16, may_be_stored: bool) -> Attempt {
        let error = BrokerError::from_wire(code, None).expect("an error");
        let outcome = AttemptOutcome::Refused { error, may_be_stored };
        Attempt { at: SystemTime::UNIX_EPOCH, broker: Some(BrokerId(1)), outcome }
    }

    fn error(attempts: Vec<Attempt>) -> ProduceError {
        let mut history = History::default();
        attempts.into_iter().for_each(|attempt| history.add(attempt));
        let why = GaveUp::Deadline { limit: Duration::from_secs(2) };
        ProduceError::new("orders".into(), PartitionIndex(0), why, history, None)
    }

    #[test]
    fn a_deadline_does_not_hide_the_brokers_answer() {
        let error = error(vec![refused(19, false), refused(19, false)]);
        assert_eq!(error.kafka_code(), Some(ErrorCode::NotEnoughReplicas));
        assert_eq!(error.persisted(), Persisted::No);
        let text = error.to_string();
        assert!(
            text.starts_with(
                "orders-0: not delivered within 2000 ms: broker 1 answered NOT_ENOUGH_REPLICAS (19)"
            ),
            "{text}"
        );
        assert!(text.ends_with("2 times; it is not stored"), "{text}");
    }

    #[test]
    fn nor_does_a_missing_leader_afterwards() {
        let none = Attempt { at: SystemTime::UNIX_EPOCH, broker: None, outcome: AttemptOutcome::NoLeader };
        let error = error(vec![refused(7, true), none.clone(), none]);
        assert_eq!(error.attempts().len(), 2, "no leader is one attempt");
        assert_eq!(error.persisted(), Persisted::Maybe);
        let text = error.to_string();
        assert!(text.contains("no leader") && text.contains("REQUEST_TIMED_OUT"), "{text}");
    }

    #[test]
    fn the_list_of_attempts_is_bounded() {
        let error = error((0..MAX_ATTEMPTS_KEPT + 10).map(|_| refused(6, false)).collect());
        assert_eq!(error.attempts().len(), MAX_ATTEMPTS_KEPT);
        assert_eq!(error.attempts_left_out(), 10);
    }
}
