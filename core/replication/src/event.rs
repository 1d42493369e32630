//! Typed events of a replica. The shell adds topic and partition, keeps them in its ring and writes their sentence to its log.

use std::collections::BTreeSet;
use std::fmt;

use minikafka_model::{BrokerEpoch, BrokerId, ErrorCode, LeaderEpoch, Offset, PartitionEpoch};
use serde::Serialize;

/// A turn in the life of a replica, with its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReplicaEvent {
    /// This replica leads from now on.
    Election {
        /// The leader epoch.
        leader_epoch: LeaderEpoch,
        /// The partition epoch.
        partition_epoch: PartitionEpoch,
        /// The epoch starts here: the log end at that moment.
        epoch_start: Offset,
        /// The high watermark it starts from; it may be behind what the previous leader showed.
        high_watermark: Offset,
        /// The committed ISR.
        isr: BTreeSet<BrokerId>,
    },
    /// This replica follows from now on.
    Following {
        /// Whom; nobody while there is no leader.
        leader: Option<BrokerId>,
        /// The leader epoch.
        leader_epoch: LeaderEpoch,
        /// Its log end.
        log_end: Offset,
    },
    /// The leader wants members out of the ISR.
    IsrShrink {
        /// Why.
        reason: &'static str,
        /// The committed ISR.
        from: BTreeSet<BrokerId>,
        /// The ISR wanted.
        to: BTreeSet<BrokerId>,
        /// The leader's log end.
        log_end: Offset,
        /// The high watermark.
        high_watermark: Offset,
        /// Each leaving member's log end as far as it is known.
        behind: Vec<(BrokerId, Option<Offset>)>,
    },
    /// The leader wants a follower in the ISR.
    IsrExpand {
        /// The committed ISR.
        from: BTreeSet<BrokerId>,
        /// The ISR wanted.
        to: BTreeSet<BrokerId>,
        /// The joining follower's log end.
        follower_log_end: Offset,
        /// The high watermark.
        high_watermark: Offset,
    },
    /// The ISR is what the controller committed.
    IsrCommitted {
        /// The members.
        isr: BTreeSet<BrokerId>,
        /// The partition epoch.
        partition_epoch: PartitionEpoch,
        /// Whether the high watermark stands still because the ISR is smaller than the effective minimum.
        below_min_isr: bool,
    },
    /// The controller did not take an ISR change.
    IsrRefused {
        /// What is done about it.
        reason: &'static str,
        /// The ISR wanted.
        wanted: BTreeSet<BrokerId>,
        /// The partition epoch it was built on.
        partition_epoch: PartitionEpoch,
    },
    /// A request was refused because of its epoch.
    Fencing {
        /// Which rule.
        reason: &'static str,
        /// Who asked.
        broker: BrokerId,
        /// Its leader epoch.
        their_epoch: LeaderEpoch,
        /// Ours.
        our_epoch: LeaderEpoch,
        /// Its broker epoch.
        broker_epoch: BrokerEpoch,
    },
    /// The log was cut.
    Truncation {
        /// Why.
        reason: &'static str,
        /// The log end before.
        from: Offset,
        /// The log end after.
        to: Offset,
        /// The high watermark before.
        high_watermark: Offset,
        /// Whether it went below the high watermark: legal after an unclean election only.
        below_high_watermark: bool,
        /// The leader epoch followed.
        leader_epoch: LeaderEpoch,
    },
    /// The follower gave up its log and starts anew at the leader's log start.
    StartedAnew {
        /// The log end before.
        from: Offset,
        /// The leader's log start.
        at: Offset,
    },
    /// The leader answered a fetch with an error.
    FetchError {
        /// The code.
        code: i16,
        /// What is done about it.
        reason: &'static str,
        /// The leader.
        leader: Option<BrokerId>,
        /// The leader epoch asked with.
        leader_epoch: LeaderEpoch,
    },
    /// Bytes from the leader were not usable.
    BadReplicaData {
        /// What was wrong.
        reason: String,
        /// The log end at which it was refused.
        at: Offset,
    },
    /// A write was refused because the ISR is too small.
    Refusal {
        /// Error 19's own words.
        reason: String,
        /// The members.
        isr: Vec<BrokerId>,
        /// The effective minimum.
        needed: usize,
        /// The configured minimum.
        configured: usize,
    },
    /// A write waited for the ISR until its time was over.
    Timeout {
        /// Its last offset.
        last_offset: Offset,
        /// The high watermark.
        high_watermark: Offset,
        /// Who holds it back: members of the maximal ISR that do not have it.
        lacking: Vec<BrokerId>,
        /// Whether the ISR is below the minimum, so that the high watermark stands still.
        below_min_isr: bool,
    },
    /// The replica is offline.
    Offline {
        /// What the storage said.
        reason: String,
    },
}

