//! pFabric's own rate control (SIGCOMM'13, 4.2): a fixed window, loss detection by a fixed timeout
//! alone, and probes after several timeouts.

use super::flow::Send;
use crate::common::Ranges;
use crate::config::Pfabric;
use base::Time;

/// The mode of a flow, which depends on losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    /// Sends as its window allows.
    #[default]
    Sending,
    /// Timed out too often: sends one probe per timeout until something is acknowledged.
    Probing {
        /// Whether a probe may be sent now.
        due: bool,
    },
}

/// A flow's window and acknowledged data.
#[derive(Clone, Debug, Default)]
pub(super) struct Minimal {
    /// Length of the message.
    bytes: u64,
    acknowledged: Ranges,
    acknowledged_bytes: u64,
    /// All unacknowledged data from here on may be sent.
    cursor: u64,
    /// Highest end of sent data.
    sent: u64,
    /// Packets below the cursor that were sent since the last timeout and not acknowledged.
    in_flight: u32,
    window: u32,
    timeouts: u32,
    /// Number of consecutive timeouts after which it probes.
    probe_after: u32,
    mode: Mode,
    deadline: Option<Time>,
}

impl Minimal {
    /// Restarts with a message of `bytes`, keeping allocations.
    pub(super) fn begin(&mut self, bytes: u64, window: u32, probe_after: u32) {
        let mut acknowledged = std::mem::take(&mut self.acknowledged);
        acknowledged.clear();
        *self = Minimal { bytes, window, probe_after, acknowledged, ..Minimal::default() };
    }
    /// Returns the number of unacknowledged bytes.
    pub(super) fn remaining(&self) -> u64 {
        self.bytes - self.acknowledged_bytes
    }
    /// Returns when all data in flight count as lost.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }
    pub(super) fn can_send(&self) -> bool {
        match self.mode {
            Mode::Probing { due } => due,
            Mode::Sending => self.in_flight < self.window && self.next_offset() < self.bytes,
        }
    }
    /// Returns the next transmission; call only if [`can_send`](Self::can_send).
    pub(super) fn next_send(&mut self, now: Time, config: &Pfabric) -> Send {
        self.deadline.get_or_insert(now + config.timeout);
        if let Mode::Probing { due } = &mut self.mode {
            *due = false;
            return Send::Probe;
        }
        let offset = self.next_offset();
        let payload = config.mss.count().min(self.bytes - offset) as u32;
        let again = offset < self.sent;
        self.cursor = offset + u64::from(payload);
        self.sent = self.sent.max(self.cursor);
        self.in_flight += 1;
        Send::Data { offset, payload, again }
    }
    /// Handles an acknowledgement of `bytes` from `offset` on; 0 bytes answer a probe.
    ///
    /// An acknowledgement from the cursor on answers a packet sent before the last timeout, which
    /// `in_flight` no longer counts.
    pub(super) fn acknowledge(&mut self, now: Time, offset: u64, bytes: u64, config: &Pfabric) {
        let end = offset.saturating_add(bytes).min(self.bytes);
        let new = self.acknowledged.insert(offset, end);
        self.acknowledged_bytes += new;
        self.timeouts = 0;
        if let Mode::Probing { .. } = self.mode {
            self.mode = Mode::Sending;
        } else if new > 0 {
            self.window = (self.window + 1).min(config.window);
            self.in_flight -= u32::from(offset < self.cursor);
        }
        self.deadline = (self.in_flight > 0).then_some(now + config.timeout);
    }
    /// Handles a timeout without any reception: all data in flight count as lost, and the flow
    /// restarts with a window of one packet, like TCP (paper, 4.2).
    pub(super) fn time_out(&mut self) {
        self.deadline = None;
        self.timeouts += 1;
        self.window = 1;
        self.in_flight = 0;
        self.cursor = 0;
        if self.timeouts >= self.probe_after {
            self.mode = Mode::Probing { due: true };
        }
    }

    fn next_offset(&self) -> u64 {
        self.acknowledged.contiguous_from(self.cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RateControl;
    use base::{Bytes, Span};

    const CONFIG: Pfabric = Pfabric {
        mss: Bytes::new(10),
        queue: Bytes::new(1_000),
        window: 2,
        timeout: Span::us(8),
        control: RateControl::Minimal { probe_after: 5 },
    };

    fn flow(bytes: u64) -> Minimal {
        let mut flow = Minimal::default();
        flow.begin(bytes, CONFIG.window, 2);
        flow
    }
    fn send(flow: &mut Minimal) -> Send {
        flow.next_send(Time::ZERO, &CONFIG)
    }
    fn acknowledge(flow: &mut Minimal, offset: u64, bytes: u64) {
        flow.acknowledge(Time::ZERO, offset, bytes, &CONFIG);
    }
    fn data(offset: u64, again: bool) -> Send {
        Send::Data { offset, payload: 10, again }
    }

    #[test]
    fn a_timeout_sends_only_what_is_not_acknowledged() {
        let mut flow = flow(30);
        assert_eq!(send(&mut flow), data(0, false));
        assert_eq!(send(&mut flow), data(10, false));
        assert!(!flow.can_send());
        acknowledge(&mut flow, 10, 10);
        assert_eq!(flow.remaining(), 20);
        flow.time_out();
        assert_eq!(send(&mut flow), data(0, true));
        assert!(!flow.can_send(), "a window of one after a timeout");
        acknowledge(&mut flow, 0, 10);
        assert_eq!(send(&mut flow), data(20, false));
        assert_eq!(flow.in_flight, 1);
    }

    #[test]
    fn an_acknowledgement_of_before_the_timeout_leaves_resent_packets_in_flight() {
        let mut flow = flow(30);
        send(&mut flow);
        send(&mut flow);
        flow.time_out();
        assert_eq!(send(&mut flow), data(0, true));
        acknowledge(&mut flow, 10, 10);
        assert_eq!(flow.in_flight, 1, "the packet at 0 is still out");
        assert!(flow.deadline().is_some());
        acknowledge(&mut flow, 0, 10);
        assert_eq!((flow.in_flight, flow.deadline()), (0, None));
        assert!(flow.can_send());
    }

    #[test]
    fn after_timeouts_in_a_row_it_probes_and_then_starts_with_a_window_of_one() {
        let mut flow = flow(30);
        send(&mut flow);
        flow.time_out();
        send(&mut flow);
        flow.time_out();
        assert_eq!(send(&mut flow), Send::Probe);
        assert!(!flow.can_send());
        acknowledge(&mut flow, 0, 0);
        assert_eq!(send(&mut flow), data(0, true));
        assert!(!flow.can_send());
    }
}
