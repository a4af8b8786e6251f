//! Does the engine keep its promises, whatever the order in which devices, clients and the fabric
//! move?

mod common;

use base::{Bytes, Program, Seed, Time};
use common::{BLOCK, BLOCKS, World, at, config, id};
use proptest::prelude::*;
use sdirect::{Command, DeviceId, Engine, EngineConfig, EngineError, EngineIn, EngineOut, Geometry, Outcome, Refusal};

fn world(seed: u64, devices: usize) -> World {
    World::new(config(devices), Seed(seed).stream("world"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_copy_is_the_source_byte_by_byte(seed: u64, from in 0u64..16, blocks in 1u64..16) {
        let mut world = world(seed, 2);
        let (source, target, bytes) = (at(0, from * BLOCK), at(1, 5 * BLOCK), blocks * BLOCK);
        let before = world.bytes(source, bytes).to_vec();
        world.command(id(0), Command::Copy { from: source, to: target, bytes });
        world.settle();
        prop_assert_eq!(world.outcome(id(0)), &Outcome::Done);
        prop_assert_eq!(world.bytes(target, bytes), before);
    }

    #[test]
    fn a_multicast_reaches_every_target(seed: u64, blocks in 1u64..20) {
        let mut world = world(seed, 5);
        let (source, bytes) = (at(0, 0), blocks * BLOCK);
        let to = vec![at(1, 0), at(2, 64), at(3, 128), at(4, 192)];
        let before = world.bytes(source, bytes).to_vec();
        world.command(id(0), Command::MultiCast { from: source, to: to.clone(), bytes });
        world.settle();
        prop_assert_eq!(world.outcome(id(0)), &Outcome::Done);
        for target in to {
            prop_assert_eq!(world.bytes(target, bytes), before.clone());
        }
    }

    #[test]
    fn copies_in_a_circle_end(seed: u64, rounds in 1u32..6, depth in 1u16..3) {
        let tight = EngineConfig { queue_depth: depth, fifo: 128, ..config(3) };
        let mut world = World::new(tight, Seed(seed).stream("world"));
        let half = BLOCKS / 2 * BLOCK;
        for number in 0..rounds * 3 {
            let (source, target) = ((number % 3) as u16, ((number + 1) % 3) as u16);
            world.command(id(number), Command::Copy { from: at(source, 0), to: at(target, half), bytes: half });
        }
        let first = world.bytes(at(0, 0), half).to_vec();
        world.settle();
        prop_assert_eq!(world.bytes(at(1, half), half), first);
        for number in 0..rounds * 3 {
            prop_assert_eq!(world.outcome(id(number)), &Outcome::Done);
        }
    }

    #[test]
    fn every_command_ends_once_whatever_fails(
        seed: u64,
        kinds in prop::collection::vec((0u8..5, 0u16..4, 0u16..4, 0u64..16, 1u64..12), 1..24),
        failing in prop::collection::vec(0u64..4, 4),
        losing in 0u64..30,
        removals in prop::collection::vec((0usize..400, 0u16..4), 0..3),
    ) {
        let mut world = world(seed, 4);
        (world.failing, world.losing) = (failing, losing);
        let count = kinds.len() as u32;
        for (number, (kind, one, two, block, blocks)) in (0..).zip(kinds) {
            let (from, to, bytes) = (at(one, block * BLOCK), at(two, (block + 1) * BLOCK), blocks * BLOCK);
            match kind {
                0 => world.command(id(number), Command::Read { from, bytes }),
                1 => world.write(id(number), to, bytes),
                2 => world.command(id(number), Command::Copy { from, to, bytes }),
                3 => {
                    let to = vec![to, at((two + 1) % 4, 0)];
                    world.command(id(number), Command::MultiCast { from, to, bytes });
                }
                _ => world.command(id(number), Command::AddWrite { device: from.device, first: block * 8, second: blocks * 72 }),
            }
        }
        for (steps, device) in removals {
            (0..steps).for_each(|_| { world.step(); });
            if !world.gone[device as usize] {
                world.remove(device);
            }
        }
        world.settle();
        for number in 0..count {
            world.outcome(id(number));
        }
        let counters = world.engine.counters();
        prop_assert_eq!((counters.held, counters.ended), (0, u64::from(count)));
    }

    #[test]
    fn reads_and_writes_of_clients_arrive_although_packets_are_lost(seed: u64, losing in 0u64..40, blocks in 1u64..24) {
        let mut world = world(seed, 2);
        world.losing = losing;
        let bytes = blocks * BLOCK;
        world.write(id(0), at(0, 0), bytes);
        world.settle();
        prop_assert_eq!(world.outcome(id(0)), &Outcome::Done);
        prop_assert_eq!(world.bytes(at(0, 0), bytes), world.sent[&id(0)].clone());
        world.command(id(1), Command::Read { from: at(0, 0), bytes });
        world.settle();
        prop_assert_eq!(&world.received[&id(1)], &world.sent[&id(0)]);
    }

    #[test]
    fn add_writes_of_the_same_words_add_up(seed: u64, count in 1u32..20, first in 0u64..8, second in 0u64..24) {
        let mut world = world(seed, 1);
        let (first, second) = (first * 8, second * 8);
        let word = |world: &World, place: u64| u64::from_le_bytes(world.bytes(at(0, place), 8).try_into().expect("eight bytes"));
        let (one, mut sum) = (word(&world, first), word(&world, second));
        for number in 0..count {
            world.command(id(number), Command::AddWrite { device: DeviceId(0), first, second });
            sum = sum.wrapping_add(if first == second { sum } else { one });
        }
        let untouched = world.bytes(at(0, 256), 512).to_vec();
        world.settle();
        prop_assert_eq!(word(&world, second), sum);
        prop_assert_eq!(world.bytes(at(0, 256), 512), untouched);
        prop_assert!((0..count).all(|number| world.outcome(id(number)) == &Outcome::Done));
    }
}

#[test]
fn a_target_that_fails_is_named_and_the_others_get_everything() {
    for seed in 0..50 {
        let mut world = world(seed, 4);
        world.failing[2] = 100;
        let before = world.bytes(at(0, 0), 1024).to_vec();
        let to = vec![at(1, 0), at(2, 0), at(3, 0)];
        world.command(id(0), Command::MultiCast { from: at(0, 0), to, bytes: 1024 });
        world.settle();
        assert_eq!(world.outcome(id(0)), &Outcome::TargetsFailed(vec![DeviceId(2)]));
        assert!(world.bytes(at(1, 0), 1024) == before && world.bytes(at(3, 0), 1024) == before);
    }
}

#[test]
fn a_removed_device_ends_what_it_had_and_serves_again_when_it_is_back() {
    for (seed, steps) in (0..60).zip((0..).step_by(3)) {
        let mut world = world(seed, 3);
        world.command(id(0), Command::Copy { from: at(0, 0), to: at(1, 0), bytes: 1024 });
        world.command(id(1), Command::Copy { from: at(1, 1024), to: at(2, 0), bytes: 1024 });
        world.command(id(2), Command::AddWrite { device: DeviceId(1), first: 0, second: 512 });
        (0..steps).for_each(|_| {
            world.step();
        });
        world.remove(1);
        world.command(id(3), Command::Read { from: at(1, 0), bytes: 64 });
        world.settle();
        assert_eq!(world.outcome(id(3)), &Outcome::Refused(Refusal::Gone { device: DeviceId(1) }));
        world.bring_back(1);
        world.command(id(4), Command::Copy { from: at(0, 0), to: at(1, 0), bytes: 1024 });
        world.settle();
        assert_eq!(world.outcome(id(4)), &Outcome::Done);
        assert_eq!(world.bytes(at(1, 0), 1024), world.bytes(at(0, 0), 1024));
    }
}

#[test]
fn pairs_that_share_a_source_get_equal_parts_of_it() {
    let mut world = world(1, 3);
    let long = BLOCK * BLOCKS;
    for (number, target) in [(0, 1), (1, 1), (2, 1), (3, 2)] {
        world.command(id(number), Command::Copy { from: at(0, 0), to: at(target, 0), bytes: long });
    }
    while !world.answers.contains_key(&id(3)) {
        assert!(world.step());
    }
    // Device 2 has one copy and device 1 three: by pairs they share evenly, so that one of the
    // three is nearly over when the one is.
    let ended = (0..3).filter(|number| world.answers.contains_key(&id(*number))).count();
    assert!(ended <= 1, "three copies of one pair took {ended} turns of the other pair's one");
    world.settle();
}

#[test]
fn a_repeated_command_is_answered_again_and_not_executed_again() {
    let mut world = world(3, 1);
    let add = Command::AddWrite { device: DeviceId(0), first: 0, second: 8 };
    world.command(id(0), add.clone());
    world.command(id(0), add.clone());
    world.settle();
    let after = world.bytes(at(0, 0), 64).to_vec();
    world.command(id(0), add);
    world.settle();
    assert_eq!(world.answers[&id(0)], [Outcome::Done, Outcome::Done], "once for the first, once for the third");
    assert_eq!(world.bytes(at(0, 0), 64), after);
    assert_eq!(world.engine.counters().repeated, 2);
}

#[test]
fn what_cannot_be_is_refused_with_the_numbers() {
    let mut world = world(4, 2);
    let end = BLOCK * BLOCKS;
    let cases = [
        (Command::Read { from: at(7, 0), bytes: 64 }, Refusal::NoDevice { device: DeviceId(7) }),
        (
            Command::Read { from: at(0, end - 64), bytes: 128 },
            Refusal::Range { device: DeviceId(0), address: end - 64, bytes: 128, capacity: end },
        ),
        (
            Command::Read { from: at(0, u64::MAX - 63), bytes: 64 },
            Refusal::Range { device: DeviceId(0), address: u64::MAX - 63, bytes: 64, capacity: end },
        ),
        (Command::Write { to: at(0, 32), bytes: 64 }, Refusal::Unaligned { address: 32, bytes: 64, unit: 64 }),
        (Command::Copy { from: at(0, 0), to: at(0, 64), bytes: 128 }, Refusal::Overlap { device: DeviceId(0) }),
        (Command::MultiCast { from: at(0, 0), to: vec![], bytes: 64 }, Refusal::Targets { got: 0, max: 4 }),
        (
            Command::MultiCast { from: at(0, 0), to: vec![at(1, 0), at(1, 64)], bytes: 128 },
            Refusal::Overlap { device: DeviceId(1) },
        ),
        (
            Command::AddWrite { device: DeviceId(0), first: 4, second: 8 },
            Refusal::Unaligned { address: 4, bytes: 8, unit: 8 },
        ),
    ];
    for (number, (command, refusal)) in (0..).zip(cases) {
        world.command(id(number), command);
        assert_eq!(world.outcome(id(number)), &Outcome::Refused(refusal));
    }
    world.command(id(90), Command::Copy { from: at(0, 0), to: at(0, 128), bytes: 128 });
    world.settle();
    assert_eq!(world.outcome(id(90)), &Outcome::Done, "side by side is no overlap");
}

#[test]
fn numbers_that_do_not_fit_are_an_error() {
    let build = |config: EngineConfig| sdirect::Engine::<sdirect::Size>::new(config).err();
    assert_eq!(build(config(2)), None);
    assert_eq!(build(EngineConfig { fifo: 127, ..config(2) }), Some(EngineError::Fifo { fifo: 127, piece: 128 }));
    assert_eq!(build(EngineConfig { queue_depth: 0, ..config(2) }), Some(EngineError::Zero { what: "queue_depth" }));
    let block = EngineError::Block { device: 0, block: 64, piece: 96 };
    assert_eq!(build(EngineConfig { piece: 96, ..config(2) }), Some(block));
}

#[test]
fn a_device_that_comes_later_is_used_and_one_that_grows_to_its_new_end() {
    let mut engine = Engine::<Vec<u8>>::new(config(0)).expect("the numbers fit");
    let mut tell = |input| {
        let mut out = Vec::new();
        engine.on(Time::ZERO, input, &mut out);
        out
    };
    let present = |device, blocks: u64, block: u64| EngineIn::Present {
        device: DeviceId(device),
        geometry: Geometry { capacity: Bytes::new(blocks * block), block: Bytes::new(block) },
    };
    let copy = Command::Copy { from: at(0, 0), to: at(0, 4 * BLOCK), bytes: BLOCK };
    let ask = |number, tell: &mut dyn FnMut(EngineIn<Vec<u8>>) -> Vec<EngineOut<Vec<u8>>>| {
        tell(EngineIn::Command { id: id(number), command: copy.clone() }).remove(0)
    };
    let refused = |number, refusal| EngineOut::Answer { id: id(number), outcome: Outcome::Refused(refusal) };
    assert_eq!(ask(0, &mut tell), refused(0, Refusal::NoDevice { device: DeviceId(0) }));
    tell(present(1, 4, BLOCK));
    assert_eq!(ask(1, &mut tell), refused(1, Refusal::NoDevice { device: DeviceId(0) }), "numbers have no gaps");
    tell(present(0, 4, BLOCK));
    let range = Refusal::Range { device: DeviceId(0), address: 4 * BLOCK, bytes: BLOCK, capacity: 4 * BLOCK };
    assert_eq!(ask(2, &mut tell), refused(2, range));
    tell(present(0, 8, BLOCK));
    assert!(matches!(ask(3, &mut tell), EngineOut::Submit { device: DeviceId(0), .. }));
    tell(present(0, 8, 2 * BLOCK));
    assert_eq!(engine.counters().strays, 2, "a gap, and a block that changes");
}
