//! What waits to be sent on one connection: headers as bytes, data as the buffers that backends filled, or where backends keep them.

use crate::pdu::{Framing, Header, PduKind};
use crate::pool::Pool;
use crate::target::{BackendId, BlockRange, IoStatus, WAITING_MAX};
use std::collections::VecDeque;

/// Sent bytes that are kept in front, or as many as wait if these are more, before the rest is moved down.
const SLACK: usize = 16 << 10;

/// Room that a connection keeps while nothing waits: for as much as reads that are carried out at once add at most, and what is around their data.
const CAPACITY_MAX: usize = WAITING_MAX + (32 << 10);

/// More than the header before and the digest and the response behind the data of a read.
const HEADERS_MAX: usize = 256;

/// A piece of the stream.
#[derive(Clone, Copy, Debug)]
enum Segment {
    /// So many of `bytes`.
    Bytes(usize),
    /// A part of the first payload that no earlier segment ends.
    Payload { from: usize, to: usize, ends: bool },
    /// A part of what the lender keeps there.
    Lent { range: BlockRange, from: usize, to: usize },
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

/// What waits to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    /// Of `bytes`, how many were sent.
    start: usize,
    segments: VecDeque<Segment>,
    payloads: VecDeque<Vec<u8>>,
    /// Bytes of headers, responses, small data and what is lent that wait.
    waiting: usize,
    /// How many of them are lent, and by whom: one backend at a time.
    lent: usize,
    lender: BackendId,
}

