//! What keeps others from reading, changing and making up the packets of a rack.
//!
//! A datagram is encrypted and authenticated with XChaCha20-Poly1305 under a key that comes of the
//! rack's secret. Its nonce is the time of sending and 16 random bytes of the sender's start, so
//! that no nonce comes twice. For which node and which rack it is, is authenticated too.
//!
//! Whoever can send and listen on the network may repeat a datagram. It is known by its nonce: a
//! receiver takes none twice, and none that is older than [`ORDER_US`] beside others of its sender.
//! One that was started anew knows no nonces, and takes what is not older than [`WINDOW_US`].

use base::NodeId;
use runtime::cipher::{Cipher, NONCE, TAG, derive};
use runtime::error::StartError;
use runtime::secret::{long_secret_in, random};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// How far the times of sender and receiver may be apart, in microseconds.
const WINDOW_US: u64 = 30_000_000;
/// How much later a datagram may come than one that was sent after it, in microseconds.
const ORDER_US: u64 = 1_000_000;
/// Starts of senders that are remembered at least.
const SENDERS_MIN: usize = 1_024;
/// Bytes of the time in a nonce, and of the random rest.
const TIME: usize = 8;
const START: usize = NONCE - TIME;
/// Bytes that a sealed datagram is longer than an open one.
const OVERHEAD: usize = NONCE + TAG;

/// Why a datagram is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// It was not sealed with the secret of this rack, or not for this node, or it was changed.
    Forged,
    /// It came before.
    Repeated,
    /// It is of another time.
    Late {
        /// How far the sender's clock is behind, in microseconds; negative if it is ahead.
        behind_us: i64,
    },
}

/// Seals what a process sends, and opens what it receives.
pub(crate) struct Seal {
    cipher: Cipher,
    start: [u8; START],
    last_us: u64,
    senders: BTreeMap<[u8; START], Sender>,
}

/// What has come of one start of a sender.
#[derive(Default)]
struct Sender {
    newest_us: u64,
    /// Times of those that are not much older.
    recent: BTreeSet<u64>,
}

impl Sender {
    /// Whether a datagram of this time is a new one.
    fn takes(&mut self, sent_us: u64) -> bool {
        if sent_us.saturating_add(ORDER_US) < self.newest_us || !self.recent.insert(sent_us) {
            return false;
        }
        self.newest_us = self.newest_us.max(sent_us);
        while self.recent.first().is_some_and(|oldest| oldest.saturating_add(ORDER_US) < self.newest_us) {
            self.recent.pop_first();
        }
        true
    }
}

impl Seal {
    /// One with the secret in a file.
    ///
    /// # Errors
    /// When the file cannot be read, or its secret is too short.
    pub fn open_file(path: &Path) -> Result<Seal, StartError> {
        let key = key_of(&long_secret_in(path)?);
        Ok(Seal::new(&key, random().map_err(StartError::system("random bytes"))?))
    }

    fn new(key: &[u8; 32], start: [u8; START]) -> Seal {
        Seal { cipher: Cipher::new(key), start, last_us: 0, senders: BTreeMap::new() }
    }

    /// Seals what is behind the `open` bytes of a datagram for `to`. Those are authenticated. What
    /// is before them is of other datagrams.
    pub fn seal(&mut self, now_us: u64, to: NodeId, open: Range<usize>, datagrams: &mut Vec<u8>) {
        // A clock that was set back: times come again, and are those of another start.
        if now_us.saturating_add(ORDER_US) < self.last_us
            && let Ok(start) = random()
        {
            (self.start, self.last_us) = (start, 0);
        }
        self.last_us = now_us.max(self.last_us + 1);
        let nonce = nonce_of(self.last_us, self.start);
        let (front, text) = datagrams[open.start..].split_at_mut(open.len());
        let tag = self.cipher.seal(nonce, &known(front, to), text);
        datagrams.extend_from_slice(&nonce);
        datagrams.extend_from_slice(&tag);
    }

