//! Frames between doors and a JBOF: what is read is written as the same frame.
#![no_main]

use bytes::{Bytes, BytesMut};
use kv::frames::{ToDoor, ToJbof};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((choice, body)) = input.split_first() else { return };
    let body = Bytes::copy_from_slice(body);
    let mut again = BytesMut::new();
    if choice & 1 == 0 {
        let Ok(message) = ToJbof::decode(body) else { return };
        message.encode(&mut again);
        assert_eq!(ToJbof::decode(again.freeze()), Ok(message));
    } else {
        let Ok(message) = ToDoor::decode(body) else { return };
        message.encode(&mut again);
        assert_eq!(ToDoor::decode(again.freeze()), Ok(message));
    }
});