impl Outgoing {
    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Bytes that wait, payloads apart: what a host makes us keep by sending and not reading.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting
    }

    /// Of these, those that are lent.
    pub(crate) fn lent_bytes(&self) -> usize {
        self.lent
    }

    /// The others.
    pub(crate) fn copied_bytes(&self) -> usize {
        self.waiting - self.lent
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

    /// Room for `more` bytes. Grows by doubling, and not beyond what is kept: each of many connections has its own.
    fn make_room(&mut self, more: usize) {
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        let grown = (capacity * 2).clamp(SLACK, CAPACITY_MAX);
        if capacity - length < more && grown >= length + more {
            self.bytes.reserve_exact(grown - length);
        }
    }

    /// A PDU with the bytes that `lender` keeps in `range`, as many as the header says, without a digest.
    pub(crate) fn push_lent(&mut self, framing: Framing, header: &Header, lender: BackendId, range: BlockRange) {
        debug_assert!(self.may_borrow_from(lender), "one lends at a time");
        self.push(framing, header);
        let to = header.data_length() as usize;
        self.segments.push_back(Segment::Lent { range, from: 0, to });
        (self.waiting, self.lent, self.lender) = (self.waiting + to, self.lent + to, lender);
    }

    /// Whether nobody else lends.
    pub(crate) fn may_borrow_from(&self, backend: BackendId) -> bool {
        self.lent == 0 || self.lender == backend
    }

    /// Who lends what waits, if anybody does.
    pub(crate) fn lender(&self) -> Option<BackendId> {
        (self.lent > 0).then_some(self.lender)
    }

    /// Whether a block of `range` of `backend` waits to be sent from where it lies.
    pub(crate) fn borrows(&self, backend: BackendId, range: BlockRange) -> bool {
        let is_hit = |segment: &Segment| matches!(segment, Segment::Lent { range: lent, .. } if lent.overlaps(range));
        self.lender() == Some(backend) && self.segments.iter().any(is_hit)
    }

    /// Copies all that is lent: `read` appends the bytes of a range. False when it fails, which leaves nothing that can be sent.
    pub(crate) fn end_loans(&mut self, mut read: impl FnMut(BlockRange, &mut Vec<u8>) -> Option<IoStatus>) -> bool {
        let room = Vec::with_capacity(self.waiting);
        let old = std::mem::replace(&mut self.bytes, room);
        let mut old = &old[self.start..];
        (self.start, self.waiting, self.lent) = (0, 0, 0);
        for segment in std::mem::take(&mut self.segments) {
            match segment {
                Segment::Bytes(count) => {
                    let (now, rest) = old.split_at(count);
                    self.push_bytes(now);
                    old = rest;
                }
                Segment::Payload { .. } => self.segments.push_back(segment),
                Segment::Lent { range, from, to } => {
                    let begin = self.bytes.len();
                    if read(range, &mut self.bytes) != Some(IoStatus::Done) || self.bytes.len() < begin + to {
                        return false;
                    }
                    self.bytes.truncate(begin + to);
                    self.bytes.drain(begin..begin + from);
                    self.count_bytes(to - from);
                }
            }
        }
        true
    }

    /// So many were put behind `bytes`.
    fn count_bytes(&mut self, added: usize) {
        self.waiting += added;
        match self.segments.back_mut() {
            Some(Segment::Bytes(count)) => *count += added,
            _ => self.segments.push_back(Segment::Bytes(added)),
        }
    }

    /// A PDU whose data `fill` appends. Nothing of it stays unless the status is [`IoStatus::Done`].
    pub(crate) fn push_filled(
        &mut self,
        framing: Framing,
        header: &Header,
        fill: impl FnOnce(&mut Vec<u8>) -> Option<IoStatus>,
    ) -> Option<IoStatus> {
        let begin = self.bytes.len();
        self.make_room(header.data_length() as usize + HEADERS_MAX);
        framing.append_header(header, &mut self.bytes);
        let data = self.bytes.len();
        let status = fill(&mut self.bytes);
        if status != Some(IoStatus::Done) {
            self.bytes.truncate(begin);
            return status;
        }
        // Whatever a backend does, the stream stays one.
        self.bytes.resize(data + header.data_length() as usize, 0);
        let trailer = framing.trailer(header.kind(), &self.bytes[data..]);
        self.bytes.extend(trailer.into_iter().flatten());
        self.count_bytes(self.bytes.len() - begin);
        status
    }

    /// PDUs with the data of one command, in order; every header says how long its piece is, together they are `payload`.
    pub(crate) fn push_data(&mut self, framing: Framing, pieces: impl Iterator<Item = Header>, payload: Vec<u8>) {
        let mut from = 0;
        for header in pieces {
            let to = from + header.data_length() as usize;
            self.push(framing, &header);
            self.segments.push_back(Segment::Payload { from, to, ends: to == payload.len() });
            let trailer = framing.trailer(PduKind::ControllerData, &payload[from..to]);
            self.push_bytes(trailer.as_ref().map_or(&[], |digest| digest));
            from = to;
        }
        debug_assert_eq!(from, payload.len(), "the pieces are the whole payload");
        self.payloads.push_back(payload);
    }

    /// All that waits, in order. Nothing of it may be lent.
    pub(crate) fn slices(&self) -> Slices<'_> {
        Slices(self.pieces())
    }

    /// All that waits, in order.
    pub(crate) fn pieces(&self) -> Pieces<'_> {
        Pieces { bytes: &self.bytes[self.start..], segments: self.segments.iter(), payloads: self.payloads.iter() }
    }

    /// `count` bytes were sent. Returns how many bytes of payload buffers went back to the pool.
    pub(crate) fn advance(&mut self, mut count: usize, pool: &mut Pool) -> u64 {
        let mut freed = 0;
        while count > 0 {
            let Some(segment) = self.segments.front_mut() else { break };
            let (length, ends) = match segment {
                Segment::Bytes(length) => (*length, false),
                Segment::Payload { from, to, ends } => (*to - *from, *ends),
                Segment::Lent { from, to, .. } => (*to - *from, false),
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
                Segment::Lent { from, .. } => {
                    *from += sent;
                    self.waiting -= sent;
                    self.lent -= sent;
                }
            }
            if sent == length {
                self.segments.pop_front();
                freed += if ends { self.free_payload(pool) } else { 0 };
            }
        }
        self.compact();
        freed
    }

    /// Nothing of it will be sent. Returns as [`Self::advance`].
    pub(crate) fn clear(&mut self, pool: &mut Pool) -> u64 {
        let mut freed = 0;
        while !self.payloads.is_empty() {
            freed += self.free_payload(pool);
        }
        self.segments.clear();
        self.bytes.clear();
        (self.start, self.waiting, self.lent) = (0, 0, 0);
        freed
    }

    fn free_payload(&mut self, pool: &mut Pool) -> u64 {
        let Some(payload) = self.payloads.pop_front() else { return 0 };
        let length = payload.len() as u64;
        pool.give(payload);
        length
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

/// What waits on a connection, as slices in the order of the stream.
#[derive(Clone, Debug)]
pub struct Slices<'a>(Pieces<'a>);

impl Slices<'_> {
    /// Of a connection that is not there.
    pub(crate) fn none() -> Self {
        Slices(Pieces { bytes: &[], segments: Default::default(), payloads: Default::default() })
    }
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self.0.next()? {
            Piece::Bytes(bytes) => Some(bytes),
            Piece::Lent { .. } => unreachable!("loans end with the call that made them"),
        }
    }
}

