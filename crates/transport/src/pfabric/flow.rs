//! One message on its way out.

use crate::Message;
use crate::common::Ranges;
use base::{Bytes, NodeId};
use std::collections::VecDeque;

/// What a flow sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Send {
    /// Payload of the message.
    Data {
        /// In the message.
        offset: u64,
        /// Bytes.
        payload: u32,
        /// Whether they were sent before.
        again: bool,
    },
    /// A bare header that asks for an acknowledgement.
    Probe,
}

/// How a flow treats losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// Sends as its window allows.
    #[default]
    Sending,
    /// Timed out too often: sends one probe a timeout until something is acknowledged.
    Probing {
        /// A probe may be sent now.
        due: bool,
    },
}

/// A flow's window, what is acknowledged, and where it is listed.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub message: Message,
    pub sequence: u32,
    /// Flows are numbered as they are made; never used again, so that stale list entries are known.
    pub order: u64,
    /// The remaining bytes under which this flow is listed as able to send.
    pub listed: Option<u64>,
    acknowledged: Ranges,
    acknowledged_bytes: u64,
    /// Everything not acknowledged from here on may be sent.
    cursor: u64,
    /// The end of what was ever sent.
    sent: u64,
    /// Packets below the cursor that were sent since the last timeout and not acknowledged.
    in_flight: u32,
    window: u32,
    timeouts: u32,
    mode: Mode,
}

impl Default for Flow {
    /// An empty slot.
    fn default() -> Flow {
        let message = Message {
            id: 0,
            source: NodeId(0),
            target: NodeId(0),
            bytes: Bytes::ZERO,
            is_answer: false,
            expects_answer: false,
        };
        Flow {
            message,
            sequence: 0,
            order: 0,
            listed: None,
            acknowledged: Ranges::new(),
            acknowledged_bytes: 0,
            cursor: 0,
            sent: 0,
            in_flight: 0,
            window: 0,
            timeouts: 0,
            mode: Mode::Sending,
        }
    }
}

impl Flow {
    /// Starts over with another message, keeping allocations.
    pub(super) fn begin(&mut self, message: &Message, sequence: u32, order: u64, window: u32) {
        let mut acknowledged = std::mem::take(&mut self.acknowledged);
        acknowledged.clear();
        *self = Flow { message: *message, sequence, order, window, acknowledged, ..Flow::default() };
    }
    /// Bytes not acknowledged.
    pub(super) fn remaining(&self) -> u64 {
        self.message.bytes.count() - self.acknowledged_bytes
    }
    /// Packets sent and neither acknowledged nor taken as lost.
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }
    pub(super) fn can_send(&self) -> bool {
        match self.mode {
            Mode::Probing { due } => due,
            Mode::Sending => self.in_flight < self.window && self.next_offset() < self.message.bytes.count(),
        }
    }
    /// What to send; only when [`can_send`](Self::can_send).
    pub(super) fn next_send(&mut self, mss: u64) -> Send {
        if let Mode::Probing { due } = &mut self.mode {
            *due = false;
            return Send::Probe;
        }
        let offset = self.next_offset();
        let payload = mss.min(self.message.bytes.count() - offset) as u32;
        let again = offset < self.sent;
        self.cursor = offset + u64::from(payload);
        self.sent = self.sent.max(self.cursor);
        self.in_flight += 1;
        Send::Data { offset, payload, again }
    }
    /// `bytes` from `offset` on have arrived; 0 bytes answer a probe.
    ///
    /// An acknowledgement from the cursor on answers a packet of before the last timeout, which
    /// `in_flight` no longer counts.
    pub(super) fn acknowledge(&mut self, offset: u64, bytes: u64, window_max: u32) {
        let end = offset.saturating_add(bytes).min(self.message.bytes.count());
        let new = self.acknowledged.insert(offset, end);
        self.acknowledged_bytes += new;
        self.timeouts = 0;
        if let Mode::Probing { .. } = self.mode {
            self.mode = Mode::Sending;
        } else if new > 0 {
            self.window = (self.window + 1).min(window_max);
            self.in_flight -= u32::from(offset < self.cursor);
        }
    }
    /// Nothing was heard for a timeout: all that is under way counts as lost, and the flow starts
    /// over with a window of one packet, as TCP does (paper, 4.2).
    pub(super) fn time_out(&mut self, probe_after: u32) {
        self.timeouts += 1;
        self.window = 1;
        self.in_flight = 0;
        self.cursor = 0;
        if self.timeouts >= probe_after {
            self.mode = Mode::Probing { due: true };
        }
    }

    fn next_offset(&self) -> u64 {
        self.acknowledged.contiguous_from(self.cursor)
    }
}

