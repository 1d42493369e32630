//! One value per key, with its source.

use std::collections::BTreeMap;
use std::time::Duration;

use super::key::{KeyDef, Kind, items};
use super::layers::Source;
use super::{broker_key, broker_keys};

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    text: Option<String>,
    source: Source,
}

impl Value {
    pub(super) fn default_of(key: &KeyDef) -> Value {
        Value { text: key.default.map(str::to_owned), source: Source::Default }
    }

    pub(super) fn given(text: String, source: Source) -> Value {
        Value { text: Some(text), source }
    }

    /// The text; none is "no value".
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Where it comes from.
    pub fn source(&self) -> &Source {
        &self.source
    }
}

/// The configuration of a node. Every key has a value that fits its type; asking for a key that does not exist, or as another type than it
/// has, is a mistake of the program and panics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    values: BTreeMap<&'static str, Value>,
}

impl Resolved {
    pub(super) fn new(values: BTreeMap<&'static str, Value>) -> Resolved {
        Resolved { values }
    }

    fn value(&self, key: &str) -> &Value {
        self.values.get(key).unwrap_or_else(|| panic!("{key} is not in the table of keys"))
    }

    /// The text of a value; none is "no value", and so is the empty text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.value(key).text().filter(|text| !text.is_empty())
    }

    /// Where a value comes from.
    pub fn source(&self, key: &str) -> &Source {
        self.value(key).source()
    }

    /// Whether somebody gave the value.
    pub fn is_given(&self, key: &str) -> bool {
        *self.source(key) != Source::Default
    }

    /// A number (INT, SHORT, LONG) that has a default.
    pub fn int(&self, key: &str) -> i64 {
        self.maybe_int(key).unwrap_or_else(|| panic!("{key} has no default"))
    }

    /// A number that may be absent.
    pub fn maybe_int(&self, key: &str) -> Option<i64> {
        self.text(key).map(|text| text.parse().unwrap_or_else(|_| panic!("{key} is not a number")))
    }

    /// A number as a size; negative numbers are 0.
    pub fn size(&self, key: &str) -> usize {
        usize::try_from(self.int(key).max(0)).unwrap_or(usize::MAX)
    }

    /// A number of milliseconds; negative numbers are 0.
    pub fn millis(&self, key: &str) -> Duration {
        Duration::from_millis(u64::try_from(self.int(key)).unwrap_or(0))
    }

    /// A number of seconds; negative numbers are 0.
    pub fn seconds(&self, key: &str) -> Duration {
        Duration::from_secs(u64::try_from(self.int(key)).unwrap_or(0))
    }

    /// A BOOLEAN.
    pub fn flag(&self, key: &str) -> bool {
        match self.text(key) {
            Some(text) if text.eq_ignore_ascii_case("true") => true,
            Some(text) if text.eq_ignore_ascii_case("false") => false,
            _ => panic!("{key} is not a BOOLEAN"),
        }
    }

    /// A DOUBLE.
    pub fn fraction(&self, key: &str) -> f64 {
        let text = self.text(key).unwrap_or_else(|| panic!("{key} has no default"));
        text.parse().unwrap_or_else(|_| panic!("{key} is not a number"))
    }

    /// The words of a LIST.
    pub fn list(&self, key: &str) -> Vec<&str> {
        self.text(key).map(items).into_iter().flatten().collect()
    }

    /// Every key with its value, in the order of the tables.
    pub fn entries(&self) -> impl Iterator<Item = (&'static KeyDef, &Value)> {
        broker_keys().map(|key| (key, self.value(key.name)))
    }

    /// What somebody gave: key -> text (secrets too).
    pub fn given(&self) -> BTreeMap<String, String> {
        let given = self.values.iter().filter(|(_, value)| value.source != Source::Default);
        given.filter_map(|(key, value)| Some(((*key).to_owned(), value.text.clone()?))).collect()
    }

    /// One line for each value that was given, with its source and without secrets: what a node prints at its start.
    pub fn lines(&self) -> Vec<String> {
        self.entries()
            .filter(|(_, value)| value.source != Source::Default)
            .map(|(key, value)| {
                let text =
                    if key.kind == Kind::Password { "[hidden]" } else { value.text().unwrap_or("null") };
                format!("{} = {text} ({})", key.name, value.source())
            })
            .collect()
    }

    /// The built-in default of a key.
    pub fn default_of(key: &str) -> Option<&'static str> {
        broker_key(key).and_then(|key| key.default)
    }
}
