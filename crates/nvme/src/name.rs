//! Names and texts: NVMe qualified names, host identifiers, padded text.

use crate::CodecError;
use crate::layout::Field;

/// ASCII text of at most `N` bytes, padded with spaces on the wire (NVM Express Base 2.0, 1.4.2).
/// Zero bytes at the end are read as padding too, since some hosts and targets write them, and what
/// is not printable as a question mark.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>([u8; N]);

impl<const N: usize> Text<N> {
    /// Fails when `text` is longer than `N` bytes or not printable ASCII.
    pub fn new(text: &str) -> Result<Self, CodecError> {
        let room =
            CodecError::Field { field: "text length", got: text.len() as u64, allowed: "the width of its field" };
        let mut bytes = [b' '; N];
        bytes.get_mut(..text.len()).ok_or(room)?.copy_from_slice(text.as_bytes());
        match bytes.iter().find(|byte| !is_printable(**byte)) {
            Some(byte) => Err(CodecError::Field { field: "text", got: u64::from(*byte), allowed: "printable ASCII" }),
            None => Ok(Text(bytes)),
        }
    }

    /// Without its padding.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("only ASCII is stored").trim_end_matches(' ')
    }
}

fn is_printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

impl<const N: usize> std::fmt::Debug for Text<N> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.as_str())
    }
}

impl<const N: usize> Field for Text<N> {
    const BYTES: usize = N;
    fn get(bytes: &[u8], field: &'static str) -> Result<Self, CodecError> {
        let mut text: [u8; N] = *crate::error::leading(field, bytes)?;
        for byte in text.iter_mut().rev().take_while(|byte| **byte == 0) {
            *byte = b' ';
        }
        // A text is only shown: one odd byte must not make a controller unusable.
        text.iter_mut().filter(|byte| !is_printable(**byte)).for_each(|byte| *byte = b'?');
        Ok(Text(text))
    }
    fn put(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0);
    }
}

/// An NVMe qualified name: 1 to 223 bytes of printable ASCII without spaces, in a field of 256
/// bytes that ends in zeros (Base 2.0, 4.5). Names are compared as bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nqn {
    bytes: [u8; Nqn::BYTES_MAX],
    length: u8,
}

impl Nqn {
    /// Longest name.
    pub const BYTES_MAX: usize = 223;

    /// Fails on a name that is empty, longer than 223 bytes or not printable ASCII.
    pub fn new(name: &str) -> Result<Self, CodecError> {
        Self::of_bytes(name.as_bytes(), "nqn")
    }

    /// The subsystem that every discovery controller answers for (Base 2.0, 4.5.1).
    pub fn discovery() -> Self {
        Self::new("nqn.2014-08.org.nvmexpress.discovery").expect("the well-known name is a name")
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).expect("only ASCII is stored")
    }

    fn of_bytes(name: &[u8], field: &'static str) -> Result<Self, CodecError> {
        let length = name.len();
        if !(1..=Self::BYTES_MAX).contains(&length) {
            return Err(CodecError::Field { field, got: length as u64, allowed: "1 to 223 bytes and then zero" });
        }
        if let Some(byte) = name.iter().find(|byte| !byte.is_ascii_graphic()) {
            return Err(CodecError::Field { field, got: u64::from(*byte), allowed: "printable ASCII without spaces" });
        }
        let mut bytes = [0; Self::BYTES_MAX];
        bytes[..length].copy_from_slice(name);
        Ok(Nqn { bytes, length: length as u8 })
    }
}

impl std::fmt::Debug for Nqn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?}", self.as_str())
    }
}

impl std::fmt::Display for Nqn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Field for Nqn {
    const BYTES: usize = 256;
    fn get(bytes: &[u8], name: &'static str) -> Result<Self, CodecError> {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Self::of_bytes(&bytes[..end], name)
    }
    fn put(&self, bytes: &mut [u8]) {
        bytes[..Self::BYTES_MAX].copy_from_slice(&self.bytes);
    }
}

/// A field that may be empty (all zeros) instead of a name, as in log entries and identify data of
/// older controllers.
impl Field for Option<Nqn> {
    const BYTES: usize = Nqn::BYTES;
    fn get(bytes: &[u8], name: &'static str) -> Result<Self, CodecError> {
        if bytes.first() == Some(&0) { Ok(None) } else { Nqn::get(bytes, name).map(Some) }
    }
    fn put(&self, bytes: &mut [u8]) {
        if let Some(name) = self {
            name.put(bytes);
        }
    }
}

/// Which host, for reservations and Connect: 16 bytes, a UUID on every host seen (Base 2.0,
/// 5.27.1.25).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub [u8; 16]);

impl Field for HostId {
    const BYTES: usize = 16;
    fn get(bytes: &[u8], name: &'static str) -> Result<Self, CodecError> {
        Field::get(bytes, name).map(HostId)
    }
    fn put(&self, bytes: &mut [u8]) {
        self.0.put(bytes);
    }
}

#[cfg(test)]
mod tests;
