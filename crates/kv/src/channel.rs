//! A stream of frames between a door and a JBOF, open or sealed, without waiting.
//!
//! Each end begins with a greeting: eight letters, whether it seals, and 32 random bytes. With a
//! secret, both derive a key for each way from it and from the random bytes of both (HKDF, RFC
//! 5869). Every frame is then encrypted and authenticated (XChaCha20-Poly1305), with its number as
//! the nonce: no frame can be read, changed, left out or sent again by others.

use crate::config::Secret;
use crate::frames::{FrameError, LENGTH_BYTES};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use runtime::cipher::{self, NONCE, TAG, derive};
use std::io::{self, Read, Write};

const LETTERS: [u8; 8] = *b"RwJbof1\0";
const RANDOM: usize = 32;
/// Bytes of a greeting.
pub const GREETING: usize = LETTERS.len() + 1 + RANDOM;
/// Bytes of one read of the socket, and of one while a long frame comes. Room is filled with zeros
/// before it is read into.
const READ_BYTES: [usize; 2] = [16 << 10, 256 << 10];

/// Which end of a stream this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The door's.
    Door,
    /// The JBOF's.
    Jbof,
}

/// What one end says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeting {
    seals: bool,
    random: [u8; RANDOM],
}

impl Greeting {
    /// That of an end which seals if it has a secret.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn new(secret: Option<&Secret>) -> io::Result<Greeting> {
        Ok(Greeting { seals: secret.is_some(), random: runtime::secret::random()? })
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; GREETING] {
        let mut bytes = [0; GREETING];
        bytes[..LETTERS.len()].copy_from_slice(&LETTERS);
        bytes[LETTERS.len()] = self.seals.into();
        bytes[LETTERS.len() + 1..].copy_from_slice(&self.random);
        bytes
    }

    /// Parses one.
    ///
    /// # Errors
    /// If it is none.
    pub fn decode(bytes: &[u8; GREETING]) -> Result<Greeting, FrameError> {
        let (letters, rest) = bytes.split_at(LETTERS.len());
        let (seals, random) = rest.split_first().ok_or(FrameError::Greeting)?;
        match (letters == LETTERS, *seals, random.try_into()) {
            (true, seals @ 0..=1, Ok(random)) => Ok(Greeting { seals: seals == 1, random }),
            _ => Err(FrameError::Greeting),
        }
    }
}

/// The keys of both ways.
pub struct Keys {
    out: Way,
    back: Way,
}

/// The key of one way, and frames so far.
struct Way {
    cipher: cipher::Cipher,
    count: u64,
}

impl Way {
    fn nonce(&mut self) -> [u8; NONCE] {
        let mut nonce = [0; NONCE];
        nonce[..size_of::<u64>()].copy_from_slice(&self.count.to_le_bytes());
        self.count += 1;
        nonce
    }
}

/// The keys for `end`, after both have greeted; `None` where neither has a secret.
///
/// # Errors
/// When one end alone has a secret.
pub fn agree(end: End, secret: Option<&Secret>, own: &Greeting, other: &Greeting) -> Result<Option<Keys>, FrameError> {
    let secret = match (secret, other.seals) {
        (None, false) => return Ok(None),
        (Some(secret), true) => secret,
        (None, true) => return Err(FrameError::Secret("the other end has a secret, and this one has none")),
        (Some(_), false) => return Err(FrameError::Secret("this end has a secret, and the other one has none")),
    };
    let (door, jbof) = if end == End::Door { (own, other) } else { (other, own) };
    let random = [door.random, jbof.random].concat();
    let cipher = |use_of: &[u8]| Way { cipher: cipher::Cipher::new(&derive(&secret.0, &random, use_of)), count: 0 };
    let (forth, back) = (cipher(b"rackweave jbof 1, to the jbof"), cipher(b"rackweave jbof 1, to the door"));
    Ok(Some(if end == End::Door { Keys { out: forth, back } } else { Keys { out: back, back: forth } }))
}

/// Frames as bytes, and back.
pub struct Codec {
    keys: Option<Keys>,
    /// Bytes of a frame at most.
    most: usize,
}

impl Codec {
    /// One that takes frames of so many bytes.
    pub fn new(keys: Option<Keys>, most: usize) -> Codec {
        Codec { keys, most }
    }