/// The open flows to one peer, found by their sequence numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    /// Sequence number of `slots[0]`.
    first: u32,
    slots: VecDeque<Option<u32>>,
}

impl Outbox {
    /// The number of the next flow.
    pub(super) fn next_sequence(&self) -> u32 {
        self.first.wrapping_add(self.slots.len() as u32)
    }
    /// The next flow is in `slot`.
    pub(super) fn open(&mut self, slot: u32) {
        self.slots.push_back(Some(slot));
    }
    /// Where flow `sequence` is, if it is open.
    pub(super) fn slot_of(&self, sequence: u32) -> Option<u32> {
        *self.slots.get(sequence.wrapping_sub(self.first) as usize)?
    }
    /// Flow `sequence` has ended.
    pub(super) fn close(&mut self, sequence: u32) {
        if let Some(slot) = self.slots.get_mut(sequence.wrapping_sub(self.first) as usize) {
            *slot = None;
        }
        while self.slots.front().is_some_and(Option::is_none) {
            self.slots.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(bytes: u64) -> Flow {
        let mut flow = Flow::default();
        let (source, target) = (NodeId(0), NodeId(1));
        flow.begin(
            &Message { id: 3, source, target, bytes: Bytes::new(bytes), is_answer: false, expects_answer: false },
            0,
            0,
            2,
        );
        flow
    }

    #[test]
    fn a_timeout_sends_only_what_is_not_acknowledged() {
        let mut flow = flow(30);
        assert_eq!(flow.next_send(10), Send::Data { offset: 0, payload: 10, again: false });
        assert_eq!(flow.next_send(10), Send::Data { offset: 10, payload: 10, again: false });
        assert!(!flow.can_send());
        flow.acknowledge(10, 10, 2);
        assert_eq!(flow.remaining(), 20);
        flow.time_out(5);
        assert_eq!(flow.next_send(10), Send::Data { offset: 0, payload: 10, again: true });
        assert!(!flow.can_send(), "a window of one after a timeout");
        flow.acknowledge(0, 10, 2);
        assert_eq!(flow.next_send(10), Send::Data { offset: 20, payload: 10, again: false });
        assert_eq!(flow.in_flight(), 1);
    }

    #[test]
    fn an_acknowledgement_of_before_the_timeout_leaves_resent_packets_in_flight() {
        let mut flow = flow(30);
        flow.next_send(10);
        flow.next_send(10);
        flow.time_out(5);
        assert_eq!(flow.next_send(10), Send::Data { offset: 0, payload: 10, again: true });
        flow.acknowledge(10, 10, 2);
        assert_eq!(flow.in_flight(), 1, "the packet at 0 is still out");
        flow.acknowledge(0, 10, 2);
        assert_eq!(flow.in_flight(), 0);
        assert!(flow.can_send());
    }

    #[test]
    fn after_timeouts_in_a_row_it_probes_and_then_starts_with_a_window_of_one() {
        let mut flow = flow(30);
        flow.next_send(10);
        flow.time_out(2);
        flow.next_send(10);
        flow.time_out(2);
        assert_eq!(flow.next_send(10), Send::Probe);
        assert!(!flow.can_send());
        flow.acknowledge(0, 0, 2);
        assert_eq!(flow.next_send(10), Send::Data { offset: 0, payload: 10, again: true });
        assert!(!flow.can_send());
    }
}
