//! A recorded session, told again to a fresh target: the same decisions.

mod common;

use base::{Span, Time};
use common::*;
use nvme::initiator::{Action, HostEvent, Initiator, Payload};
use nvme::journal::{MAGIC, Recorder, ReplayError, replay};
use nvme::target::*;
use nvme::*;
use std::collections::BTreeMap;

/// A host connects, writes, reads, and is lost; every step at a time of its own.
fn record() -> Vec<u8> {
    let mut target = Recorder::new(config(), Vec::new()).unwrap();
    let mut disks = Disks::default();
    let mut host = Initiator::new(initiator(1));
    let mut queues: BTreeMap<u16, ConnectionId> = BTreeMap::new();
    let mut now = Time::ms(1);
    let mut sent = 0;
    for round in 0..400 {
        now += Span::us(37);
        while let Some(Action::Open(queue)) = host.next_action() {
            queues.insert(queue, target.accept(now, PORT).unwrap());
            host.opened(now, queue);
        }
        for (queue, connection) in queues.clone() {
            let bytes: Vec<u8> = host.transmit(queue).flatten().copied().take(900).collect();
            let taken = target.receive(now, connection, &bytes);
            host.transmitted(queue, taken);
            while let Some(request) = target.next_io() {
                let tag = request.tag;
                target.complete(now, tag, disks.carry_out(request));
            }
            let bytes: Vec<u8> = target.transmit(connection).flatten().copied().take(700).collect();
            host.receive(now, queue, &bytes);
            target.transmitted(connection, bytes.len());
        }
        while let Some(event) = host.next_event() {
            let is_next = matches!(event, HostEvent::Ready { .. } | HostEvent::Completed { .. });
            if is_next && sent < 6 {
                let access = Access { start: sent, blocks_minus_one: 15, flags: AccessFlags::empty() };
                let (body, payload) = match sent % 2 {
                    0 => (Io::Write(access), Payload::ToController(vec![sent as u8; 8192])),
                    _ => (Io::Read(access), Payload::ToHost(8192)),
                };
                host.submit(now, 1, 1, Body::Io(body), payload).unwrap();
                sent += 1;
            }
        }
        if round % 50 == 0 {
            target.on_wakeup(now);
        }
    }
    assert_eq!(sent, 6);
    target.closed(now, queues[&0]);
    target.on_wakeup(now + Span::secs(60));
    target.finish().1.unwrap()
}

#[test]
fn a_session_told_again_is_decided_again_in_the_same_way() {
    let journal = record();
    let played = replay(config(), &journal[..]).unwrap();
    assert!(played.entries > 100 && played.compared > 100, "{played:?}");
    assert_eq!(journal, record(), "the same inputs give the same journal, byte by byte");
}

#[test]
fn a_target_that_decides_otherwise_is_told_with_the_entry() {
    let journal = record();
    let mut other = config();
    other.limits.ready_bytes_max = 4096;
    let differs = replay(other, &journal[..]).unwrap_err();
    assert!(matches!(differs, ReplayError::Differs { entry: 1.., .. }), "{differs}");
}

#[test]
fn a_journal_that_is_cut_or_damaged_is_refused_and_never_panics() {
    let journal = record();
    assert!(matches!(replay(config(), &journal[..7]), Err(ReplayError::Read(_))));
    assert!(matches!(replay(config(), &journal[..journal.len() - 3]), Err(ReplayError::Read(_))));
    assert!(matches!(replay(config(), &b"something else"[..]), Err(ReplayError::Damaged { entry: 0, .. })));
    let mut wrong = journal.clone();
    wrong[MAGIC.len()] = 99;
    assert!(matches!(replay(config(), &wrong[..]), Err(ReplayError::Damaged { what: "its kind", .. })));
    for at in (8..journal.len().min(4000)).step_by(7) {
        let mut wrong = journal.clone();
        wrong[at] ^= 0x15;
        let _ = replay(config(), &wrong[..]);
    }
}
