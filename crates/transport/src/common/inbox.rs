//! Reassembly of one peer's messages: each byte is counted once, each message completes exactly
//! once.

use super::Ranges;
use crate::Packet;
use std::collections::VecDeque;

/// The effect of a data packet on its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// It contained nothing new.
    Duplicate,
    /// It contained this many new bytes, and some are still missing.
    Partial(u64),
    /// It completed the message, with this many new bytes.
    Complete(u64),
}

/// Reassembly of the messages of one sender, which may arrive interleaved, out of order and
/// duplicated.
///
/// [`Packet::sequence`], which the sender counts up from zero, identifies a message;
/// [`Packet::value`] of its data has the message's size. The distance from the oldest unfinished
/// message to the newest bounds the memory. A large rack has millions of these, most without an
/// open message: those take two words.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// Every message before this one is complete.
    first: u32,
    /// Messages from `first` on of which data were received.
    #[expect(clippy::box_collection, reason = "a deque is four words, and most have none")]
    open: Option<Box<VecDeque<Entry>>>,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    /// Number of received bytes.
    received: u64,
    ranges: Ranges,
    complete: bool,
}

impl Inbox {
    /// Accepts a data packet.
    pub fn take(&mut self, packet: &Packet) -> Arrived {
        if self.is_next_whole(packet) {
            self.first = self.first.wrapping_add(1);
            return Arrived::Complete(packet.value);
        }
        let Some(entry) = self.entry_of(packet.sequence) else { return Arrived::Duplicate };
        if entry.complete {
            return Arrived::Duplicate;
        }
        let new = entry.ranges.insert(packet.offset, packet.offset + u64::from(packet.payload));
        entry.received += new;
        if entry.received < packet.value {
            return if new == 0 { Arrived::Duplicate } else { Arrived::Partial(new) };
        }
        entry.complete = true;
        entry.ranges = Ranges::new();
        self.drop_finished();
        Arrived::Complete(new)
    }

    /// Returns the number of contiguous bytes received from the start of this packet's message.
    pub fn arrived_in_order(&self, packet: &Packet) -> u64 {
        let Ok(index) = usize::try_from(packet.sequence.wrapping_sub(self.first) as i32) else { return packet.value };
        match self.open.as_ref().and_then(|open| open.get(index)) {
            Some(entry) if entry.complete => packet.value,
            Some(entry) => entry.ranges.contiguous_from(0),
            None => 0,
        }
    }

    /// Returns whether the packet is a whole message, next in order, with no earlier one open. Such
    /// a message needs no entry.
    fn is_next_whole(&self, packet: &Packet) -> bool {
        self.open.is_none() && packet.sequence == self.first && u64::from(packet.payload) == packet.value
    }
    /// Returns the entry of `sequence`, created if it is new, or `None` if the message is already
    /// complete (serial arithmetic, RFC 1982).
    fn entry_of(&mut self, sequence: u32) -> Option<&mut Entry> {
        let index = usize::try_from(sequence.wrapping_sub(self.first) as i32).ok()?;
        let open = self.open.get_or_insert_default();
        while open.len() <= index {
            open.push_back(Entry::default());
        }
        open.get_mut(index)
    }
    fn drop_finished(&mut self) {
        let Some(open) = &mut self.open else { return };
        while open.front().is_some_and(|entry| entry.complete) {
            open.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        if open.is_empty() {
            self.open = None;
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
        assert!(inbox.open.is_none());
        assert_eq!(std::mem::size_of::<Inbox>(), 16);
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
