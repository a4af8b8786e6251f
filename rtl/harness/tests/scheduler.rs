//! The scheduler's gates and `crates/edm` make the same grants in the same cycles.

use edm::Modify;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use rtl_harness::scheduler::{Action, Lockstep, Step, Variant};

/// Cycles of all random schedules together: `RTL_CYCLES`, or a few for a quick look.
fn cycles_wanted() -> u64 {
    match std::env::var("RTL_CYCLES") {
        Ok(text) => text.parse().expect("RTL_CYCLES is a number of cycles"),
        Err(_) => 300_000,
    }
}

fn bytes() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 1u32..=64,
        2 => 1u32..=600,
        1 => Just(256u32),
        1 => 1u32..=70_000,
        1 => Just(0u32),
    ]
}

/// Mostly a few ports, so that they contend; now and then a number that is no port.
fn peer(ports: u32) -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0..ports.min(3), 6 => 0..ports, 1 => 0u32..512]
}

fn action(ports: u32) -> impl Strategy<Value = Action> {
    let modify = prop_oneof![
        Just(Modify::CompareAndSwap { expected: 0, new: 1 }),
        Just(Modify::FetchAndAdd { addend: 1 }),
        Just(Modify::Swap { new: 1 }),
    ];
    prop_oneof![
        60 => (peer(ports), bytes(), prop_oneof![6 => Just(1u8), 1 => 2u8..=16])
            .prop_map(|(target, bytes, batch)| Action::Write { target, bytes, batch }),
        50 => (peer(ports), bytes()).prop_map(|(memory, bytes)| Action::Read { memory, bytes }),
        10 => (peer(ports), modify).prop_map(|(memory, modify)| Action::Modify { memory, modify }),
        40 => (0u8..16).prop_map(|blocks| Action::Uplink { blocks }),
        1 => Just(Action::Down),
    ]
}

fn schedule(ports: u32) -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![4 => 0u8..=1, 4 => 0u8..=4, 1 => 0u8..=40];
    let step = (gap, 0..ports, action(ports)).prop_map(|(gap, port, action)| Step { gap, port, action });
    prop::collection::vec(step, 1..400)
}

/// Plays random schedules until enough cycles have gone by. A failure is shrunk and printed.
fn agree(variant: Variant) {
    let wanted = cycles_wanted() / Variant::ALL.len() as u64;
    let (mut cycles, mut grants, mut refused) = (0, 0, 0);
    for batch in 0u64.. {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&batch.to_le_bytes());
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let config = Config { cases: 16, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
        let counts = std::cell::Cell::new((0, 0, 0));
        let played = TestRunner::new_with_rng(config, rng).run(&schedule(variant.ports()), |steps| {
            let mut both = Lockstep::new(variant);
            both.play(&steps).map_err(TestCaseError::fail)?;
            let (cycles, grants, refused) = counts.get();
            counts.set((cycles + both.cycles(), grants + both.granted(), refused + both.refused()));
            Ok(())
        });
        if let Err(TestError::Fail(reason, steps)) = played {
            panic!("{variant:?}, batch {batch}: {reason}\n{steps:#?}");
        }
        let (more_cycles, more_grants, more_refused) = counts.get();
        (cycles, grants, refused) = (cycles + more_cycles, grants + more_grants, refused + more_refused);
        if cycles >= wanted {
            break;
        }
    }
    eprintln!("{variant:?}: {cycles} cycles, {grants} grants and {refused} refusals alike");
    assert!(grants > 0 && refused > 0, "the schedules tried nothing");
}

#[test]
fn eight_ports_as_on_the_testbed_grant_alike() {
    agree(Variant::Eight);
}

#[test]
fn three_ports_with_one_active_demand_grant_alike() {
    agree(Variant::Three);
}

#[test]
fn five_ports_first_come_first_served_grant_alike() {
    agree(Variant::FiveFcfs);
}
