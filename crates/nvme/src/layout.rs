//! Sparse structures as tables of fields and offsets. `layout!` makes the struct, its `encode` and
//! its `decode` from the lines that a specification prints. It refuses to compile when two fields
//! overlap.
//!
//! A derived byte layout (as for the dense [`Sqe`](crate::Sqe)) would need a name for every
//! reserved hole of a 4 KiB page, and a second struct for the meaning. The table has each field
//! once.

use crate::CodecError;

/// Something of fixed size inside a structure, little-endian.
pub trait Field: Sized {
    /// Bytes that it takes.
    const BYTES: usize;
    /// Reads it from exactly [`Self::BYTES`]; `name` goes into the error.
    fn get(bytes: &[u8], name: &'static str) -> Result<Self, CodecError>;
    /// Writes it to exactly [`Self::BYTES`], all of them zero before.
    fn put(&self, bytes: &mut [u8]);
}

macro_rules! integer_fields {
    ($($kind:ty)*) => {$(
        impl Field for $kind {
            const BYTES: usize = size_of::<$kind>();
            #[inline]
            fn get(bytes: &[u8], name: &'static str) -> Result<Self, CodecError> {
                crate::error::leading(name, bytes).map(|bytes| <$kind>::from_le_bytes(*bytes))
            }
            #[inline]
            fn put(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
integer_fields!(u8 u16 u32 u64 u128);

impl<F: Field + Copy + Default, const N: usize> Field for [F; N] {
    const BYTES: usize = N * F::BYTES;
    #[inline]
    fn get(bytes: &[u8], name: &'static str) -> Result<Self, CodecError> {
        let mut all = [F::default(); N];
        for (one, bytes) in all.iter_mut().zip(bytes.chunks_exact(F::BYTES)) {
            *one = F::get(bytes, name)?;
        }
        Ok(all)
    }
    #[inline]
    fn put(&self, bytes: &mut [u8]) {
        for (one, bytes) in self.iter().zip(bytes.chunks_exact_mut(F::BYTES)) {
            one.put(bytes);
        }
    }
}

/// Whether fields of (offset, bytes) are in order, do not overlap and end within `size`.
pub(crate) const fn fits(fields: &[(usize, usize)], size: usize) -> bool {
    let (mut index, mut end) = (0, 0);
    while index < fields.len() {
        if fields[index].0 < end {
            return false;
        }
        end = fields[index].0 + fields[index].1;
        index += 1;
    }
    end <= size
}

/// A structure as the table of its fields: `name: Type = offset`. What no field covers is reserved:
/// zero when written, not looked at when read.
macro_rules! layout {
    ($(#[$meta:meta])* pub struct $name:ident [$size:expr] {
        $($(#[$field_meta:meta])* $field:ident : $kind:ty = $at:expr),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$field_meta])* pub $field: $kind,)* }

        impl $name {
            /// Bytes that it takes.
            pub const BYTES: usize = $size;

            /// As bytes; what is reserved is zero.
            pub fn encode(&self) -> [u8; $size] {
                let mut bytes = [0; $size];
                $($crate::layout::Field::put(&self.$field, &mut bytes[$at..$at + <$kind as $crate::layout::Field>::BYTES]);)*
                bytes
            }

            /// Reads it from the front of `bytes`; fails when they are too few or a field holds
            /// what it may not.
            pub fn decode(bytes: &[u8]) -> Result<Self, $crate::CodecError> {
                let bytes = $crate::error::leading::<{ $size }>(stringify!($name), bytes)?;
                Ok($name {
                    $($field: $crate::layout::Field::get(
                        &bytes[$at..$at + <$kind as $crate::layout::Field>::BYTES],
                        stringify!($field),
                    )?,)*
                })
            }
        }

        impl $crate::layout::Field for $name {
            const BYTES: usize = $size;
            #[inline]
            fn get(bytes: &[u8], _name: &'static str) -> Result<Self, $crate::CodecError> {
                Self::decode(bytes)
            }
            #[inline]
            fn put(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.encode());
            }
        }

        const _: () = assert!(
            $crate::layout::fits(&[$(($at, <$kind as $crate::layout::Field>::BYTES)),*], $size),
            "fields overlap, are out of order or leave the structure"
        );
    };
}

/// An enum of the codes that a field may hold. Any other code is an error.
macro_rules! codes {
    ($(#[$meta:meta])* pub enum $name:ident : $kind:ty {
        $($(#[$variant_meta:meta])* $variant:ident = $code:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr($kind)]
        pub enum $name { $($(#[$variant_meta])* $variant = $code,)* }

        impl $name {
            /// Every one, by code.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The code on the wire.
            pub const fn code(self) -> $kind {
                self as $kind
            }

            /// The meaning of `code`; `None` for an unknown one.
            pub const fn of_code(code: $kind) -> Option<Self> {
                match code {
                    $($code => Some($name::$variant),)*
                    _ => None,
                }
            }

            /// As [`Self::of_code`], with an error that names `field`.
            #[allow(dead_code)]
            pub(crate) fn checked(code: $kind, field: &'static str) -> Result<Self, $crate::CodecError> {
                const ALLOWED: &str = concat!("one of", $(" ", stringify!($code)),*);
                let got = u64::from(code);
                Self::of_code(code).ok_or($crate::CodecError::Field { field, got, allowed: ALLOWED })
            }
        }

        impl $crate::layout::Field for $name {
            const BYTES: usize = size_of::<$kind>();
            #[inline]
            fn get(bytes: &[u8], name: &'static str) -> Result<Self, $crate::CodecError> {
                Self::checked(<$kind as $crate::layout::Field>::get(bytes, name)?, name)
            }
            #[inline]
            fn put(&self, bytes: &mut [u8]) {
                $crate::layout::Field::put(&self.code(), bytes);
            }
        }
    };
}

/// A set of named bits. Bits without a name are kept as they are: a later specification may have
/// named them.
macro_rules! flags {
    ($(#[$($meta:tt)*])* pub struct $name:ident : $kind:ty {
        $($(#[$($flag_meta:tt)*])* $flag:ident = $bit:literal),* $(,)?
    }) => {
        bitflags::bitflags! {
            $(#[$($meta)*])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name: $kind {
                $($(#[$($flag_meta)*])* const $flag = 1 << $bit;)*
                const _ = !0;
            }
        }

        impl $crate::layout::Field for $name {
            const BYTES: usize = size_of::<$kind>();
            #[inline]
            fn get(bytes: &[u8], name: &'static str) -> Result<Self, $crate::CodecError> {
                <$kind as $crate::layout::Field>::get(bytes, name).map(Self::from_bits_retain)
            }
            #[inline]
            fn put(&self, bytes: &mut [u8]) {
                $crate::layout::Field::put(&self.bits(), bytes);
            }
        }
    };
}

pub(crate) use {codes, flags, layout};
