//! A recorded session, told again to a fresh target: the same decisions.

use crate::common::*;
use base::{Span, Time};
use nvme::initiator::{Action, HostEvent, Initiator, Payload};
use nvme::journal::{MAGIC, Recorder, ReplayError, replay};
use nvme::log::AnaState;
use nvme::target::*;
use nvme::*;
use std::collections::BTreeMap;

/// A host, its target, and whoever writes down what the target is told.
struct Session {
    now: Time,
    target: Recorder<Vec<u8>>,
    disks: Disks,
    host: Initiator,
    queues: BTreeMap<u16, ConnectionId>,
    sent: u64,
}

impl Session {
    fn open(&mut self) {
        while let Some(Action::Open(queue)) = self.host.next_action() {
            let connection = self.target.accept(self.now, PORT).unwrap();
            // As if TLS had shown who it is.
            self.target.secured(self.now, connection, Channel { host: host(1), subsystem: subsystem() });
            self.queues.insert(queue, connection);
            self.host.opened(self.now, queue);
        }
    }

    fn carry(&mut self, queue: u16, connection: ConnectionId) {
        let bytes: Vec<u8> = self.host.transmit(queue).flatten().copied().take(900).collect();
        let taken = self.target.receive(self.now, connection, &bytes);
        self.host.transmitted(queue, taken);
        while let Some(request) = self.target.next_io() {
            let tag = request.tag;
            self.target.complete(self.now, tag, self.disks.carry_out(request));
        }
        let bytes: Vec<u8> = self.target.transmit(connection).flatten().copied().take(700).collect();
        self.host.receive(self.now, queue, &bytes);
        self.target.transmitted(connection, bytes.len());
    }

    /// Namespaces and paths change while the host works.
    fn change(&mut self, round: u32) {
        let (now, name) = (self.now, subsystem());
        let path = PathState { port: OTHER_PORT, group: 1, state: AnaState::NonOptimized };
        match round {
            100 => self.target.add_namespace(now, name, namespace(3, 32)).unwrap(),
            101 => self.target.resize_namespace(now, name, 3, 64).unwrap(),
            102 => self.target.set_path(now, name, path).unwrap(),
            103 => assert_eq!(self.target.remove_namespace(now, name, 3), Ok(BackendId(3))),
            104 => assert!(self.target.remove_namespace(now, name, 3).is_err()),
            _ => {}
        }
    }

    /// After each command the next, writes and reads in turn.
    fn submit(&mut self) {
        while let Some(event) = self.host.next_event() {
            let is_next = matches!(event, HostEvent::Ready { .. } | HostEvent::Completed { .. });
            if !is_next || self.sent == 6 {
                continue;
            }
            let access = Access { start: self.sent, blocks_minus_one: 15, flags: AccessFlags::empty() };
            let (body, payload) = match self.sent % 2 {
                0 => (Io::Write(access), Payload::ToController(vec![self.sent as u8; 8192])),
                _ => (Io::Read(access), Payload::ToHost(8192)),
            };
            self.host.submit(self.now, 1, 1, Body::Io(body), payload).unwrap();
            self.sent += 1;
        }
    }
}

/// A host connects, writes, reads, and is lost; every step at a time of its own.
fn record() -> Vec<u8> {
    let target = Recorder::new(config(), Vec::new()).unwrap();
    let host = Initiator::new(initiator(1));
    let (disks, queues) = (Disks::default(), BTreeMap::new());
    let mut session = Session { now: Time::ms(1), target, disks, host, queues, sent: 0 };
    for round in 0..400 {
        session.now += Span::us(37);
        session.open();
        for (queue, connection) in session.queues.clone() {
            session.carry(queue, connection);
        }
        session.submit();
        session.change(round);
        if round % 50 == 0 {
            session.target.on_wakeup(session.now);
        }
    }
    assert_eq!(session.sent, 6);
    let Session { now, mut target, queues, .. } = session;
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
