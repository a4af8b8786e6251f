//! A journal of a store's program of anything: what is read of it is written as the same entry.
#![no_main]

use kv::journal::{Entry, Put, Reader, Take};
use libfuzzer_sys::fuzz_target;
use scalio::{ClientIn, ClientOut, Length, ServerIn, ServerOut};
use std::path::Path;

/// The kinds of inputs and of decisions.
const INPUT: u8 = 2;
const DECIDED: u8 = 4;

fn journal(part: &str, entries: &[u8]) -> Reader {
    let document = format!("{{\"program\":\"\",\"role\":\"r\",\"part\":{part},\"boot\":\"\",\"clock_ns\":0}}");
    let length = (document.len() as u32).to_le_bytes();
    let bytes = [&b"RWSTOR01"[..], &length, document.as_bytes(), entries].concat();
    Reader::of_bytes(Path::new("input"), bytes).expect("its beginning is right")
}

fn check<I: Put + Take + PartialEq, O: Put + Take + PartialEq>(part: &str, entries: &[u8]) {
    let mut reader = journal(part, entries);
    while let Ok(Some(entry)) = reader.next::<I, O>() {
        let mut bytes = Vec::new();
        match &entry {
            Entry::Input { input, .. } => {
                bytes.extend([INPUT, 0]);
                input.put(&mut bytes);
            }
            Entry::Decided(decision) => {
                bytes.push(DECIDED);
                decision.put(&mut bytes);
            }
            _ => continue,
        }
        let again = journal(part, &bytes).next::<I, O>().expect("it was read before");
        match (entry, again) {
            (Entry::Input { input, .. }, Some(Entry::Input { input: again, .. })) => assert!(input == again),
            (Entry::Decided(decision), Some(Entry::Decided(again))) => assert!(decision == again),
            _ => panic!("another kind"),
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((choice, entries)) = input.split_first() else { return };
    if choice & 1 == 0 {
        check::<ClientIn<Length>, ClientOut<Length>>("{\"loop\":0}", entries);
    } else {
        check::<ServerIn<Length>, ServerOut<Length>>("\"helper\"", entries);
    }
});
