//! Seeded bugs: one-line faults behind a cargo feature. A test shows that each one is caught, so that a guard which nothing would
//! miss is found out. Without the feature every question is the constant `false`.

#[cfg(all(feature = "seeded-bugs", not(debug_assertions)))]
compile_error!("the feature `seeded-bugs` plants faults and is refused in release builds");

/// A fault that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeededBug {
    /// A member of a proposed ISR is not asked whether it is alive (KIP-841).
    IneligibleMemberJoins,
    /// A member's broker epoch is not compared (KIP-903, X9).
    MemberEpochNotChecked,
    /// A proposal built on an old partition epoch is taken (X8).
    OldPartitionEpochTaken,
    /// A proposal built on an old leader epoch is taken.
    OldLeaderEpochTaken,
    /// Where nobody is in sync any live replica is elected, whatever the topic says.
    UncleanWithoutLeave,
    /// The leader epoch stays when a reassignment takes replicas away.
    EpochStaysOnRemoval,
    /// Fencing leaves the ISRs as they are.
    FencedStaysInIsr,
    /// A second process takes over a live broker's id.
    LiveBrokerReplaced,
    /// A new incarnation stays in the ISRs of the old one.
    NewLifeKeepsIsr,
    /// A broker is unfenced before it knows its own registration.
    UnfencedTooEarly,
    /// A broker may end before the others know who leads.
    EndsTooEarly,
    /// A new active controller remembers nobody.
    NoFreshSessions,
    /// A broker that may have lost records stays in the ELR (KAFKA-18106).
    UncleanStaysInElr,
    /// The ELR is kept although the ISR is large enough.
    ElrNeverCleared,
    /// The ELR counts although the ISR has members.
    ElrBeforeIsr,
}

impl SeededBug {
    /// Every one of them.
    pub const ALL: &[SeededBug] = &[
        SeededBug::IneligibleMemberJoins,
        SeededBug::MemberEpochNotChecked,
        SeededBug::OldPartitionEpochTaken,
        SeededBug::OldLeaderEpochTaken,
        SeededBug::UncleanWithoutLeave,
        SeededBug::EpochStaysOnRemoval,
        SeededBug::FencedStaysInIsr,
        SeededBug::LiveBrokerReplaced,
        SeededBug::NewLifeKeepsIsr,
        SeededBug::UnfencedTooEarly,
        SeededBug::EndsTooEarly,
        SeededBug::NoFreshSessions,
        SeededBug::UncleanStaysInElr,
        SeededBug::ElrNeverCleared,
        SeededBug::ElrBeforeIsr,
    ];
}

/// The fault planted for a test of the tests, if any.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    #[cfg(feature = "seeded-bugs")]
    planted: Option<SeededBug>,
}

impl Faults {
    /// With one fault.
    #[cfg(feature = "seeded-bugs")]
    pub fn plant(bug: SeededBug) -> Faults {
        Faults { planted: Some(bug) }
    }

    /// Whether this fault is planted.
    #[cfg(feature = "seeded-bugs")]
    pub(crate) fn has(self, bug: SeededBug) -> bool {
        self.planted == Some(bug)
    }

    /// Whether this fault is planted: never, without the feature.
    #[cfg(not(feature = "seeded-bugs"))]
    #[expect(clippy::unused_self, reason = "the same call with and without the feature")]
    pub(crate) const fn has(self, _bug: SeededBug) -> bool {
        false
    }
}