/// What waits on a connection, in the order of the stream.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    bytes: &'a [u8],
    segments: std::collections::vec_deque::Iter<'a, Segment>,
    payloads: std::collections::vec_deque::Iter<'a, Vec<u8>>,
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
                Some(Piece::Bytes(&payload[from..to]))
            }
            Segment::Lent { range, from, to } => Some(Piece::Lent { range, from, to }),
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
        /// Whatever the socket takes at a time, the stream is the same and every buffer comes back once.
        #[test]
        fn a_stream_is_the_same_in_any_portions(
            lengths in prop::collection::vec(1u32..5000, 1..12),
            portions in prop::collection::vec(1usize..3000, 1..200),
            digest in any::<bool>(),
        ) {
            let framing = Framing { digests: Digests { header: digest, data: digest }, alignment: 0 };
            let (mut outgoing, mut expected, mut pool) = (Outgoing::default(), Vec::new(), Pool::new(1 << 20));
            for (at, length) in lengths.iter().enumerate() {
                let payload: Vec<u8> = (0..*length).map(|byte| (byte as usize + at) as u8).collect();
                for header in data(TargetRead::new(at as u16, *length, 1024, false)) {
                    let Header::ControllerData(ControllerData { offset, length, .. }) = header else { unreachable!() };
                    framing.write(&header, &payload[offset as usize..(offset + length) as usize], &mut expected);
                }
                outgoing.push_data(framing, data(TargetRead::new(at as u16, *length, 1024, false)), payload);
            }
            prop_assert_eq!(all(&outgoing), expected.clone());
            let (mut sent, mut freed) = (Vec::new(), 0);
            for portion in portions.iter().cycle() {
                let now: Vec<u8> = outgoing.slices().flatten().copied().take(*portion).collect();
                freed += outgoing.advance(now.len(), &mut pool);
                sent.extend(now);
                if outgoing.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(sent, expected);
            prop_assert_eq!(freed, lengths.iter().map(|length| u64::from(*length)).sum::<u64>());
            prop_assert_eq!((outgoing.waiting_bytes(), outgoing.bytes.len()), (0, 0));
        }

        /// What is lent is sent as what is copied, wherever the loan ends.
        #[test]
        fn loans_that_end_at_any_byte_leave_the_same_stream(
            lengths in prop::collection::vec((1u32..9, any::<bool>()), 1..12),
            end in any::<prop::sample::Index>(),
        ) {
            let framing = Framing::INITIAL;
            let (mut outgoing, mut expected, mut pool) = (Outgoing::default(), Vec::new(), Pool::new(1 << 20));
            let lender = BackendId(3);
            let fill = |range: BlockRange| (0..range.blocks * 512).map(move |byte| (byte as u64 / 7 + range.start) as u8);
            for (at, (blocks, is_lent)) in lengths.into_iter().enumerate() {
                let range = BlockRange { start: at as u64 * 10, blocks };
                let header = data(TargetRead::new(at as u16, blocks * 512, 1 << 20, false)).next().expect("there are some");
                framing.write(&header, &fill(range).collect::<Vec<u8>>(), &mut expected);
                if is_lent {
                    outgoing.push_lent(framing, &header, lender, range);
                    let [last, next] = [-1, 0].map(|from| BlockRange {
                        start: (range.start + u64::from(blocks)).saturating_add_signed(from),
                        blocks: 1,
                    });
                    prop_assert_eq!([last, next].map(|range| outgoing.borrows(lender, range)), [true, false]);
                    prop_assert!(!outgoing.borrows(BackendId(4), range) && !outgoing.may_borrow_from(BackendId(4)));
                } else {
                    let status = outgoing.push_filled(framing, &header, |out| {
                        out.extend(fill(range));
                        Some(IoStatus::Done)
                    });
                    prop_assert_eq!(status, Some(IoStatus::Done));
                }
            }
            let end = end.index(expected.len() + 1);
            let pieces = |outgoing: &Outgoing| -> Vec<u8> {
                outgoing.pieces().flat_map(|piece| match piece {
                    Piece::Bytes(bytes) => bytes.to_vec(),
                    Piece::Lent { range, from, to } => fill(range).collect::<Vec<u8>>()[from..to].to_vec(),
                }).collect()
            };
            prop_assert_eq!(pieces(&outgoing), expected.clone());
            outgoing.advance(end, &mut pool);
            prop_assert_eq!(pieces(&outgoing), &expected[end..]);
            let read = |range, bytes: &mut Vec<u8>| {
                bytes.extend(fill(range));
                Some(IoStatus::Done)
            };
            prop_assert!(outgoing.end_loans(read));
            prop_assert_eq!((outgoing.lent_bytes(), outgoing.waiting_bytes()), (0, expected.len() - end));
            prop_assert_eq!(all(&outgoing), &expected[end..]);
        }
    }
}
