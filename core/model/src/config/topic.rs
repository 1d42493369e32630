//! What a topic's keys come to: its own value, else the brokers' dynamic ones, else the node's static one, else the default
//! (Kafka semantics 6.9).

use std::collections::BTreeMap;
use std::fmt;

use super::key::{BadValue, KeyDef};
use super::layers::nearest_key;
use super::resolved::Resolved;
use super::topic_keys::{SYNONYMS, Unit};
use super::{topic_key, topic_keys};

/// Where an effective value comes from; the numbers are those of DescribeConfigs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigSource {
    /// The topic's own value.
    Topic = 1,
    /// A broker's dynamic value.
    DynamicBroker = 2,
    /// The dynamic default of all brokers.
    DynamicDefaultBroker = 3,
    /// The node's file, environment or command line.
    StaticBroker = 4,
    /// Built in.
    Default = 5,
}

impl ConfigSource {
    /// The number in DescribeConfigs.
    pub const fn code(self) -> i8 {
        self as i8
    }
}

/// One of the places that give a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synonym {
    /// The key in that place.
    pub name: &'static str,
    /// Its value there, in the unit of that key.
    pub value: String,
    /// The place.
    pub source: ConfigSource,
}

/// The value of a topic's key.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicValue {
    /// The key.
    pub key: &'static KeyDef,
    /// The value in force; none where Kafka says null.
    pub value: Option<String>,
    /// Where it comes from.
    pub source: ConfigSource,
    /// All places that give a value, the strongest first.
    pub synonyms: Vec<Synonym>,
}

/// Values that were set while the cluster runs, by broker key.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dynamic<'a> {
    /// Those of this broker.
    pub broker: Option<&'a BTreeMap<String, String>>,
    /// Those of all brokers.
    pub all: Option<&'a BTreeMap<String, String>>,
}

/// A topic config that is not taken. The words are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopicRefusal {
    /// No such key.
    UnknownKey {
        /// As given.
        key: String,
    },
    /// Not a value of it.
    BadValue(BadValue),
}

impl fmt::Display for TopicRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopicRefusal::UnknownKey { key } => write!(f, "Unknown topic config name: {key}"),
            TopicRefusal::BadValue(error) => error.fmt(f),
        }
    }
}

impl TopicRefusal {
    /// The key that may have been meant.
    pub fn nearest(&self) -> Option<&'static str> {
        match self {
            TopicRefusal::UnknownKey { key } => nearest_key(key),
            TopicRefusal::BadValue(_) => None,
        }
    }
}

/// Whether a topic may have this value.
///
/// # Errors
/// An unknown key, or a text that is not a value of it.
pub fn check_topic(key: &str, value: &str) -> Result<(), TopicRefusal> {
    let definition = topic_key(key).ok_or_else(|| TopicRefusal::UnknownKey { key: key.to_owned() })?;
    definition.check(value).map_err(TopicRefusal::BadValue)
}

impl Resolved {
    /// The value of one topic key; none for a key that topics do not have.
    pub fn topic_value(
        &self,
        key: &str,
        own: &BTreeMap<String, String>,
        dynamic: Dynamic<'_>,
    ) -> Option<TopicValue> {
        let definition = topic_key(key)?;
        let mut synonyms: Vec<(Synonym, Unit)> = Vec::new();
        if let Some(value) = own.get(key) {
            let synonym =
                Synonym { name: definition.name, value: value.clone(), source: ConfigSource::Topic };
            synonyms.push((synonym, Unit::Same));
        }
        let of_brokers =
            SYNONYMS.iter().find(|(topic, _)| *topic == key).map_or(&[][..], |(_, names)| *names);
        for (values, source) in
            [(dynamic.broker, ConfigSource::DynamicBroker), (dynamic.all, ConfigSource::DynamicDefaultBroker)]
        {
            let found = of_brokers.iter().filter_map(|(name, unit)| {
                let value = values?.get(*name)?.clone();
                Some((Synonym { name, value, source }, *unit))
            });
            synonyms.extend(found);
        }
        let found = of_brokers.iter().filter(|(name, _)| self.is_given(name)).filter_map(|(name, unit)| {
            let value = self.text(name)?.to_owned();
            Some((Synonym { name, value, source: ConfigSource::StaticBroker }, *unit))
        });
        synonyms.extend(found);
        let defaults = of_brokers.iter().filter_map(|(name, unit)| {
            let value = Resolved::default_of(name)?.to_owned();
            Some((Synonym { name, value, source: ConfigSource::Default }, *unit))
        });
        synonyms.extend(defaults);
        let value = match synonyms.first() {
            Some((synonym, unit)) => Some(scaled(&synonym.value, *unit)),
            None => definition.default.map(str::to_owned),
        };
        let synonyms = shown(synonyms.into_iter().map(|(synonym, _)| synonym).collect(), of_brokers);
        let source = synonyms.first().map_or(ConfigSource::Default, |strongest| strongest.source);
        Some(TopicValue { key: definition, value, source, synonyms })
    }

