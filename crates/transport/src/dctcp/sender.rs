//! The sending end of one connection.

use crate::config::Dctcp;
use base::{Span, Time};
use std::collections::VecDeque;

/// Duplicate acknowledgements that mean a loss (RFC 5681, 3.2).
const DUPLICATES_MAX: u32 = 3;
/// Timeouts double up to this power of two.
const BACKOFF_MAX: u32 = 6;

/// Bytes of one message to be put into one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The message, by its number.
    pub message: u32,
    /// In the stream.
    pub offset: u64,
    /// Bytes.
    pub payload: u32,
    /// Stream offset of the end of its message.
    pub message_end: u64,
    /// Whether it was sent before.
    pub again: bool,
}

/// A connection's stream, window and timers. All offsets count bytes of the stream.
#[derive(Clone, Debug)]
pub struct Sender {
    mss: u64,
    /// Messages not wholly acknowledged, with the offset of their ends, ascending.
    messages: VecDeque<(u64, u32)>,
    /// End of what was submitted.
    submitted: u64,
    /// First byte not acknowledged.
    unacknowledged: u64,
    /// Next byte to send; falls back to `unacknowledged` on a timeout.
    next: u64,
    /// End of what was ever sent.
    sent: u64,
    /// Set when the first unacknowledged segment has to go again.
    resend: bool,
    /// What the receiver has room for.
    window_max: u64,
    congestion: Congestion,
    loss: Loss,
    round_trip: RoundTrip,
}

/// How much may be under way.
#[derive(Clone, Debug)]
struct Congestion {
    mss: f64,
    window: f64,
    slow_start_below: f64,
    gain: f64,
    /// Moving average of the marked fraction; starts at 1 (RFC 8257, 4.2).
    alpha: f64,
    /// Bytes acknowledged, and with a mark, since the last update of alpha.
    acknowledged: u64,
    marked: u64,
    /// Alpha is updated when this offset is acknowledged.
    update_at: u64,
    /// No further cut before this offset is acknowledged.
    cut_until: u64,
}

/// What is known of losses.
#[derive(Clone, Debug, Default)]
struct Loss {
    duplicates: u32,
    /// Fast recovery lasts until this offset is acknowledged.
    recover: Option<u64>,
}

/// Round-trip estimate (RFC 6298) from one timed segment at a time, never a retransmitted one.
#[derive(Clone, Debug)]
struct RoundTrip {
    timed: Option<(u64, Time)>,
    smoothed: Option<Span>,
    variation: Span,
    timeout_min: Span,
    backoff: u32,
    deadline: Option<Time>,
}

impl Sender {
    /// Nothing submitted yet.
    pub fn new(config: &Dctcp) -> Sender {
        Sender {
            mss: config.mss.count(),
            messages: VecDeque::new(),
            submitted: 0,
            unacknowledged: 0,
            next: 0,
            sent: 0,
            resend: false,
            window_max: u64::MAX,
            congestion: Congestion::new(config),
            loss: Loss::default(),
            round_trip: RoundTrip::new(config.timeout_min),
        }
    }
    /// The same with a receiver that has room for `window_max` bytes.
    pub fn with_window_max(self, window_max: u64) -> Sender {
        Sender { window_max, ..self }
    }
    /// The congestion window, bytes.
    pub fn window(&self) -> u64 {
        self.congestion.window as u64
    }
    /// The estimated fraction of marked bytes.
    pub fn alpha(&self) -> f64 {
        self.congestion.alpha
    }
    /// When the retransmission timer fires.
    pub fn deadline(&self) -> Option<Time> {
        self.round_trip.deadline
    }
    /// A message goes behind what was submitted before.
    pub fn submit(&mut self, message: u32, bytes: u64) {
        self.submitted += bytes;
        self.messages.push_back((self.submitted, message));
    }
    /// Whether [`next_segment`](Self::next_segment) gives one.
    pub fn can_send(&self) -> bool {
        self.resend || self.new_segment().is_some()
    }
    /// The segment to send now.
    pub fn next_segment(&mut self, now: Time) -> Option<Segment> {
        let segment = if std::mem::take(&mut self.resend) {
            self.segment_at(self.unacknowledged)
        } else {
            let segment = self.new_segment()?;
            self.next += u64::from(segment.payload);
            segment
        };
        self.note_sent(now, &segment);
        Some(segment)
    }
    /// Takes an acknowledgement of everything before `offset`.
    pub fn acknowledge(&mut self, now: Time, offset: u64, marked: bool) {
        let lost = if offset > self.unacknowledged {
            self.advance(now, offset, marked)
        } else {
            offset == self.unacknowledged && self.in_flight() > 0 && self.duplicate()
        };
        if marked {
            self.congestion.cut(self.unacknowledged, self.next);
        }
        self.resend |= lost;
    }
    /// The timer has fired: everything not acknowledged counts as lost (RFC 5681, 3.1; RFC 6298, 5.4 to 5.6).
    pub fn time_out(&mut self) {
        self.round_trip.deadline = None;
        if self.unacknowledged == self.sent {
            return;
        }
        self.congestion.collapse(self.in_flight());
        self.loss = Loss::default();
        self.next = self.unacknowledged;
        self.resend = false;
        self.round_trip.back_off();
    }

