//! The content of a control packet, in the byte format of Fastpass's public code
//! (`src/protocol/fpproto.c`).
//!
//! A header of eight bytes (sequence number, acknowledgements, checksum) is followed by up to two
//! parts:
//!
//! * Time slots: two bytes of type and lengths, two of the first slot over 16, and two per target.
//!   **One byte per slot** follows (four bits for the target, four for the distance from the slot
//!   before).
//! * Counts: two bytes of type and length, four per target.
//!
//! Counts are totals since the beginning, so lost and duplicate packets are harmless.
//! Acknowledgements and checksum stay zero: see [`super`] and the FCS.

use crate::framing::{FASTPASS, fastpass_control_wire};
use crate::{Packet, PacketKind};
use base::NodeId;

/// Maximum demands of one packet (public code: `FASTPASS_PKT_MAX_AREQ`).
pub(super) const DEMANDS_MAX: usize = 10;
/// Maximum targets of one allocation: four bits identify them, and zero is not used.
pub(super) const TARGETS_MAX: usize = 15;
/// Maximum time slots of one allocation (public code: `FASTPASS_PKT_MAX_ALLOC_TSLOTS`).
pub(super) const SLOTS_MAX: usize = 64;
/// Types of the parts, in the upper four bits of their first byte.
pub(crate) const TYPE_COUNTS: u8 = 2;
pub(crate) const TYPE_SLOTS: u8 = 3;
/// Maximum distance that four bits can encode, in slots.
const REACH: u64 = 16;
/// Bits of a slot number in a packet: 16 for the first slot, times 16.
const SLOT_BITS: u32 = 20;

/// A control packet of either direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Control {
    /// Assigned by the sender; the low 16 bits are transmitted.
    pub(super) sequence: u64,
    /// Allocated slots and their targets, ascending, within [`SLOTS_MAX`] of each other.
    pub(super) slots: Vec<(u64, NodeId)>,
    /// Low 16 bits of the total slots demanded or allocated, by target.
    pub(super) counts: Vec<(NodeId, u16)>,
}

impl Control {
    /// Returns whether it has no content.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.counts.is_empty()
    }

    /// Returns the packet, and the bytes behind its IPv4 header.
    pub(super) fn into_packet(self, source: NodeId, target: NodeId) -> (Packet, Box<[u8]>) {
        let kind = if self.slots.is_empty() { PacketKind::Request } else { PacketKind::Grant };
        let bytes = self.encode();
        (Packet::new(kind, source, target, fastpass_control_wire(bytes.len() as u32)), bytes)
    }

    fn encode(&self) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(FASTPASS as usize + 6 + 4 * self.counts.len() + 2 * self.slots.len());
        put16(&mut bytes, self.sequence as u16);
        bytes.resize(FASTPASS as usize, 0);
        if !self.slots.is_empty() {
            self.put_slots(&mut bytes);
        }
        if !self.counts.is_empty() {
            put16(&mut bytes, u16::from(TYPE_COUNTS) << 12 | self.counts.len() as u16);
            self.counts.iter().for_each(|(target, count)| {
                put16(&mut bytes, target.0 as u16);
                put16(&mut bytes, *count);
            });
        }
        bytes.into()
    }

    fn put_slots(&self, bytes: &mut Vec<u8>) {
        let mut targets: Vec<NodeId> = Vec::new();
        let mut places: Vec<u8> = Vec::new();
        let first = (self.slots[0].0 - 1) / REACH;
        let mut before = first * REACH;
        for (slot, target) in &self.slots {
            let skipped = (slot - before - 1) / REACH;
            if skipped > 0 {
                places.push(skipped as u8 - 1);
            }
            let known = targets.iter().position(|known| known == target);
            let index = known.unwrap_or(targets.len());
            if known.is_none() {
                targets.push(*target);
            }
            places.push((index as u8 + 1) << 4 | ((slot - before - 1) % REACH) as u8);
            before = *slot;
        }
        // The length field counts pairs, in six bits.
        debug_assert!(places.len() < 128, "slots of one packet are near each other");
        places.resize(places.len().next_multiple_of(2), 0);
        put16(bytes, u16::from(TYPE_SLOTS) << 12 | (targets.len() as u16) << 8 | (places.len() / 2) as u16);
        put16(bytes, first as u16);
        targets.iter().for_each(|target| put16(bytes, target.0 as u16));
        bytes.extend_from_slice(&places);
    }

    /// Decodes the output of [`encode`](Self::encode). `slot` and `sequence` must be close to the
    /// sender's values: they complete the transmitted low bits. Returns `None` if the bytes are no
    /// control packet.
    pub(super) fn decode(bytes: &[u8], slot: u64, sequence: u64) -> Option<Control> {
        let mut control = Control { sequence: near(sequence, u64::from(get16(bytes, 0)?), 16), ..Control::default() };
        let mut at = FASTPASS as usize;
        while let Some(head) = get16(bytes, at) {
            at += match (head >> 12) as u8 {
                TYPE_SLOTS => control.take_slots(head, bytes.get(at + 2..)?, slot)?,
                TYPE_COUNTS => control.take_counts(head, bytes.get(at + 2..)?)?,
                _ => return None,
            };
        }
        Some(control)
    }

    /// Decodes the slots. Returns the length of the part.
    fn take_slots(&mut self, head: u16, bytes: &[u8], near_slot: u64) -> Option<usize> {
        let (targets, places) = (usize::from(head >> 8 & 0xf), 2 * usize::from(head & 0x3f));
        let first = u64::from(get16(bytes, 0)?) * REACH;
        let mut before = near(near_slot, first, SLOT_BITS);
        for place in bytes.get(2 + 2 * targets..2 + 2 * targets + places)? {
            let distance = u64::from(place & 0xf) + 1;
            match usize::from(place >> 4).checked_sub(1) {
                Some(index) if index < targets => {
                    before += distance;
                    self.slots.push((before, NodeId(u32::from(get16(bytes, 2 + 2 * index)?))));
                }
                Some(_) => return None,
                None => before += distance * REACH,
            }
        }
        Some(4 + 2 * targets + places)
    }

    fn take_counts(&mut self, head: u16, bytes: &[u8]) -> Option<usize> {
        let counts = usize::from(head & 0x3f);
        for index in 0..counts {
            let target = NodeId(u32::from(get16(bytes, 4 * index)?));
            self.counts.push((target, get16(bytes, 4 * index + 2)?));
        }
        Some(2 + 4 * counts)
    }
}

