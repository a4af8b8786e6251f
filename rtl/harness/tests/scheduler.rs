//! The scheduler's gates and `crates/edm` make the same grants in the same cycles.

mod common;

use edm::Modify;
use proptest::prelude::*;
use rtl_harness::scheduler::{Action, Lockstep, Step, Variant};
use std::cell::Cell;

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

fn agree(variant: Variant, schedule: impl Strategy<Value = Vec<Step>>) {
    let (grants, refused) = (Cell::new(0), Cell::new(0));
    let cycles = common::run(&schedule, Variant::COUNT, |steps| {
        let mut both = Lockstep::new(variant);
        both.play(&steps).map_err(TestCaseError::fail)?;
        grants.set(grants.get() + both.granted());
        refused.set(refused.get() + both.refused());
        Ok(both.cycles())
    });
    let (grants, refused) = (grants.get(), refused.get());
    eprintln!("{variant:?}: {cycles} cycles, {grants} grants and {refused} refusals alike");
    assert!(grants > 0 && refused > 0, "the schedules tried nothing");
}

#[test]
fn four_ports_as_on_the_testbed_grant_alike() {
    agree(Variant::Four, schedule(4));
}

#[test]
fn three_ports_with_one_active_demand_grant_alike() {
    agree(Variant::Three, schedule(3));
}

#[test]
fn four_ports_first_come_first_served_grant_alike() {
    agree(Variant::FourFcfs, schedule(4));
}

#[cfg(feature = "large")]
#[test]
fn eight_ports_grant_alike() {
    agree(Variant::Eight, schedule(8));
}
