//! The notation of the field tables. One line per field gives its place in the Rust structure, both directions of the codec, its
//! entry in the run-time table and its line in the documentation.
//!
//! ```text
//! topic_id: Uuid = TopicId(13+),                                       versions that carry it: 13+, 0-12, 6
//! error_message: Option<String> = ErrorMessage(8+) null(8+) default(null),
//! current_leader: LeaderIdAndEpoch = CurrentLeader(10+) tag(0),        written only where it differs from its default
//! ```

/// Turns `3+`, `0-12`, `6` into [`Versions`](crate::Versions).
macro_rules! versions {
    ($min:literal +) => {
        $crate::Versions::from($min)
    };
    ($min:literal - $max:literal) => {
        $crate::Versions::between($min, $max)
    };
    ($only:literal) => {
        $crate::Versions::between($only, $only)
    };
    () => {
        $crate::Versions::NONE
    };
}

/// The value a field has where nothing was said.
macro_rules! default_value {
    () => {
        Default::default()
    };
    (null) => {
        None
    };
    ($value:expr) => {
        $value
    };
}

/// `Some` of what is given, or `None`.
macro_rules! maybe {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// Structures of one API: see the notation above.
macro_rules! wire_structs {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[$field_meta:meta])*
                $field:ident : $type:ty = $kafka:ident ( $($versions:tt)+ )
                    $(null ( $($null:tt)+ ))? $(tag ( $tag:literal ))? $(default ( $($default:tt)+ ))? ,
            )*
        }
    )+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            $(
                $(#[$field_meta])*
                #[doc = concat!(" `", stringify!($kafka), "`, versions ", stringify!($($versions)+), ".")]
                pub $field: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: default_value!($($($default)+)?),)* }
            }
        }

        impl $name {
            /// The fields, in the order of the wire.
            pub const TABLE: $crate::table::Table = $crate::table::Table {
                name: stringify!($name),
                fields: &[$(
                    $crate::table::Field {
                        name: stringify!($kafka),
                        rust_name: stringify!($field),
                        kind: <$type as $crate::codec::Codec>::TYPE,
                        versions: versions!($($versions)+),
                        nullable: versions!($($($null)+)?),
                        tag: maybe!($($tag)?),
                        default: maybe!($(stringify!($($default)+))?),
                    },
                )*],
            };
        }

        impl $crate::codec::Codec for $name {
            const TYPE: $crate::table::Type = $crate::table::Type::Struct(&$name::TABLE);

            fn least_size(version: i16, flexible: bool) -> usize {
                let mut least = usize::from(flexible);
                $({
                    const TAG: Option<u32> = maybe!($($tag)?);
                    if TAG.is_none() && versions!($($versions)+).contains(version) {
                        least += <$type as $crate::codec::Codec>::least_size(version, flexible);
                    }
                })*
                least
            }

            fn write(&self, to: &mut $crate::Writer, _nullable: bool) {
                let version = to.version();
                let mut tagged = 0u32;
                $({
                    const TAG: Option<u32> = maybe!($($tag)?);
                    if versions!($($versions)+).contains(version) {
                        if TAG.is_none() {
                            self.$field.write(to, versions!($($($null)+)?).contains(version));
                        } else {
                            let unset: $type = default_value!($($($default)+)?);
                            tagged += u32::from(self.$field != unset);
                        }
                    }
                })*
                if !to.flexible() {
                    return;
                }
                to.uvarint(tagged);
                if tagged == 0 {
                    return;
                }
                $({
                    const TAG: Option<u32> = maybe!($($tag)?);
                    if let Some(tag) = TAG
                        && versions!($($versions)+).contains(version)
                    {
                        let unset: $type = default_value!($($($default)+)?);
                        if self.$field != unset {
                            to.tagged(tag, |to| self.$field.write(to, versions!($($($null)+)?).contains(version)));
                        }
                    }
                })*
            }

            fn read(from: &mut $crate::Reader<'_>, _nullable: bool) -> Result<Self, $crate::WireError> {
                let version = from.version();
                let mut value = Self::default();
                $({
                    const TAG: Option<u32> = maybe!($($tag)?);
                    if TAG.is_none() && versions!($($versions)+).contains(version) {
                        match <$type as $crate::codec::Codec>::read(from, versions!($($($null)+)?).contains(version)) {
                            Ok(found) => value.$field = found,
                            Err(error) => return Err(error.in_field(stringify!($kafka))),
                        }
                    }
                })*
                if from.flexible() {
                    from.tagged(|_tag, _from| {
                        $({
                            const TAG: Option<u32> = maybe!($($tag)?);
                            if TAG == Some(_tag) && versions!($($versions)+).contains(version) {
                                match <$type as $crate::codec::Codec>::read(
                                    _from,
                                    versions!($($($null)+)?).contains(version),
                                ) {
                                    Ok(found) => value.$field = found,
                                    Err(error) => return Err(error.in_field(stringify!($kafka))),
                                }
                            }
                        })*
                        Ok(())
                    })?;
                }
                Ok(value)
            }
        }

        impl $crate::codec::Nullable for $name {
            fn least_option_size(_version: i16, _flexible: bool) -> usize {
                1
            }

            fn write_option(value: Option<&Self>, to: &mut $crate::Writer, nullable: bool) {
                use $crate::codec::Codec;
                if nullable {
                    to.int8(if value.is_some() { 1 } else { -1 });
                }
                match value {
                    Some(value) => value.write(to, false),
                    None if nullable => {}
                    None => Self::default().write(to, false),
                }
            }

            fn read_option(
                from: &mut $crate::Reader<'_>,
                nullable: bool,
            ) -> Result<Option<Self>, $crate::WireError> {
                use $crate::codec::Codec;
                if nullable && !from.present()? {
                    return Ok(None);
                }
                Self::read(from, false).map(Some)
            }
        }
    )+};
}
