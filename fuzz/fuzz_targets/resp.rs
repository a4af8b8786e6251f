//! A client of the key-value store sends anything, in pieces, and the store answers at any time.
#![no_main]

use base::{Span, Time};
use bytes::{Bytes, BytesMut};
use kv::output::{Output, PART_BYTES};
use kv::protocol::{Reply, RequestLimits};
use kv::session::{Rules, Session, Want};
use libfuzzer_sys::fuzz_target;
use scalio::{Left, Name, Outcome};

const LIMITS: RequestLimits = RequestLimits { arguments: 64, bytes: 4096 };

/// A value that a reply refers to.
static LONG: [u8; PART_BYTES] = [b'v'; PART_BYTES];

fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let password = (first & 1 == 1).then(|| Bytes::from_static(b"p"));
    let rules = Rules {
        password,
        limits: LIMITS,
        value_bytes: 2048,
        reply_bytes: 1 << 16,
        operations: 32,
        blocks: 40,
        slow_after: Some(Span::ZERO),
    };
    let mut session = Session::new(1, &rules);
    let (mut input, mut output, mut asks) = (BytesMut::new(), Output::default(), Vec::new());
    let piece = usize::from(first >> 1) + 1;
    for piece in rest.chunks(piece) {
        input.extend_from_slice(piece);
        session.take(Time::ZERO, &mut input, &rules, &mut asks);
        for ask in asks.drain(..) {
            let outcome = match ask.want {
                Want::Names(_) => Outcome::Names(vec![Name::new(Bytes::from_static(b"name")).expect("it is short")]),
                Want::Describe(_) => Outcome::Described(Some(Left::Ever)),
                Want::Operation(_) if ask.part % 2 == 1 => Outcome::Value(Some(Bytes::from_static(&LONG))),
                Want::Operation(_) => Outcome::Value(Some(Bytes::from_static(b"v"))),
            };
            session.done(Time::ZERO, ask.command, ask.part, outcome);
        }
        session.write(&mut output, 1 << 16, |_| Reply::Nothing);
        output = Output::default();
        assert!(input.len() <= LIMITS.bytes + piece.len() || session.is_over() || session.is_full());
    }
});
