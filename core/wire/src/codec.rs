//! How a Rust type stands on the wire. The tables choose a type per field; these are all there are.

use bytes::Bytes;
use minikafka_model::Uuid;

use crate::table::Type;
use crate::{Problem, Reader, Records, WireError, Writer};

/// A type that can stand in a field table. `nullable` says whether this version allows null; a `None` where it does not is
/// written as the empty value, and null read where it does not is an error.
pub trait Codec: Sized {
    /// The type as the table shows it.
    const TYPE: Type;

    /// The fewest bytes one value takes.
    fn least_size(version: i16, flexible: bool) -> usize;

    /// Writes the value.
    fn write(&self, to: &mut Writer, nullable: bool);

    /// Reads a value.
    ///
    /// # Errors
    /// Bytes that hold no such value, or whose value would take too much memory.
    fn read(from: &mut Reader<'_>, nullable: bool) -> Result<Self, WireError>;
}

/// A type with a null of its own on the wire: as `Option` in a table it may be null.
pub trait Nullable: Codec {
    /// The fewest bytes a value that may be null takes.
    fn least_option_size(version: i16, flexible: bool) -> usize {
        Self::least_size(version, flexible)
    }

    /// Writes the value or null; `None` where null is not allowed is the empty value.
    fn write_option(value: Option<&Self>, to: &mut Writer, nullable: bool);

    /// Reads a value, or `None` for null.
    ///
    /// # Errors
    /// As [`Codec::read`].
    fn read_option(from: &mut Reader<'_>, nullable: bool) -> Result<Option<Self>, WireError>;
}

fn not_null<T>(value: Option<T>, from: &Reader<'_>) -> Result<T, WireError> {
    match value {
        Some(value) => Ok(value),
        None => from.fail(Problem::UnexpectedNull),
    }
}

macro_rules! numbers {
    ($($type:ty, $kind:ident, $call:ident;)*) => {$(
        impl Codec for $type {
            const TYPE: Type = Type::$kind;

            fn least_size(_version: i16, _flexible: bool) -> usize {
                size_of::<$type>()
            }

            fn write(&self, to: &mut Writer, _nullable: bool) {
                to.$call(*self);
            }

            fn read(from: &mut Reader<'_>, _nullable: bool) -> Result<Self, WireError> {
                from.$call()
            }
        }
    )*};
}

numbers! {
    i8, Int8, int8;
    i16, Int16, int16;
    u16, Uint16, uint16;
    i32, Int32, int32;
    i64, Int64, int64;
    Uuid, Uuid, uuid;
}

impl Codec for bool {
    const TYPE: Type = Type::Bool;

    fn least_size(_version: i16, _flexible: bool) -> usize {
        1
    }

    fn write(&self, to: &mut Writer, _nullable: bool) {
        to.int8(i8::from(*self));
    }

    fn read(from: &mut Reader<'_>, _nullable: bool) -> Result<Self, WireError> {
        Ok(from.int8()? != 0)
    }
}

impl Codec for String {
    const TYPE: Type = Type::String;

    fn least_size(_version: i16, flexible: bool) -> usize {
        if flexible { 1 } else { 2 }
    }

    fn write(&self, to: &mut Writer, _nullable: bool) {
        to.string(Some(self));
    }

    fn read(from: &mut Reader<'_>, _nullable: bool) -> Result<Self, WireError> {
        let text = from.string()?;
        not_null(text, from)
    }
}

impl Nullable for String {
    fn write_option(value: Option<&Self>, to: &mut Writer, nullable: bool) {
        to.string(if nullable { value.map(String::as_str) } else { Some(value.map_or("", String::as_str)) });
    }

    fn read_option(from: &mut Reader<'_>, _nullable: bool) -> Result<Option<Self>, WireError> {
        from.string()
    }
}

impl Codec for Bytes {
    const TYPE: Type = Type::Bytes;

    fn least_size(_version: i16, flexible: bool) -> usize {
        if flexible { 1 } else { 4 }
    }

    fn write(&self, to: &mut Writer, _nullable: bool) {
        to.bytes_length(Some(self.len()));
        to.raw(self);
    }

    fn read(from: &mut Reader<'_>, _nullable: bool) -> Result<Self, WireError> {
        let bytes = from.bytes()?;
        not_null(bytes, from)
    }
}

impl Nullable for Bytes {
    fn write_option(value: Option<&Self>, to: &mut Writer, nullable: bool) {
        match value {
            None if nullable => to.bytes_length(None),
            None => to.bytes_length(Some(0)),
            Some(bytes) => bytes.write(to, nullable),
        }
    }

    fn read_option(from: &mut Reader<'_>, _nullable: bool) -> Result<Option<Self>, WireError> {
        from.bytes()
    }
}

impl Codec for Records {
    const TYPE: Type = Type::Records;

    fn least_size(version: i16, flexible: bool) -> usize {
        Bytes::least_size(version, flexible)
    }

    fn write(&self, to: &mut Writer, _nullable: bool) {
        to.bytes_length(Some(self.len()));
        for slice in self.slices() {
            to.raw(slice);
        }
    }

    /// Null, where allowed, is no records.
    fn read(from: &mut Reader<'_>, nullable: bool) -> Result<Self, WireError> {
        match from.bytes()? {
            Some(bytes) => Ok(Records::from(bytes)),
            None if nullable => Ok(Records::new()),
            None => from.fail(Problem::UnexpectedNull),
        }
    }
}

impl<T: Codec> Codec for Vec<T> {
    const TYPE: Type = Type::Array(&T::TYPE);

    fn least_size(_version: i16, flexible: bool) -> usize {
        if flexible { 1 } else { 4 }
    }

    fn write(&self, to: &mut Writer, _nullable: bool) {
        to.count(Some(self.len()));
        for element in self {
            element.write(to, false);
        }
    }

    fn read(from: &mut Reader<'_>, nullable: bool) -> Result<Self, WireError> {
        let elements = Self::read_option(from, nullable)?;
        not_null(elements, from)
    }
}

impl<T: Codec> Nullable for Vec<T> {
    fn write_option(value: Option<&Self>, to: &mut Writer, nullable: bool) {
        match value {
            None if nullable => to.count(None),
            None => to.count(Some(0)),
            Some(elements) => elements.write(to, nullable),
        }
    }

    fn read_option(from: &mut Reader<'_>, _nullable: bool) -> Result<Option<Self>, WireError> {
        let least = T::least_size(from.version(), from.flexible());
        let Some(count) = from.count(least, size_of::<T>())? else { return Ok(None) };
        let mut elements = Vec::with_capacity(count);
        for index in 0..count {
            match T::read(from, false) {
                Ok(element) => elements.push(element),
                Err(error) => return Err(error.in_element(index)),
            }
        }
        Ok(Some(elements))
    }
}

impl<T: Nullable> Codec for Option<T> {
    const TYPE: Type = T::TYPE;

    fn least_size(version: i16, flexible: bool) -> usize {
        T::least_option_size(version, flexible)
    }

    fn write(&self, to: &mut Writer, nullable: bool) {
        T::write_option(self.as_ref(), to, nullable);
    }

    fn read(from: &mut Reader<'_>, nullable: bool) -> Result<Self, WireError> {
        match T::read_option(from, nullable)? {
            None if !nullable => from.fail(Problem::UnexpectedNull),
            value => Ok(value),
        }
    }
}
