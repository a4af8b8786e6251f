//! The switch program: takes notifications and requests, issues grants, forwards data along virtual
//! circuits (paper 3.1.1, 3.2.2).
//!
//! It never buffers data: what arrives without a circuit broke the protocol and is dropped and
//! counted.

use crate::circuits::{Circuits, Passage};
use crate::config::{Config, Place};
use crate::message::{Body, Grant, Message, MessageId, Notification};
use crate::priority::Competitor;
use crate::scheduler::{Demand, DemandKind, Match, Refused, Scheduler};
use crate::{Tag, pcs::memory as encoded};
use base::{Decide, NodeId, Program, Time};
use std::sync::Arc;

/// Inputs of the switch, past the receive side of its PHY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchIn {
    /// An /N/ has come in on `port` and gone through the insert pipeline.
    Notification {
        /// The ingress port.
        port: NodeId,
        /// The input. One of zero bytes withdraws the demand with its target and id.
        notification: Notification,
        /// For traces.
        tag: Tag,
    },
    /// An RREQ or RMWREQ has come in and gone through the insert pipeline.
    Request {
        /// The message; its source is the port.
        message: Message,
        /// For traces.
        tag: Tag,
    },
    /// The first block of a WREQ or RRES is ready to be moved to another port.
    Data {
        /// The message; its source is the port.
        message: Message,
    },
    /// The link of this port is corrupt or dead (paper 3.3).
    PortDown {
        /// The request.
        port: NodeId,
    },
}

/// Decisions of the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchOut {
    /// A /G/ leaves the scheduler at `at` for the port `to`.
    Grant {
        /// End of the round that made it.
        at: Time,
        /// The node that may send.
        to: NodeId,
        /// What may be sent.
        grant: Grant,
        /// Whether nothing of the message remains after it.
        last: bool,
        /// For traces.
        tag: Tag,
    },
    /// The buffered RREQ or RMWREQ leaves for its memory node: the first grant of the response.
    Request {
        /// End of the round that made it.
        at: Time,
        /// The message.
        message: Message,
        /// Whether nothing of the response remains after the chunk that it grants.
        last: bool,
        /// For traces.
        tag: Tag,
    },
    /// Forwards the data that have just arrived to the port of their target.
    Forward {
        /// The port of the target.
        to: NodeId,
    },
    /// The data that has just come in was granted, and its target's port has died since. It is
    /// dropped, and its sender broke nothing.
    Swallowed,
    /// The data that has just come in has no circuit and is dropped.
    NoCircuit,
    /// The sender broke the protocol; nothing changed.
    Refused {
        /// The port.
        port: NodeId,
        /// The fault.
        reason: Refused,
    },
    /// The demand with this tag was forgotten because a port of its pair is down.
    Forgotten {
        /// For traces.
        tag: Tag,
    },
}

/// Notifications of zero bytes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Withdrawals {
    /// Those that ended a demand.
    pub ended: u64,
    /// Those that named no head of a channel: mostly, an earlier one had ended it.
    pub idle: u64,
}

/// The switch.
#[derive(Clone, Debug)]
pub struct Switch {
    scheduler: Scheduler,
    circuits: Circuits,
    dropped: Vec<Tag>,
    violations: u64,
    withdrawals: Withdrawals,
    notifications: u64,
    announced_bytes: u64,
}

impl Switch {
    /// An idle switch for the ports of `place`.
    pub fn new(config: Config, place: Place) -> Switch {
        Switch {
            scheduler: Scheduler::new(config, place),
            circuits: Circuits::new(place.nodes, config.timeout),
            dropped: Vec::new(),
            violations: 0,
            withdrawals: Withdrawals::default(),
            notifications: 0,
            announced_bytes: 0,
        }
    }
    /// Takes a priority of one's own in place of the policy, before anything waits.
    pub fn set_priority(&mut self, priority: Arc<dyn Decide<Competitor>>) {
        self.scheduler.set_priority(priority);
    }
    /// Takes the longest queue of the scheduler from now on.
    pub fn restart_longest_queue(&mut self) {
        self.scheduler.restart_longest_queue();
    }
    /// Bytes that `source` has been granted for ports that are up, and whose first block has not
    /// come.
    pub fn granted(&self, source: NodeId) -> u64 {
        self.circuits.granted(source)
    }
    /// The scheduler, for its statistics.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }
    /// Inputs that broke the protocol so far.
    pub fn violations(&self) -> u64 {
        self.violations
    }

    /// Demands that their sources have withdrawn.
    pub fn withdrawals(&self) -> Withdrawals {
        self.withdrawals
    }

    /// Prefetches the state of two ports: a message between them will arrive on `port` shortly.
    #[inline]
    pub fn prefetch(&self, port: NodeId, other: NodeId) {
        self.scheduler.prefetch(port, other);
        self.circuits.prefetch(port);
    }

    /// Bits of the fields of all /N/ so far, and of the data that they announced (paper 3.1.4).
    pub fn notification_bits(&self) -> (u64, u64) {
        let bits = self.notifications * encoded::NOTIFICATION_FIELD_BITS as u64;
        (bits, self.announced_bytes * 8)
    }

