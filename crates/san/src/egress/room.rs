//! Storage for waiting packets. Queues hold slot numbers, so that a packet is written once and read
//! once whatever its queue.

use crate::packet::Packet;

/// Grows to the highest number of packets that waited at its port, and allocates nothing after
/// that.
#[derive(Clone, Debug, Default)]
pub(super) struct WaitingRoom {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl WaitingRoom {
    /// Returns the number of packets stored.
    pub(super) fn len(&self) -> usize {
        self.packets.len() - self.free.len()
    }

    /// Stores a packet; returns its slot.
    pub(super) fn enter(&mut self, packet: &Packet) -> u32 {
        let Some(place) = self.free.pop() else {
            self.packets.push(packet.copied());
            return self.packets.len() as u32 - 1;
        };
        self.packets[place as usize].become_copy_of(packet);
        place
    }

    /// Frees a slot and returns its packet, which remains valid until the next `enter`.
    pub(super) fn leave(&mut self, place: u32) -> &Packet {
        self.free.push(place);
        &self.packets[place as usize]
    }
}
