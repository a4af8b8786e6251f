//! What waits to be sent on one connection: headers as bytes, data as the buffers that backends
//! filled, or where backends keep them.

use crate::pdu::{Framing, Header, PduKind};
use crate::pool::Pool;
use crate::target::BlockRange;
use std::collections::VecDeque;

/// Sent bytes that are kept in front, or as many as wait if these are more, before the rest is
/// moved down.
const SLACK: usize = 16 << 10;

/// Room that a connection keeps while nothing waits: for a full queue's short reads.
const CAPACITY_MAX: usize = 320 << 10;

/// Shorter data are copied behind their header: that costs less than another slice to send.
const COPIED_MAX: usize = 2 << 10;

/// A piece of the stream.
#[derive(Clone, Copy, Debug)]
enum Segment {
    /// So many of `bytes`.
    Bytes(usize),
    /// A part of the first payload that no earlier segment ends.
    Payload { from: usize, to: usize, ends: bool },
}

/// Where the data of a command are.
#[derive(Debug)]
enum Payload {
    /// In the buffer that a backend filled.
    Here(Vec<u8>),
    /// In these blocks of the lender.
    Lent { range: BlockRange, bytes: usize },
    /// They were lent, and the lender has yet to fill a buffer with them.
    Awaited { bytes: usize },
}

impl Payload {
    fn bytes(&self) -> usize {
        match self {
            Payload::Here(buffer) => buffer.len(),
            Payload::Lent { bytes, .. } | Payload::Awaited { bytes } => *bytes,
        }
    }
}

/// A part of the stream, as it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// Of the bytes that the lender keeps in `range`, those from `from` up to `to`.
    Lent {
        /// Blocks of the lender.
        range: BlockRange,
        /// The first byte of them to send.
        from: usize,
        /// The first byte of them that is not sent.
        to: usize,
    },
}

/// What sending has freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Freed {
    /// Bytes of payloads, lent ones included.
    pub(crate) bytes: u64,
    /// Loans that are over.
    pub(crate) loans: u32,
}

/// The output of a connection.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    /// Sent bytes of `bytes`.
    start: usize,
    segments: VecDeque<Segment>,
    payloads: VecDeque<Payload>,
    /// The number of the first payload: that of all earlier ones.
    first: u64,
    /// Bytes of headers, responses and small data that wait.
    waiting: usize,
}

