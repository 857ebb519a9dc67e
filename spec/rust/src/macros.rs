// SPDX-License-Identifier: Apache-2.0
//! What all generated types of a kind have in common.

/// A structure or header: a byte array with a size, a mask of reserved bits and fields to print.
macro_rules! byte_struct {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, reserved = $reserved:expr, fields = [$($field:ident),*]) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl $name {
            /// Size in bytes.
            pub const BYTES: usize = $bytes;
            /// The bits that belong to no field.
            pub const RESERVED: [u8; $bytes] = $reserved;

            /// All zero.
            pub const fn new() -> Self {
                Self([0; $bytes])
            }

            /// Takes the first [`Self::BYTES`] bytes; what follows them is not looked at.
            ///
            /// # Errors
            /// [`TooShort`](crate::TooShort) when there are fewer.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, crate::TooShort> {
                match bytes.first_chunk() {
                    Some(chunk) => Ok(Self(*chunk)),
                    None => Err(crate::TooShort { name: stringify!($name), needed: $bytes, got: bytes.len() }),
                }
            }

            /// The bytes.
            pub const fn as_bytes(&self) -> &[u8; $bytes] {
                &self.0
            }

            /// Whether all reserved bits are zero.
            pub fn rsvd_ok(&self) -> bool {
                self.0.iter().zip(Self::RESERVED).all(|(byte, mask)| byte & mask == 0)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl From<[u8; $bytes]> for $name {
            fn from(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }
        }

        impl AsRef<[u8]> for $name {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($name))$(.field(stringify!($field), &self.$field()))*.finish()
            }
        }
    };
}

/// The accessors of one field.
macro_rules! accessors {
    ($(#[$doc:meta])* $field:ident, $set:ident, $with:ident, $ty:ty, |$this:ident| $get:expr, |$that:ident, $v:ident| $put:expr) => {
        $(#[$doc])*
        pub fn $field(&self) -> $ty {
            let $this = &self.0;
            $get
        }

        #[doc = concat!("Writes [`Self::", stringify!($field), "`].")]
        pub fn $set(&mut self, $v: $ty) {
            let $that = &mut self.0;
            $put
        }

        #[doc = concat!("A copy with another [`Self::", stringify!($field), "`].")]
        #[must_use]
        pub fn $with(mut self, value: $ty) -> Self {
            self.$set(value);
            self
        }
    };
}

/// An enumeration with at most 8 bits.
macro_rules! code_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $value:literal, $text:literal, $about:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$vdoc])* $variant = $value,)*
        }

        impl $name {
            /// Every value, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name as it stands in the specification.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// What it means; empty where the name says it all.
            pub const fn doc(self) -> &'static str {
                match self {
                    $(Self::$variant => $about,)*
                }
            }
        }

        impl TryFrom<u8> for $name {
            type Error = crate::UnknownValue;

            fn try_from(value: u8) -> Result<Self, crate::UnknownValue> {
                match value {
                    $($value => Ok(Self::$variant),)*
                    _ => Err(crate::UnknownValue { name: stringify!($name), value }),
                }
            }
        }

        impl From<$name> for u8 {
            fn from(value: $name) -> u8 {
                value as u8
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

/// A set of flags.
macro_rules! flag_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $flag:ident = $bit:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub u32);

        impl $name {
            $($(#[$vdoc])* pub const $flag: Self = Self(1 << $bit);)*
            /// None of them.
            pub const EMPTY: Self = Self(0);
            /// Every flag that exists.
            pub const ALL: Self = Self(0 $(| 1 << $bit)*);
            /// Each flag with its name, in the order of the bits.
            pub const NAMES: &'static [(Self, &'static str)] = &[$((Self::$flag, stringify!($flag))),*];

            /// The bits as a number.
            pub const fn bits(self) -> u32 {
                self.0
            }

            /// Whether every flag of `other` is set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether a flag of `other` is set.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Whether no flag is set.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The flags of either.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The flags that `other` does not have.
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;

            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }

        impl core::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl core::ops::BitAnd for $name {
            type Output = Self;

            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl core::ops::Sub for $name {
            type Output = Self;

            fn sub(self, other: Self) -> Self {
                self.without(other)
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                crate::tables::write_flags(f, self.0, Self::NAMES.iter().map(|(flag, name)| (flag.0, *name)))
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    };
}
