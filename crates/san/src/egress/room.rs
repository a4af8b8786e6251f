//! Where packets lie while they wait: queues keep their places, so that a packet is written once
//! and read once however it is queued.

use crate::packet::Packet;

/// Grows to the most packets that ever waited at its port, and allocates nothing after that.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingRoom {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl WaitingRoom {
    /// A packet comes in; returns its place.
    pub(super) fn enter(&mut self, packet: &Packet) -> u32 {
        let Some(place) = self.free.pop() else {
            self.packets.push(packet.copied());
            return self.packets.len() as u32 - 1;
        };
        self.packets[place as usize].become_copy_of(packet);
        place
    }

    /// The packet of a place, which goes: it lies there until the next one comes in.
    pub(super) fn leave(&mut self, place: u32) -> &Packet {
        self.free.push(place);
        &self.packets[place as usize]
    }
}