impl Outgoing {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes that wait, payloads aside: what a host makes us keep by sending without reading.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting
    }

    /// A PDU without data.
    pub(crate) fn push(&mut self, framing: Framing, header: &Header) {
        let begin = self.bytes.len();
        framing.append_header(header, &mut self.bytes);
        self.count_bytes(self.bytes.len() - begin);
    }

    /// A termination and the like, as bytes.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.bytes.extend_from_slice(bytes);
        self.count_bytes(bytes.len());
    }

    /// A PDU with the bytes that the lender keeps in `range`, as many as the header says, without a
    /// digest.
    pub(crate) fn push_lent(&mut self, framing: Framing, header: &Header, range: BlockRange) {
        self.push(framing, header);
        let bytes = header.data_length() as usize;
        self.segments.push_back(Segment::Payload { from: 0, to: bytes, ends: true });
        self.payloads.push_back(Payload::Lent { range, bytes });
    }

    /// Whether a block that is lent and `is_wanted` waits to be sent.
    pub(crate) fn borrows(&self, is_wanted: impl Fn(BlockRange) -> bool) -> bool {
        self.payloads.iter().any(|payload| matches!(payload, Payload::Lent { range, .. } if is_wanted(*range)))
    }

    /// Ends all loans: lent data are sent when their bytes have [come](Self::take_in). Returns the
    /// number, the blocks and the bytes of each.
    pub(crate) fn end_loans(&mut self) -> Vec<(u64, BlockRange, usize)> {
        let lent = self.payloads.iter_mut().enumerate().filter_map(|(place, payload)| match *payload {
            Payload::Lent { range, bytes } => {
                *payload = Payload::Awaited { bytes };
                Some((self.first + place as u64, range, bytes))
            }
            _ => None,
        });
        lent.collect()
    }

    /// The bytes of a loan that was ended, as long as it was. Gives them back when nobody awaits
    /// them.
    pub(crate) fn take_in(&mut self, number: u64, buffer: Vec<u8>) -> Result<(), Vec<u8>> {
        let place = number.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| self.payloads.get_mut(place)) {
            Some(payload @ Payload::Awaited { .. }) if payload.bytes() == buffer.len() => {
                *payload = Payload::Here(buffer);
                Ok(())
            }
            _ => Err(buffer),
        }
    }

    /// So many were put behind `bytes`.
    fn count_bytes(&mut self, added: usize) {
        self.waiting += added;
        match self.segments.back_mut() {
            Some(Segment::Bytes(count)) => *count += added,
            _ => self.segments.push_back(Segment::Bytes(added)),
        }
    }

    /// PDUs with the data of one command, in order. Every header says how long its piece is;
    /// together they are `payload`. Returns it when it is short: its data were copied.
    pub(crate) fn push_data(
        &mut self,
        framing: Framing,
        pieces: impl Iterator<Item = Header>,
        payload: Vec<u8>,
    ) -> Option<Vec<u8>> {
        let is_copied = payload.len() < COPIED_MAX;
        let mut from = 0;
        for header in pieces {
            let to = from + header.data_length() as usize;
            self.push(framing, &header);
            if is_copied {
                self.push_bytes(&payload[from..to]);
            } else {
                self.segments.push_back(Segment::Payload { from, to, ends: to == payload.len() });
            }
            let trailer = framing.trailer(PduKind::ControllerData, &payload[from..to]);
            self.push_bytes(trailer.as_ref().map_or(&[], |digest| digest));
            from = to;
        }
        debug_assert_eq!(from, payload.len(), "the pieces are the whole payload");
        if is_copied {
            return Some(payload);
        }
        self.payloads.push_back(Payload::Here(payload));
        None
    }

    /// The output in order, up to the first payload that is lent.
    pub(crate) fn slices(&self) -> Slices<'_> {
        Slices(self.pieces())
    }

    /// The output in order, up to the first payload that has yet to come.
    pub(crate) fn pieces(&self) -> Pieces<'_> {
        Pieces { bytes: &self.bytes[self.start..], segments: self.segments.iter(), payloads: self.payloads.iter() }
    }

    /// `count` bytes were sent.
    pub(crate) fn advance(&mut self, mut count: usize, pool: &mut Pool) -> Freed {
        let mut freed = Freed::default();
        while count > 0 {
            let Some(segment) = self.segments.front_mut() else { break };
            let (length, ends) = match segment {
                Segment::Bytes(length) => (*length, false),
                Segment::Payload { from, to, ends } => (*to - *from, *ends),
            };
            let sent = count.min(length);
            count -= sent;
            match segment {
                Segment::Bytes(length) => {
                    *length -= sent;
                    self.start += sent;
                    self.waiting -= sent;
                }
                Segment::Payload { from, .. } => *from += sent,
            }
            if sent == length {
                self.segments.pop_front();
                if ends {
                    self.free_payload(pool, &mut freed);
                }
            }
        }
        self.compact();
        freed
    }

    /// Nothing of it will be sent.
    pub(crate) fn clear(&mut self, pool: &mut Pool) -> Freed {
        let mut freed = Freed::default();
        while !self.payloads.is_empty() {
            self.free_payload(pool, &mut freed);
        }
        self.segments.clear();
        self.bytes.clear();
        (self.start, self.waiting) = (0, 0);
        freed
    }

    fn free_payload(&mut self, pool: &mut Pool, freed: &mut Freed) {
        let Some(payload) = self.payloads.pop_front() else { return };
        self.first += 1;
        freed.bytes += payload.bytes() as u64;
        match payload {
            Payload::Here(buffer) => pool.give(buffer),
            Payload::Lent { .. } => freed.loans += 1,
            Payload::Awaited { .. } => {}
        }
    }

    fn compact(&mut self) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.start = 0;
            self.bytes.shrink_to(CAPACITY_MAX);
        } else if self.start > SLACK && self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }
}

/// The output of a connection, as slices in order.
#[derive(Clone, Debug)]
pub struct Slices<'a>(Pieces<'a>);

impl Slices<'_> {
    /// Of a connection that is not there.
    pub(crate) fn none() -> Self {
        Slices(Pieces::none())
    }
}

impl Pieces<'_> {
    /// Of a connection that is not there.
    pub(crate) fn none() -> Self {
        Pieces { bytes: &[], segments: Default::default(), payloads: Default::default() }
    }
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self.0.next()? {
            Piece::Bytes(bytes) => Some(bytes),
            Piece::Lent { .. } => {
                *self = Slices::none();
                None
            }
        }
    }
}

