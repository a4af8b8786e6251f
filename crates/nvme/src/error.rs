//! Why bytes are not the structure that was expected.

/// Why bytes are not the structure that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// Fewer bytes than the structure has.
    #[error("{got} bytes are too few for {part}: {needed} are needed")]
    Short {
        /// The structure that is cut off.
        part: &'static str,
        /// Available bytes.
        got: usize,
        /// Bytes needed.
        needed: usize,
    },
    /// A list whose length is no multiple of its entries'.
    #[error("{got} bytes are no whole number of entries of {entry} bytes in {part}")]
    Ragged {
        /// The list.
        part: &'static str,
        /// Available bytes.
        got: usize,
        /// Bytes of an entry.
        entry: usize,
    },
    /// A field has an invalid value.
    #[error("{field} is {got:#x}, allowed is {allowed}")]
    Field {
        /// Which, by the name that the meaning gives it.
        field: &'static str,
        /// The value; of a text its first invalid byte.
        got: u64,
        /// The allowed values.
        allowed: &'static str,
    },
}

/// The first `N` of `bytes`, or that they are too few for `part`.
pub(crate) fn leading<'a, const N: usize>(part: &'static str, bytes: &'a [u8]) -> Result<&'a [u8; N], CodecError> {
    bytes.first_chunk().ok_or(CodecError::Short { part, got: bytes.len(), needed: N })
}
