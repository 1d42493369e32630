//! What the active controller does without being asked: fencing, unclean elections, moving leaderships back.

use minikafka_metadata::{BrokerRegistration, Image, METADATA_VERSION};
use minikafka_model::{BrokerId, Mono, TopicPartition};

use crate::answer::{Answer, Background};
use crate::control::{Control, Decision, Moment};
use crate::draft::{Draft, Exclusion};
use crate::election::{ElectionKind, Wish};

/// Preferred elections in one decision; more follow at once.
const MAX_ELECTIONS: usize = 1000;

impl Control {
    /// What is due now, as one decision; none when nothing is. The desk calls this again with the next moment until it is none, and
    /// then sleeps until [`Control::next_wake`]. One broker is fenced in a decision (Kafka semantics 6.3).
    ///
    /// # Panics
    /// If the decision breaks an invariant of the metadata: the process has to stop before it is written.
    pub fn tick(&mut self, at: &Moment) -> Option<Decision> {
        let first = self.begin_cluster(at);
        first.or_else(|| self.sweep(at)).or_else(|| self.unclean_elections(at)).or_else(|| self.rebalance(at))
    }

    /// When [`Control::tick`] has something to look at; none while this controller is not active.
    pub fn next_wake(&self) -> Option<Mono> {
        let active = self.active.as_ref()?;
        if is_new(&active.image) {
            return Some(Mono::default());
        }
        let rebalance = self.config.auto_rebalance.then_some(active.next_rebalance);
        [Some(active.next_sweep), Some(active.next_unclean), rebalance].into_iter().flatten().min()
    }

    /// The first decision of a new cluster: what its features are.
    fn begin_cluster(&mut self, at: &Moment) -> Option<Decision> {
        let active = self.active.as_mut().filter(|active| is_new(&active.image))?;
        let mut draft = Draft::new(&self.config, at, active.image.clone());
        draft.set_features_of_new_cluster();
        Some(active.settle(at, draft, Answer::Background(Background::NewCluster)))
    }

    fn sweep(&mut self, at: &Moment) -> Option<Decision> {
        let (now, period) = (at.now.mono, self.sweep_period());
        let active = self.active.as_mut().filter(|active| active.next_sweep <= now)?;
        while let Some((broker, epoch, contact)) = active.sessions.expired(now, self.config.session_timeout) {
            active.sessions.end(broker);
            let known = active.image.broker(broker).filter(|known| known.epoch == epoch && !known.fenced);
            let Some(known) = known.cloned() else { continue };
            let silent = u64::try_from(now.since(contact).as_millis()).unwrap_or(u64::MAX);
            let mut draft = Draft::new(&self.config, at, active.image.clone());
            draft.fence_silent(&known, silent);
            // The next sweep stays due: the next one to fence follows at once.
            return Some(active.settle(at, draft, Answer::Background(Background::Fenced(broker))));
        }
        active.next_sweep = now.after(period);
        None
    }

    fn unclean_elections(&mut self, at: &Moment) -> Option<Decision> {
        let now = at.now.mono;
        let active = self.active.as_mut().filter(|active| active.next_unclean <= now)?;
        active.next_unclean = now.after(self.config.unclean_interval);
        let mut draft = Draft::new(&self.config, at, active.image.clone());
        for (partition, _) in draft.partitions_where(|state| state.leader.is_none()) {
            if draft.unclean_allowed(partition.topic) {
                let (kind, out) = (ElectionKind::Unclean, Exclusion::default());
                draft.edit(partition, Wish::default(), kind, out, "unclean elections are enabled");
            }
        }
        let something = !draft.records.is_empty();
        let decision = active.settle(at, draft, Answer::Background(Background::UncleanElections));
        something.then_some(decision)
    }

    fn rebalance(&mut self, at: &Moment) -> Option<Decision> {
        if !self.config.auto_rebalance {
            return None;
        }
        let now = at.now.mono;
        let active = self.active.as_mut().filter(|active| active.next_rebalance <= now)?;
        let mut draft = Draft::new(&self.config, at, active.image.clone());
        for partition in draft.away_from_preferred() {
            if draft.records.len() == MAX_ELECTIONS {
                break;
            }
            let out = Exclusion::default();
            let change = draft.plan(partition, Wish::default(), ElectionKind::Preferred, out);
            // An election that ends elsewhere than at the preferred leader helps nobody.
            if let Some(change) = change.filter(|c| c.after.leader == c.after.preferred_leader()) {
                draft.commit(partition, &change, "back to the preferred leader");
            }
        }
        if draft.records.len() < MAX_ELECTIONS {
            active.next_rebalance = now.after(self.config.rebalance_interval);
        }
        let something = !draft.records.is_empty();
        let decision = active.settle(at, draft, Answer::Background(Background::PreferredElections));
        something.then_some(decision)
    }
}

/// Nothing was ever decided in this cluster.
fn is_new(image: &Image) -> bool {
    image.feature(METADATA_VERSION) == 0
}

impl Draft<'_> {
    fn fence_silent(&mut self, known: &BrokerRegistration, silent_ms: u64) {
        self.fence(known, "its session timed out", Some(silent_ms));
    }

    fn away_from_preferred(&self) -> Vec<TopicPartition> {
        let preferred_is_there = |id: Option<BrokerId>| id.is_some_and(|id| self.image.is_active(id));
        self.image
            .partitions()
            .filter(|(_, state)| state.leader != state.preferred_leader())
            .filter(|(_, state)| preferred_is_there(state.preferred_leader()))
            .map(|(at, _)| at)
            .collect()
    }
}
