//! The scheduler's gates and `crates/edm` make the same grants in the same cycles.

mod common;

use edm::Modify;
use proptest::prelude::*;
use rtl_harness::scheduler::{Action, Lockstep, Step, Variant};
use std::cell::Cell;

fn bytes() -> impl Strategy<Value = u32> + Clone {
    prop_oneof![
        4 => 1u32..=64,
        2 => 1u32..=600,
        1 => Just(256u32),
        1 => 1u32..=70_000,
        1 => Just(0u32),
    ]
}

/// Mostly a few ports, so that they contend; now and then a number that is no port.
fn peer(ports: u32) -> impl Strategy<Value = u32> + Clone {
    prop_oneof![6 => 0..ports.min(3), 6 => 0..ports, 1 => 0u32..512]
}

fn action(
    peer: impl Strategy<Value = u32> + Clone,
    bytes: impl Strategy<Value = u32> + Clone,
) -> impl Strategy<Value = Action> {
    let modify = prop_oneof![
        Just(Modify::CompareAndSwap { expected: 0, new: 1 }),
        Just(Modify::FetchAndAdd { addend: 1 }),
        Just(Modify::Swap { new: 1 }),
    ];
    prop_oneof![
        60 => (peer.clone(), bytes.clone(), prop_oneof![6 => Just(1u8), 1 => 2u8..=16])
            .prop_map(|(target, bytes, batch)| Action::Write { target, bytes, batch }),
        50 => (peer.clone(), bytes).prop_map(|(memory, bytes)| Action::Read { memory, bytes }),
        10 => (peer, modify).prop_map(|(memory, modify)| Action::Modify { memory, modify }),
        30 => (any::<u8>(), prop_oneof![4 => Just(0u8), 1 => 1u8..4])
            .prop_map(|(channel, place)| Action::Withdraw { channel, place }),
        40 => (0u8..16).prop_map(|blocks| Action::Uplink { blocks }),
        1 => Just(Action::Down),
    ]
}

fn schedule(ports: u32) -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![4 => 0u8..=1, 4 => 0u8..=4, 1 => 0u8..=40];
    let step = (gap, 0..ports, action(peer(ports), bytes())).prop_map(|(gap, port, action)| Step { gap, port, action });
    prop::collection::vec(step, 1..400)
}

/// Demands of many ports in each cycle, for all ports, a few of them for the same. They are short:
/// a long one keeps only its own two ports busy.
fn crowd(ports: u32) -> impl Strategy<Value = Vec<Step>> {
    let peer = prop_oneof![2 => 0..3u32, 12 => 0..ports, 1 => 0u32..512];
    let bytes = prop_oneof![6 => 1u32..=64, 4 => 1u32..=600, 1 => 1u32..=3_000, 1 => Just(0u32)];
    let gap = prop_oneof![30 => Just(0u8), 2 => 0u8..=1, 1 => 0u8..=4];
    let step = (gap, 0..ports, action(peer, bytes)).prop_map(|(gap, port, action)| Step { gap, port, action });
    prop::collection::vec(step, 1..12 * ports as usize)
}

/// Gates and model agree for a `share`th of the cycles.
fn agree(variant: Variant, share: u64, schedule: impl Strategy<Value = Vec<Step>>) {
    let (grants, refused, withdrawn) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let cycles = common::run(&schedule, share, |steps| {
        let mut both = Lockstep::new(variant);
        both.play(&steps).map_err(TestCaseError::fail)?;
        grants.set(grants.get() + both.granted());
        refused.set(refused.get() + both.refused());
        withdrawn.set(withdrawn.get() + both.withdrawn());
        Ok(both.cycles())
    });
    let (grants, refused, withdrawn) = (grants.get(), refused.get(), withdrawn.get());
    eprintln!("{variant:?}: {cycles} cycles, {grants} grants, {refused} refusals and {withdrawn} withdrawals alike");
    assert!(grants > 0 && refused > 0 && withdrawn > 0, "the schedules tried nothing");
}

#[test]
fn four_ports_as_on_the_testbed_grant_alike() {
    agree(Variant::Four, 3, schedule(4));
}

#[test]
fn three_ports_with_one_active_demand_grant_alike() {
    agree(Variant::Three, 3, schedule(3));
}

#[test]
fn four_ports_first_come_first_served_grant_alike() {
    agree(Variant::FourFcfs, 3, schedule(4));
}

#[test]
fn sixteen_ports_grant_alike() {
    agree(Variant::Sixteen, 15, crowd(16));
}

#[cfg(feature = "large")]
#[test]
fn a_cluster_of_144_ports_grants_alike() {
    agree(Variant::Cluster, 1_000, crowd(144));
}
