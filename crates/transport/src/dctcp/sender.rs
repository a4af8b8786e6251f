//! The sending end of one connection.

use super::selective::Selective;
use crate::common::SmoothedRoundTrip;
use crate::config::Dctcp;
use base::{Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Duplicate acknowledgements that indicate a loss (RFC 5681, 3.2).
const DUPLICATES_MAX: u32 = 3;
/// Maximum exponent of the timeout's back-off.
const BACKOFF_MAX: u32 = 6;

/// Bytes of one message for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of the message.
    pub message: u32,
    /// Offset in the stream.
    pub offset: u64,
    /// Length in bytes.
    pub payload: u32,
    /// Stream offset of the end of its message.
    pub message_end: u64,
    /// Whether it was sent before.
    pub again: bool,
}

/// The constants of all connections of a host.
#[derive(Clone, Debug)]
struct Constants {
    mss: u64,
    gain: f64,
    timeout_min: Span,
    /// The receive window, bytes.
    window_max: u64,
}

/// A connection's stream, window and timers. All offsets are bytes of the stream.
///
/// A large rack has connections for millions of pairs, so rarely used state is behind a pointer.
#[derive(Clone, Debug)]
pub struct Sender {
    constants: Arc<Constants>,
    /// Messages that are not fully acknowledged, with the offset of their ends, ascending.
    messages: VecDeque<(u64, u32)>,
    /// End of the submitted data.
    submitted: u64,
    /// First unacknowledged byte.
    unacknowledged: u64,
    /// Next byte to send; reset to `unacknowledged` by a timeout.
    next: u64,
    /// Highest end of sent data.
    sent: u64,
    congestion: Congestion,
    round_trip: RoundTrip,
    loss: Loss,
}

/// The limit on bytes in flight.
#[derive(Clone, Debug)]
struct Congestion {
    window: f64,
    slow_start_below: f64,
    /// Moving average of the marked fraction; starts at 1 (RFC 8257, 4.2).
    alpha: f64,
    /// Bytes acknowledged, and those with a mark, since the last update of alpha.
    acknowledged: u64,
    marked: u64,
    /// Alpha is updated when this offset is acknowledged.
    update_at: u64,
    /// No further cut until this offset is acknowledged.
    cut_until: u64,
}

/// The state of loss recovery.
#[derive(Clone, Debug)]
struct Loss {
    /// Fast recovery lasts until this offset is acknowledged; [`NEVER`] outside of it.
    recover: u64,
    /// Ranges that the receiver reported beyond a gap.
    selective: Option<Box<Selective>>,
    duplicates: u32,
    /// Whether the first unacknowledged segment has to be retransmitted.
    resend: bool,
}

/// No offset.
const NEVER: u64 = u64::MAX;

impl Loss {
    fn none() -> Loss {
        Loss { recover: NEVER, selective: None, duplicates: 0, resend: false }
    }
    fn is_recovering(&self) -> bool {
        self.recover != NEVER
    }
}

/// Round-trip estimate (RFC 6298) from one timed segment at a time, never a retransmitted one.
#[derive(Clone, Debug)]
struct RoundTrip {
    /// The end of the timed segment, and when it was sent; `Time::MAX` if there is none.
    timed_end: u64,
    timed_at: Time,
    seen: SmoothedRoundTrip,
    /// Deadline of the retransmission timer; `Time::MAX` if there is none.
    deadline: Time,
    backoff: u32,
}

