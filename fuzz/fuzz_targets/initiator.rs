//! A host whose target says anything, while connecting and with commands outstanding.
#![no_main]

#[path = "../../crates/nvme/tests/nvme/common/mod.rs"]
mod common;

use common::{World, config, initiator};
use libfuzzer_sys::fuzz_target;
use nvme::initiator::{HostEvent, Initiator, Payload};
use nvme::{Access, AccessFlags, Body, Io};

fuzz_target!(|input: &[u8]| {
    let [state, portion, bytes @ ..] = input else { return };
    let portion = usize::from(*portion).max(1);
    if state & 1 == 0 {
        let now = base::Time::secs(1);
        let mut host = Initiator::new(initiator(1));
        host.opened(now, 0);
        bytes.chunks(portion).for_each(|piece| host.receive(now, 0, piece));
        return;
    }
    let mut world = World::connected(config(), initiator(1));
    let access = Access { start: 0, blocks_minus_one: 31, flags: AccessFlags::empty() };
    let write = Body::Io(Io::Write(access));
    let tickets = [
        world.submit(0, 1, 1, Body::Io(Io::Read(access)), Payload::ToHost(32 * 512)),
        world.submit(0, 1, 1, write, Payload::ToController(vec![1; 32 * 512])),
    ];
    let now = world.now;
    let host = &mut world.guests[0].initiator;
    bytes.chunks(portion).for_each(|piece| host.receive(now, 1, piece));
    host.closed(now, 1);
    let events: Vec<HostEvent> = std::iter::from_fn(|| host.next_event()).collect();
    for ticket in tickets {
        let told = events.iter().filter(|event| matches!(event, HostEvent::Completed { ticket: ended, .. } if *ended == ticket));
        assert_eq!(told.count(), 1, "each command is told once");
    }
});