    /// Opens what is behind the first `open` bytes of a datagram in its place.
    ///
    /// # Errors
    /// Where it is not taken; its bytes mean nothing then.
    pub fn open<'a>(
        &mut self,
        now_us: u64,
        own: NodeId,
        open: usize,
        datagram: &'a mut [u8],
    ) -> Result<&'a [u8], Broken> {
        let (front, rest) = datagram.split_at_mut_checked(open).ok_or(Broken::Forged)?;
        let length = rest.len().checked_sub(OVERHEAD).ok_or(Broken::Forged)?;
        let (text, end) = rest.split_at_mut(length);
        let (nonce, tag) = end.split_first_chunk::<NONCE>().ok_or(Broken::Forged)?;
        let tag = *tag.first_chunk().ok_or(Broken::Forged)?;
        if !self.cipher.open(*nonce, &known(front, own), text, tag) {
            return Err(Broken::Forged);
        }
        let (time, start) = nonce.split_first_chunk().expect("a nonce begins with its time");
        let (sent_us, start) = (u64::from_be_bytes(*time), start.try_into().expect("and ends with its start"));
        if now_us.abs_diff(sent_us) > WINDOW_US {
            return Err(Broken::Late { behind_us: now_us.wrapping_sub(sent_us).cast_signed() });
        }
        if self.senders.len() >= SENDERS_MIN && !self.senders.contains_key(&start) {
            // What they sent is too old by now.
            self.senders.retain(|_, sender| sender.newest_us.saturating_add(2 * WINDOW_US) >= now_us);
        }
        if self.senders.entry(start).or_default().takes(sent_us) { Ok(text) } else { Err(Broken::Repeated) }
    }
}

/// The key that a secret stands for (RFC 5869).
fn key_of(secret: &str) -> [u8; 32] {
    derive(secret, &[], b"rackweave rack datagrams 1")
}

fn nonce_of(time_us: u64, start: [u8; START]) -> [u8; NONCE] {
    let mut nonce = [0; NONCE];
    nonce[..TIME].copy_from_slice(&time_us.to_be_bytes());
    nonce[TIME..].copy_from_slice(&start);
    nonce
}

