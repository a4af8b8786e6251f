//! How a connection goes from one member of a group to another: at Connect, and never after it.

use crate::pdu::Framing;
use crate::target::connection::Stage;
use crate::target::flight::Transfer;
use crate::target::group::{Content, Member};
use crate::target::{Channel, ConnectionId, PortId, Target};
use crate::{Command, Connect};

/// A connection with its Connect, which nobody has carried out yet.
#[derive(Debug)]
pub(super) struct HandOver {
    /// At the sender.
    pub(super) connection: ConnectionId,
    port: PortId,
    channel: Option<Channel>,
    /// Of the output; that of the input has no alignment.
    framing: Framing,
    ready_open_max: u32,
    tolerated: u8,
    command: Command,
    connect: Connect,
    data: Vec<u8>,
    /// The controller, where the first member has decided.
    pub(super) controller: Option<u16>,
    /// Output that the socket has not taken.
    pub(super) unsent: Vec<u8>,
}

impl HandOver {
    /// Whether it makes a controller.
    pub(super) fn is_admin(&self) -> bool {
        self.connect.queue == 0
    }
}

impl Target {
    /// Gives the connection to another member, with its Connect in this flight and the controller
    /// that the first member has decided.
    pub(super) fn hand_over(
        &mut self,
        index: u32,
        slot: u32,
        (to, controller): (Member, Option<u16>),
        connect: Connect,
    ) {
        let place = &mut self.connections[index];
        place.abandon();
        (place.stage, place.deadline) = (Stage::Leaving, None);
        let hand_over = HandOver {
            connection: place.id,
            port: place.port,
            channel: place.channel,
            framing: place.framing,
            ready_open_max: place.ready_open_max,
            tolerated: place.tolerated,
            command: self.io.flights[slot].command,
            connect,
            data: std::mem::take(&mut self.io.flights[slot].buffer),
            controller,
            unsent: Vec::new(),
        };
        self.release(slot);
        self.group.send_connection(to, hand_over);
    }

    /// Takes a connection of another member, and carries out its Connect.
    pub(super) fn adopt(&mut self, hand_over: HandOver) -> ConnectionId {
        let HandOver { port, channel, framing, command, connect, data, controller, unsent, .. } = hand_over;
        self.group.away -= usize::from(self.group.is_first());
        let index = self.connections.open(port, &self.limits);
        let slot = self.io.flights.open(self.clock.now(), Some(index), command);
        let flight = &mut self.io.flights[slot];
        (flight.transfer, flight.buffer) = (Transfer::In(data.len() as u32), data);
        let place = &mut self.connections[index];
        place.queue.receive(command.id, slot).expect("an empty queue takes a command");
        place.reader.open(Framing { alignment: 0, ..framing });
        (place.stage, place.channel, place.framing) = (Stage::Connect, channel, framing);
        (place.ready_open_max, place.tolerated) = (hand_over.ready_open_max, hand_over.tolerated);
        place.deadline = self.clock.deadline(self.limits.handshake);
        place.out.push_bytes(&unsent);
        let id = place.id;
        self.on_connect(index, slot, connect, controller);
        id
    }

    /// A connection is closed that may be counted by the first member.
    pub(super) fn tell_closed(&mut self) {
        if !self.group.is_first() {
            self.group.send(Member::FIRST, Content::ConnectionEnded);
        }
    }

    /// A controller of this machine is gone, or one was never made.
    pub(super) fn tell_ended(&mut self, id: u16) {
        let group = &mut self.group;
        match group.is_first() {
            true => group.send_others(group.own, || Content::ControllerEnded(id)),
            false => group.send(Member::FIRST, Content::ControllerEnded(id)),
        }
    }
}
