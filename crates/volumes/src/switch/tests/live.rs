//! Journals of a live rack, through the role and the kernel's data path again.

#[path = "../../../tests/common/mod.rs"]
mod common;

use super::*;
use crate::journal::{Entry, Reader};
use common::{Live, noted, read, write};
use plan::rack::Flash;
use std::path::Path;

const PAGES: u64 = 128;

/// A rack whose flash collects soon, and takes its time for it.
fn collecting(folder: &Path) -> Rack {
    let mut rack = noted(folder, 2, PAGES);
    for server in &mut rack.storage {
        let flash = Flash { program: Span::us(50), erase: Span::ms(3), ..server.flash.clone() };
        server.flash = Flash { size: base::Bytes::kib(1_024), channels: 1, ..flash };
        server.room = 0;
    }
    rack
}

/// Pages are written over and over, and read meanwhile.
fn load(live: &Live) {
    let volume = live.volume();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..1_500).for_each(|version| write(&volume, version % PAGES, version)));
        (0..3_000).for_each(|turn| drop(read(&volume, turn * 7 % PAGES)));
    });
}

#[test]
fn the_kernel_repeats_what_a_live_switch_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let rack = collecting(folder.path());
    let Some(mut both) = both_for(&rack) else { return };
    let live = Live::up(rack.clone());
    live.wait_until_whole();
    load(&live);
    drop(live);
    let journal = rack.journal.as_ref().expect("it has journals").join("switch.1.journal");
    let mut reader = Reader::open(&journal).expect("it is there");
    let (mut packets, mut done) = (0, Vec::new());
    while let Some(entry) = reader.next().expect("it is sound") {
        match entry {
            Entry::Packet { packet, .. } => {
                let datagram = both.datagram(&packet);
                both.step(&Frame::Plain, &datagram);
                done = both.done.clone();
                packets += 1;
            }
            // What the live switch sent then, the role sends now: what the kernel is compared with.
            Entry::Sent { to, packet } if !done.is_empty() => {
                assert_eq!(done.remove(0), (to, both.datagram(&packet)));
            }
            Entry::Wakeup { .. } => assert!(done.is_empty(), "the live switch did not send {done:?}"),
            _ => {}
        }
    }
    let counts = both.counts();
    println!("{packets} packets: {counts:?}");
    assert_eq!(counts.unsound, 0, "a switch notes sound packets");
    // A read and its answer at least; pages of a write go to both servers.
    assert!(counts.forwarded > 3_000 * 2 && counts.forwarded < packets, "{counts:?}");
    assert!(counts.redirected > 0, "no read came while a server collected: {counts:?}");
}
