//! Feature levels: what the cluster has agreed to do.

use std::collections::BTreeSet;

use minikafka_metadata::{ConfigResource, ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION, Record};
use minikafka_model::{BrokerId, ErrorCode};

use crate::answer::{Answer, FeatureResult, Refusal};
use crate::command::{FeatureUpdate, Overrides, UpdateFeatures, UpgradeType};
use crate::draft::{Draft, Exclusion, MIN_ISR};
use crate::election::Wish;
use crate::event::ControlEvent;

/// Which levels of a feature this program can work with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureRange {
    /// Its name.
    pub name: &'static str,
    /// The lowest level.
    pub min: u16,
    /// The highest level.
    pub max: u16,
}

/// The level of `metadata.version` that this program writes: Kafka's 4.4-IV2.
pub const METADATA_VERSION_LEVEL: u16 = 33;

/// The features of this program.
pub const FEATURES: [FeatureRange; 2] = [
    FeatureRange { name: ELIGIBLE_LEADER_REPLICAS, min: 0, max: 1 },
    FeatureRange { name: METADATA_VERSION, min: METADATA_VERSION_LEVEL, max: METADATA_VERSION_LEVEL },
];

/// The feature levels of a new cluster, as [`crate::Control::tick`] decides them first of all; for tests that begin with a cluster.
/// `elr` is the level of `eligible.leader.replicas.version`.
pub fn bootstrap_records(elr: u16) -> Vec<Record> {
    vec![
        Record::FeatureLevel { name: METADATA_VERSION.to_owned(), level: METADATA_VERSION_LEVEL },
        Record::FeatureLevel { name: ELIGIBLE_LEADER_REPLICAS.to_owned(), level: elr },
    ]
}

impl Draft<'_> {
    pub(crate) fn update_features(&mut self, it: UpdateFeatures) -> Answer {
        let mut seen = BTreeSet::new();
        for update in &it.updates {
            let verdict = if seen.insert(update.name.as_str()) {
                self.check_feature(update)
            } else {
                Err(format!("Feature {} is named twice.", update.name))
            };
            if let Err(problem) = verdict {
                return Answer::Refused(Refusal::new(
                    ErrorCode::InvalidUpdateVersion,
                    format!(
                        "The update failed for all features since the following feature had an error: {problem}"
                    ),
                ));
            }
        }
        let results = it
            .updates
            .into_iter()
            .map(|update| {
                let level = u16::try_from(update.level).unwrap_or(0);
                if !it.validate_only && self.image.feature(&update.name) != level {
                    self.set_feature(&update.name, level);
                }
                FeatureResult { name: update.name, level }
            })
            .collect();
        Answer::UpdatedFeatures(results)
    }

    fn check_feature(&self, update: &FeatureUpdate) -> Result<(), String> {
        let FeatureUpdate { name, level, kind } = update;
        let invalid = |why: String| Err(format!("Invalid update version {level} for feature {name}. {why}"));
        let controller = self.config.id;
        let Some(range) = FEATURES.iter().find(|range| range.name == name) else {
            return invalid(format!("Local controller {controller} does not support this feature."));
        };
        let Some(wanted) = u16::try_from(*level).ok().filter(|l| (range.min..=range.max).contains(l)) else {
            return invalid(format!(
                "Local controller {controller} only supports versions {}-{}",
                range.min, range.max
            ));
        };
        let current = self.image.feature(name);
        if wanted < current && *kind == UpgradeType::Upgrade {
            return invalid(format!(
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade; it is at {current}."
            ));
        }
        if wanted > current && *kind != UpgradeType::Upgrade {
            return invalid(format!("Can't downgrade to a newer version; it is at {current}."));
        }
        Ok(())
    }

    pub(crate) fn set_features_of_new_cluster(&mut self) {
        self.set_feature(METADATA_VERSION, METADATA_VERSION_LEVEL);
        self.set_feature(ELIGIBLE_LEADER_REPLICAS, self.config.elr_of_new_cluster);
    }

    fn set_feature(&mut self, name: &str, level: u16) {
        let before = self.image.feature(name);
        self.put(Record::FeatureLevel { name: name.to_owned(), level });
        self.tell(ControlEvent::FeatureLevel { feature: name.to_owned(), level });
        match (name == ELIGIBLE_LEADER_REPLICAS, before, level) {
            (true, 1.., 0) => {
                self.list_one_in_empty_isrs();
                self.put(Record::ClearElr { topic: None });
            }
            (true, 0, 1..) => {
                self.pin_min_isr();
                self.empty_isrs_of_the_leaderless();
            }
            _ => {}
        }
    }

    /// Without ELR an ISR is never empty: one who holds every committed record is listed, so that it can lead when it is back.
    fn list_one_in_empty_isrs(&mut self) {
        for (at, state) in self.partitions_where(|state| state.isr.is_empty()) {
            let last = state
                .last_known_elr
                .filter(|id| state.replicas.contains(id) && (state.elr.is_empty() || state.elr.contains(id)));
            let Some(keeper) = last.or_else(|| state.elr.first().copied()) else { continue };
            let wish = Wish::isr(vec![keeper]);
            let kind = self.usual_kind(at.topic);
            self.edit(at, wish, kind, Exclusion::default(), "eligible leader replicas were switched off");
        }
    }

    /// With ELR a broker that is away is in no ISR: the member that stayed listed without one becomes eligible instead.
    fn empty_isrs_of_the_leaderless(&mut self) {
        for (at, state) in self.partitions_where(|state| state.leader.is_none()) {
            let isr = state.isr.iter().copied().filter(|id| self.image.is_active(*id)).collect();
            let (wish, kind) = (Wish::isr(isr), self.usual_kind(at.topic));
            self.edit(at, wish, kind, Exclusion::default(), "eligible leader replicas were switched on");
        }
    }

    /// With ELR the minimum must be one and the same for all brokers: the static value becomes a dynamic default of the cluster, and
    /// brokers' own values go (Kafka semantics 6.6).
    fn pin_min_isr(&mut self) {
        if self.image.config(ConfigResource::ClusterDefault, MIN_ISR).is_none() {
            let none = Overrides::new();
            let value =
                self.config.rules.topic_value(MIN_ISR, &none, &none).unwrap_or_else(|| "1".to_owned());
            self.put(Record::Config {
                resource: ConfigResource::ClusterDefault,
                key: MIN_ISR.to_owned(),
                value: Some(value),
            });
        }
        let brokers: Vec<BrokerId> = self.image.brokers().keys().copied().collect();
        for broker in brokers {
            let resource = ConfigResource::Broker(broker);
            if self.image.config(resource, MIN_ISR).is_some() {
                self.put(Record::Config { resource, key: MIN_ISR.to_owned(), value: None });
            }
        }
    }
}
