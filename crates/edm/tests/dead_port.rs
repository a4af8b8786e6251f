//! What a switch does with chunks for a port that died after they were granted.

use base::{NodeId, Program, Rate, Time};
use edm::{Body, Config, Message, MessageId, Notification, Place, Switch, SwitchIn, SwitchOut, Tag};

const BYTES: u32 = 64;
const ID: MessageId = MessageId(0x80);

/// A switch that has granted node 0 a write of [`BYTES`] to node 1, and the time.
fn granted() -> (Switch, Time) {
    let place = Place { nodes: 3, rate: Rate::gbps(25) };
    let (mut switch, mut out) = (Switch::new(Config::TESTBED, place), Vec::new());
    let notification = Notification { target: NodeId(1), id: ID, bytes: BYTES, batch: 1 };
    switch.on(Time::ZERO, SwitchIn::Notification { port: NodeId(0), notification, tag: Tag(0) }, &mut out);
    let now = switch.next_wakeup().expect("a demand waits");
    switch.on_wakeup(now, &mut out);
    assert!(matches!(out[..], [SwitchOut::Grant { to: NodeId(0), last: true, .. }]), "{out:?}");
    (switch, now)
}

/// A chunk of the write.
fn chunk(switch: &mut Switch, now: Time, source: u32) -> SwitchOut {
    let body = Body::WriteRequest { address: 0, bytes: BYTES, last: true };
    let message = Message { source: NodeId(source), target: NodeId(1), id: ID, body };
    let mut out = Vec::new();
    switch.on(now, SwitchIn::Data { message }, &mut out);
    assert_eq!(out.len(), 1);
    out[0]
}

fn goes_down(switch: &mut Switch, now: Time, port: u32) {
    switch.on(now, SwitchIn::PortDown { port: NodeId(port) }, &mut Vec::new());
}

#[test]
fn a_chunk_that_was_granted_before_its_port_died_is_swallowed_and_no_breach() {
    let (mut switch, now) = granted();
    goes_down(&mut switch, now, 1);
    assert_eq!(chunk(&mut switch, now, 0), SwitchOut::Swallowed);
    assert_eq!(switch.violations(), 0, "its sender broke nothing");
    assert_eq!(chunk(&mut switch, now, 0), SwitchOut::NoCircuit, "it was granted once");
    assert_eq!(chunk(&mut switch, now, 2), SwitchOut::NoCircuit, "and to node 0");
    assert_eq!(switch.violations(), 2);
}

#[test]
fn nothing_is_granted_to_a_dead_port_any_more() {
    let (mut switch, now) = granted();
    assert_eq!(switch.granted(NodeId(0)), u64::from(BYTES));
    goes_down(&mut switch, now, 1);
    assert_eq!(switch.granted(NodeId(0)), 0);
}

#[test]
fn a_chunk_of_a_dead_sender_has_no_circuit() {
    let (mut switch, now) = granted();
    goes_down(&mut switch, now, 0);
    assert_eq!(chunk(&mut switch, now, 0), SwitchOut::NoCircuit);
}
