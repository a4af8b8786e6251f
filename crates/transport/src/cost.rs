//! The wire cost of a request: converts an offered load into a request rate.

use base::{Bytes, Operation};

/// Arguments of a read-modify-write: address, operand and expected value, 8 bytes each.
pub const MODIFY_REQUEST: Bytes = Bytes::new(24);

/// Wire bytes of one lone request in each direction of its two links, including control packets,
/// preambles and gaps. `up` is from host to switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCost {
    /// Requester to switch.
    pub requester_up: u64,
    /// Switch to requester.
    pub requester_down: u64,
    /// Target to switch.
    pub target_up: u64,
    /// Switch to target.
    pub target_down: u64,
}

/// The packets of one lone message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Train {
    /// Number of data packets.
    pub packets: u64,
    /// Wire bytes of the first packet; at least those of the others.
    pub first: u32,
    /// Wire bytes of each packet in between.
    pub middle: u32,
    /// Wire bytes of the last packet; equal to `first` for a single packet.
    pub last: u32,
    /// Number of acknowledgements.
    pub acknowledgements: u64,
    /// Wire bytes of each acknowledgement.
    pub acknowledgement: u32,
}

impl Train {
    /// Splits a message of `bytes` into packets of at most `payload` that take `wire(payload,
    /// is_first)` bytes, each acknowledged by `acknowledgement` bytes. `bytes` must not be zero.
    pub fn new(bytes: Bytes, payload: Bytes, wire: impl Fn(u32, bool) -> u32, acknowledgement: u32) -> Train {
        let packets = bytes.count().div_ceil(payload.count());
        let full = payload.count() as u32;
        let last = (bytes.count() - (packets - 1) * payload.count()) as u32;
        Train {
            packets,
            first: wire(if packets == 1 { last } else { full }, true),
            middle: wire(full, false),
            last: wire(last, packets == 1),
            acknowledgements: packets,
            acknowledgement,
        }
    }
    /// Returns the wire bytes of all data packets.
    pub fn data_bytes(&self) -> u64 {
        match self.packets {
            1 => u64::from(self.first),
            count => u64::from(self.first) + (count - 2) * u64::from(self.middle) + u64::from(self.last),
        }
    }
    /// Returns the wire bytes of all acknowledgements.
    pub fn acknowledgement_bytes(&self) -> u64 {
        self.acknowledgements * u64::from(self.acknowledgement)
    }
}

/// The role of a message in its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Data to the target, without an answer.
    Write,
    /// A request for data.
    Ask,
    /// The requested data.
    Answer,
}

impl WireCost {
    /// Returns the cost of a request made of messages. A read's request is `read_request` bytes
    /// long, a read-modify-write's [`MODIFY_REQUEST`]; `train` returns a message's packets.
    pub fn of_messages(
        operation: Operation,
        bytes: Bytes,
        read_request: Bytes,
        train: impl Fn(Bytes) -> Train,
    ) -> WireCost {
        WireCost::of_parts(operation, bytes, read_request, |_, bytes| train(bytes))
    }
    /// Returns the cost like [`of_messages`](WireCost::of_messages), for designs that treat the
    /// parts of a request differently.
    pub fn of_parts(
        operation: Operation,
        bytes: Bytes,
        read_request: Bytes,
        train: impl Fn(Part, Bytes) -> Train,
    ) -> WireCost {
        let mut cost = WireCost::default();
        match operation {
            Operation::Write => cost.add_to_target(&train(Part::Write, bytes)),
            Operation::Read => {
                cost.add_to_target(&train(Part::Ask, read_request));
                cost.add_to_requester(&train(Part::Answer, bytes));
            }
            Operation::ReadModifyWrite => {
                cost.add_to_target(&train(Part::Ask, MODIFY_REQUEST));
                cost.add_to_requester(&train(Part::Answer, bytes));
            }
        }
        cost
    }
    fn add_to_target(&mut self, train: &Train) {
        self.requester_up += train.data_bytes();
        self.target_down += train.data_bytes();
        self.target_up += train.acknowledgement_bytes();
        self.requester_down += train.acknowledgement_bytes();
    }
    fn add_to_requester(&mut self, train: &Train) {
        self.target_up += train.data_bytes();
        self.requester_down += train.data_bytes();
        self.requester_up += train.acknowledgement_bytes();
        self.target_down += train.acknowledgement_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::tcp_wire;

    #[test]
    fn a_message_one_byte_past_a_segment_takes_a_second_packet() {
        let train = |bytes| Train::new(Bytes::new(bytes), Bytes::new(1460), |payload, _| tcp_wire(payload), 84);
        assert_eq!((train(1460).packets, train(1460).data_bytes()), (1, 1538));
        assert_eq!((train(1461).packets, train(1461).data_bytes()), (2, 1538 + 84));
        assert_eq!(train(1461).acknowledgement_bytes(), 168);
    }
}
