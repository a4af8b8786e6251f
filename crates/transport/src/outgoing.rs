//! Messages to one peer that are sent sequentially, packet by packet.

use crate::{Message, Packet, PacketKind};
use base::{Bytes, NodeId};
use std::collections::VecDeque;

/// A message that may be partly sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    message: u32,
    sequence: u32,
    bytes: u64,
    sent: u64,
}

/// The part of a message that fits into the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The rig's number of the message.
    pub(crate) message: u32,
    /// The message's number among those to this peer.
    pub(crate) sequence: u32,
    /// Length of the message, bytes.
    pub(crate) bytes: u64,
    /// Offset of the piece in the message.
    pub(crate) offset: u64,
    /// Length of the piece, bytes.
    pub(crate) payload: u32,
}

impl Piece {
    /// Returns the number of bytes of the message from this piece on.
    pub(crate) fn remaining(&self) -> u64 {
        self.bytes - self.offset
    }
    /// Returns the piece as a data packet of `wire` bytes.
    pub(crate) fn packet(&self, source: NodeId, target: NodeId, wire: u32) -> Packet {
        let Piece { message, sequence, bytes, offset, payload } = *self;
        let bare = Packet::new(PacketKind::Data, source, target, wire);
        Packet { message, sequence, offset, payload, value: bytes, ..bare }
    }
}

/// Messages to one peer in order of submission, numbered from zero. A large rack has millions of
/// these, most of them empty: they own no memory, and a single message needs none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outgoing {
    /// The oldest message; zero bytes long if there is none.
    first: Sending,
    #[expect(clippy::box_collection, reason = "a deque is four words, and most have none")]
    rest: Option<Box<VecDeque<Sending>>>,
    next_sequence: u32,
}

impl Outgoing {
    pub(crate) fn push(&mut self, message: &Message) {
        let sequence = self.next_sequence;
        self.next_sequence = sequence.wrapping_add(1);
        let sending = Sending { message: message.id, sequence, bytes: message.bytes.count(), sent: 0 };
        if self.is_empty() {
            self.first = sending;
        } else {
            self.rest.get_or_insert_default().push_back(sending);
        }
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.first.bytes == 0
    }
    /// Returns the content of the next packet with at most `limit` of payload.
    pub(crate) fn peek(&self, limit: Bytes) -> Option<Piece> {
        let Sending { message, sequence, bytes, sent: offset } = self.first;
        let payload = limit.count().min(bytes - offset) as u32;
        (bytes > 0).then_some(Piece { message, sequence, bytes, offset, payload })
    }
    /// Removes and returns the piece of [`peek`](Self::peek).
    pub(crate) fn take(&mut self, limit: Bytes) -> Option<Piece> {
        let piece = self.peek(limit)?;
        self.first.sent += u64::from(piece.payload);
        if self.first.sent == self.first.bytes {
            self.first = self.rest.as_mut().and_then(|rest| rest.pop_front()).unwrap_or_default();
            if self.rest.as_ref().is_some_and(|rest| rest.is_empty()) {
                self.rest = None;
            }
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_leave_in_order_in_pieces_up_to_the_limit() {
        let mut outgoing = Outgoing::default();
        for (id, bytes) in [(7, 200), (8, 100), (9, 1)] {
            let (source, target) = (NodeId(0), NodeId(1));
            outgoing.push(&Message {
                id,
                source,
                target,
                bytes: Bytes::new(bytes),
                is_answer: false,
                expects_answer: false,
            });
        }
        let pieces = std::iter::from_fn(|| outgoing.take(Bytes::new(100)));
        let pieces: Vec<_> = pieces.map(|piece| (piece.message, piece.sequence, piece.offset, piece.payload)).collect();
        assert_eq!(pieces, [(7, 0, 0, 100), (7, 0, 100, 100), (8, 1, 0, 100), (9, 2, 0, 1)]);
        assert!(outgoing.is_empty() && outgoing.rest.is_none());
    }
}
