//! What a broker offers: its answer to ApiVersions.

use std::collections::BTreeMap;

use minikafka_wire::api_versions::ApiVersionsResponse;
use minikafka_wire::{ApiKey, Versions};

/// The APIs of one broker with their versions, and its feature levels.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfferedVersions {
    apis: BTreeMap<i16, Versions>,
    /// Name and level of every finalized feature.
    pub features: BTreeMap<String, i16>,
}

impl OfferedVersions {
    pub(crate) fn from_wire(answer: &ApiVersionsResponse) -> OfferedVersions {
        let apis = answer
            .api_keys
            .iter()
            .map(|api| (api.api_key, Versions::between(api.min_version, api.max_version)))
            .collect();
        let features = answer
            .finalized_features
            .iter()
            .map(|feature| (feature.name.clone(), feature.max_version_level))
            .collect();
        OfferedVersions { apis, features }
    }

    /// The versions offered of one API.
    pub fn of(&self, api: ApiKey) -> Option<Versions> {
        self.apis.get(&api.code()).copied()
    }

    /// Every API number with its versions, also those this client does not know.
    pub fn iter(&self) -> impl Iterator<Item = (i16, Versions)> + '_ {
        self.apis.iter().map(|(key, versions)| (*key, *versions))
    }

    /// The version to speak: the highest that both sides know, but not above `most`.
    pub(crate) fn common(&self, api: ApiKey, most: i16) -> Option<i16> {
        let theirs = self.of(api)?;
        api.api().common_version(Versions::between(theirs.min, theirs.max.min(most)))
    }
}

#[cfg(test)]
mod tests {
    use minikafka_wire::api_versions::ApiVersion;

    use super::*;

    #[test]
    fn the_highest_version_that_both_know() {
        let api_keys = vec![
            ApiVersion { api_key: 0, min_version: 0, max_version: 9 },
            ApiVersion { api_key: 1, min_version: 19, max_version: 30 },
        ];
        let offered = OfferedVersions::from_wire(&ApiVersionsResponse { api_keys, ..Default::default() });
        assert_eq!(offered.common(ApiKey::Produce, i16::MAX), Some(9));
        assert_eq!(offered.common(ApiKey::Produce, 7), Some(7));
        assert_eq!(offered.common(ApiKey::Fetch, i16::MAX), None, "all of theirs are newer");
        assert_eq!(offered.common(ApiKey::Metadata, i16::MAX), None, "not offered");
    }
}
