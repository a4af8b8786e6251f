//! The receiving end of one connection: a byte stream and the ends of its messages.

use crate::Packet;
use crate::common::Ranges;
use std::collections::VecDeque;

/// Orders segments and reports complete messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Receiver {
    /// Everything before this stream offset was received.
    expected: u64,
    /// Data received beyond a gap; usually none.
    beyond: Option<Box<Beyond>>,
}

#[derive(Clone, Debug, Default)]
struct Beyond {
    ranges: Ranges,
    /// Stream offset of the end of each message whose last segment was received beyond a gap;
    /// ascending.
    ends: VecDeque<(u64, u32)>,
}

impl Receiver {
    /// Accepts a segment, reports each message that it completes, and returns the next expected
    /// stream offset. `value` of the segment is the stream offset of its message's end.
    pub(super) fn take(&mut self, segment: &Packet, mut deliver: impl FnMut(u32)) -> u64 {
        let end = segment.offset + u64::from(segment.payload);
        if end <= self.expected {
            return self.expected;
        }
        if segment.offset == self.expected && self.beyond.is_none() {
            self.expected = end;
            if end == segment.value {
                deliver(segment.message);
            }
            return end;
        }
        let beyond = self.beyond.get_or_insert_default();
        if end == segment.value {
            beyond.note_end(end, segment.message);
        }
        self.expected = beyond.advance(self.expected, segment.offset, end);
        while beyond.ends.front().is_some_and(|(end, _)| *end <= self.expected) {
            beyond.ends.pop_front().into_iter().for_each(|(_, message)| deliver(message));
        }
        if beyond.ranges.is_empty() && beyond.ends.is_empty() {
            self.beyond = None;
        }
        self.expected
    }

    /// Returns at most `count` ranges beyond the gap, the one with `latest` first (RFC 2018, 4),
    /// then the lowest.
    pub(super) fn blocks(&self, latest: u64, count: usize) -> impl Iterator<Item = (u64, u64)> {
        let ranges = || self.beyond.iter().flat_map(|beyond| beyond.ranges.iter());
        let is_latest = move |range: &(u64, u64)| (range.0..range.1).contains(&latest);
        ranges().filter(is_latest).chain(ranges().filter(move |range| !is_latest(range))).take(count)
    }
}

impl Beyond {
    /// Returns the expected offset after receiving `[start, end)`.
    fn advance(&mut self, expected: u64, start: u64, end: u64) -> u64 {
        if start > expected {
            self.ranges.insert(start, end);
            return expected;
        }
        let expected = self.ranges.contiguous_from(end).max(end);
        self.ranges.forget_below(expected);
        expected
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

    #[test]
    fn blocks_name_the_latest_range_first_and_nothing_without_a_hole() {
        let mut receiver = Receiver::default();
        let mut take = |offset| {
            let bare = Packet::new(PacketKind::Data, NodeId(0), NodeId(1), 84);
            receiver.take(&Packet { offset, payload: 10, value: 1_000, ..bare }, |_| {});
            receiver.blocks(offset, 3).collect::<Vec<_>>()
        };
        assert_eq!(take(0), []);
        assert_eq!(take(20), [(20, 30)]);
        assert_eq!(take(60), [(60, 70), (20, 30)]);
        assert_eq!(take(80), [(80, 90), (20, 30), (60, 70)]);
        assert_eq!(take(100), [(100, 110), (20, 30), (60, 70)]);
        assert_eq!(take(10), [(60, 70), (80, 90), (100, 110)]);
    }
}
