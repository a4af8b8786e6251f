//! What one peer's messages have brought so far: each byte counted once, each message complete exactly once.

use super::Ranges;
use crate::Packet;
use std::collections::VecDeque;

/// What a data packet meant to its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Nothing new was in it.
    Duplicate,
    /// So many bytes were new, and some are still missing.
    Partial(u64),
    /// The message is now whole; so many bytes were new.
    Complete(u64),
}

/// Reassembly of the messages of one sender, which may arrive interleaved, out of order and twice.
///
/// Messages are told apart by [`Packet::sequence`], which the sender counts up from zero; a message's size is in
/// [`Packet::value`] of its data. Memory is bounded by the span from the oldest unfinished message to the newest.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// Sequence number of `open[0]`: every message before it is complete.
    first: u32,
    open: VecDeque<Entry>,
    /// Emptied range sets, to be used again.
    spare: Vec<Ranges>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    /// Bytes that have come; `Ranges` only from the second packet of a message on.
    received: u64,
    ranges: Ranges,
    complete: bool,
}

impl Inbox {
    /// Takes a data packet in.
    pub fn take(&mut self, packet: &Packet) -> Arrived {
        if self.is_next_whole(packet) {
            self.first = self.first.wrapping_add(1);
            return Arrived::Complete(packet.value);
        }
        let Some(index) = self.index_of(packet.sequence) else { return Arrived::Duplicate };
        let entry = &mut self.open[index];
        if entry.complete {
            return Arrived::Duplicate;
        }
        let new = entry.ranges.insert(packet.offset, packet.offset + u64::from(packet.payload));
        entry.received += new;
        if entry.received < packet.value {
            return if new == 0 { Arrived::Duplicate } else { Arrived::Partial(new) };
        }
        entry.complete = true;
        let mut ranges = std::mem::take(&mut entry.ranges);
        ranges.clear();
        self.spare.push(ranges);
        self.drop_finished();
        Arrived::Complete(new)
    }

    /// How many bytes of this packet's message have come from its beginning without a hole.
    pub fn arrived_in_order(&self, packet: &Packet) -> u64 {
        let Ok(index) = usize::try_from(packet.sequence.wrapping_sub(self.first) as i32) else { return packet.value };
        match self.open.get(index) {
            Some(entry) if entry.complete => packet.value,
            Some(entry) => entry.ranges.contiguous_from(0),
            None => 0,
        }
    }

    /// A message in one packet, next in turn, with none before it open: needs no entry.
    fn is_next_whole(&self, packet: &Packet) -> bool {
        self.open.is_empty() && packet.sequence == self.first && u64::from(packet.payload) == packet.value
    }
    /// The entry of `sequence`, made if it is new; `None` when it was complete before (serial arithmetic, RFC 1982).
    fn index_of(&mut self, sequence: u32) -> Option<usize> {
        let index = usize::try_from(sequence.wrapping_sub(self.first) as i32).ok()?;
        while self.open.len() <= index {
            let ranges = self.spare.pop().unwrap_or_default();
            self.open.push_back(Entry { received: 0, ranges, complete: false });
        }
        Some(index)
    }
    fn drop_finished(&mut self) {
        while self.open.front().is_some_and(|entry| entry.complete) {
            self.open.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketKind;
    use base::NodeId;

    fn data(sequence: u32, offset: u64, payload: u32, whole: u64) -> Packet {
        let bare = Packet::new(PacketKind::Data, NodeId(0), NodeId(1), 0);
        Packet { sequence, offset, payload, value: whole, ..bare }
    }

    #[test]
    fn messages_may_overtake_and_each_is_complete_once() {
        let mut inbox = Inbox::default();
        assert_eq!(inbox.take(&data(0, 0, 10, 20)), Arrived::Partial(10));
        assert_eq!(inbox.take(&data(1, 0, 5, 5)), Arrived::Complete(5));
        assert_eq!(inbox.take(&data(1, 0, 5, 5)), Arrived::Duplicate);
        assert_eq!(inbox.take(&data(0, 0, 10, 20)), Arrived::Duplicate);
        assert_eq!(inbox.take(&data(0, 10, 10, 20)), Arrived::Complete(10));
        assert_eq!(inbox.take(&data(0, 10, 10, 20)), Arrived::Duplicate);
        assert!(inbox.open.is_empty());
    }

    #[test]
    fn what_arrived_in_order_ends_at_the_first_hole() {
        let mut inbox = Inbox::default();
        let arrived = |inbox: &mut Inbox, sequence, offset| {
            let packet = data(sequence, offset, 10, 30);
            inbox.take(&packet);
            inbox.arrived_in_order(&packet)
        };
        assert_eq!(arrived(&mut inbox, 0, 10), 0);
        assert_eq!(arrived(&mut inbox, 1, 0), 10);
        assert_eq!(arrived(&mut inbox, 0, 0), 20);
        assert_eq!(arrived(&mut inbox, 0, 20), 30);
        assert_eq!(arrived(&mut inbox, 0, 20), 30, "a duplicate of a message that is complete");
        assert_eq!(inbox.arrived_in_order(&data(9, 0, 10, 30)), 0);
    }
}