    fn in_flight(&self) -> u64 {
        self.next - self.unacknowledged
    }
    /// The segment that starts at `offset`, which lies before the end of the stream.
    fn segment_at(&self, offset: u64) -> Segment {
        let index = self.messages.partition_point(|message| message.0 <= offset);
        let (message_end, message) = self.messages[index];
        let payload = self.mss.min(message_end - offset) as u32;
        Segment { message, offset, payload, message_end, again: offset < self.sent }
    }
    /// What the window lets go next: one segment always, so that a small window cannot stall the stream.
    fn new_segment(&self) -> Option<Segment> {
        if self.next == self.submitted {
            return None;
        }
        let segment = self.segment_at(self.next);
        let after = self.in_flight() + u64::from(segment.payload);
        (self.in_flight() == 0 || after <= self.window().min(self.window_max)).then_some(segment)
    }
    fn note_sent(&mut self, now: Time, segment: &Segment) {
        let end = segment.offset + u64::from(segment.payload);
        if segment.again {
            self.round_trip.timed = None;
        } else {
            self.round_trip.timed.get_or_insert((end, now));
        }
        self.sent = self.sent.max(end);
        if self.round_trip.deadline.is_none() {
            self.round_trip.restart(now);
        }
    }

    /// Something new was acknowledged; `true` if the segment behind it is lost.
    fn advance(&mut self, now: Time, offset: u64, marked: bool) -> bool {
        let new = offset - self.unacknowledged;
        let in_flight = self.in_flight();
        self.unacknowledged = offset;
        self.next = self.next.max(offset);
        self.resend = false;
        while self.messages.front().is_some_and(|message| message.0 <= offset) {
            self.messages.pop_front();
        }
        if self.messages.is_empty() {
            // Of many connections most are idle: those keep no room.
            self.messages = VecDeque::new();
        }
        self.round_trip.acknowledged(now, offset, offset < self.sent);
        self.congestion.observe(new, marked, offset, self.next);
        self.leave_or_stay_in_recovery(new, offset, in_flight)
    }
    fn leave_or_stay_in_recovery(&mut self, new: u64, offset: u64, in_flight: u64) -> bool {
        self.loss.duplicates = 0;
        match self.loss.recover {
            Some(recover) if offset < recover => {
                self.congestion.deflate(new);
                return true;
            }
            Some(_) => {
                self.loss.recover = None;
                self.congestion.window = self.congestion.slow_start_below;
            }
            None => self.congestion.grow(new, in_flight),
        }
        false
    }
    /// A duplicate acknowledgement: a segment has left the network; `true` if the first unacknowledged one is lost.
    fn duplicate(&mut self) -> bool {
        if self.loss.recover.is_some() {
            self.congestion.window += self.congestion.mss;
            return false;
        }
        self.loss.duplicates += 1;
        if self.loss.duplicates < DUPLICATES_MAX {
            return false;
        }
        self.loss.recover = Some(self.sent);
        self.congestion.halve(self.in_flight());
        true
    }
}