impl Sender {
    /// Creates a sender without data.
    pub fn new(config: &Dctcp) -> Sender {
        let constants = Constants {
            mss: config.mss.count(),
            gain: config.gain,
            timeout_min: config.timeout_min,
            window_max: u64::MAX,
        };
        Sender {
            congestion: Congestion::new(constants.mss as f64 * f64::from(config.initial_window)),
            constants: Arc::new(constants),
            messages: VecDeque::new(),
            submitted: 0,
            unacknowledged: 0,
            next: 0,
            sent: 0,
            loss: Loss::none(),
            round_trip: RoundTrip::new(),
        }
    }
    /// Sets the receive window to `window_max` bytes.
    pub fn with_window_max(self, window_max: u64) -> Sender {
        Sender { constants: Arc::new(Constants { window_max, ..(*self.constants).clone() }), ..self }
    }
    /// Returns the congestion window, bytes.
    pub fn window(&self) -> u64 {
        self.congestion.window as u64
    }
    /// Returns the estimated fraction of marked bytes.
    pub fn alpha(&self) -> f64 {
        self.congestion.alpha
    }
    /// Returns when the retransmission timer fires.
    pub fn deadline(&self) -> Option<Time> {
        Some(self.round_trip.deadline).filter(|deadline| *deadline != Time::MAX)
    }
    /// Returns the number of submitted, unacknowledged bytes.
    pub fn backlog(&self) -> u64 {
        self.submitted - self.unacknowledged
    }
    /// Appends a message to those submitted before.
    pub fn submit(&mut self, message: u32, bytes: u64) {
        self.submitted += bytes;
        self.messages.push_back((self.submitted, message));
    }
    /// Returns whether [`next_segment`](Self::next_segment) returns a segment.
    pub fn can_send(&self) -> bool {
        self.loss.resend || self.hole().is_some() || self.new_segment().is_some()
    }
    /// Returns the segment to send now.
    pub fn next_segment(&mut self, now: Time) -> Option<Segment> {
        let lost = match std::mem::take(&mut self.loss.resend) {
            true => Some(self.segment_at(self.unacknowledged)),
            false => self.hole(),
        };
        let segment = lost.or_else(|| self.new_segment())?;
        let end = segment.offset + u64::from(segment.payload);
        match &mut self.loss.selective {
            _ if lost.is_none() => {
                self.next = end;
                self.pass_selected();
            }
            Some(selective) => selective.note_resent(end),
            None => {}
        }
        self.note_sent(now, &segment);
        Some(segment)
    }
    /// Handles an acknowledgement of everything before `offset`.
    pub fn acknowledge(&mut self, now: Time, offset: u64, marked: bool) {
        self.acknowledge_selectively(now, offset, marked, std::iter::empty());
    }
    /// Handles an acknowledgement with ranges received beyond a gap.
    pub fn acknowledge_selectively(
        &mut self,
        now: Time,
        offset: u64,
        marked: bool,
        blocks: impl Iterator<Item = (u64, u64)>,
    ) {
        let in_flight = self.in_flight();
        let beyond = offset.max(self.unacknowledged) + 1..self.sent;
        for (start, end) in blocks.filter(|block| beyond.contains(&block.0)) {
            self.loss.selective.get_or_insert_default().add(start, end.min(self.sent));
        }
        let lost = if offset > self.unacknowledged {
            self.advance(now, offset, marked, in_flight)
        } else {
            offset == self.unacknowledged && self.next > self.unacknowledged && self.duplicate()
        };
        if marked {
            self.congestion.cut(self.constants.mss, self.unacknowledged, self.next);
        }
        self.loss.resend |= lost;
    }
    /// Handles a timeout: everything unacknowledged counts as lost (RFC 5681, 3.1; RFC 6298, 5.4 to
    /// 5.6), except for ranges that the receiver reported (RFC 6675, 5.1).
    pub fn time_out(&mut self) {
        self.round_trip.deadline = Time::MAX;
        if self.unacknowledged == self.sent {
            return;
        }
        self.congestion.collapse(self.constants.mss, self.in_flight());
        self.loss = Loss { selective: self.loss.selective.take(), ..Loss::none() };
        self.next = self.unacknowledged;
        self.round_trip.back_off();
    }

    /// Returns the bytes in flight: sent, not known to be received and not known to be lost (RFC
    /// 6675, 4: "pipe").
    fn in_flight(&self) -> u64 {
        let all = self.next - self.unacknowledged;
        match &self.loss.selective {
            None => all,
            Some(selective) => {
                let lost =
                    if self.loss.is_recovering() { selective.lost(self.unacknowledged, self.constants.mss) } else { 0 };
                all.saturating_sub(selective.selected_below(self.next) + lost)
            }
        }
    }
    /// Returns the next segment that selective acknowledgements prove lost, if the window allows
    /// it.
    fn hole(&self) -> Option<Segment> {
        let selective = self.loss.selective.as_ref().filter(|_| self.loss.is_recovering())?;
        let offset = selective.next_hole(self.unacknowledged, self.constants.mss)?;
        let segment = self.segment_at(offset);
        let after = self.in_flight() + u64::from(segment.payload);
        (after <= self.window().max(self.constants.mss)).then_some(segment)
    }
    /// Skips ranges that the receiver has, which may follow a retransmission.
    fn pass_selected(&mut self) {
        if let Some(selective) = &self.loss.selective {
            self.next = selective.contiguous_from(self.next);
        }
    }
    /// Returns the segment that starts at `offset`, which is before the end of the stream.
    fn segment_at(&self, offset: u64) -> Segment {
        let index = self.messages.partition_point(|message| message.0 <= offset);
        let (message_end, message) = self.messages[index];
        let payload = self.constants.mss.min(message_end - offset) as u32;
        Segment { message, offset, payload, message_end, again: offset < self.sent }
    }
    /// Returns the next segment that the window allows. One is always allowed if nothing is in
    /// flight, so that a small window cannot stall the stream.
    fn new_segment(&self) -> Option<Segment> {
        if self.next == self.submitted {
            return None;
        }
        let segment = self.segment_at(self.next);
        let after = self.in_flight() + u64::from(segment.payload);
        (self.in_flight() == 0 || after <= self.window().min(self.constants.window_max)).then_some(segment)
    }
    fn note_sent(&mut self, now: Time, segment: &Segment) {
        let end = segment.offset + u64::from(segment.payload);
        if segment.again {
            self.round_trip.timed_at = Time::MAX;
        } else if self.round_trip.timed_at == Time::MAX {
            (self.round_trip.timed_end, self.round_trip.timed_at) = (end, now);
        }
        self.sent = self.sent.max(end);
        if self.round_trip.deadline == Time::MAX {
            self.round_trip.restart(now, self.constants.timeout_min);
        }
    }

