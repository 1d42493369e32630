//! Seeded bugs: one-line faults behind a cargo feature. A test in `sim` shows that each one is caught, so that a guard which
//! nothing would miss is found out. Without the feature every question is the constant `false`.

use crate::ReplicaConfig;

#[cfg(all(feature = "seeded-bugs", not(debug_assertions)))]
compile_error!("the feature `seeded-bugs` plants faults and is refused in release builds");

/// A fault that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeededBug {
    /// The high watermark is taken over the committed ISR instead of the maximal one (X7).
    HighWatermarkOverCommittedIsr,
    /// The high watermark moves while the ISR is below the minimum (KAFKA-15583).
    HighWatermarkBelowMinIsr,
    /// A follower joins the ISR although it lacks what lies below the start of the leader's epoch (KAFKA-7128, X6).
    JoinWithoutEpochStart,
    /// A follower joins without its broker epoch being looked at (KIP-903, X9).
    JoinWithoutBrokerEpoch,
    /// On becoming follower the log is cut at the own high watermark (KIP-101, X1).
    TruncateToHighWatermark,
    /// An answer is applied whatever the follower asked for since (X12).
    StaleAnswerApplied,
    /// The leader does not compare leader epochs of fetches (X3).
    FetchNotFenced,
    /// A diverging follower's log end counts (KAFKA-13141).
    DivergingCounts,
    /// Waiting writes are acknowledged when leadership is lost.
    AckOnLeadershipLoss,
    /// Writes are acknowledged as soon as the leader has them.
    AckOnAppend,
    /// Progress is kept over a change of leader epoch (X10).
    ProgressKept,
    /// A new leader does not record the start of its epoch (KAFKA-7415).
    EpochNotAssigned,
    /// Consumers read up to the log end.
    ReadAboveHighWatermark,
    /// Producer sequences are not checked.
    SequenceNotChecked,
}

impl SeededBug {
    /// Every one of them.
    pub const ALL: &[SeededBug] = &[
        SeededBug::HighWatermarkOverCommittedIsr,
        SeededBug::HighWatermarkBelowMinIsr,
        SeededBug::JoinWithoutEpochStart,
        SeededBug::JoinWithoutBrokerEpoch,
        SeededBug::TruncateToHighWatermark,
        SeededBug::StaleAnswerApplied,
        SeededBug::FetchNotFenced,
        SeededBug::DivergingCounts,
        SeededBug::AckOnLeadershipLoss,
        SeededBug::AckOnAppend,
        SeededBug::ProgressKept,
        SeededBug::EpochNotAssigned,
        SeededBug::ReadAboveHighWatermark,
        SeededBug::SequenceNotChecked,
    ];
}

impl ReplicaConfig {
    /// Whether this fault is planted.
    #[cfg(feature = "seeded-bugs")]
    pub(crate) fn has(&self, bug: SeededBug) -> bool {
        self.seeded == Some(bug)
    }

    /// Whether this fault is planted: never, without the feature.
    #[cfg(not(feature = "seeded-bugs"))]
    #[expect(clippy::unused_self, reason = "the same call with and without the feature")]
    pub(crate) const fn has(&self, _bug: SeededBug) -> bool {
        false
    }
}
