//! The interchange format of keys: `WORD:hh:base64:`, where hh is a code and the base64 is of the
//! key and its CRC-32 (Base 2.0, 8.13.5.8; TCP Transport 1.1, 3.6.1.5).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// The decoded text.
pub(crate) struct Interchange {
    /// Between the first colons.
    pub code: u8,
    /// The key, empty when there is not even a checksum.
    pub key: Vec<u8>,
    /// Whether the checksum is the key's own.
    pub is_intact: bool,
}

/// Why a text is not of the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    Form,
    Base64,
}

impl Interchange {
    /// Reads a text that begins with `word` and has a code up to `code_max`.
    pub(crate) fn parse(text: &str, word: &str, code_max: u8) -> Result<Interchange, Malformed> {
        let parts: Vec<&str> = text.trim().split(':').collect();
        let [found, code, encoded, ""] = parts[..] else { return Err(Malformed::Form) };
        let is_code = |number: &u8| found == word && code.len() == 2 && *number <= code_max;
        let code = code.parse().ok().filter(is_code).ok_or(Malformed::Form)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| Malformed::Base64)?;
        Ok(match bytes.split_last_chunk::<4>() {
            Some((key, checksum)) => {
                let is_intact = crc32fast::hash(key) == u32::from_le_bytes(*checksum);
                Interchange { code, key: key.to_vec(), is_intact }
            }
            None => Interchange { code, key: Vec::new(), is_intact: false },
        })
    }
}
