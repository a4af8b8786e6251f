//! A journal of a role of volumes of anything: packets that are read of it are sound ones.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use volumes::journal::{Entry, Reader};

/// The first byte chooses whether the document in front is one of a switch, or is fuzzed too.
fn journal(choice: u8, rest: &[u8]) -> Vec<u8> {
    let document = br#"{"program":"","rack":0,"name":"r","node":0,"boot":"","clock_ns":0,"state":{"switch":{"hello":1}}}"#;
    let length = (document.len() as u32).to_le_bytes();
    let front = if choice & 1 == 0 { [&length[..], document].concat() } else { Vec::new() };
    [&b"RWROLE02"[..], &front, rest].concat()
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, rest)) = input.split_first() else { return };
    let read = Reader::of_bytes(Path::new("input"), journal(*choice, rest));
    assert!(read.is_ok() || choice & 1 == 1, "its beginning is right");
    let Ok(mut reader) = read else { return };
    let page = [0; blox::PAGE_BYTES as usize];
    while let Ok(Some(entry)) = reader.next() {
        let (Entry::Packet { packet, .. } | Entry::Sent { packet, .. }) = entry else { continue };
        let mut bytes = Vec::new();
        blox::encode_datagram(&packet, &page, &mut bytes);
        assert_eq!(blox::decode_datagram(&bytes).map(|(again, _)| again), Ok(packet));
    }
});