/// Returns the number nearest to `known` whose low `bits` are those of `low`.
fn near(known: u64, low: u64, bits: u32) -> u64 {
    let (whole, half) = (1u64 << bits, 1u64 << (bits - 1));
    let ahead = low.wrapping_sub(known) & (whole - 1);
    let number = known.wrapping_add(ahead);
    if ahead >= half { number.checked_sub(whole).unwrap_or(number) } else { number }
}

fn put16(bytes: &mut Vec<u8>, value: u16) {
    bytes.extend_from_slice(&value.to_be_bytes());
}

fn get16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_into_a_control_packet_comes_out(
            sequence in 0u64..1 << 40,
            first in 1u64..1 << 40,
            gaps in proptest::collection::vec((1u64..40, 0u32..15), 0..=SLOTS_MAX / 2),
            counts in proptest::collection::vec((0u32..65_536, any::<u16>()), 0..=DEMANDS_MAX),
            late in 0u64..1_000,
        ) {
            let mut slot = first;
            let place = |(gap, target): (u64, u32)| {
                slot += gap;
                (slot, NodeId(target * 4_369))
            };
            let slots = gaps.into_iter().map(place).collect();
            let counts = counts.into_iter().map(|(target, count)| (NodeId(target), count)).collect();
            let control = Control { sequence, slots, counts };
            let (packet, bytes) = control.clone().into_packet(NodeId(9), NodeId(1));
            prop_assert_eq!(Control::decode(&bytes, first + late, sequence.saturating_sub(late)), Some(control));
            prop_assert_eq!(packet.payload, 0);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = Control::decode(&bytes, 5, 5);
        }
    }

    fn wire(slots: Vec<(u64, NodeId)>, counts: Vec<(NodeId, u16)>) -> u32 {
        Control { sequence: 0, slots, counts }.into_packet(NodeId(0), NodeId(1)).0.wire
    }

    /// Ethernet takes 38 bytes, IPv4 20, the header 8.
    #[test]
    fn an_allocation_takes_a_byte_a_slot_and_two_a_target_above_its_frame() {
        let to_one = |count: u64| wire((1..=count).map(|slot| (slot, NodeId(7))).collect(), Vec::new());
        let to_many = |count: u64| wire((1..=count).map(|slot| (slot, NodeId(slot as u32))).collect(), Vec::new());
        assert_eq!((to_one(1), to_one(12), to_one(14)), (84, 84, 38 + 20 + 8 + 4 + 2 + 14));
        assert_eq!((to_one(16), to_one(64)), (88, 136));
        assert_eq!((to_many(4), to_many(15)), (84, 38 + 20 + 8 + 4 + 30 + 16));
        let demands = |count: u32| wire(Vec::new(), (0..count).map(|target| (NodeId(target), 1)).collect());
        assert_eq!((demands(1), demands(4), demands(10)), (84, 84, 38 + 20 + 8 + 2 + 40));
    }
}
