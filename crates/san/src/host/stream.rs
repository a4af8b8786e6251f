//! The connections of a host.

use super::{Attempt, Host, HostIo, HostOut, Packet};
use crate::id::Port;
use crate::stream::{self, Streamed, Streams};
use base::Time;

impl Host {
    /// Queues an I/O as [`HostIn::Submit`](super::HostIn::Submit) does, without moving an input as
    /// large as a packet.
    pub fn issue(&mut self, now: Time, session: u32, io: HostIo, out: &mut Vec<HostOut>) {
        let session = self.meet(session);
        stream::by_windows(self, out, now, |host, out| host.submit(now, session, io, out));
    }

    /// Handles a packet as [`HostIn::Packet`](super::HostIn::Packet) does, without moving it.
    pub fn receive(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<HostOut>) {
        stream::receive(self, now, port, packet, out);
    }
}

impl Streamed for Host {
    type Out = HostOut;

    fn streams(&mut self) -> &mut Streams<HostOut> {
        &mut self.streams
    }
    fn place_of(&mut self, packet: &Packet) -> Option<usize> {
        let lane = usize::from(Attempt::of_bits(packet.tag.attempt).lane);
        // The drive of another host has no session here.
        self.lanes.place(self.sessions.with(packet.drive)?, lane)
    }
    fn take_in(&mut self, now: Time, port: Port, packet: &Packet, out: &mut Vec<HostOut>) {
        self.take(now, port, packet, out);
    }
    fn send(port: Port, packet: Packet) -> HostOut {
        HostOut::Send { port, packet }
    }
    fn sent(action: &HostOut) -> Option<(Port, &Packet)> {
        match action {
            HostOut::Send { port, packet } => Some((*port, packet)),
            _ => None,
        }
    }
}