    /// Allows frames of so many bytes.
    pub fn allow(&mut self, most: usize) {
        self.most = most;
    }

    /// Appends a frame whose body `body` appends.
    pub fn put(&mut self, out: &mut BytesMut, body: impl FnOnce(&mut BytesMut)) {
        let start = out.len();
        out.put_u32_le(0);
        body(out);
        if let Some(keys) = &mut self.keys {
            let nonce = keys.out.nonce();
            let text = &mut out[start + LENGTH_BYTES..];
            let tag = keys.out.cipher.seal(nonce, &[], text);
            out.put_slice(&tag);
        }
        let length = (out.len() - start - LENGTH_BYTES) as u32;
        out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }

    /// Takes the body of the next frame, if all of it is there.
    ///
    /// # Errors
    /// If it is too long, or not sealed as it has to be.
    pub fn take(&mut self, input: &mut BytesMut) -> Result<Option<Bytes>, FrameError> {
        let Some(length) = input.first_chunk().map(|length| u32::from_le_bytes(*length) as usize) else {
            return Ok(None);
        };
        let most = self.most + if self.keys.is_some() { TAG } else { 0 };
        if length > most {
            return Err(FrameError::TooLong { got: length, most });
        }
        if input.len() < LENGTH_BYTES + length {
            input.reserve(LENGTH_BYTES + length - input.len());
            return Ok(None);
        }
        input.advance(LENGTH_BYTES);
        let mut body = input.split_to(length);
        if let Some(keys) = &mut self.keys {
            let text = length.checked_sub(TAG).ok_or(FrameError::Forged)?;
            let tag = *body.last_chunk().ok_or(FrameError::Forged)?;
            body.truncate(text);
            let nonce = keys.back.nonce();
            if !keys.back.cipher.open(nonce, &[], &mut body, tag) {
                return Err(FrameError::Forged);
            }
        }
        Ok(Some(body.freeze()))
    }
}

/// A socket of either kind.
pub enum Line {
    /// Of another machine, or of this one.
    Tcp(TcpStream),
    /// Of this machine.
    Unix(UnixStream),
}

impl Line {
    /// Has the poll report what happens.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Line::Tcp(stream) => registry.register(stream, token, interest),
            Line::Unix(stream) => registry.register(stream, token, interest),
        }
    }

    /// Ends that.
    pub fn deregister(&mut self, registry: &Registry) {
        // The socket closes in any case.
        let _ = match self {
            Line::Tcp(stream) => registry.deregister(stream),
            Line::Unix(stream) => registry.deregister(stream),
        };
    }
}

impl Read for Line {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Line::Tcp(stream) => stream.read(room),
            Line::Unix(stream) => stream.read(room),
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Line::Tcp(stream) => stream.write(bytes),
            Line::Unix(stream) => stream.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A socket, and bytes on both sides of it.
pub struct Channel {
    /// The socket.
    pub line: Line,
    /// Bytes that came.
    pub input: BytesMut,
    /// Bytes that wait to leave.
    pub output: BytesMut,
    is_readable: bool,
    is_ended: bool,
}

impl Channel {
    /// One whose first bytes came already.
    pub fn new(line: Line, input: BytesMut) -> Channel {
        Channel { line, input, output: BytesMut::new(), is_readable: true, is_ended: false }
    }

    /// Something came, or will never come.
    pub fn is_ready(&mut self) {
        self.is_readable = true;
    }

    /// Whether there may be more to read.
    pub fn has_more(&self) -> bool {
        self.is_readable && !self.is_ended
    }

    /// Whether the other end is gone.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Reads once.
    pub fn read(&mut self) {
        if !self.has_more() {
            return;
        }
        let start = self.input.len();
        let room = (self.input.capacity() - start).clamp(READ_BYTES[0], READ_BYTES[1]);
        self.input.resize(start + room, 0);
        let got = self.line.read(&mut self.input[start..]);
        self.input.truncate(start + got.as_ref().map_or(0, |count| *count));
        match got {
            Ok(0) => self.is_ended = true,
            // The end of the stream is no event of its own if it came with bytes.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.is_readable = false,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.is_ended = true,
        }
    }

