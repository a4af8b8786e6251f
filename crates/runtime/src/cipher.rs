//! Encryption with authentication: XChaCha20-Poly1305, and keys from secrets (HKDF, RFC 5869).

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use sha2::Sha256;

/// Bytes of a nonce. A key may see each once.
pub const NONCE: usize = 24;
/// Bytes that authenticate a text.
pub const TAG: usize = 16;

/// A key of 32 bytes that a secret stands for, for the use that `info` names.
pub fn derive(secret: &str, salt: &[u8], info: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    let derived = Hkdf::<Sha256>::new(Some(salt), secret.as_bytes()).expand(info, &mut key);
    derived.expect("one block is no more than 255");
    key
}

/// A key in use.
pub struct Cipher(XChaCha20Poly1305);

impl Cipher {
    /// With a key.
    pub fn new(key: &[u8; 32]) -> Cipher {
        Cipher(XChaCha20Poly1305::new(key.into()))
    }

    /// Encrypts a text in its place. What is returned authenticates it, and what is `known`.
    pub fn seal(&self, nonce: [u8; NONCE], known: &[u8], text: &mut [u8]) -> [u8; TAG] {
        let tag = self.0.encrypt_inout_detached(&XNonce::from(nonce), known, text.into());
        tag.expect("no text is 256 GiB long").into()
    }

    /// Decrypts a text in its place; `false` where it was not sealed so: its bytes mean nothing.
    pub fn open(&self, nonce: [u8; NONCE], known: &[u8], text: &mut [u8], tag: [u8; TAG]) -> bool {
        self.0.decrypt_inout_detached(&XNonce::from(nonce), known, text.into(), &Tag::from(tag)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("digits"), 16).expect("hex"))
            .collect()
    }

    /// The vector of draft-irtf-cfrg-xchacha-03, A.3.1.
    #[test]
    fn a_published_text_is_sealed_as_published() {
        let mut text = b"Ladies and Gentlemen of the class of '99: \
            If I could offer you only one tip for the future, sunscreen would be it."
            .to_vec();
        let clear = text.clone();
        let known = bytes_of("50515253c0c1c2c3c4c5c6c7");
        let key: Vec<u8> = (0x80..0xa0).collect();
        let nonce: Vec<u8> = (0x40..0x58).collect();
        let (key, nonce) = (key.try_into().expect("32 bytes"), nonce.try_into().expect("24 bytes"));
        let cipher = Cipher::new(&key);
        let tag = cipher.seal(nonce, &known, &mut text);
        assert_eq!(tag[..], bytes_of("c0875924c1c7987947deafd8780acf49"));
        assert_eq!(text[..16], bytes_of("bd6d179d3e83d43b9576579493c0e939"));
        for (at, is_whole) in [(None, true), (Some(3), false)] {
            let mut sealed = text.clone();
            at.into_iter().for_each(|at: usize| sealed[at] ^= 1);
            assert_eq!(cipher.open(nonce, &known, &mut sealed, tag), is_whole);
            assert_eq!(sealed == clear, is_whole);
        }
        assert!(!cipher.open(nonce, &known[1..], &mut text, tag), "what is known is authenticated too");
    }

    #[test]
    fn a_key_depends_on_secret_salt_and_use() {
        let key = derive("secret", b"salt", b"use");
        for other in
            [derive("secreT", b"salt", b"use"), derive("secret", b"Salt", b"use"), derive("secret", b"salt", b"Use")]
        {
            assert_ne!(key, other);
        }
    }
}
