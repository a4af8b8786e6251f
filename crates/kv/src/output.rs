//! Bytes on their way to a client. Long values are not copied: they are parts of their own.

use crate::socket::Socket;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

/// Bytes from which a value is a part of its own: below it, copying costs less than a part.
pub const PART_BYTES: usize = 16 << 10;
/// Parts that one call gives to the socket.
const SLICES: usize = 16;

/// What waits for a socket, in its order.
#[derive(Debug, Default)]
pub struct Output {
    /// Parts before `last`, none of them empty.
    parts: VecDeque<Bytes>,
    parts_bytes: usize,
    last: BytesMut,
}

impl Output {
    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.parts_bytes + self.last.len()
    }
    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes of memory that it has.
    pub fn held(&self) -> usize {
        self.parts_bytes + self.last.capacity()
    }
    /// Where short texts are appended.
    pub fn text(&mut self) -> &mut BytesMut {
        &mut self.last
    }
    /// Appends a value. A long one is kept as it is, and with it all that its memory holds.
    pub fn append(&mut self, value: Bytes) {
        if value.len() < PART_BYTES {
            return self.last.extend_from_slice(&value);
        }
        let before = self.last.split().freeze();
        self.parts_bytes += before.len() + value.len();
        self.parts.extend([before, value].into_iter().filter(|part| !part.is_empty()));
    }
    /// Gives back memory of an empty one that has more than `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        if self.is_empty() && self.last.capacity() > most {
            self.last = BytesMut::new();
        }
    }

    /// Gives some of it to a socket. Returns how many bytes, of at least one that wait.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn write(&mut self, socket: &mut Socket) -> io::Result<usize> {
        let count = if self.parts.is_empty() {
            socket.write(&self.last)?
        } else {
            let slices: Vec<IoSlice<'_>> = self.all().take(SLICES).map(IoSlice::new).collect();
            socket.write_vectored(&slices)?
        };
        self.advance(count);
        Ok(count)
    }

    /// What waits, in its order.
    fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|part| &part[..]).chain([&self.last[..]])
    }

    fn advance(&mut self, mut count: usize) {
        while let Some(first) = self.parts.front_mut().filter(|_| count > 0) {
            let taken = count.min(first.len());
            first.advance(taken);
            if first.is_empty() {
                self.parts.pop_front();
            }
            self.parts_bytes -= taken;
            count -= taken;
        }
        self.last.advance(count);
    }

    /// All of it, for tests.
    #[cfg(test)]
    pub fn bytes(&self) -> Vec<u8> {
        self.all().collect::<Vec<_>>().concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_is_copied_below_the_limit_and_kept_from_it_on() {
        for (length, is_kept) in [(PART_BYTES - 1, false), (PART_BYTES, true)] {
            let value = Bytes::from(vec![1; length]);
            let mut output = Output::default();
            output.append(value.clone());
            let is_the_same = output.parts.front().is_some_and(|part| part.as_ptr() == value.as_ptr());
            assert_eq!((is_the_same, output.len()), (is_kept, length));
        }
    }

    proptest! {
        #[test]
        fn it_is_the_bytes_in_their_order_whatever_is_taken_when(
            steps in prop::collection::vec((any::<bool>(), 0..3 * PART_BYTES, 0..5 * PART_BYTES), 1..20),
        ) {
            let (mut output, mut expected) = (Output::default(), Vec::new());
            for (number, (is_text, length, taken)) in (0u8..).zip(steps) {
                let bytes: Vec<u8> = (0..length).map(|at| number ^ at as u8).collect();
                expected.extend_from_slice(&bytes);
                if is_text { output.text().extend_from_slice(&bytes) } else { output.append(bytes.into()) }
                let taken = taken.min(output.len());
                output.advance(taken);
                expected.drain(..taken);
                prop_assert_eq!(output.len(), expected.len());
                prop_assert_eq!(output.is_empty(), expected.is_empty());
                prop_assert!(output.held() >= output.len());
                prop_assert!(output.bytes() == expected);
            }
        }
    }
}
