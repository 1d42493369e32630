//! Sample bytes of every message, made by walking its table: seeds for fuzzers and values for the tests that compare this codec with
//! another one. The same seed always gives the same bytes.

use bytes::BufMut;

use crate::table::{Field, Table, Type};

/// Longest array, text and byte string in a sample.
const MOST_ELEMENTS: u64 = 3;
const LONGEST_TEXT: u64 = 12;

/// Whether a sample carries tagged fields that no table knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownTags {
    /// None: what a writer of this very version sends.
    Absent,
    /// Some in every structure: what a newer writer might send; readers skip them.
    Present,
}

/// The bytes of a body with random fields.
pub fn sample(table: &Table, version: i16, flexible: bool, seed: u64, unknown: UnknownTags) -> Vec<u8> {
    let mut maker = Maker { dice: Dice(seed), version, flexible, unknown };
    let mut bytes = Vec::new();
    maker.structure(table, &mut bytes);
    bytes
}

/// SplitMix64: small, and good enough to choose samples.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Often an edge, else anything.
    fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => 1,
            2 => u64::MAX,
            3 => 0x7fff_ffff_ffff_ffff,
            4 => 0x8000_0000_8000_8080,
            _ => self.next(),
        }
    }
}

struct Maker {
    dice: Dice,
    version: i16,
    flexible: bool,
    unknown: UnknownTags,
}

impl Maker {
    fn structure(&mut self, table: &Table, to: &mut Vec<u8>) {
        let here = |field: &&Field, version| field.versions.contains(version);
        let version = self.version;
        for field in table.fields.iter().filter(|f| here(f, version) && f.tag.is_none()) {
            self.field(field, to);
        }
        if !self.flexible {
            return;
        }
        let mut tagged: Vec<(u32, Vec<u8>)> = Vec::new();
        for field in table.fields.iter().filter(|f| here(f, version)) {
            let Some(tag) = field.tag else { continue };
            let (mut value, mut unset) = (Vec::new(), Vec::new());
            self.field(field, &mut value);
            self.unset(field, &mut unset);
            let wanted = self.dice.below(3) > 0;
            if wanted && value != unset {
                tagged.push((tag, value));
            }
        }
        if self.unknown == UnknownTags::Present {
            // Drawn from the position, not from the dice: the known fields are the same with and without unknown ones.
            tagged.push((90, vec![0xaa; to.len() % 4]));
            tagged.push((40_000, b"from the future".to_vec()));
        }
        uvarint(tagged.len() as u64, to);
        for (tag, value) in tagged {
            uvarint(u64::from(tag), to);
            uvarint(value.len() as u64, to);
            to.extend(value);
        }
    }

    fn field(&mut self, field: &Field, to: &mut Vec<u8>) {
        let nullable = field.nullable.contains(self.version);
        let may_be_null = nullable && !matches!(field.kind, Type::Records);
        if may_be_null && self.dice.below(4) == 0 {
            return self.null(&field.kind, to);
        }
        if nullable && matches!(field.kind, Type::Struct(_)) {
            to.put_i8(1);
        }
        self.value(&field.kind, to);
    }

    fn value(&mut self, kind: &Type, to: &mut Vec<u8>) {
        match kind {
            Type::Bool => to.put_u8(self.dice.below(2) as u8),
            Type::Int8 => to.put_u8(self.dice.number() as u8),
            Type::Int16 | Type::Uint16 => to.put_u16(self.dice.number() as u16),
            Type::Int32 => to.put_u32(self.dice.number() as u32),
            Type::Int64 => to.put_u64(self.dice.number()),
            Type::Uuid => {
                to.put_u64(self.dice.next());
                to.put_u64(self.dice.next());
            }
            Type::String => {
                let letters = ["a", "-", "0", "_", "é", "Z", "\u{1F600}"];
                let count = self.dice.below(LONGEST_TEXT);
                let text: String =
                    (0..count).map(|_| letters[self.dice.below(letters.len() as u64) as usize]).collect();
                self.length(text.len(), 2, to);
                to.extend(text.bytes());
            }
            Type::Bytes | Type::Records => {
                let count = self.dice.below(LONGEST_TEXT);
                self.length(count as usize, 4, to);
                (0..count).for_each(|_| to.put_u8(self.dice.next() as u8));
            }
            Type::Array(element) => {
                let count = self.dice.below(MOST_ELEMENTS + 1);
                self.length(count as usize, 4, to);
                (0..count).for_each(|_| self.value(element, to));
            }
            Type::Struct(table) => self.structure(table, to),
        }
    }

    fn null(&self, kind: &Type, to: &mut Vec<u8>) {
        match kind {
            Type::Struct(_) => to.put_i8(-1),
            _ if self.flexible => to.put_u8(0),
            Type::String => to.put_i16(-1),
            _ => to.put_i32(-1),
        }
    }

    fn length(&self, length: usize, width: usize, to: &mut Vec<u8>) {
        match (self.flexible, width) {
            (true, _) => uvarint(length as u64 + 1, to),
            (false, 2) => to.put_u16(length as u16),
            (false, _) => to.put_u32(length as u32),
        }
    }

    /// The bytes of a field that holds its default.
    fn unset(&self, field: &Field, to: &mut Vec<u8>) {
        let number = field.default.map_or(0, number_of);
        match field.kind {
            Type::Bool => to.put_u8(u8::from(field.default == Some("true"))),
            Type::Int8 => to.put_i8(number as i8),
            Type::Int16 | Type::Uint16 => to.put_i16(number as i16),
            Type::Int32 => to.put_i32(number as i32),
            Type::Int64 => to.put_i64(number),
            Type::Uuid => to.put_u128(0),
            _ if field.default == Some("null") => self.null(&field.kind, to),
            Type::String => self.length(0, 2, to),
            Type::Bytes | Type::Records | Type::Array(_) => self.length(0, 4, to),
            Type::Struct(table) => {
                let inner = table.fields.iter().filter(|f| f.versions.contains(self.version));
                inner.filter(|f| f.tag.is_none()).for_each(|f| self.unset(f, to));
                if self.flexible {
                    to.put_u8(0);
                }
            }
        }
    }
}

/// The number a default in a table says; zero for what is no number.
fn number_of(text: &str) -> i64 {
    let text = text.replace(' ', "");
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).unwrap_or(0),
        None => text.parse().unwrap_or(0),
    }
}

fn uvarint(mut value: u64, to: &mut Vec<u8>) {
    while value > 0x7f {
        to.put_u8(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    to.put_u8(value as u8);
}