    /// All values of a topic, in the order of their names; keys that Kafka keeps to itself are left out.
    pub fn topic_values(&self, own: &BTreeMap<String, String>, dynamic: Dynamic<'_>) -> Vec<TopicValue> {
        topic_keys()
            .filter(|key| !key.name.starts_with("internal."))
            .filter_map(|key| self.topic_value(key.name, own, dynamic))
            .collect()
    }
}

/// What Kafka tells of the places: those of the brokers begin with the first one of the strongest broker key. Where only a weaker key
/// was given (`log.retention.hours`), none is told, and the value passes for a default.
fn shown(mut synonyms: Vec<Synonym>, of_brokers: &[(&str, Unit)]) -> Vec<Synonym> {
    let own = usize::from(synonyms.first().is_some_and(|first| first.source == ConfigSource::Topic));
    let mut of_broker = synonyms.split_off(own);
    let strongest = of_brokers.first().map(|(name, _)| *name);
    let from = of_broker.iter().position(|synonym| Some(synonym.name) == strongest);
    of_broker.drain(..from.unwrap_or(of_broker.len()));
    synonyms.extend(of_broker);
    synonyms
}

/// A value in milliseconds, from the unit of the key that gave it. A negative number is "no limit" in every unit.
fn scaled(value: &str, unit: Unit) -> String {
    let factor = match unit {
        Unit::Same => return value.to_owned(),
        Unit::Minutes => 60_000,
        Unit::Hours => 3_600_000,
    };
    match value.trim().parse::<i64>() {
        Ok(number) if number >= 0 => number.saturating_mul(factor).to_string(),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Given, Source, resolve};
    use super::*;

    fn resolved(settings: &[(&str, &str)]) -> Resolved {
        let given = settings.iter().map(|(key, value)| Given {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            source: Source::CommandLine,
        });
        resolve(given).resolved
    }

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn chain(value: &TopicValue) -> Vec<String> {
        value.synonyms.iter().map(|s| format!("{}:{}={}", s.source.code(), s.name, s.value)).collect()
    }

    #[test]
    fn the_strongest_place_gives_the_value() {
        let resolved = resolved(&[("min.insync.replicas", "2")]);
        let all = map(&[("min.insync.replicas", "3")]);
        let dynamic = Dynamic { broker: None, all: Some(&all) };
        let own = map(&[("min.insync.replicas", "1")]);
        let value = resolved.topic_value("min.insync.replicas", &own, dynamic).expect("a topic key");
        assert_eq!((value.value.as_deref(), value.source), (Some("1"), ConfigSource::Topic));
        assert_eq!(
            chain(&value),
            [
                "1:min.insync.replicas=1",
                "3:min.insync.replicas=3",
                "4:min.insync.replicas=2",
                "5:min.insync.replicas=1"
            ]
        );
        let value =
            resolved.topic_value("min.insync.replicas", &map(&[]), Dynamic::default()).expect("a key");
        assert_eq!((value.value.as_deref(), value.source), (Some("2"), ConfigSource::StaticBroker));
    }

    #[test]
    fn hours_and_minutes_become_milliseconds() {
        let plain = resolved(&[]);
        let none = map(&[]);
        let value = plain.topic_value("retention.ms", &none, Dynamic::default()).expect("a key");
        assert_eq!((value.value.as_deref(), value.source), (Some("604800000"), ConfigSource::Default));
        assert_eq!(chain(&value), [""; 0], "a weaker key alone is not told");
        let hours = resolved(&[("log.retention.hours", "1"), ("log.retention.minutes", "2")]);
        let value = hours.topic_value("retention.ms", &none, Dynamic::default()).expect("a key");
        assert_eq!(value.value.as_deref(), Some("120000"), "minutes are stronger than hours");
        let millis = resolved(&[("log.retention.hours", "1"), ("log.retention.ms", "5")]);
        let value = millis.topic_value("retention.ms", &none, Dynamic::default()).expect("a key");
        assert_eq!((value.value.as_deref(), value.source), (Some("5"), ConfigSource::StaticBroker));
        assert_eq!(
            chain(&value),
            ["4:log.retention.ms=5", "4:log.retention.hours=1", "5:log.retention.hours=168"]
        );
        let forever = resolved(&[("log.retention.hours", "-1")]);
        let value = forever.topic_value("retention.ms", &none, Dynamic::default()).expect("a key");
        assert_eq!(value.value.as_deref(), Some("-1"));
    }

    #[test]
    fn every_topic_key_has_its_default() {
        let values = resolved(&[]).topic_values(&map(&[]), Dynamic::default());
        for value in &values {
            assert_eq!(value.value.as_deref(), value.key.default, "{}", value.key.name);
        }
        assert!(values.len() > 30);
    }

    #[test]
    fn refusals_have_kafkas_words() {
        let error = check_topic("no.such.config", "1").expect_err("unknown");
        assert_eq!(error.to_string(), "Unknown topic config name: no.such.config");
        let error = check_topic("min.insync.replica", "1").expect_err("unknown");
        assert_eq!(error.nearest(), Some("min.insync.replicas"));
        check_topic("retention.ms", "-1").expect("for ever");
    }
}
