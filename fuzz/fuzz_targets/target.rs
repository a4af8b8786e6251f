//! A connection of the target at any state. The first byte says how far it has come and whether its
//! backends lend, the rest is what the host sends, in portions.
#![no_main]

#[path = "../../crates/nvme/tests/nvme/common/mod.rs"]
mod common;

use common::raw::Raw;
use common::{World, config, initiator, lending};
use libfuzzer_sys::fuzz_target;

fn reach(world: &mut World, state: u8) -> Raw {
    match state % 4 {
        0 => Raw::open(world),
        1 => {
            let mut raw = Raw::open(world);
            raw.greet(world);
            raw
        }
        2 => Raw::admin(world),
        _ => {
            let admin = Raw::admin(world);
            Raw::queue(world, &admin, 1, 15)
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let [state, portion, bytes @ ..] = input else { return };
    let mut world = World::new(if state & 4 == 0 { config() } else { lending(config()) });
    let mut raw = reach(&mut world, *state);
    for piece in bytes.chunks(usize::from(*portion).max(1)) {
        raw.bring(&mut world, piece);
        // What is lent is not sent, so that loans end in every place.
        let waiting: usize = world.target.transmit(raw.connection).map(<[u8]>::len).sum();
        world.target.transmitted(raw.connection, waiting);
        world.target.end_loans(raw.connection);
        world.work();
        assert!(world.target.gauges().data_bytes <= 64 << 10, "data are bound by the budget");
    }
    let guest = world.join(initiator(5), common::OTHER_PORT);
    assert!(world.is_ready(guest), "an ordinary host is served");
    world.target.closed(world.now, raw.connection);
});
