//! The pacing of a flow by the rate of its reaction point, and the timers of many such flows.

use super::rate::RateControl;
use crate::common::Timers;
use crate::config::{Dcqcn, Reaction};
use base::{Rate, Time};

/// The reaction point of one flow: the time of its next packet.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: RateControl,
    /// When the last packet left, and its wire bytes: with the rate they determine the time of the
    /// next one.
    last: (Time, u32),
}

impl Pacer {
    /// Creates a pacer at line rate.
    pub fn new(line: Rate, config: &Dcqcn) -> Pacer {
        Pacer { rate: RateControl::new(line, config), last: (Time::ZERO, 0) }
    }
    /// Returns the present rate in bits per second.
    pub fn rate_bps(&self) -> f64 {
        self.rate.current_bps()
    }
    /// Returns when the present rate allows the next packet.
    pub fn next_send(&self) -> Time {
        self.last.0 + self.rate.spacing(u64::from(self.last.1))
    }
    /// Records that a packet of `wire` bytes leaves.
    pub fn sent(&mut self, now: Time, wire: u32, config: &Dcqcn) {
        self.rate.sent(now, u64::from(wire), config);
        self.last = (now, wire);
    }
}

/// The notification point of one flow: reports marks to its sender at a limited rate.
#[derive(Clone, Debug, Default)]
pub struct Notifier {
    quiet_until: Time,
}

impl Notifier {
    /// A marked packet has arrived. Returns whether to send a notification.
    pub fn is_due(&mut self, now: Time, config: &Dcqcn) -> bool {
        let is_due = now >= self.quiet_until;
        if is_due {
            self.quiet_until = now + config.notification_interval;
        }
        is_due
    }
}

/// Purpose of a timer of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Updates alpha.
    Alpha = 0,
    /// Raises the rate.
    Increase = 1,
    /// Cuts the rate if a notification was recorded; for [`Reaction::Periodic`] only.
    Cut = 2,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Alpha, Kind::Increase, Kind::Cut];
}

/// An expired timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due(u32);

impl Due {
    fn new(flow: u32, kind: Kind) -> Due {
        Due(flow * Kind::ALL.len() as u32 + kind as u32)
    }
    /// Returns the number of the flow.
    pub fn flow(self) -> u32 {
        self.0 / Kind::ALL.len() as u32
    }
    fn kind(self) -> Kind {
        Kind::ALL[self.0 as usize % Kind::ALL.len()]
    }
}

/// The timers of all flows of a host that are below line rate. Flows are identified by number.
#[derive(Clone, Debug, Default)]
pub struct RateTimers(Timers);

impl RateTimers {
    /// Returns when [`pop_due`](Self::pop_due) is due.
    pub fn next(&self) -> Option<Time> {
        self.0.next()
    }
    /// Returns a timer that has expired by `now`; [`fire`](Self::fire) must follow.
    pub fn pop_due(&mut self, now: Time) -> Option<Due> {
        self.0.pop_due(now).map(Due)
    }
    /// Handles a notification for a flow.
    pub fn notified(&mut self, now: Time, flow: u32, pacer: &mut Pacer, config: &Dcqcn) {
        match config.reaction {
            Reaction::AtOnce { .. } => {
                pacer.rate.cut(now, config);
                self.set(now, flow, Kind::Alpha, config);
                self.set(now, flow, Kind::Increase, config);
            }
            Reaction::Periodic { .. } => {
                if pacer.rate.note(now, config) {
                    self.set(now, flow, Kind::Alpha, config);
                    self.set(now, flow, Kind::Cut, config);
                }
            }
        }
    }
    /// Runs an expired timer of a flow below line rate. The time of the flow's next packet may
    /// change.
    pub fn fire(&mut self, now: Time, due: Due, pacer: &mut Pacer, config: &Dcqcn) {
        let (flow, kind) = (due.flow(), due.kind());
        match kind {
            Kind::Alpha => pacer.rate.move_alpha(config.gain),
            Kind::Increase => pacer.rate.timer_increase(now, config),
            Kind::Cut => {
                if pacer.rate.cut_noted() {
                    self.set(now, flow, Kind::Increase, config);
                }
            }
        }
        if pacer.rate.is_watched() {
            self.set(now, flow, kind, config);
        } else {
            self.forget(flow);
        }
    }
    /// Cancels the timers of a flow.
    pub fn forget(&mut self, flow: u32) {
        Kind::ALL.iter().for_each(|kind| self.0.cancel(Due::new(flow, *kind).0));
    }

    fn set(&mut self, now: Time, flow: u32, kind: Kind, config: &Dcqcn) {
        let span = match (kind, config.reaction) {
            (Kind::Alpha, _) => config.alpha_timer,
            (Kind::Increase, _) => config.increase_timer,
            (Kind::Cut, Reaction::Periodic { cut_interval }) => cut_interval,
            (Kind::Cut, Reaction::AtOnce { .. }) => return,
        };
        self.0.set(Due::new(flow, kind).0, now + span);
    }
}