impl ReplicaEvent {
    pub(crate) fn fetch_error(
        code: ErrorCode,
        reason: &'static str,
        leader: Option<BrokerId>,
        leader_epoch: LeaderEpoch,
    ) -> ReplicaEvent {
        ReplicaEvent::FetchError { code: code.code(), reason, leader, leader_epoch }
    }
}

struct Members<'a>(&'a BTreeSet<BrokerId>);

impl fmt::Display for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, member) in self.0.iter().enumerate() {
            write!(f, "{}{member}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for ReplicaEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplicaEvent::Election { leader_epoch, partition_epoch, epoch_start, high_watermark, isr } => {
                write!(
                    f,
                    "Leader from leader epoch {leader_epoch} (partition epoch {partition_epoch}), which starts at offset {epoch_start}, with high watermark {high_watermark} and ISR {}",
                    Members(isr)
                )
            }
            ReplicaEvent::Following { leader: Some(leader), leader_epoch, log_end } => {
                write!(
                    f,
                    "Follower of broker {leader} in leader epoch {leader_epoch} from log end offset {log_end}"
                )
            }
            ReplicaEvent::Following { leader: None, leader_epoch, log_end } => {
                write!(
                    f,
                    "Follower without a leader in leader epoch {leader_epoch} at log end offset {log_end}"
                )
            }
            ReplicaEvent::IsrShrink { reason, from, to, log_end, high_watermark, behind } => {
                write!(
                    f,
                    "Shrinking ISR from {} to {} ({reason}). Leader: (highWatermark: {high_watermark}, endOffset: {log_end}). Out of sync replicas:",
                    Members(from),
                    Members(to)
                )?;
                behind.iter().try_for_each(|(broker, end)| match end {
                    Some(end) => write!(f, " (brokerId: {broker}, endOffset: {end})"),
                    None => write!(f, " (brokerId: {broker}, endOffset: unknown)"),
                })
            }
            ReplicaEvent::IsrExpand { from, to, follower_log_end, high_watermark } => write!(
                f,
                "Expanding ISR from {} to {} (follower's log end offset {follower_log_end}, high watermark {high_watermark})",
                Members(from),
                Members(to)
            ),
            ReplicaEvent::IsrCommitted { isr, partition_epoch, below_min_isr } => write!(
                f,
                "ISR updated to {} and version updated to {partition_epoch}{}",
                Members(isr),
                if *below_min_isr {
                    "; it is below the minimum, so the high watermark stands still"
                } else {
                    ""
                }
            ),
            ReplicaEvent::IsrRefused { reason, wanted, partition_epoch } => write!(
                f,
                "The controller did not take the ISR {} built on partition epoch {partition_epoch}: {reason}",
                Members(wanted)
            ),
            ReplicaEvent::Fencing { reason, broker, their_epoch, our_epoch, broker_epoch } => write!(
                f,
                "Refused a fetch of broker {broker} (broker epoch {broker_epoch}) with leader epoch {their_epoch}; ours is {our_epoch}: {reason}"
            ),
            ReplicaEvent::Truncation {
                reason,
                from,
                to,
                high_watermark,
                below_high_watermark,
                leader_epoch,
            } => write!(
                f,
                "Truncating to offset {to} from {from} in leader epoch {leader_epoch} ({reason}){}",
                if *below_high_watermark {
                    format!(", below the high watermark {high_watermark}")
                } else {
                    String::new()
                }
            ),
            ReplicaEvent::StartedAnew { from, at } => {
                write!(
                    f,
                    "Truncated fully from {from}: the log starts anew at the leader's log start offset {at}"
                )
            }
            ReplicaEvent::FetchError { code, reason, leader, leader_epoch } => {
                let name = ErrorCode::from_code(*code).map_or("unknown error", ErrorCode::name);
                match leader {
                    Some(leader) => write!(
                        f,
                        "Broker {leader} answered a fetch with {name} ({code}) in leader epoch {leader_epoch}: {reason}"
                    ),
                    None => write!(
                        f,
                        "A fetch ended with {name} ({code}) in leader epoch {leader_epoch}: {reason}"
                    ),
                }
            }
            ReplicaEvent::BadReplicaData { reason, at } => {
                write!(f, "Did not append what the leader sent for offset {at}: {reason}")
            }
            ReplicaEvent::Refusal { reason, .. } => {
                write!(f, "Refused a write with NOT_ENOUGH_REPLICAS: {reason}")
            }
            ReplicaEvent::Timeout { last_offset, high_watermark, lacking, below_min_isr } => {
                write!(
                    f,
                    "A write up to offset {last_offset} timed out with the high watermark at {high_watermark}; "
                )?;
                if *below_min_isr {
                    f.write_str("the ISR is below the minimum")
                } else {
                    write!(
                        f,
                        "in-sync replicas that lack it: {lacking:?}",
                        lacking = lacking.iter().map(|b| b.0).collect::<Vec<_>>()
                    )
                }
            }
            ReplicaEvent::Offline { reason } => write!(f, "The replica is offline: {reason}"),
        }
    }
}
