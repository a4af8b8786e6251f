//! What a door and a JBOF say to each other: what is read is written as the same frame, and a
//! stream of anything is read in any pieces, with a secret or without.
#![no_main]

use bytes::{Bytes, BytesMut};
use kv::Secret;
use kv::channel::{Codec, End, GREETING, Greeting, agree};
use kv::frames::{ToDoor, ToJbof};
use libfuzzer_sys::fuzz_target;

/// Bytes of a frame at most.
const MOST: usize = 4096;

/// A request or a reply with its checksum made right, which anybody can do.
fn resealed(body: Bytes) -> Bytes {
    let mut body = body.to_vec();
    if let Some((4 | 5, message)) = body.split_first_mut()
        && message.len() >= 32
    {
        let sum = crc32c::crc32c_append(crc32c::crc32c(&message[..4]), &message[8..]);
        message[4..8].copy_from_slice(&sum.to_le_bytes());
    }
    body.into()
}

fn frame(of_door: bool, body: Bytes) {
    let (body, mut again) = (resealed(body), BytesMut::new());
    if of_door {
        let Ok(message) = ToJbof::decode(body) else { return };
        message.encode(&mut again);
        assert_eq!(ToJbof::decode(again.freeze()), Ok(message));
    } else {
        let Ok(message) = ToDoor::decode(body) else { return };
        message.encode(&mut again);
        assert_eq!(ToDoor::decode(again.freeze()), Ok(message));
    }
}

/// A greeting, then frames, which come in pieces of `piece` bytes.
fn stream(of_door: bool, secret: Option<&Secret>, piece: usize, bytes: &[u8]) {
    let Some((greeting, bytes)) = bytes.split_first_chunk::<GREETING>() else { return };
    let Ok(other) = Greeting::decode(greeting) else { return };
    assert_eq!(other.encode(), *greeting);
    let own = Greeting::new(secret).expect("the system has random bytes");
    let end = if of_door { End::Jbof } else { End::Door };
    let Ok(keys) = agree(end, secret, &own, &other) else { return };
    let is_sealed = keys.is_some();
    let (mut codec, mut input) = (Codec::new(keys, MOST), BytesMut::new());
    for piece in bytes.chunks(piece) {
        input.extend_from_slice(piece);
        loop {
            match codec.take(&mut input) {
                Ok(Some(body)) => {
                    assert!(!is_sealed && body.len() <= MOST, "nobody has sealed this");
                    frame(of_door, body);
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
        assert!(input.capacity() <= 8 * MOST, "room for {} bytes", input.capacity());
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, body)) = input.split_first() else { return };
    let of_door = choice & 1 == 0;
    if choice & 2 == 0 {
        return frame(of_door, Bytes::copy_from_slice(body));
    }
    let secret = (choice & 4 != 0).then(|| Secret("secret".into()));
    stream(of_door, secret.as_ref(), 1 + usize::from(choice >> 3) * 40, body);
});
