//! A flow whose sender keeps to the rate of its reaction point, and the timers of many such flows.

use super::rate::RateControl;
use crate::common::Timers;
use crate::config::{Dcqcn, Reaction};
use base::{Rate, Time};

/// The reaction point of one flow: when its next packet may go.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate: RateControl,
    /// When the last packet left, and its bytes on the wire: the rate says how long it keeps the
    /// next one back.
    last: (Time, u32),
}

impl Pacer {
    /// At the rate of its link.
    pub fn new(line: Rate, config: &Dcqcn) -> Pacer {
        Pacer { rate: RateControl::new(line, config), last: (Time::ZERO, 0) }
    }
    /// The present rate in bits a second.
    pub fn rate_bps(&self) -> f64 {
        self.rate.current_bps()
    }
    /// Returns the time at which the present rate lets the next packet go.
    pub fn next_send(&self) -> Time {
        self.last.0 + self.rate.spacing(u64::from(self.last.1))
    }
    /// A packet of `wire` bytes leaves.
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
    /// Alpha moves.
    Alpha = 0,
    /// The rate rises.
    Increase = 1,
    /// A cut, if one was noted; of [`Reaction::Periodic`] only.
    Cut = 2,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Alpha, Kind::Increase, Kind::Cut];
}

/// A timer that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due(u32);

impl Due {
    fn new(flow: u32, kind: Kind) -> Due {
        Due(flow * Kind::ALL.len() as u32 + kind as u32)
    }
    /// The flow, by its number.
    pub fn flow(self) -> u32 {
        self.0 / Kind::ALL.len() as u32
    }
    fn kind(self) -> Kind {
        Kind::ALL[self.0 as usize % Kind::ALL.len()]
    }
}

/// The timers of all flows of a place that are below line rate. Flows have numbers.
#[derive(Clone, Debug, Default)]
pub struct RateTimers(Timers);

impl RateTimers {
    /// Returns the time at which [`pop_due`](Self::pop_due) is next to be called.
    pub fn next(&self) -> Option<Time> {
        self.0.next()
    }
    /// A timer that has come by `now`; [`fire`](Self::fire) follows.
    pub fn pop_due(&mut self, now: Time) -> Option<Due> {
        self.0.pop_due(now).map(Due)
    }
    /// A notification has come for a flow.
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
    /// A timer of a flow that is watched has come. The flow's next packet may go at another time
    /// now.
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
    /// A flow is over.
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