/// The output of a connection, in order.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    bytes: &'a [u8],
    segments: std::collections::vec_deque::Iter<'a, Segment>,
    payloads: std::collections::vec_deque::Iter<'a, Payload>,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        match *self.segments.next()? {
            Segment::Bytes(count) => {
                let (now, rest) = self.bytes.split_at(count);
                self.bytes = rest;
                Some(Piece::Bytes(now))
            }
            Segment::Payload { from, to, ends } => {
                let payload = self.payloads.clone().next()?;
                if ends {
                    self.payloads.next();
                }
                match payload {
                    Payload::Here(buffer) => Some(Piece::Bytes(&buffer[from..to])),
                    Payload::Lent { range, .. } => Some(Piece::Lent { range: *range, from, to }),
                    Payload::Awaited { .. } => {
                        self.segments = Default::default();
                        None
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::{ControllerData, Digests};
    use crate::transfer::TargetRead;
    use proptest::prelude::*;

    fn data(mut read: TargetRead) -> impl Iterator<Item = Header> {
        std::iter::from_fn(move || read.next_data()).map(Header::ControllerData)
    }

    fn all(outgoing: &Outgoing) -> Vec<u8> {
        outgoing.slices().flatten().copied().collect()
    }

    proptest! {
        /// Whatever the socket takes at a time, the stream is the same and every buffer comes back
        /// once.
        #[test]
        fn a_stream_is_the_same_in_any_portions(
            lengths in prop::collection::vec(1u32..5000, 1..12),
            portions in prop::collection::vec(1usize..3000, 1..200),
            digest in any::<bool>(),
        ) {
            let framing = Framing { digests: Digests { header: digest, data: digest }, alignment: 0 };
            let (mut outgoing, mut expected, mut pool) = (Outgoing::default(), Vec::new(), Pool::new(1 << 20));
            let mut copied = 0;
            for (at, length) in lengths.iter().enumerate() {
                let payload: Vec<u8> = (0..*length).map(|byte| (byte as usize + at) as u8).collect();
                for header in data(TargetRead::new(at as u16, *length, 1024, false)) {
                    let Header::ControllerData(ControllerData { offset, length, .. }) = header else { unreachable!() };
                    framing.write(&header, &payload[offset as usize..(offset + length) as usize], &mut expected);
                }
                let pieces = data(TargetRead::new(at as u16, *length, 1024, false));
                copied += outgoing.push_data(framing, pieces, payload).map_or(0, |payload| payload.len() as u64);
            }
            prop_assert_eq!(all(&outgoing), expected.clone());
            let (mut sent, mut freed) = (Vec::new(), copied);
            for portion in portions.iter().cycle() {
                let now: Vec<u8> = outgoing.slices().flatten().copied().take(*portion).collect();
                freed += outgoing.advance(now.len(), &mut pool).bytes;
                sent.extend(now);
                if outgoing.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(sent, expected);
            prop_assert_eq!(freed, lengths.iter().map(|length| u64::from(*length)).sum::<u64>());
            prop_assert_eq!((outgoing.waiting_bytes(), outgoing.bytes.len()), (0, 0));
        }

        /// Lent data are sent as copied ones are, wherever the loan ends.
        #[test]
        fn loans_that_end_at_any_byte_leave_the_same_stream(
            lengths in prop::collection::vec((1u32..9, any::<bool>()), 1..12),
            end in any::<prop::sample::Index>(),
        ) {
            let framing = Framing::INITIAL;
            let (mut outgoing, mut expected, mut pool) = (Outgoing::default(), Vec::new(), Pool::new(1 << 20));
            let content = |range: BlockRange| -> Vec<u8> {
                (0..range.blocks * 512).map(|byte| (byte as u64 / 7 + range.start) as u8).collect()
            };
            let mut loans = 0;
            for (at, (blocks, is_lent)) in lengths.into_iter().enumerate() {
                let range = BlockRange { start: at as u64 * 10, blocks };
                let pieces = || data(TargetRead::new(at as u16, blocks * 512, 1 << 20, false));
                let header = pieces().next().expect("there are some");
                framing.write(&header, &content(range), &mut expected);
                if is_lent {
                    loans += 1;
                    outgoing.push_lent(framing, &header, range);
                    let [last, next] = [-1, 0].map(|from| BlockRange {
                        start: (range.start + u64::from(blocks)).saturating_add_signed(from),
                        blocks: 1,
                    });
                    let borrows = |wanted: BlockRange| outgoing.borrows(|lent| lent.overlaps(wanted));
                    prop_assert_eq!([last, next].map(borrows), [true, false]);
                } else {
                    let copied = outgoing.push_data(framing, pieces(), content(range)).is_some();
                    prop_assert_eq!(copied, blocks < 4);
                }
            }
            let end = end.index(expected.len() + 1);
            let sent = |outgoing: &Outgoing| -> Vec<u8> {
                outgoing.pieces().flat_map(|piece| match piece {
                    Piece::Bytes(bytes) => bytes.to_vec(),
                    Piece::Lent { range, from, to } => content(range)[from..to].to_vec(),
                }).collect()
            };
            prop_assert_eq!(sent(&outgoing), expected.clone());
            let before = outgoing.advance(end, &mut pool);
            prop_assert_eq!(sent(&outgoing), &expected[end..]);
            let ended: Vec<_> = outgoing.end_loans();
            prop_assert_eq!(before.loans as usize + ended.len(), loans);
            for (number, range, bytes) in ended {
                prop_assert!(outgoing.take_in(number, vec![0; bytes + 1]).is_err(), "of another length");
                let waiting = all(&outgoing);
                prop_assert!(waiting.len() < expected.len() - end && expected[end..].starts_with(&waiting));
                prop_assert_eq!(outgoing.take_in(number, content(range)), Ok(()));
                prop_assert!(outgoing.take_in(number, content(range)).is_err(), "it is there");
            }
            prop_assert_eq!(all(&outgoing), &expected[end..]);
        }
    }
}
