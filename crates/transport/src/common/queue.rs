//! First-in first-out output queues with room counted in wire bytes.

use crate::Packet;
use base::{Bytes, NodeId};
use std::collections::VecDeque;

/// A drop-tail packet queue.
#[derive(Clone, Debug)]
pub struct ByteQueue {
    packets: VecDeque<Packet>,
    room: u64,
    used: u64,
    highest: u64,
}

impl ByteQueue {
    /// An empty queue with `room` for that many wire bytes.
    pub fn new(room: Bytes) -> ByteQueue {
        ByteQueue { packets: VecDeque::new(), room: room.count(), used: 0, highest: 0 }
    }
    /// Appends `packet`, or hands it back when it does not fit.
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.used + u64::from(packet.wire) > self.room {
            return Err(packet);
        }
        self.used += u64::from(packet.wire);
        self.highest = self.highest.max(self.used);
        self.packets.push_back(packet);
        Ok(())
    }
    /// Takes the oldest packet.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.used -= u64::from(packet.wire);
        Some(packet)
    }
    /// Wire bytes that wait.
    pub fn used(&self) -> Bytes {
        Bytes::new(self.used)
    }
    /// The most wire bytes that ever waited.
    pub fn highest(&self) -> Bytes {
        Bytes::new(self.highest)
    }
    /// Returns whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

/// One queue per output port, and the list of ports with new packets since the last query.
#[derive(Clone, Debug)]
pub struct PortQueues {
    queues: Vec<ByteQueue>,
    ready: Vec<NodeId>,
}

impl PortQueues {
    /// `ports` empty queues of `room` each.
    pub fn new(ports: u32, room: Bytes) -> PortQueues {
        PortQueues { queues: vec![ByteQueue::new(room); ports as usize], ready: Vec::new() }
    }
    /// Appends to the queue of `port`, or hands the packet back.
    pub fn push(&mut self, port: NodeId, packet: Packet) -> Result<(), Packet> {
        self.queues[port.index()].push(packet)?;
        self.ready.push(port);
        Ok(())
    }
    /// Takes the oldest packet of `port`.
    pub fn pop(&mut self, port: NodeId) -> Option<Packet> {
        self.queues[port.index()].pop()
    }
    /// The queue of `port`.
    pub fn port(&self, port: NodeId) -> &ByteQueue {
        &self.queues[port.index()]
    }
    /// Moves the ports that got something to `ports`.
    pub fn take_ready(&mut self, ports: &mut Vec<NodeId>) {
        ports.append(&mut self.ready);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketKind;

    #[test]
    fn the_last_byte_of_room_is_used_and_the_next_is_refused() {
        let mut queue = ByteQueue::new(Bytes::new(200));
        let packet = |wire| Packet::new(PacketKind::Data, NodeId(0), NodeId(1), wire);
        assert_eq!(queue.push(packet(116)), Ok(()));
        assert_eq!(queue.push(packet(85)), Err(packet(85)));
        assert_eq!(queue.push(packet(84)), Ok(()));
        assert_eq!(queue.pop(), Some(packet(116)));
        assert_eq!((queue.used(), queue.highest()), (Bytes::new(84), Bytes::new(200)));
    }
}
