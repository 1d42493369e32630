//! The field tables as values that can be walked at run time: documentation, sample bytes and the tests read them.

use std::fmt;

use crate::Versions;

/// The type of a field on the wire.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// One byte, 0 or 1.
    Bool,
    /// A signed byte.
    Int8,
    /// Two bytes, signed.
    Int16,
    /// Two bytes, unsigned (a port).
    Uint16,
    /// Four bytes, signed.
    Int32,
    /// Eight bytes, signed.
    Int64,
    /// Sixteen bytes.
    Uuid,
    /// Text with a length before it.
    String,
    /// Bytes with a length before them.
    Bytes,
    /// As bytes, but null is read as empty and never written.
    Records,
    /// Elements with their number before them.
    Array(&'static Type),
    /// A nested structure.
    Struct(&'static Table),
}

/// One field of a message or of a nested structure.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Kafka's name of the field.
    pub name: &'static str,
    /// Our name of it.
    pub rust_name: &'static str,
    /// Its type.
    pub kind: Type,
    /// The versions that carry it.
    pub versions: Versions,
    /// The versions in which it may be null.
    pub nullable: Versions,
    /// Its tag, for a field that is written only where it differs from its default.
    pub tag: Option<u32>,
    /// Its default as written in the table; without one it is zero, empty or absent.
    pub default: Option<&'static str>,
}

/// The fields of a message or of a nested structure, in the order of the wire.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Our name of the structure.
    pub name: &'static str,
    /// Its fields; those with a tag come at the end of the bytes, in the order of their tags.
    pub fields: &'static [Field],
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Int8 => f.write_str("int8"),
            Type::Int16 => f.write_str("int16"),
            Type::Uint16 => f.write_str("uint16"),
            Type::Int32 => f.write_str("int32"),
            Type::Int64 => f.write_str("int64"),
            Type::Uuid => f.write_str("uuid"),
            Type::String => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Records => f.write_str("records"),
            Type::Array(element) => write!(f, "[]{element}"),
            Type::Struct(table) => f.write_str(table.name),
        }
    }
}
