//! What a control packet says: up to eight pairs of a peer and a number.

use crate::framing::fastpass_control_wire;
use crate::{Packet, PacketKind};
use base::NodeId;

/// The most entries of one control packet: that is what a [`Packet`] has room for.
pub const BATCH_MAX: u32 = 8;
/// The largest node number in an entry.
const PEER_MAX: u32 = u16::MAX as u32 - 1;

/// One demand (so many slots to that peer) or allocation (that slot's low 16 bits to that peer), 4 bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) peer: NodeId,
    pub(super) number: u16,
}

impl Entry {
    /// Zero means "no entry", hence the one.
    fn pack(self) -> u32 {
        debug_assert!(self.peer.0 <= PEER_MAX, "node numbers of Fastpass fit into 16 bits");
        (self.peer.0 + 1) << 16 | u32::from(self.number)
    }
    fn unpack(word: u32) -> Option<Entry> {
        Some(Entry { peer: NodeId((word >> 16).checked_sub(1)?), number: word as u16 })
    }
}

/// The entries of one control packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    words: [u32; BATCH_MAX as usize],
    count: u32,
}

impl Entries {
    pub(super) fn push(&mut self, entry: Entry) {
        self.words[self.count as usize] = entry.pack();
        self.count += 1;
    }
    pub(super) fn count(&self) -> u32 {
        self.count
    }
    /// As a packet. It carries the eight words in the fields that only data packets need.
    pub(super) fn into_packet(self, kind: PacketKind, source: NodeId, target: NodeId) -> Packet {
        let wide = |low: usize| u64::from(self.words[low]) | u64::from(self.words[low + 1]) << 32;
        Packet {
            offset: wide(0),
            priority: wide(2),
            value: wide(4),
            message: self.words[6],
            sequence: self.words[7],
            ..Packet::new(kind, source, target, fastpass_control_wire(self.count))
        }
    }
    /// The entries of a control packet, in order.
    pub(super) fn of(packet: &Packet) -> impl Iterator<Item = Entry> {
        let halves = |wide: u64| [wide as u32, (wide >> 32) as u32];
        let words = [halves(packet.offset), halves(packet.priority), halves(packet.value)];
        let last = [packet.message, packet.sequence];
        words.into_iter().chain([last]).flatten().map_while(Entry::unpack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_into_a_control_packet_comes_out(
            pairs in proptest::collection::vec((0u32..=PEER_MAX, any::<u16>()), 0..=8),
        ) {
            let mut entries = Entries::default();
            for (peer, number) in &pairs {
                entries.push(Entry { peer: NodeId(*peer), number: *number });
            }
            let packet = entries.into_packet(PacketKind::Grant, NodeId(9), NodeId(1));
            let back: Vec<(u32, u16)> = Entries::of(&packet).map(|entry| (entry.peer.0, entry.number)).collect();
            prop_assert_eq!(back, pairs);
            prop_assert_eq!(packet.payload, 0);
        }
    }

    #[test]
    fn a_control_packet_is_a_least_frame_until_its_entries_outgrow_it() {
        let wire = |count: usize| {
            let mut entries = Entries::default();
            (0..count).for_each(|_| entries.push(Entry { peer: NodeId(0), number: 1 }));
            entries.into_packet(PacketKind::Request, NodeId(0), NodeId(1)).wire
        };
        assert_eq!((wire(1), wire(2), wire(3), wire(8)), (84, 84, 86, 106));
    }
}