    /// Handles new acknowledged data. Returns whether the segment behind it is lost.
    fn advance(&mut self, now: Time, offset: u64, marked: bool, in_flight: u64) -> bool {
        let new = offset - self.unacknowledged;
        self.unacknowledged = offset;
        self.next = self.next.max(offset);
        self.loss.resend = false;
        while self.messages.front().is_some_and(|message| message.0 <= offset) {
            self.messages.pop_front();
        }
        if self.messages.is_empty() {
            // Most of many connections are idle; they release their memory.
            self.messages = VecDeque::new();
        }
        if let Some(selective) = &mut self.loss.selective
            && !selective.forget_below(offset)
        {
            self.loss.selective = None;
        }
        self.pass_selected();
        self.round_trip.acknowledged(now, offset, offset < self.sent, self.constants.timeout_min);
        self.congestion.observe(self.constants.gain, new, marked, offset, self.next);
        self.leave_or_stay_in_recovery(new, offset, in_flight)
    }
    fn leave_or_stay_in_recovery(&mut self, new: u64, offset: u64, in_flight: u64) -> bool {
        self.loss.duplicates = 0;
        if !self.loss.is_recovering() {
            self.congestion.grow(self.constants.mss, new, in_flight);
            return false;
        }
        if offset >= self.loss.recover {
            self.loss.recover = NEVER;
            self.congestion.window = self.congestion.slow_start_below;
            return false;
        }
        match &self.loss.selective {
            // Gaps are known, and filled as the window allows.
            Some(selective) => !selective.is_resent(offset),
            None => {
                self.congestion.deflate(self.constants.mss, new);
                true
            }
        }
    }
    /// Handles a duplicate acknowledgement: a segment has left the network. Returns whether the
    /// first unacknowledged one is lost.
    fn duplicate(&mut self) -> bool {
        let mss = self.constants.mss;
        let selective = self.loss.selective.as_deref_mut();
        if self.loss.recover != NEVER {
            if selective.is_none() {
                self.congestion.window += mss as f64;
            }
            return false;
        }
        self.loss.duplicates += 1;
        let shown = selective.as_ref().is_some_and(|selective| selective.shows_loss(mss));
        if self.loss.duplicates < DUPLICATES_MAX && !shown {
            return false;
        }
        self.loss.recover = self.sent;
        let in_flight = self.next - self.unacknowledged;
        self.congestion.halve(mss, in_flight);
        match selective {
            Some(selective) => selective.begin(self.unacknowledged),
            None => self.congestion.window += (u64::from(DUPLICATES_MAX) * mss) as f64,
        }
        true
    }
}

impl Congestion {
    fn new(window: f64) -> Congestion {
        Congestion {
            window,
            slow_start_below: f64::INFINITY,
            alpha: 1.0,
            acknowledged: 0,
            marked: 0,
            update_at: 0,
            cut_until: 0,
        }
    }
    /// Slow start or congestion avoidance, and only if the window was in use (RFC 7661).
    fn grow(&mut self, mss: u64, new: u64, in_flight: u64) {
        let (mss, new, in_flight) = (mss as f64, new as f64, in_flight as f64);
        if self.window < self.slow_start_below {
            if in_flight * 2.0 >= self.window {
                self.window += new.min(mss);
            }
        } else if in_flight + mss > self.window {
            self.window += mss * new.min(self.window) / self.window;
        }
    }
    /// Counts marks; once per window of data, moves alpha toward their fraction (SIGCOMM'10,
    /// equation 1).
    fn observe(&mut self, gain: f64, new: u64, marked: bool, offset: u64, next: u64) {
        self.acknowledged += new;
        self.marked += if marked { new } else { 0 };
        if offset < self.update_at {
            return;
        }
        let fraction = self.marked as f64 / self.acknowledged as f64;
        self.alpha += gain * (fraction - self.alpha);
        self.update_at = next.max(offset + 1);
        (self.acknowledged, self.marked) = (0, 0);
    }
    /// Reacts to a mark, at most once per window of data (SIGCOMM'10, equation 2).
    fn cut(&mut self, mss: u64, unacknowledged: u64, next: u64) {
        if unacknowledged < self.cut_until {
            return;
        }
        self.window = (self.window * (1.0 - self.alpha / 2.0)).max(mss as f64);
        self.slow_start_below = self.window;
        self.cut_until = next.max(unacknowledged + 1);
    }
    /// Reacts to a loss indicated by duplicates (RFC 6582, 3.2, step 2, without its inflation; RFC
    /// 6675, 5, step 4.2).
    fn halve(&mut self, mss: u64, in_flight: u64) {
        self.slow_start_below = (in_flight as f64 / 2.0).max(2.0 * mss as f64);
        self.window = self.slow_start_below;
    }
    /// Handles a partial acknowledgement (RFC 6582, 3.2, step 3).
    fn deflate(&mut self, mss: u64, new: u64) {
        self.window = (self.window - new as f64 + mss as f64).max(mss as f64);
    }
    fn collapse(&mut self, mss: u64, in_flight: u64) {
        self.slow_start_below = (in_flight as f64 / 2.0).max(2.0 * mss as f64);
        self.window = mss as f64;
    }
}

