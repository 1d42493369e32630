//! Ranges of message versions.

use std::fmt;

/// A range of versions of one message, both ends included. "3+" has the end [`i16::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Versions {
    /// The first version.
    pub min: i16,
    /// The last version; `i16::MAX` means "and all later ones".
    pub max: i16,
}

impl Versions {
    /// No version at all.
    pub const NONE: Versions = Versions { min: 1, max: 0 };

    /// From `min` up to and with `max`.
    pub const fn between(min: i16, max: i16) -> Versions {
        Versions { min, max }
    }

    /// `min` and all later ones.
    pub const fn from(min: i16) -> Versions {
        Versions { min, max: i16::MAX }
    }

    /// Whether `version` lies in the range.
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// Whether the range holds no version.
    pub const fn is_empty(self) -> bool {
        self.min > self.max
    }

    /// Every version of the range, ascending.
    pub fn iter(self) -> impl Iterator<Item = i16> {
        self.min..=self.max
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (min, max) if min > max => f.write_str("none"),
            (min, i16::MAX) => write!(f, "{min}+"),
            (min, max) if min == max => write!(f, "{min}"),
            (min, max) => write!(f, "{min}-{max}"),
        }
    }
}
