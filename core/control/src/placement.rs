//! Where the replicas of new partitions go: striped over racks and brokers (Kafka semantics 6.8).
//!
//! Each partition takes one broker of each rack in turn, and the next partition starts one rack and one broker further, so that both
//! leaders and replicas spread evenly and no two partitions in a row share their set of brokers in the same order.

use std::collections::BTreeMap;

use minikafka_model::BrokerId;

use crate::dice::Dice;

/// A broker that may get a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The broker.
    pub broker: BrokerId,
    /// Its rack; brokers without one share one.
    pub rack: Option<String>,
    /// Fenced brokers are taken last, and never as first replica.
    pub fenced: bool,
}

/// Why there is no placement, in Kafka's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Nobody can lead.
    #[error("All brokers are currently fenced.")]
    AllFenced,
    /// More replicas than brokers.
    #[error(
        "The target replication factor of {wanted} cannot be reached because only {registered} broker(s) are registered or some brokers have all their log directories cordoned."
    )]
    TooFewBrokers {
        /// The replication factor.
        wanted: usize,
        /// Brokers that could take a replica.
        registered: usize,
    },
    /// No replicas.
    #[error("Invalid replication factor {0}: the replication factor must be positive.")]
    NotPositive(usize),
}

/// The replicas of `count` new partitions.
///
/// # Errors
/// Fewer brokers than replicas, or nobody who could lead.
pub fn place(
    candidates: &[Candidate],
    count: usize,
    replication_factor: usize,
    dice: &mut Dice,
) -> Result<Vec<Vec<BrokerId>>, PlacementError> {
    if replication_factor == 0 {
        return Err(PlacementError::NotPositive(replication_factor));
    }
    let unfenced = candidates.iter().filter(|candidate| !candidate.fenced).count();
    if unfenced == 0 {
        return Err(PlacementError::AllFenced);
    }
    if replication_factor > candidates.len() {
        return Err(PlacementError::TooFewBrokers {
            wanted: replication_factor,
            registered: candidates.len(),
        });
    }
    let mut racks = Racks::new(candidates, dice);
    Ok((0..count)
        .map(|n| {
            if n > 0 && n % unfenced == 0 {
                racks.shuffle(dice);
            }
            racks.next_partition(n, replication_factor)
        })
        .collect())
}

/// Brokers of one kind in one rack, each taken at most once in a round (one partition).
#[derive(Debug, Default)]
struct Ring {
    brokers: Vec<BrokerId>,
    start: usize,
    taken: usize,
    round: usize,
}

impl Ring {
    fn next(&mut self, round: usize) -> Option<BrokerId> {
        if self.brokers.is_empty() {
            return None;
        }
        if self.round != round {
            self.round = round;
            self.taken = 0;
            self.start = (self.start + 1) % self.brokers.len();
        }
        if self.taken == self.brokers.len() {
            return None;
        }
        let broker = self.brokers[(self.start + self.taken) % self.brokers.len()];
        self.taken += 1;
        Some(broker)
    }
}

#[derive(Debug, Default)]
struct Rack {
    unfenced: Ring,
    fenced: Ring,
}

#[derive(Debug)]
struct Racks {
    racks: Vec<Rack>,
    start: usize,
}

impl Racks {
    fn new(candidates: &[Candidate], dice: &mut Dice) -> Racks {
        let mut sorted: Vec<&Candidate> = candidates.iter().collect();
        sorted.sort_by_key(|candidate| candidate.broker);
        let mut racks: BTreeMap<Option<&str>, Rack> = BTreeMap::new();
        for candidate in sorted {
            let rack = racks.entry(candidate.rack.as_deref()).or_default();
            let ring = if candidate.fenced { &mut rack.fenced } else { &mut rack.unfenced };
            ring.brokers.push(candidate.broker);
        }
        let mut racks: Vec<Rack> = racks.into_values().collect();
        for rack in &mut racks {
            rack.unfenced.start = dice.below(rack.unfenced.brokers.len());
            rack.fenced.start = dice.below(rack.fenced.brokers.len());
        }
        let start = dice.below(racks.len());
        Racks { racks, start }
    }

    /// After as many partitions as there are unfenced brokers everything would repeat: go on in another order.
    fn shuffle(&mut self, dice: &mut Dice) {
        dice.shuffle(&mut self.racks);
        for rack in &mut self.racks {
            dice.shuffle(&mut rack.unfenced.brokers);
            dice.shuffle(&mut rack.fenced.brokers);
        }
    }

    /// The replicas of one partition. There are enough brokers and an unfenced one among them.
    fn next_partition(&mut self, round: usize, replication_factor: usize) -> Vec<BrokerId> {
        let racks = self.racks.len();
        let start = self.start % racks;
        self.start = start + 1;
        let mut replicas = Vec::with_capacity(replication_factor);
        // The rack whose turn it is may have nobody who can lead; then the next one gives the first replica.
        let mut leads = None;
        for at in (0..racks).map(|n| (start + n) % racks) {
            if let Some(broker) = self.racks[at].unfenced.next(round) {
                replicas.push(broker);
                leads = Some(at);
                break;
            }
        }
        let mut at = start;
        while replicas.len() < replication_factor {
            if leads == Some(at) {
                leads = None;
            } else {
                let rack = &mut self.racks[at];
                replicas.extend(rack.unfenced.next(round).or_else(|| rack.fenced.next(round)));
            }
            at = (at + 1) % racks;
        }
        replicas
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
