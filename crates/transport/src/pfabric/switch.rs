//! The switch: small output queues, served and dropped by priority (SIGCOMM'13, 4.1), with marking
//! for flows over DCTCP.

use crate::{Packet, PacketKind, SwitchIn, SwitchOut};
use base::{Bytes, NodeId, Program, Time};

/// A switch with one priority queue per port.
#[derive(Clone, Debug)]
pub struct Switch {
    room: u64,
    /// Queue length above which arriving data are marked.
    mark_above: u64,
    queues: Vec<Queue>,
    ready: Vec<NodeId>,
    arrivals: u64,
}

/// A port's packets in no order, with the fields for decisions in a parallel array.
#[derive(Clone, Debug, Default)]
struct Queue {
    keys: Vec<Key>,
    packets: Vec<Packet>,
    used: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    priority: u64,
    /// Source and sequence number of the flow; the target is the port.
    flow: u64,
    arrival: u64,
}

impl Queue {
    fn push(&mut self, packet: Packet, arrival: u64) {
        let flow = u64::from(packet.source.0) << 32 | u64::from(packet.sequence);
        self.keys.push(Key { priority: packet.priority, flow, arrival });
        self.used += u64::from(packet.wire);
        self.packets.push(packet);
    }
    fn remove(&mut self, index: usize) -> Packet {
        self.keys.swap_remove(index);
        let packet = self.packets.swap_remove(index);
        self.used -= u64::from(packet.wire);
        packet
    }
    /// Returns the earliest packet of the flow of the most urgent packet: a flow's later packets
    /// are more urgent, and must not starve its earlier ones.
    fn next(&self) -> Option<usize> {
        let urgent = self.keys.iter().min_by_key(|key| (key.priority, key.arrival))?;
        let same_flow =
            self.keys.iter().enumerate().filter(|(_, key)| key.flow == urgent.flow && is_data(key) == is_data(urgent));
        same_flow.min_by_key(|(_, key)| key.arrival).map(|(index, _)| index)
    }
    /// Returns the least urgent packet, the latest of several.
    fn least_urgent(&self) -> Option<usize> {
        let all = self.keys.iter().enumerate();
        all.max_by_key(|(_, key)| (key.priority, key.arrival)).map(|(index, _)| index)
    }
}

/// Acknowledgements have priority 0 and are not part of the data flow with the same numbers.
fn is_data(key: &Key) -> bool {
    key.priority > 0
}

impl Switch {
    pub(super) fn new(room: Bytes, mark_above: Option<Bytes>, ports: u32) -> Switch {
        let queues = vec![Queue::default(); ports as usize];
        let mark_above = mark_above.map_or(u64::MAX, Bytes::count);
        Switch { room: room.count(), mark_above, queues, ready: Vec::new(), arrivals: 0 }
    }
}

impl Program for Switch {
    type In = SwitchIn;
    type Out = SwitchOut;

    /// Inserts the packet, and drops the least urgent packets, possibly the new one, while the
    /// queue is too long.
    fn on(&mut self, _: Time, input: SwitchIn, out: &mut Vec<SwitchOut>) {
        let mut packet = input.packet;
        let port = packet.target;
        let queue = &mut self.queues[port.index()];
        packet.marked |= packet.kind == PacketKind::Data && queue.used > self.mark_above;
        queue.push(packet, self.arrivals);
        self.arrivals += 1;
        while queue.used > self.room {
            let Some(victim) = queue.least_urgent() else { break };
            out.push(SwitchOut::Drop(queue.remove(victim)));
        }
        self.ready.push(port);
    }
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    fn on_wakeup(&mut self, _: Time, _: &mut Vec<SwitchOut>) {}
}

impl crate::Switch for Switch {
    fn poll_transmit(&mut self, _: Time, port: NodeId) -> Option<Packet> {
        let queue = &mut self.queues[port.index()];
        let next = queue.next()?;
        Some(queue.remove(next))
    }
    fn may_transmit(&self, port: NodeId) -> bool {
        self.queues[port.index()].used > 0
    }
    fn take_ready(&mut self, ports: &mut Vec<NodeId>) {
        ports.append(&mut self.ready);
    }
    fn queued(&self, port: NodeId) -> Bytes {
        Bytes::new(self.queues[port.index()].used)
    }
    fn queued_packets(&self, port: NodeId) -> usize {
        self.queues[port.index()].packets.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Switch as _;

    fn data(source: u32, offset: u64, priority: u64) -> SwitchIn {
        let bare = Packet::new(PacketKind::Data, NodeId(source), NodeId(9), 100);
        SwitchIn { port: NodeId(source), packet: Packet { offset, priority, ..bare } }
    }

    #[test]
    fn the_lowest_priority_is_dropped_first_and_the_flow_of_the_highest_goes_first_in_its_own_order() {
        let mut switch = Switch::new(Bytes::new(300), None, 10);
        let mut out = Vec::new();
        for input in [data(1, 0, 50), data(2, 0, 90), data(1, 100, 40), data(3, 0, 70), data(4, 0, 95)] {
            switch.on(Time::ZERO, input, &mut out);
        }
        assert_eq!(out, [SwitchOut::Drop(data(2, 0, 90).packet), SwitchOut::Drop(data(4, 0, 95).packet)]);
        let sent: Vec<Packet> = std::iter::from_fn(|| switch.poll_transmit(Time::ZERO, NodeId(9))).collect();
        assert_eq!(sent, [data(1, 0, 50).packet, data(1, 100, 40).packet, data(3, 0, 70).packet]);
    }

    #[test]
    fn data_that_find_more_than_k_are_marked_and_acknowledgements_never() {
        let mut switch = Switch::new(Bytes::new(900), Some(Bytes::new(100)), 10);
        let acknowledgement = Packet::new(PacketKind::Acknowledgement, NodeId(5), NodeId(9), 100);
        let inputs =
            [data(1, 0, 50), data(2, 0, 60), data(3, 0, 70), SwitchIn { port: NodeId(5), packet: acknowledgement }];
        inputs.into_iter().for_each(|input| switch.on(Time::ZERO, input, &mut Vec::new()));
        let sent = std::iter::from_fn(|| switch.poll_transmit(Time::ZERO, NodeId(9)));
        let marks: Vec<(u64, bool)> = sent.map(|packet| (packet.priority, packet.marked)).collect();
        assert_eq!(marks, [(0, false), (50, false), (60, false), (70, true)]);
    }
}
