//! A checksum of a whole part, so that damage is an error and not read as other numbers. Parquet's
//! own checksums do not cover the footer, and parquet 60 does not write them. Its decoders may
//! panic on damaged input.
//!
//! The checksum is the CRC-32 (ISO-HDLC, as in zip) of the part with `00000000` in place of the
//! checksum.

/// The metadata key of the checksum, which is written as eight hexadecimal digits.
pub const CHECKSUM_KEY: &str = "rackweave.crc32";

/// Placeholder for the checksum until the part is complete.
pub(crate) const PLACEHOLDER: &str = "00000000";

/// Bytes between a key and its value in the footer: the header of a Thrift compact field and the
/// length of its string.
const FRAMING: usize = 2;

/// An invalid checksum.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    #[error("it has no checksum under {CHECKSUM_KEY}, so it is not a whole part of these records")]
    NoChecksum,
    #[error("it is damaged: its checksum is {got}, it should be {expected}")]
    Mismatch { got: String, expected: String },
}

/// Replaces [`PLACEHOLDER`] with the checksum.
pub(crate) fn seal(part: &mut [u8]) {
    let at = place(part).expect("the metadata of every part has a place for the checksum");
    let text = checksum_around(part, at);
    part[at..at + text.len()].copy_from_slice(text.as_bytes());
}

/// Verifies the checksum of a part.
pub(crate) fn verify(part: &[u8]) -> Result<(), Damage> {
    let at = place(part).ok_or(Damage::NoChecksum)?;
    let got = checksum_around(part, at);
    let expected = &part[at..at + PLACEHOLDER.len()];
    if expected == got.as_bytes() {
        return Ok(());
    }
    Err(Damage::Mismatch { got, expected: String::from_utf8_lossy(expected).into_owned() })
}

/// Returns the offset of the digits: behind the last occurrence of their key.
fn place(part: &[u8]) -> Option<usize> {
    let key = part.windows(CHECKSUM_KEY.len()).rposition(|window| window == CHECKSUM_KEY.as_bytes())?;
    let at = key + CHECKSUM_KEY.len() + FRAMING;
    (at + PLACEHOLDER.len() <= part.len()).then_some(at)
}

fn checksum_around(part: &[u8], at: usize) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&part[..at]);
    hasher.update(PLACEHOLDER.as_bytes());
    hasher.update(&part[at + PLACEHOLDER.len()..]);
    format!("{:08x}", hasher.finalize())
}
