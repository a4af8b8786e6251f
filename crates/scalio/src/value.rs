//! Values: real bytes live and in tests, a name and a length in simulated racks.

use crate::LimitError;
use std::fmt::Debug;

/// Bytes of the longest value that a slot has room for: the paper's (6.1). Longer values are read
/// from flash each time.
pub const VALUE_BYTES_MAX: u32 = 64;

/// What is kept under a key. The default is what a slot holds before it was ever written.
pub trait Value: Clone + Default + PartialEq + Debug {
    /// Its length in bytes.
    fn bytes(&self) -> u32;
    /// Appends exactly [`bytes`](Value::bytes) of them.
    fn encode(&self, bytes: &mut Vec<u8>);
    /// Reads all of `bytes`; `None` where they are not a value of this kind.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// Fails on a value of more than `most` bytes.
pub fn check_value(value: &impl Value, most: u32) -> Result<(), LimitError> {
    if value.bytes() > most {
        return Err(LimitError::Value { got: value.bytes(), most });
    }
    Ok(())
}

impl Value for bytes::Bytes {
    fn bytes(&self) -> u32 {
        self.len() as u32
    }
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
    fn decode(bytes: &[u8]) -> Option<bytes::Bytes> {
        Some(bytes::Bytes::copy_from_slice(bytes))
    }
}

impl Value for Vec<u8> {
    fn bytes(&self) -> u32 {
        self.len() as u32
    }
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
    fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

/// A value of which only the name and the length matter. Its bytes are the name, repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token {
    /// The name.
    pub id: u64,
    /// The length in bytes, at least 8.
    pub bytes: u32,
}

impl Default for Token {
    fn default() -> Token {
        Token { id: 0, bytes: 8 }
    }
}

impl Value for Token {
    fn bytes(&self) -> u32 {
        self.bytes
    }
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.id.to_le_bytes().into_iter().cycle().take(self.bytes as usize));
    }
    fn decode(bytes: &[u8]) -> Option<Token> {
        let (name, _) = bytes.split_first_chunk::<8>()?;
        let repeated = bytes.iter().zip(name.iter().cycle()).all(|(byte, expected)| byte == expected);
        repeated.then(|| Token { id: u64::from_le_bytes(*name), bytes: bytes.len() as u32 })
    }
}

/// What is known of a value that was not read: its length in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length(pub u32);

impl Value for Length {
    fn bytes(&self) -> u32 {
        self.0
    }
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.resize(bytes.len() + self.0 as usize, 0);
    }
    fn decode(bytes: &[u8]) -> Option<Length> {
        Some(Length(bytes.len() as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_bytes_and_a_changed_byte_does_not_pass() {
        for length in [8, 9, 63, 64] {
            let token = Token { id: 0x0102_0304_0506_0708, bytes: length };
            let mut bytes = Vec::new();
            token.encode(&mut bytes);
            assert_eq!(bytes.len(), length as usize);
            assert_eq!(Token::decode(&bytes), Some(token));
        }
        assert_eq!(Token::decode(&[1, 2, 3, 4, 5, 6, 7, 8, 9]), None);
        assert_eq!(Token::decode(&[1, 2, 3]), None);
    }

    #[test]
    fn a_value_of_64_bytes_fits_and_one_of_65_does_not() {
        assert_eq!(check_value(&vec![0; 64], VALUE_BYTES_MAX), Ok(()));
        assert_eq!(check_value(&vec![0; 65], VALUE_BYTES_MAX), Err(LimitError::Value { got: 65, most: 64 }));
    }
}
