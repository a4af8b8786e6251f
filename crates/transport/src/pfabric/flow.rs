//! One outgoing message, with any rate control.

use super::minimal::Minimal;
use super::over_dctcp::OverDctcp;
use crate::config::{Pfabric, RateControl};
use crate::{Message, Packet};
use base::{Bytes, NodeId, Time};
use std::collections::VecDeque;

/// The next transmission of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Send {
    /// Payload of the message.
    Data {
        /// Offset in the message.
        offset: u64,
        /// Length in bytes.
        payload: u32,
        /// Whether they were sent before.
        again: bool,
    },
    /// A bare header that requests an acknowledgement.
    Probe,
}

/// The rate control of a flow.
#[derive(Clone, Debug)]
enum Control {
    /// pFabric's own window.
    Minimal(Minimal),
    /// A connection of DCTCP.
    Dctcp(Box<OverDctcp>),
}

/// A message with its order among the flows and its rate control.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub message: Message,
    pub sequence: u32,
    /// Number in order of creation; never reused, so that stale list entries are detected.
    pub order: u64,
    /// The remaining bytes under which this flow is listed as able to send.
    pub listed: Option<u64>,
    control: Control,
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
        Flow { message, sequence: 0, order: 0, listed: None, control: Control::Minimal(Minimal::default()) }
    }
}

impl Flow {
    /// Restarts with another message, keeping allocations.
    pub(super) fn begin(&mut self, message: &Message, sequence: u32, order: u64, config: &Pfabric) {
        (self.message, self.sequence, self.order, self.listed) = (*message, sequence, order, None);
        let bytes = message.bytes;
        match (&config.control, &mut self.control) {
            (RateControl::Minimal { probe_after }, Control::Minimal(flow)) => {
                flow.begin(bytes.count(), config.window, *probe_after);
            }
            (RateControl::Minimal { .. }, Control::Dctcp(_)) => unreachable!("a host keeps its rate control"),
            (RateControl::Dctcp(dctcp), Control::Dctcp(flow)) => **flow = OverDctcp::new(dctcp, message.id, bytes),
            (RateControl::Dctcp(dctcp), control) => {
                *control = Control::Dctcp(Box::new(OverDctcp::new(dctcp, message.id, bytes)));
            }
        }
    }
    /// Returns the number of unacknowledged bytes.
    pub(super) fn remaining(&self) -> u64 {
        match &self.control {
            Control::Minimal(flow) => flow.remaining(),
            Control::Dctcp(flow) => flow.remaining(),
        }
    }
    pub(super) fn can_send(&self) -> bool {
        match &self.control {
            Control::Minimal(flow) => flow.can_send(),
            Control::Dctcp(flow) => flow.can_send(),
        }
    }
    /// Returns the next transmission; call only if [`can_send`](Self::can_send).
    pub(super) fn next_send(&mut self, now: Time, config: &Pfabric) -> Send {
        match &mut self.control {
            Control::Minimal(flow) => flow.next_send(now, config),
            Control::Dctcp(flow) => flow.next_send(now),
        }
    }
    /// Handles an acknowledgement of this flow.
    pub(super) fn acknowledge(&mut self, now: Time, packet: &Packet, config: &Pfabric) {
        match &mut self.control {
            Control::Minimal(flow) => flow.acknowledge(now, packet.offset, packet.value, config),
            Control::Dctcp(flow) => flow.acknowledge(now, packet.offset, packet.marked),
        }
    }
    /// Returns when [`time_out`](Self::time_out) is due.
    pub(super) fn deadline(&self) -> Option<Time> {
        match &self.control {
            Control::Minimal(flow) => flow.deadline(),
            Control::Dctcp(flow) => flow.deadline(),
        }
    }
    /// Handles a timeout.
    pub(super) fn time_out(&mut self) {
        match &mut self.control {
            Control::Minimal(flow) => flow.time_out(),
            Control::Dctcp(flow) => flow.time_out(),
        }
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
    /// Returns the number of the next flow.
    pub(super) fn next_sequence(&self) -> u32 {
        self.first.wrapping_add(self.slots.len() as u32)
    }
    /// Adds the next flow, which is in `slot`.
    pub(super) fn open(&mut self, slot: u32) {
        self.slots.push_back(Some(slot));
    }
    /// Returns the slot of flow `sequence`, if it is open.
    pub(super) fn slot_of(&self, sequence: u32) -> Option<u32> {
        *self.slots.get(sequence.wrapping_sub(self.first) as usize)?
    }
    /// Removes flow `sequence`, which has ended.
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
