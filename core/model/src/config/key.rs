//! What is known of one configuration key, and whether a text is a value of it. The words of a refusal are Kafka's: they reach
//! users through CreateTopics and the tools.

use std::fmt;

/// The type of a key's value (Kafka's names).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Boolean,
    /// 32 bits.
    Int,
    /// 16 bits.
    Short,
    /// 64 bits.
    Long,
    /// A number with a fraction.
    Double,
    /// Words with commas between.
    List,
    /// Any text.
    String,
    /// The name of a Java class.
    Class,
    /// A secret: never shown.
    Password,
}

/// What a value of the right type must fulfil.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Check {
    /// Nothing.
    Any,
    /// At least this.
    AtLeast(i64),
    /// In this range, both ends included.
    Between(i64, i64),
    /// In this range, both ends included.
    Fraction(f64, f64),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these words, in any case.
    OneOfIgnoringCase(&'static [&'static str]),
    /// A list of these words.
    EachOf(&'static [&'static str]),
    /// Not the empty text.
    NonEmpty,
    /// 1 to 9, or -1.
    GzipLevel,
    /// `*`, or `partition:broker` pairs with commas between.
    Throttled,
}

/// How a value can be changed while the node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Not at all.
    ReadOnly,
    /// For each broker by itself.
    PerBroker,
    /// For each broker or for all of them.
    ClusterWide,
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeyDef {
    /// Its name.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// Its value where nothing is said; none where that is "no value".
    pub default: Option<&'static str>,
    /// What a value must fulfil.
    pub check: Check,
    /// How it can be changed while the node runs.
    pub update: Update,
}

/// A text that is not a value of the key. Its words are Kafka's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue {
    /// The key.
    pub key: String,
    /// The text; none for a secret.
    pub value: Option<String>,
    /// Why not.
    pub reason: String,
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadValue { key, value, reason } = self;
        let value = value.as_deref().unwrap_or("[hidden]");
        write!(f, "Invalid value {value} for configuration {key}: {reason}")
    }
}

impl std::error::Error for BadValue {}

impl Kind {
    /// Kafka's name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Boolean => "BOOLEAN",
            Kind::Int => "INT",
            Kind::Short => "SHORT",
            Kind::Long => "LONG",
            Kind::Double => "DOUBLE",
            Kind::List => "LIST",
            Kind::String => "STRING",
            Kind::Class => "CLASS",
            Kind::Password => "PASSWORD",
        }
    }

    /// Its number in DescribeConfigs.
    pub const fn code(self) -> i8 {
        match self {
            Kind::Boolean => 1,
            Kind::String => 2,
            Kind::Int => 3,
            Kind::Short => 4,
            Kind::Long => 5,
            Kind::Double => 6,
            Kind::List => 7,
            Kind::Class => 8,
            Kind::Password => 9,
        }
    }

    const fn range(self) -> Option<(i64, i64)> {
        match self {
            Kind::Int => Some((i32::MIN as i64, i32::MAX as i64)),
            Kind::Short => Some((i16::MIN as i64, i16::MAX as i64)),
            Kind::Long => Some((i64::MIN, i64::MAX)),
            _ => None,
        }
    }
}

impl KeyDef {
    /// Whether the value must not be shown.
    pub fn is_secret(&self) -> bool {
        self.kind == Kind::Password
    }

    /// Whether the text is a value of this key.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self, text: &str) -> Result<(), BadValue> {
        self.judge(text.trim()).map_err(|reason| BadValue {
            key: self.name.to_owned(),
            value: (!self.is_secret()).then(|| text.trim().to_owned()),
            reason,
        })
    }

    fn judge(&self, text: &str) -> Result<(), String> {
        if let Some((least, most)) = self.kind.range() {
            let not_a_number = || format!("Not a number of type {}", self.kind.name());
            let number: i64 = text.parse().map_err(|_| not_a_number())?;
            if !(least..=most).contains(&number) {
                return Err(not_a_number());
            }
            return self.judge_number(number);
        }
        match self.kind {
            Kind::Boolean if !["true", "false"].iter().any(|word| word.eq_ignore_ascii_case(text)) => {
                Err("Expected value to be either true or false".to_owned())
            }
            Kind::Double => {
                let number: f64 = text.parse().map_err(|_| "Not a number of type DOUBLE".to_owned())?;
                match self.check {
                    Check::AtLeast(least) if number < least as f64 => Err(at_least(least)),
                    Check::Fraction(least, _) if number < least => Err(at_least(least)),
                    Check::Fraction(_, most) if number > most => Err(at_most(most)),
                    _ if number.is_nan() => Err("Not a number of type DOUBLE".to_owned()),
                    _ => Ok(()),
                }
            }
            _ => self.judge_text(text),
        }
    }

    fn judge_number(&self, number: i64) -> Result<(), String> {
        match self.check {
            Check::AtLeast(least) | Check::Between(least, _) if number < least => Err(at_least(least)),
            Check::Between(_, most) if number > most => Err(at_most(most)),
            Check::GzipLevel if number != -1 && !(1..=9).contains(&number) => {
                Err("Value must be between 1 and 9 or equal to -1".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn judge_text(&self, text: &str) -> Result<(), String> {
        match self.check {
            Check::OneOf(words) if !words.contains(&text) => Err(one_of(words)),
            Check::OneOfIgnoringCase(words) if !words.iter().any(|word| word.eq_ignore_ascii_case(text)) => {
                Err(one_of(words))
            }
            Check::EachOf(words) if items(text).any(|item| !words.contains(&item)) => Err(one_of(words)),
            Check::NonEmpty if text.is_empty() => Err("String must be non-empty".to_owned()),
            Check::Throttled if !items(text).all(is_throttled) => {
                Err("Must be the literal '*' or a list of replicas in the following format: \
                     [partitionId]:[brokerId],[partitionId]:[brokerId],..."
                    .to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// The words of a list.
pub(super) fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn is_throttled(item: &str) -> bool {
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    item == "*"
        || item.split_once(':').is_some_and(|(partition, broker)| is_number(partition) && is_number(broker))
}

fn at_least(least: impl fmt::Display) -> String {
    format!("Value must be at least {least}")
}

fn at_most(most: impl fmt::Display) -> String {
    format!("Value must be no more than {most}")
}

fn one_of(words: &[&str]) -> String {
    format!("String must be one of: {}", words.join(", "))
}