/// What is authenticated beside the text.
fn known(front: &[u8], to: NodeId) -> Vec<u8> {
    [front, &to.0.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const SECRET: &str = "a secret of as many letters as it needs";
    const FRONT: &[u8] = b"the rack";
    const NOW: u64 = 1_800_000_000_000_000;

    fn seal(start: u8) -> Seal {
        Seal::new(&key_of(SECRET), [start; START])
    }

    fn sealed(text: &[u8]) -> Vec<u8> {
        let mut datagram = [FRONT, text].concat();
        seal(1).seal(NOW, NodeId(3), 0..FRONT.len(), &mut datagram);
        datagram
    }

    fn opened(now_us: u64, own: u32, mut datagram: Vec<u8>) -> Result<Vec<u8>, Broken> {
        seal(2).open(now_us, NodeId(own), FRONT.len(), &mut datagram).map(<[u8]>::to_vec)
    }

    #[test]
    fn what_was_sealed_is_opened_by_its_receiver_alone() {
        for text in [&b""[..], b"a", &[7; 4_200]] {
            let datagram = sealed(text);
            assert_eq!(datagram.len(), FRONT.len() + text.len() + OVERHEAD);
            assert!(text.len() < 2 || !datagram.windows(text.len()).any(|part| part == text), "it can be read");
            assert_eq!(opened(NOW, 3, datagram.clone()).as_deref(), Ok(text));
            assert_eq!(opened(NOW, 4, datagram.clone()), Err(Broken::Forged), "it is for another node");
            let mut other = Seal::new(&key_of("another secret of as many letters"), [1; START]);
            assert_eq!(other.open(NOW, NodeId(3), FRONT.len(), &mut datagram.clone()), Err(Broken::Forged));
        }
    }

    #[test]
    fn no_bit_can_be_changed_and_no_byte_can_be_left_out() {
        let datagram = sealed(b"a packet");
        for bit in 0..datagram.len() * 8 {
            let mut changed = datagram.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(opened(NOW, 3, changed), Err(Broken::Forged), "bit {bit}");
        }
        for length in 0..datagram.len() {
            assert_eq!(opened(NOW, 3, datagram[..length].to_vec()), Err(Broken::Forged), "{length} bytes");
        }
    }

    #[test]
    fn what_is_repeated_is_taken_once() {
        let (mut sender, mut receiver) = (seal(1), seal(2));
        let mut sent = |us: u64| {
            let mut datagram = FRONT.to_vec();
            sender.seal(NOW + us, NodeId(3), 0..FRONT.len(), &mut datagram);
            datagram
        };
        let [first, second, third, late] = [0, 10, ORDER_US + 10, ORDER_US + 20].map(&mut sent);
        let mut take = |datagram: &[u8]| {
            let mut datagram = datagram.to_vec();
            receiver.open(NOW + ORDER_US + 30, NodeId(3), FRONT.len(), &mut datagram).map(|_| ())
        };
        assert_eq!((take(&second), take(&second)), (Ok(()), Err(Broken::Repeated)));
        assert_eq!((take(&first), take(&first)), (Ok(()), Err(Broken::Repeated)), "a network may change their order");
        assert_eq!(take(&third), Ok(()));
        // `second` is as old as may be, `first` is older: neither comes through again.
        assert_eq!([&first, &second, &third].map(|datagram| take(datagram)), [Err(Broken::Repeated); 3]);
        assert_eq!((take(&late), take(&late)), (Ok(()), Err(Broken::Repeated)));
    }

    #[test]
    fn a_clock_that_was_set_back_is_right_at_once() {
        let mut sender = seal(1);
        for now_us in [NOW, NOW - 3_600_000_000] {
            let mut datagram = FRONT.to_vec();
            sender.seal(now_us, NodeId(3), 0..FRONT.len(), &mut datagram);
            assert_eq!(opened(now_us, 3, datagram), Ok(Vec::new()));
        }
    }

    #[test]
    fn what_is_repeated_later_or_comes_from_the_future_is_not_taken() {
        let at = |now_us: u64| opened(now_us, 3, sealed(b"a packet")).map(|_| ());
        assert_eq!([NOW + WINDOW_US, NOW - WINDOW_US].map(at), [Ok(()); 2]);
        let behind = WINDOW_US.cast_signed() + 1;
        assert_eq!(at(NOW + WINDOW_US + 1), Err(Broken::Late { behind_us: behind }));
        assert_eq!(at(NOW - WINDOW_US - 1), Err(Broken::Late { behind_us: -behind }));
    }

    #[test]
    fn no_nonce_comes_twice_even_if_the_clock_stands_or_goes_back() {
        let mut seal = seal(1);
        let nonces: BTreeSet<Vec<u8>> = [NOW, NOW, NOW - 1, NOW + 2, NOW + 2, 0]
            .map(|now_us| {
                let mut datagram = FRONT.to_vec();
                seal.seal(now_us, NodeId(0), 0..FRONT.len(), &mut datagram);
                datagram[FRONT.len()..][..NONCE].to_vec()
            })
            .into();
        assert_eq!(nonces.len(), 6);
    }

    #[test]
    fn a_secret_is_long_and_in_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("secret");
        let with = |text: &str| {
            std::fs::write(&path, text).expect("a disk");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("a disk");
            Seal::open_file(&path).err().map(|error| error.to_string())
        };
        assert_eq!(with(&format!("{}\n", "x".repeat(32))), None);
        let short = with(&format!("{}\nmore", "x".repeat(31))).expect("it is short");
        assert!(short.contains("31 letters") && !short.contains("xxx"), "{short}");
        assert!(Seal::open_file(&folder.path().join("none")).is_err());
    }
}
