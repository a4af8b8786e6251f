//! pFabric's priorities over DCTCP's rate control (EDM, ASPLOS'25, 4.3): each flow is a separate
//! connection.

use super::flow::Send;
use crate::config::Dctcp;
use crate::dctcp::Sender;
use base::{Bytes, Time};

/// A message as the whole stream of a new connection.
#[derive(Clone, Debug)]
pub(super) struct OverDctcp {
    sender: Sender,
    /// Unacknowledged bytes, which are the last ones: acknowledgements of TCP are cumulative.
    remaining: u64,
    bytes: u64,
}

impl OverDctcp {
    pub(super) fn new(config: &Dctcp, message: u32, bytes: Bytes) -> OverDctcp {
        let mut sender = Sender::new(config);
        sender.submit(message, bytes.count());
        OverDctcp { sender, remaining: bytes.count(), bytes: bytes.count() }
    }
    /// Returns the number of unacknowledged bytes.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }
    pub(super) fn can_send(&self) -> bool {
        self.sender.can_send()
    }
    /// Returns the next transmission; call only if [`can_send`](Self::can_send).
    pub(super) fn next_send(&mut self, now: Time) -> Send {
        let segment = self.sender.next_segment(now).expect("the sender says that it can send");
        Send::Data { offset: segment.offset, payload: segment.payload, again: segment.again }
    }
    /// Handles an acknowledgement of everything before `offset`; `marked` if the acknowledged
    /// packet was marked.
    pub(super) fn acknowledge(&mut self, now: Time, offset: u64, marked: bool) {
        self.remaining = self.remaining.min(self.bytes - offset);
        self.sender.acknowledge(now, offset, marked);
    }
    /// Returns when the retransmission timer fires.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.sender.deadline()
    }
    pub(super) fn time_out(&mut self) {
        self.sender.time_out();
    }
}
