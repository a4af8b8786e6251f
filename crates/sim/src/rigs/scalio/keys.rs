//! The keys of a run and what is under them at first.

use scalio::{Contents, KEY_BYTES_MAX, Key, Token};

/// Keys by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Number of keys.
    pub count: u32,
    /// The length of every value.
    pub value_bytes: u32,
}

impl Keys {
    /// The number of a key.
    pub fn number(&self, key: &Key) -> u32 {
        key.as_bytes().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }
}

impl Contents for Keys {
    type Value = Token;
    fn keys(&self) -> u32 {
        self.count
    }
    /// Its number, so that the order of keys is that of numbers, and what fills 16 bytes.
    fn key(&self, number: u32) -> Key {
        let mut bytes = [b'k'; KEY_BYTES_MAX];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Key::new(&bytes).expect("16 bytes are a key")
    }
    fn number_of(&self, key: &Key) -> Option<u32> {
        Some(self.number(key)).filter(|number| *number < self.count && self.key(*number) == *key)
    }
    /// The key's number: writes of a run have higher names.
    fn value(&self, number: u32) -> Token {
        Token { id: u64::from(number), bytes: self.value_bytes }
    }
    fn value_bytes(&self) -> u32 {
        self.value_bytes
    }
}
