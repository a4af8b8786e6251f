//! First-in first-out output queues with a capacity in wire bytes.

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
    /// Creates an empty queue with `room` wire bytes.
    pub fn new(room: Bytes) -> ByteQueue {
        ByteQueue { packets: VecDeque::new(), room: room.count(), used: 0, highest: 0 }
    }
    /// Appends `packet`, or returns it as an error if it does not fit.
    pub fn push(&mut self, packet: Packet) -> Result<(), Packet> {
        if self.used + u64::from(packet.wire) > self.room {
            return Err(packet);
        }
        self.used += u64::from(packet.wire);
        self.highest = self.highest.max(self.used);
        self.packets.push_back(packet);
        Ok(())
    }
    /// Removes the oldest packet.
    pub fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.used -= u64::from(packet.wire);
        Some(packet)
    }
    /// Returns the queued wire bytes.
    pub fn used(&self) -> Bytes {
        Bytes::new(self.used)
    }
    /// Returns the highest number of queued wire bytes.
    pub fn highest(&self) -> Bytes {
        Bytes::new(self.highest)
    }
    /// Returns the number of queued packets.
    pub fn len(&self) -> usize {
        self.packets.len()
    }
    /// Returns whether the queue is empty.
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
    /// Creates `ports` empty queues of `room` each.
    pub fn new(ports: u32, room: Bytes) -> PortQueues {
        PortQueues { queues: vec![ByteQueue::new(room); ports as usize], ready: Vec::new() }
    }
    /// Appends to the queue of `port`, or returns the packet as an error.
    pub fn push(&mut self, port: NodeId, packet: Packet) -> Result<(), Packet> {
        self.queues[port.index()].push(packet)?;
        self.ready.push(port);
        Ok(())
    }
    /// Removes the oldest packet of `port`.
    pub fn pop(&mut self, port: NodeId) -> Option<Packet> {
        self.queues[port.index()].pop()
    }
    /// Returns the queue of `port`.
    pub fn port(&self, port: NodeId) -> &ByteQueue {
        &self.queues[port.index()]
    }
    /// Moves the ports with new packets to `ports`.
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