impl Congestion {
    fn new(config: &Dctcp) -> Congestion {
        let mss = config.mss.count() as f64;
        Congestion {
            mss,
            window: mss * f64::from(config.initial_window),
            slow_start_below: f64::INFINITY,
            gain: config.gain,
            alpha: 1.0,
            acknowledged: 0,
            marked: 0,
            update_at: 0,
            cut_until: 0,
        }
    }
    /// Slow start or congestion avoidance, and only when the window was in use (RFC 7661).
    fn grow(&mut self, new: u64, in_flight: u64) {
        let (new, in_flight) = (new as f64, in_flight as f64);
        if self.window < self.slow_start_below {
            if in_flight * 2.0 >= self.window {
                self.window += new.min(self.mss);
            }
        } else if in_flight + self.mss > self.window {
            self.window += self.mss * new.min(self.window) / self.window;
        }
    }
    /// Counts marks; once a window of data, moves alpha to what was seen (SIGCOMM'10, equation 1).
    fn observe(&mut self, new: u64, marked: bool, offset: u64, next: u64) {
        self.acknowledged += new;
        self.marked += if marked { new } else { 0 };
        if offset < self.update_at {
            return;
        }
        let fraction = self.marked as f64 / self.acknowledged as f64;
        self.alpha += self.gain * (fraction - self.alpha);
        self.update_at = next.max(offset + 1);
        (self.acknowledged, self.marked) = (0, 0);
    }
    /// The reaction to a mark, at most once a window of data (SIGCOMM'10, equation 2).
    fn cut(&mut self, unacknowledged: u64, next: u64) {
        if unacknowledged < self.cut_until {
            return;
        }
        self.window = (self.window * (1.0 - self.alpha / 2.0)).max(self.mss);
        self.slow_start_below = self.window;
        self.cut_until = next.max(unacknowledged + 1);
    }
    /// A loss shown by duplicates (RFC 6582, 3.2, step 2).
    fn halve(&mut self, in_flight: u64) {
        self.slow_start_below = (in_flight as f64 / 2.0).max(2.0 * self.mss);
        self.window = self.slow_start_below + f64::from(DUPLICATES_MAX) * self.mss;
    }
    /// A partial acknowledgement (RFC 6582, 3.2, step 3).
    fn deflate(&mut self, new: u64) {
        self.window = (self.window - new as f64 + self.mss).max(self.mss);
    }
    fn collapse(&mut self, in_flight: u64) {
        self.slow_start_below = (in_flight as f64 / 2.0).max(2.0 * self.mss);
        self.window = self.mss;
    }
}

impl RoundTrip {
    fn new(timeout_min: Span) -> RoundTrip {
        RoundTrip { timed: None, smoothed: None, variation: Span::ZERO, timeout_min, backoff: 0, deadline: None }
    }
    fn acknowledged(&mut self, now: Time, offset: u64, more: bool) {
        if let Some((_, sent)) = self.timed.take_if(|timed| timed.0 <= offset) {
            self.sample(now - sent);
        }
        self.backoff = 0;
        self.deadline = None;
        if more {
            self.restart(now);
        }
    }
    fn sample(&mut self, seen: Span) {
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(seen);
            self.variation = seen / 2;
            return;
        };
        let error = smoothed.saturating_sub(seen) + seen.saturating_sub(smoothed);
        self.variation = self.variation - self.variation / 4 + error / 4;
        self.smoothed = Some(smoothed - smoothed / 8 + seen / 8);
    }
    /// Without a sample the timeout is its least value: round trips in a rack are known to be far below it.
    fn timeout(&self) -> Span {
        let estimate = self.smoothed.map_or(Span::ZERO, |smoothed| smoothed + self.variation * 4);
        estimate.max(self.timeout_min) * (1 << self.backoff)
    }
    fn restart(&mut self, now: Time) {
        self.deadline = Some(now + self.timeout());
    }
    fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
        self.timed = None;
    }
}
