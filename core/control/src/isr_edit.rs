//! What the controller does to ISRs and leaderships by its own judgement, when a broker comes or goes (Kafka semantics 2.8, 6.3).

use std::sync::Arc;

use minikafka_metadata::PartitionState;
use minikafka_model::{BrokerId, DirectoryId, TopicPartition};

use crate::draft::{Draft, Exclusion};
use crate::election::Wish;
use crate::seeded::SeededBug;

impl Draft<'_> {
    pub(crate) fn partitions_where(
        &self,
        wanted: impl Fn(&PartitionState) -> bool,
    ) -> Vec<(TopicPartition, Arc<PartitionState>)> {
        let all = self.image.partitions();
        all.filter(|(_, state)| wanted(state)).map(|(at, state)| (at, Arc::clone(state))).collect()
    }

    /// How many partitions a broker leads.
    pub(crate) fn leaderships(&self, broker: BrokerId) -> usize {
        self.image.partitions().filter(|(_, state)| state.leader == Some(broker)).count()
    }

    /// Takes a broker out of every ISR, with elections where it led. It stays in the ELR.
    pub(crate) fn remove_from_isrs(&mut self, broker: BrokerId, reason: &'static str) {
        if self.config.faults.has(SeededBug::FencedStaysInIsr) {
            return;
        }
        let out = Exclusion { leaving: Some(broker), unclean: None };
        for (at, _) in self.partitions_where(|state| state.isr.contains(&broker)) {
            self.remove_from_isr(at, broker, out, Vec::new(), reason);
        }
    }

    /// Takes a broker that may have lost records out of every ISR and, where ELR is kept, out of every ELR.
    pub(crate) fn remove_unclean(&mut self, broker: BrokerId, reason: &'static str) {
        let out = Exclusion { leaving: Some(broker), unclean: Some(broker) };
        let listed = |state: &PartitionState| state.isr.contains(&broker) || state.elr.contains(&broker);
        for (at, _) in self.partitions_where(listed) {
            self.remove_from_isr(at, broker, out, vec![broker], reason);
        }
    }

    /// Takes a broker out of the ISRs of those replicas that lie on a failed directory.
    pub(crate) fn remove_from_failed_dirs(
        &mut self,
        broker: BrokerId,
        failed: &[DirectoryId],
        reason: &'static str,
    ) {
        let hit = |state: &PartitionState| state.directory(broker).is_some_and(|dir| failed.contains(&dir));
        for (at, _) in self.partitions_where(|state| state.isr.contains(&broker) && hit(state)) {
            let out = Exclusion { leaving: Some(broker), unclean: None };
            self.remove_from_isr(at, broker, out, Vec::new(), reason);
        }
    }

    fn remove_from_isr(
        &mut self,
        at: TopicPartition,
        broker: BrokerId,
        out: Exclusion,
        unclean_shutdown: Vec<BrokerId>,
        reason: &'static str,
    ) {
        let Some(state) = self.image.partition(at) else { return };
        let isr = state.isr.iter().copied().filter(|id| *id != broker).collect();
        let wish = Wish { unclean_shutdown, ..Wish::isr(isr) };
        self.edit(at, wish, self.usual_kind(at.topic), out, reason);
    }

    /// Looks again at every partition without a leader, now that somebody is there who could be one.
    pub(crate) fn elect_where_leaderless(&mut self, reason: &'static str) {
        for (at, _) in self.partitions_where(|state| state.leader.is_none()) {
            self.edit(at, Wish::default(), self.usual_kind(at.topic), Exclusion::default(), reason);
        }
    }
}