    fn insert(&mut self, now: Time, port: NodeId, demand: Demand, out: &mut Vec<SwitchOut>) {
        if let Err(reason) = self.scheduler.insert(now, demand) {
            self.violations += u64::from(!matches!(reason, Refused::PortDisabled { .. }));
            out.push(SwitchOut::Refused { port, reason });
        }
    }

    fn on_notification(&mut self, now: Time, port: NodeId, said: Notification, tag: Tag, out: &mut Vec<SwitchOut>) {
        self.notifications += 1;
        self.announced_bytes += u64::from(said.bytes);
        self.scheduler.book_uplink(now, port, encoded::NOTIFICATION_BLOCKS);
        if said.bytes == 0 {
            let ended = self.scheduler.withdraw(now, port, said.target, said.id);
            let Withdrawals { ended: one, idle: other } = &mut self.withdrawals;
            *if ended { one } else { other } += 1;
            return;
        }
        let kind = DemandKind::Write { batch: said.batch };
        let demand = Demand { source: port, target: said.target, id: said.id, bytes: said.bytes, kind, tag };
        self.insert(now, port, demand, out);
    }

    fn on_request(&mut self, now: Time, message: Message, tag: Tag, out: &mut Vec<SwitchOut>) {
        let bytes = match message.body {
            Body::ReadRequest { bytes, .. } => bytes,
            Body::ReadModifyWrite { modify, .. } => modify.response_bytes(),
            Body::WriteRequest { .. } | Body::ReadResponse { .. } => return self.on_data(now, message, out),
        };
        let kind = DemandKind::Response { request: message };
        // The response has the opposite direction: from the memory node to the requester.
        let demand = Demand { source: message.target, target: message.source, id: message.id, bytes, kind, tag };
        if message.source.0 < self.circuits.ports() {
            self.scheduler.book_uplink(now, message.source, encoded::message_blocks(&message.body));
        }
        self.insert(now, message.source, demand, out);
    }

    fn on_data(&mut self, now: Time, message: Message, out: &mut Vec<SwitchOut>) {
        let bytes = match message.body {
            Body::WriteRequest { bytes, .. } | Body::ReadResponse { bytes, .. } => bytes,
            Body::ReadRequest { .. } | Body::ReadModifyWrite { .. } => 0,
        };
        out.push(match self.pass(now, message.source, message.target, message.id, bytes) {
            Passage::Forwarded => SwitchOut::Forward { to: message.target },
            Passage::Swallowed => SwitchOut::Swallowed,
            Passage::NoCircuit => SwitchOut::NoCircuit,
        });
    }

    /// [`SwitchIn::Data`] with this many bytes, without a buffer: returns whether they are
    /// forwarded to `target`.
    pub fn forwards(&mut self, now: Time, source: NodeId, target: NodeId, id: MessageId, bytes: u32) -> bool {
        self.pass(now, source, target, id, bytes) == Passage::Forwarded
    }

    fn pass(&mut self, now: Time, source: NodeId, target: NodeId, id: MessageId, bytes: u32) -> Passage {
        let passage = self.circuits.pass(now, source, target, id, bytes);
        self.violations += u64::from(passage == Passage::NoCircuit);
        passage
    }

    fn port_down(&mut self, port: NodeId, out: &mut Vec<SwitchOut>) {
        if port.0 >= self.circuits.ports() {
            return;
        }
        self.scheduler.disable(port, &mut self.dropped);
        out.extend(self.dropped.drain(..).map(|tag| SwitchOut::Forgotten { tag }));
        self.circuits.port_down(port);
    }
}

/// Opens the circuit of a grant; what is said of it.
fn issue(circuits: &mut Circuits, made: &Match, at: Time) -> SwitchOut {
    let Match { demand: Demand { source, target, id, kind, tag, .. }, bytes, first, last, .. } = *made;
    circuits.open(at, source, target, id, bytes);
    match kind {
        DemandKind::Response { request } if first => SwitchOut::Request { at, message: request, last, tag },
        // A chunk is at most 65,535 bytes: `plan` checks it, and /G/ has 16 bits for it.
        _ => SwitchOut::Grant { at, to: source, grant: Grant { target, id, bytes: bytes as u16 }, last, tag },
    }
}

impl Program for Switch {
    type In = SwitchIn;
    type Out = SwitchOut;

    #[inline(always)]
    fn on(&mut self, now: Time, input: SwitchIn, out: &mut Vec<SwitchOut>) {
        match input {
            SwitchIn::Notification { port, notification, tag } => {
                self.on_notification(now, port, notification, tag, out)
            }
            SwitchIn::Request { message, tag } => self.on_request(now, message, tag, out),
            SwitchIn::Data { message } => self.on_data(now, message, out),
            SwitchIn::PortDown { port } => self.port_down(port, out),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.scheduler.next_iteration()
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<SwitchOut>) {
        if self.scheduler.next_iteration().is_none_or(|at| at > now) {
            return;
        }
        let at = now + self.scheduler.round();
        let circuits = &mut self.circuits;
        self.scheduler.iterate_each(now, |made| out.push(issue(circuits, &made, at)));
    }
}
