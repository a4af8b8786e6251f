//! Names and values of applications in a store whose keys have 16 bytes.
//!
//! A name of 1 to 15 bytes is its own key. Any other name is stored under the first 16 bytes of its
//! SHA-256, and its record has the name in front of the value. The two kinds never meet, since keys
//! differ by their length. A record under another name counts as nothing to a reader.

use crate::{KEY_BYTES_MAX, Key};
use bytes::{BufMut, Bytes, BytesMut};
use sha2::{Digest, Sha256};

/// Bytes of the longest name.
pub const NAME_BYTES_MAX: usize = 8 << 10;
const LENGTH_BYTES: usize = size_of::<u16>();
/// Bytes that a record has besides its value at most.
pub const ENTRY_BYTES: u32 = (LENGTH_BYTES + NAME_BYTES_MAX) as u32;

/// A name of up to [`NAME_BYTES_MAX`] bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(Bytes);

/// A name that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key of {got} bytes, allowed are at most {NAME_BYTES_MAX}")]
pub struct NameError {
    /// Its length.
    pub got: usize,
}

impl Name {
    /// Fails on more than [`NAME_BYTES_MAX`] bytes.
    pub fn new(bytes: Bytes) -> Result<Name, NameError> {
        if bytes.len() > NAME_BYTES_MAX { Err(NameError { got: bytes.len() }) } else { Ok(Name(bytes)) }
    }

    /// The name that is its own key; `None` where the key is made of a longer one.
    pub fn of_key(key: &Key) -> Option<Name> {
        let name = Name(Bytes::copy_from_slice(key.as_bytes()));
        name.is_key().then_some(name)
    }

    /// The name in front of a record's value, of which the first bytes are given: it is the one of
    /// which the key is made, or none.
    pub fn of_record(key: &Key, front: &[u8]) -> Option<Name> {
        let length = usize::from(u16::from_le_bytes(*front.first_chunk()?));
        let name = Name(Bytes::copy_from_slice(front.get(LENGTH_BYTES..LENGTH_BYTES + length)?));
        (!name.is_key() && name.key() == *key).then_some(name)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    fn is_key(&self) -> bool {
        (1..KEY_BYTES_MAX).contains(&self.0.len())
    }

    /// The key of its record.
    pub fn key(&self) -> Key {
        let digest;
        let bytes = if self.is_key() {
            &self.0[..]
        } else {
            digest = Sha256::digest(&self.0);
            &digest[..KEY_BYTES_MAX]
        };
        Key::new(bytes).expect("both kinds have 1 to 16 bytes")
    }

    /// What its record holds for `value`.
    pub fn record(&self, value: Bytes) -> Bytes {
        if self.is_key() {
            return value;
        }
        let mut record = BytesMut::with_capacity(LENGTH_BYTES + self.0.len() + value.len());
        record.put_u16_le(self.0.len() as u16);
        record.extend_from_slice(&self.0);
        record.extend_from_slice(&value);
        record.freeze()
    }

    /// The value in a record; `None` where it is of another name.
    pub fn value(&self, record: Bytes) -> Option<Bytes> {
        if self.is_key() {
            return Some(record);
        }
        let length = usize::from(u16::from_le_bytes(*record.first_chunk()?));
        let name = record.get(LENGTH_BYTES..LENGTH_BYTES + length)?;
        (name == self.0).then(|| record.slice(LENGTH_BYTES + length..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> Name {
        Name::new(Bytes::copy_from_slice(bytes)).expect("short")
    }

    #[test]
    fn names_of_every_length_keep_their_values() {
        for length in [0, 1, 15, 16, 17, NAME_BYTES_MAX] {
            let name = name(&vec![b'x'; length]);
            let record = name.record(Bytes::from_static(b"value"));
            assert_eq!(name.value(record), Some(Bytes::from_static(b"value")), "{length}");
        }
        let long = Bytes::from(vec![b'x'; NAME_BYTES_MAX + 1]);
        assert_eq!(Name::new(long), Err(NameError { got: NAME_BYTES_MAX + 1 }));
    }

    #[test]
    fn a_name_that_is_the_digest_of_another_has_a_key_of_its_own() {
        let long = name(b"a name of many bytes");
        let digest = long.key();
        assert_ne!(name(digest.as_bytes()).key(), digest);
    }

    #[test]
    fn a_record_of_another_name_is_no_value() {
        let record = name(b"one of many bytes").record(Bytes::from_static(b"v"));
        let other = name(b"two of many bytes");
        assert_eq!(other.value(record), None);
        for cut in [Bytes::new(), Bytes::from_static(&[9]), Bytes::from_static(&[200, 0, 1])] {
            assert_eq!(other.value(cut), None);
        }
    }
}