impl RoundTrip {
    fn new() -> RoundTrip {
        RoundTrip {
            timed_end: 0,
            timed_at: Time::MAX,
            seen: SmoothedRoundTrip::default(),
            deadline: Time::MAX,
            backoff: 0,
        }
    }
    fn acknowledged(&mut self, now: Time, offset: u64, more: bool, timeout_min: Span) {
        if self.timed_at != Time::MAX && self.timed_end <= offset {
            self.seen.sample(now - self.timed_at);
            self.timed_at = Time::MAX;
        }
        self.backoff = 0;
        self.deadline = Time::MAX;
        if more {
            self.restart(now, timeout_min);
        }
    }
    /// Returns the timeout. Without a sample it is the minimum: round trips in a rack are known to
    /// be far shorter.
    fn timeout(&self, timeout_min: Span) -> Span {
        self.seen.timeout().max(timeout_min) * (1 << self.backoff)
    }
    fn restart(&mut self, now: Time, timeout_min: Span) {
        self.deadline = now + self.timeout(timeout_min);
    }
    fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        self.timed_at = Time::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Bytes;

    const MSS: u64 = 1_000;

    fn sender() -> Sender {
        let mut sender = Sender::new(&Dctcp {
            mss: Bytes::new(MSS),
            mark_above: Bytes::ZERO,
            queue: Bytes::ZERO,
            gain: 1.0 / 16.0,
            initial_window: 20,
            timeout_min: Span::us(100),
            selective: true,
            connections: 1,
        });
        sender.submit(0, 40 * MSS);
        sender
    }
    /// Returns the offsets, in segments, of all segments that may leave now.
    fn leaves(sender: &mut Sender) -> Vec<u64> {
        std::iter::from_fn(|| sender.next_segment(Time::ZERO)).map(|segment| segment.offset / MSS).collect()
    }

    /// A window of 20 loses 3, 7 and 8. The resulting duplicates reveal all three: each is
    /// retransmitted before any acknowledgement of later data. NewReno recovers one per round trip.
    #[test]
    fn three_holes_are_filled_in_one_round_trip_with_blocks_and_in_three_without() {
        for (is_selective, expected) in [(true, vec![3, 7, 8]), (false, vec![3])] {
            let mut sender = sender();
            assert_eq!(leaves(&mut sender).len(), 20);
            let mut again = Vec::new();
            let mut receiver = crate::common::Ranges::new();
            for segment in (0..20u64).filter(|segment| ![3, 7, 8].contains(segment)) {
                receiver.insert(segment * MSS, (segment + 1) * MSS);
                let expected = receiver.contiguous_from(0);
                let blocks: Vec<_> =
                    receiver.iter().filter(|range| is_selective && range.0 > expected).take(3).collect();
                sender.acknowledge_selectively(Time::us(1), expected, false, blocks.into_iter());
                again.extend(leaves(&mut sender).into_iter().filter(|segment| *segment < 20));
            }
            assert_eq!(again, expected, "selective {is_selective}");
        }
    }

    #[test]
    fn after_a_timeout_what_the_receiver_has_is_not_sent_again() {
        let mut sender = sender();
        leaves(&mut sender);
        sender.acknowledge_selectively(Time::us(1), 0, false, [(2 * MSS, 4 * MSS)].into_iter());
        sender.time_out();
        assert_eq!(leaves(&mut sender), [0]);
        sender.acknowledge(Time::us(2), MSS, false);
        assert_eq!(leaves(&mut sender), [1, 4]);
    }

    /// 4,096 nodes have millions of connections.
    #[test]
    fn a_connection_is_small() {
        assert!(std::mem::size_of::<Sender>() <= 208, "{}", std::mem::size_of::<Sender>());
    }
}
