//! Configuration: one table of Kafka's keys, values from several places with their sources, and what a topic's keys come to.
//!
//! [`resolve`] takes what was given in files, environment and on the command line and finds every problem at once; [`Resolved`] answers
//! by key name. Topic values are found by [`Resolved::topic_value`].

mod broker_keys;
mod effect;
mod key;
mod layers;
mod listeners;
mod resolved;
mod topic;
mod topic_keys;
mod words;

pub use effect::topic_no_effect;
pub use key::{BadValue, Check, KeyDef, Kind, Update};
pub use layers::{Given, Note, Problem, Resolution, Source, nearest_key, resolve};
pub use listeners::{Listener, Roles, Voter};
pub use resolved::{Resolved, Value};
pub use topic::{ConfigSource, Dynamic, Synonym, TopicRefusal, TopicValue, check_topic};
pub use words::{documentation, reference};

/// The keys of brokers and controllers: Kafka's and ours, each part in the order of the names.
pub fn broker_keys() -> impl Iterator<Item = &'static KeyDef> {
    broker_keys::BROKER_KEYS.iter().chain(broker_keys::OWN_KEYS)
}

/// The keys of topics, in the order of the names.
pub fn topic_keys() -> impl Iterator<Item = &'static KeyDef> {
    topic_keys::TOPIC_KEYS.iter()
}

/// A key of brokers and controllers.
pub fn broker_key(name: &str) -> Option<&'static KeyDef> {
    let find = |table: &'static [KeyDef]| {
        table.binary_search_by(|key| key.name.cmp(name)).ok().map(|index| &table[index])
    };
    find(broker_keys::BROKER_KEYS).or_else(|| find(broker_keys::OWN_KEYS))
}

/// A key of topics.
pub fn topic_key(name: &str) -> Option<&'static KeyDef> {
    let table = topic_keys::TOPIC_KEYS;
    table.binary_search_by(|key| key.name.cmp(name)).ok().map(|index| &table[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_their_defaults_are_values() {
        for table in [broker_keys::BROKER_KEYS, broker_keys::OWN_KEYS, topic_keys::TOPIC_KEYS] {
            assert!(table.is_sorted_by(|a, b| a.name < b.name));
            for key in table {
                match key.default {
                    // "Nothing" in lists is no value that somebody could give.
                    None | Some("") => {}
                    Some(default) => key.check(default).unwrap_or_else(|error| panic!("{error}")),
                }
            }
        }
        for (topic, synonyms) in topic_keys::SYNONYMS {
            assert!(topic_key(topic).is_some(), "{topic}");
            assert!(synonyms.iter().all(|(name, _)| broker_key(name).is_some()), "{topic}");
        }
    }

    #[test]
    fn refusals_have_kafkas_words() {
        let refusal = |key: &str, value: &str| {
            topic_key(key)
                .or_else(|| broker_key(key))
                .expect("a key")
                .check(value)
                .expect_err("bad")
                .to_string()
        };
        assert_eq!(
            refusal("min.insync.replicas", "zero"),
            "Invalid value zero for configuration min.insync.replicas: Not a number of type INT"
        );
        assert_eq!(
            refusal("cleanup.policy", "shred"),
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete"
        );
        assert_eq!(
            refusal("num.replica.fetchers", "0"),
            "Invalid value 0 for configuration num.replica.fetchers: Value must be at least 1"
        );
        assert!(refusal("segment.bytes", "99999999999").ends_with("Not a number of type INT"));
        assert!(refusal("min.cleanable.dirty.ratio", "1.5").ends_with("Value must be no more than 1"));
    }
}
