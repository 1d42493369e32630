//! What the metadata image says: the facts a replica is told, never asks for.

use std::collections::{BTreeMap, BTreeSet};

use minikafka_metadata::{BrokerRegistration, Image, PartitionState};
use minikafka_model::{BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch};

/// What the committed metadata says of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionFacts {
    /// The assigned replicas in their order, those being added or removed included.
    pub replicas: Vec<BrokerId>,
    /// The in-sync replicas. Their order carries no meaning (Kafka semantics 2.4).
    pub isr: BTreeSet<BrokerId>,
    /// The leader, if there is one.
    pub leader: Option<BrokerId>,
    /// The leader epoch.
    pub leader_epoch: LeaderEpoch,
    /// The partition epoch.
    pub partition_epoch: PartitionEpoch,
    /// Whether the leader came from an unclean election and has not reported itself recovered yet (Kafka semantics 6.4).
    pub recovery: Recovery,
}

/// `LeaderRecoveryState` of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The normal state.
    Recovered,
    /// After an unclean election, until the leader's next ISR proposal.
    Recovering,
}

/// What the committed metadata says of one broker, as far as a leader cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerFacts {
    /// The epoch of its current registration.
    pub epoch: BrokerEpoch,
    /// Registered, not fenced and not in controlled shutdown: may be a member of an ISR (KIP-841).
    pub eligible: bool,
}

/// The registered brokers. A broker that is absent is not eligible.
pub type Brokers = BTreeMap<BrokerId, BrokerFacts>;

impl From<&PartitionState> for PartitionFacts {
    fn from(state: &PartitionState) -> PartitionFacts {
        PartitionFacts {
            replicas: state.replicas.clone(),
            isr: state.isr_set(),
            leader: state.leader,
            leader_epoch: state.leader_epoch,
            partition_epoch: state.partition_epoch,
            recovery: match state.recovery {
                minikafka_metadata::Recovery::Recovered => Recovery::Recovered,
                minikafka_metadata::Recovery::Recovering => Recovery::Recovering,
            },
        }
    }
}

impl From<&BrokerRegistration> for BrokerFacts {
    fn from(registration: &BrokerRegistration) -> BrokerFacts {
        BrokerFacts { epoch: registration.epoch, eligible: registration.is_active() }
    }
}

/// The registered brokers of an image.
pub fn brokers_of(image: &Image) -> Brokers {
    image.brokers().iter().map(|(id, registration)| (*id, BrokerFacts::from(registration.as_ref()))).collect()
}
