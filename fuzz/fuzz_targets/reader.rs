//! PDUs in any split: whole and byte by byte give the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme::pdu::{Assembler, Digests, Framing, Limits, Pdu, PduError, Receiver};

fn read(bytes: &[u8], portion: usize, receiver: Receiver, framing: Framing) -> (Vec<Pdu>, Option<PduError>) {
    let limits = Limits { in_capsule_max: 8192, data_max: 8192 };
    let mut assembler = Assembler::new(receiver, limits);
    let mut pdus = Vec::new();
    for piece in bytes.chunks(portion) {
        let mut input = piece;
        loop {
            match assembler.next(&mut input) {
                Ok(Some(pdu)) => {
                    if pdus.is_empty() {
                        assembler.open(framing);
                    }
                    pdus.push(pdu);
                }
                Ok(None) => break,
                Err(error) => return (pdus, Some(error)),
            }
        }
    }
    (pdus, None)
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, bytes)) = input.split_first() else { return };
    let receiver = if choice & 1 == 0 { Receiver::Controller } else { Receiver::Host };
    let digests = Digests { header: choice & 2 != 0, data: choice & 4 != 0 };
    let framing = Framing { digests, alignment: choice >> 3 };
    let whole = read(bytes, usize::MAX, receiver, framing);
    assert_eq!(whole, read(bytes, 1, receiver, framing));
});
