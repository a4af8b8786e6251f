//! The receiving end of one connection: a byte stream and the ends of the messages in it.

use crate::Packet;
use crate::common::Ranges;
use std::collections::VecDeque;

/// Puts segments in order and tells which messages are whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Receiver {
    /// Everything before this stream offset has come.
    expected: u64,
    /// What has come beyond a hole.
    ahead: Ranges,
    /// Stream offset of the end of each message whose last segment has come before the stream got there; ascending.
    ends: VecDeque<(u64, u32)>,
}

impl Receiver {
    /// Takes a segment in, names each message that it completes, and returns the next expected stream offset. `value` of
    /// the segment is the stream offset of its message's end.
    pub(super) fn take(&mut self, segment: &Packet, mut deliver: impl FnMut(u32)) -> u64 {
        let end = segment.offset + u64::from(segment.payload);
        if end <= self.expected {
            return self.expected;
        }
        if segment.offset == self.expected && self.is_in_order() {
            self.expected = end;
            if end == segment.value {
                deliver(segment.message);
            }
            return end;
        }
        if end == segment.value {
            self.note_end(end, segment.message);
        }
        self.advance(segment.offset, end);
        while self.ends.front().is_some_and(|(end, _)| *end <= self.expected) {
            self.ends.pop_front().into_iter().for_each(|(_, message)| deliver(message));
        }
        self.expected
    }

    /// Whether nothing has come beyond a hole: the usual case, which needs no lists.
    fn is_in_order(&self) -> bool {
        self.ends.is_empty() && self.ahead.is_empty()
    }

    fn advance(&mut self, start: u64, end: u64) {
        if start > self.expected {
            self.ahead.insert(start, end);
            return;
        }
        self.expected = self.ahead.contiguous_from(end).max(end);
        self.ahead.forget_below(self.expected);
    }

    fn note_end(&mut self, end: u64, message: u32) {
        let place = self.ends.partition_point(|noted| noted.0 < end);
        if self.ends.get(place).is_none_or(|noted| noted.0 != end) {
            self.ends.insert(place, (end, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PacketKind;
    use base::NodeId;

    #[test]
    fn a_message_behind_a_hole_waits_for_it_and_comes_once() {
        let mut receiver = Receiver::default();
        let mut delivered = Vec::new();
        let mut take = |offset, payload, value, message| {
            let bare = Packet::new(PacketKind::Data, NodeId(0), NodeId(1), 84);
            receiver.take(&Packet { offset, payload, value, message, ..bare }, |message| delivered.push(message))
        };
        assert_eq!(take(10, 5, 15, 8), 0);
        assert_eq!(take(10, 5, 15, 8), 0);
        assert_eq!(take(0, 10, 10, 7), 15);
        assert_eq!(take(0, 10, 10, 7), 15);
        assert_eq!(delivered, [7, 8]);
    }
}