    /// Sends what the socket takes.
    pub fn flush(&mut self) {
        while !self.output.is_empty() && !self.is_ended {
            match self.line.write(&self.output) {
                Ok(0) => self.is_ended = true,
                Ok(count) => self.output.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.is_ended = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Option<Secret> {
        Some(Secret(text.into()))
    }

    /// Both ends, after they have greeted.
    fn pair(door: Option<Secret>, jbof: Option<Secret>) -> Result<(Codec, Codec), FrameError> {
        let [one, other] = [&door, &jbof].map(|secret| Greeting::new(secret.as_ref()).expect("there are bytes"));
        let [one, other] = [one, other].map(|greeting| Greeting::decode(&greeting.encode()).expect("it is one"));
        let keys = agree(End::Door, door.as_ref(), &one, &other)?;
        let others = agree(End::Jbof, jbof.as_ref(), &other, &one)?;
        Ok((Codec::new(keys, 100), Codec::new(others, 100)))
    }

    fn sent(codec: &mut Codec, text: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        codec.put(&mut out, |out| out.put_slice(text));
        out
    }

    #[test]
    fn frames_pass_both_ways_open_and_sealed() {
        for both in [None, secret("s")] {
            let (mut door, mut jbof) = pair(both.clone(), both.clone()).expect("they agree");
            for text in [&b""[..], b"abc", &[7; 100]] {
                let mut bytes = sent(&mut door, text);
                let is_open = text.len() > 2 && bytes.windows(text.len()).any(|part| part == text);
                assert_eq!(is_open, both.is_none() && text.len() > 2);
                let mut part = bytes.split_to(bytes.len() - 1);
                assert_eq!(jbof.take(&mut part), Ok(None));
                part.unsplit(bytes);
                assert_eq!(jbof.take(&mut part).expect("it is right").as_deref(), Some(text));
                assert_eq!(door.take(&mut sent(&mut jbof, text)).expect("it is right").as_deref(), Some(text));
            }
        }
    }

    #[test]
    fn a_frame_is_bounded_before_there_is_memory_for_it() {
        let (mut door, mut jbof) = pair(None, None).expect("they agree");
        let long = sent(&mut door, &[1; 101]);
        assert_eq!(jbof.take(&mut long.clone()), Err(FrameError::TooLong { got: 101, most: 100 }));
        jbof.allow(101);
        assert!(jbof.take(&mut long.clone()).is_ok_and(|frame| frame.is_some()));
    }

    #[test]
    fn a_sealed_frame_that_is_changed_repeated_or_left_out_is_refused() {
        let agreed = || pair(secret("s"), secret("s")).expect("they agree");
        let (mut door, mut jbof) = agreed();
        let first = sent(&mut door, b"one");
        assert!(jbof.take(&mut first.clone()).is_ok());
        assert_eq!(jbof.take(&mut first.clone()), Err(FrameError::Forged), "it was taken before");
        let (mut door, mut jbof) = agreed();
        let _ = sent(&mut door, b"left out");
        assert_eq!(jbof.take(&mut sent(&mut door, b"two")), Err(FrameError::Forged));
        for at in LENGTH_BYTES..LENGTH_BYTES + 3 + TAG {
            let (mut door, mut jbof) = agreed();
            let mut changed = sent(&mut door, b"one");
            changed[at] ^= 1;
            assert_eq!(jbof.take(&mut changed), Err(FrameError::Forged), "byte {at}");
        }
        // What one end sent does not come back to it as the other's.
        let (mut door, _) = agreed();
        let mut own = sent(&mut door, b"one");
        assert_eq!(door.take(&mut own), Err(FrameError::Forged));
    }

    #[test]
    fn ends_with_different_secrets_do_not_agree() {
        let (mut door, mut jbof) = pair(secret("one"), secret("other")).expect("both have one");
        assert_eq!(jbof.take(&mut sent(&mut door, b"text")), Err(FrameError::Forged));
        assert!(pair(None, secret("s")).is_err_and(|error| error.to_string().contains("this one has none")));
        assert!(pair(secret("s"), None).is_err_and(|error| error.to_string().contains("the other one has none")));
        assert_eq!(Greeting::decode(&[0; GREETING]), Err(FrameError::Greeting));
    }
}
