//! How the values of configuration keys are read and shown.

use std::fmt;
use std::time::Duration;

use super::address::Address;

/// A type that a configuration value can have.
pub(crate) trait Value: Sized + Clone + PartialEq {
    /// Reads the text of a value; the error says what would be right.
    fn parse(text: &str) -> Result<Self, String>;
    /// The text that [`Value::parse`] reads again.
    fn show(&self) -> String;
}

impl Value for String {
    fn parse(text: &str) -> Result<String, String> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

impl Value for bool {
    fn parse(text: &str) -> Result<bool, String> {
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err("true or false is wanted".to_owned()),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

macro_rules! whole_number {
    ($($kind:ty),*) => { $(impl Value for $kind {
        fn parse(text: &str) -> Result<$kind, String> {
            text.parse().map_err(|_| format!("a whole number from 0 to {} is wanted", <$kind>::MAX))
        }

        fn show(&self) -> String {
            self.to_string()
        }
    })* };
}
whole_number!(u16, u32, usize);

/// Milliseconds, as in Kafka's configuration; a unit (`ms`, `s`, `m`, `h`) may be named.
impl Value for Duration {
    fn parse(text: &str) -> Result<Duration, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let millis_per_unit = match text[digits.len()..].trim() {
            "" | "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            other => return Err(format!("the unit {other} is not one of ms, s, m, h")),
        };
        let number: u64 = digits.trim().parse().map_err(|_| {
            "milliseconds, or a number with one of the units ms, s, m, h, are wanted".to_owned()
        })?;
        number.checked_mul(millis_per_unit).map(Duration::from_millis).ok_or_else(|| "too long".to_owned())
    }

    fn show(&self) -> String {
        self.as_millis().to_string()
    }
}

impl Value for Vec<Address> {
    fn parse(text: &str) -> Result<Vec<Address>, String> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::parse).collect()
    }

    fn show(&self) -> String {
        self.iter().map(Address::to_string).collect::<Vec<String>>().join(",")
    }
}

/// An optional number: the empty text is "not set".
impl Value for Option<u16> {
    fn parse(text: &str) -> Result<Option<u16>, String> {
        if text.is_empty() { Ok(None) } else { u16::parse(text).map(Some) }
    }

    fn show(&self) -> String {
        self.map(|number| number.to_string()).unwrap_or_default()
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $first:literal $(| $other:literal)*,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl Value for $name {
            fn parse(text: &str) -> Result<$name, String> {
                match text.to_ascii_lowercase().as_str() {
                    $($first $(| $other)* => Ok($name::$variant),)*
                    _ => Err(format!("one of {} is wanted", [$($first),*].join(", "))),
                }
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$variant => $first,)* })
            }
        }
    };
}

choice! {
    /// What a producer waits for before it calls a record delivered (Kafka semantics 1.4).
    Acks {
        /// Until the record is below the high watermark: every in-sync replica has it.
        All = "all" | "-1",
        /// Until the leader has appended it.
        Leader = "1",
        /// Nothing: the broker does not answer at all.
        None = "0",
    }
}

impl Acks {
    /// The number on the wire.
    pub(crate) const fn code(self) -> i16 {
        match self {
            Acks::All => -1,
            Acks::Leader => 1,
            Acks::None => 0,
        }
    }
}

choice! {
    /// How batches are compressed.
    Compression {
        /// Not at all.
        None = "none",
        /// gzip.
        Gzip = "gzip",
        /// Snappy.
        Snappy = "snappy",
        /// LZ4 frames.
        Lz4 = "lz4",
        /// Zstandard.
        Zstd = "zstd",
    }
}

choice! {
    /// Which records a consumer sees (Kafka's `isolation.level`).
    IsolationLevel {
        /// Everything below the high watermark.
        ReadUncommitted = "read_uncommitted",
        /// Everything below the last stable offset, without the records of aborted transactions.
        ReadCommitted = "read_committed",
    }
}

impl IsolationLevel {
    /// The number on the wire.
    pub(crate) const fn code(self) -> i8 {
        match self {
            IsolationLevel::ReadUncommitted => 0,
            IsolationLevel::ReadCommitted => 1,
        }
    }
}

choice! {
    /// Where a consumer goes on when its position does not exist (any more).
    OffsetReset {
        /// At the log start offset.
        Earliest = "earliest",
        /// At the end of what is committed.
        Latest = "latest",
        /// Nowhere: the application is told and decides.
        None = "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_milliseconds_unless_a_unit_is_named() {
        assert_eq!(Duration::parse("250"), Ok(Duration::from_millis(250)));
        assert_eq!(Duration::parse("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(Duration::parse("3 m"), Ok(Duration::from_secs(180)));
        assert!(Duration::parse("-1").is_err());
        assert!(Duration::parse("1 week").is_err());
        assert!(Duration::parse("99999999999999999999").is_err());
        assert!(Duration::parse("9999999999999999h").is_err());
    }

    #[test]
    fn choices_take_their_synonyms() {
        assert_eq!(Acks::parse("-1"), Ok(Acks::All));
        assert_eq!(Acks::All.show(), "all");
        assert!(Acks::parse("2").is_err_and(|text| text.contains("all, 1, 0")));
    }
}
