//! The bookings of one port, by class of sessions.

use super::class::{ClassPlace, Classes, Sum};
use super::control::ControlPlane;
use super::{Buckets, ClassId, ReservationConfig};
use base::{Rate, Span, Time};
use transport::TokenBucket;

/// The bookings of a port.
#[derive(Clone, Debug)]
pub struct Bookings {
    /// The bookable bandwidth, bits a second.
    limit_bps: u64,
    booked_bps: u64,
    /// Estimated bandwidth of the booked reads, bits a second.
    estimated_bps: u64,
    /// The current lapse interval: its number and its start.
    epoch: u64,
    since: Time,
    classes: Classes,
    /// `None` where the rates of buckets follow the bookings at once.
    control: Option<Box<ControlPlane>>,
}

/// [`Bookings`] with their parameters, as [`Buckets`].
pub(crate) struct Ledger<'a> {
    /// The bookings.
    pub bookings: &'a mut Bookings,
    /// Their parameters.
    pub config: &'a ReservationConfig,
}

impl Buckets for Ledger<'_> {
    fn bucket(&mut self, now: Time, class: ClassId) -> &mut TokenBucket {
        self.bookings.bucket(self.config, now, class)
    }
}

/// The booking that a response releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The class that booked the rate.
    pub class: ClassId,
    /// The size of its I/O.
    pub bytes: u32,
    /// When the request passed.
    pub booked_at: Time,
}

impl Bookings {
    /// Creates the bookings of a port of `rate`, with nothing booked.
    pub fn new(config: &ReservationConfig, rate: Rate) -> Bookings {
        let limit_bps = (u128::from(rate.as_bps()) * u128::from(config.limit) / 1024) as u64;
        Bookings {
            limit_bps,
            booked_bps: 0,
            estimated_bps: 0,
            epoch: 0,
            since: Time::ZERO,
            classes: Classes::default(),
            control: ControlPlane::new(config.control_delay),
        }
    }

    /// Returns the total booked at the last booking or release.
    pub fn booked(&self) -> Rate {
        Rate::bps(self.booked_bps)
    }

    /// Returns the total booked at `now`: bookings also lapse without activity. Scans every class.
    pub fn booked_at(&self, config: &ReservationConfig, now: Time) -> Rate {
        let mut swept = self.clone();
        swept.lapse(config, now);
        swept.booked()
    }

    /// Books for a read of `bytes`. Returns `false` without a change if the limit would be
    /// exceeded. A read whose estimate exceeds the limit books the whole limit, or it would never
    /// pass.
    pub fn book(&mut self, config: &ReservationConfig, now: Time, class: ClassId, bytes: u32) -> bool {
        self.book_at(config, now, class, bytes).is_some()
    }

    /// The same; returns the place of the class.
    pub(crate) fn book_at(
        &mut self,
        config: &ReservationConfig,
        now: Time,
        class: ClassId,
        bytes: u32,
    ) -> Option<ClassPlace> {
        self.lapse(config, now);
        let estimated = config.estimate_bps(bytes).min(self.limit_bps);
        let headroom = self.limit_bps.saturating_sub(self.estimated_bps);
        let booked = estimated * config.factor(headroom, self.limit_bps) / 1024;
        if booked > self.limit_bps - self.booked_bps {
            return None;
        }
        let place = self.classes.enter(config, class);
        let sum = &mut self.classes.at_mut(place).spans[self.epoch as usize & 1];
        sum.estimated_bps += estimated;
        sum.booked_bps += booked;
        self.booked_bps += booked;
        self.estimated_bps += estimated;
        Some(place)
    }

    /// Returns whether the estimates of current reads reach or exceed the bookable bandwidth.
    pub fn is_over_subscribed(&self) -> bool {
        self.estimated_bps >= self.limit_bps
    }

    /// Releases a booking; one that has lapsed or was revoked is ignored. Changes of the
    /// over-commitment factor are compensated: each booking of an interval releases its share of
    /// that interval's total.
    pub fn release(&mut self, config: &ReservationConfig, now: Time, release: Release) {
        let Release { class, bytes, booked_at } = release;
        match self.classes.place(class) {
            Some(place) => self.release_at(config, now, place, bytes, booked_at),
            None => self.lapse(config, now),
        }
    }

    /// The same for a class whose place is known.
    pub(crate) fn release_at(
        &mut self,
        config: &ReservationConfig,
        now: Time,
        place: ClassPlace,
        bytes: u32,
        booked_at: Time,
    ) {
        self.lapse(config, now);
        let Some(epoch) = self.live_epoch(config, booked_at) else { return };
        let estimated = config.estimate_bps(bytes).min(self.limit_bps);
        let back = self.classes.at_mut(place).spans[epoch as usize & 1].give_back(estimated);
        self.booked_bps -= back.booked_bps;
        self.estimated_bps -= back.estimated_bps;
    }

    /// Returns the place of a class, which is added if it is new, until it is settled.
    #[inline]
    pub(crate) fn meet(&mut self, config: &ReservationConfig, class: ClassId) -> ClassPlace {
        self.classes.enter(config, class)
    }

    /// Returns whether the rates of buckets follow the bookings at once.
    #[inline]
    pub(crate) fn is_direct(&self) -> bool {
        self.control.is_none()
    }

    /// Prefetches a class.
    #[inline]
    pub(crate) fn prefetch(&self, class: ClassId) {
        self.classes.prefetch(class);
    }

    /// Returns the fill rate of a class's bucket; zero if it has booked nothing.
    pub fn fill_rate(&self, config: &ReservationConfig, class: ClassId) -> Rate {
        self.classes.get(class).map_or(Rate::bps(0), |class| class.fill_rate(config))
    }

    /// Returns the bucket of a class, which fills at [`fill_rate`](Self::fill_rate) from `now` on;
    /// with a control plane at the rate that was installed last.
    #[inline]
    pub fn bucket(&mut self, config: &ReservationConfig, now: Time, class: ClassId) -> &mut TokenBucket {
        let place = self.classes.enter(config, class);
        self.bucket_at(config, now, place)
    }

    /// The same for a class whose place is known.
    #[inline]
    pub(crate) fn bucket_at(&mut self, config: &ReservationConfig, now: Time, place: ClassPlace) -> &mut TokenBucket {
        let class = self.classes.at_mut(place);
        if self.control.is_none() {
            class.bucket.set_rate(now, class.fill_rate(config));
        }
        &mut class.bucket
    }

    /// Sends the present rate of a class to the control plane, if there is one.
    pub(crate) fn request(&mut self, config: &ReservationConfig, now: Time, class: ClassId, place: ClassPlace) {
        let Some(control) = &mut self.control else { return };
        control.request(now, class, self.classes.at(place).fill_rate(config));
    }

    /// Installs the next rate that is due by `now`; returns its class.
    pub(crate) fn install(&mut self, config: &ReservationConfig, now: Time) -> Option<ClassId> {
        let (at, class, rate) = self.control.as_mut()?.take_due(now)?;
        self.classes.meet(config, class).bucket.set_rate(at, rate);
        Some(class)
    }

    /// Returns when the next rate is installed.
    pub(crate) fn next_install(&self) -> Option<Time> {
        self.control.as_ref()?.next()
    }

    /// Releases the memory of a class that is idle for now.
    pub(crate) fn settle(&mut self, class: ClassId) {
        self.classes.settle(class);
    }

    /// Drops every booking: the port has failed (paper, 4.6).
    pub fn revoke(&mut self) {
        self.classes.iter_mut().for_each(|class| class.spans = [Sum::default(); 2]);
        if let Some(control) = &mut self.control {
            control.clear();
            let none = |class: &mut super::class::Class| class.bucket.set_rate(Time::ZERO, Rate::bps(0));
            self.classes.iter_mut().for_each(none);
        }
        (self.booked_bps, self.estimated_bps) = (0, 0);
    }

    /// Returns the interval of a booking that has not lapsed. Compares instead of dividing, because
    /// it runs for every answer.
    fn live_epoch(&self, config: &ReservationConfig, booked_at: Time) -> Option<u64> {
        let (ahead, behind) = (booked_at.saturating_since(self.since), self.since.saturating_since(booked_at));
        if behind == Span::ZERO {
            return (ahead < config.lapse).then_some(self.epoch);
        }
        (behind <= config.lapse).then(|| self.epoch - 1)
    }

    /// Drops bookings from before the previous interval.
    fn lapse(&mut self, config: &ReservationConfig, now: Time) {
        if now.saturating_since(self.since) < config.lapse {
            return;
        }
        let epoch = now.as_ps() / config.lapse.as_ps();
        self.since = Time::ZERO + config.lapse * epoch;
        let gone: &[usize] = if epoch == self.epoch + 1 { &[epoch as usize & 1] } else { &[0, 1] };
        self.epoch = epoch;
        for class in self.classes.iter_mut() {
            for span in gone {
                let gone = std::mem::take(&mut class.spans[*span]);
                self.booked_bps -= gone.booked_bps;
                self.estimated_bps -= gone.estimated_bps;
            }
        }
    }
}

impl Sum {
    /// Removes one booking of `estimated_bps`, and returns it.
    fn give_back(&mut self, estimated_bps: u64) -> Sum {
        let estimated = estimated_bps.min(self.estimated_bps);
        let booked = match self.estimated_bps {
            0 => 0,
            all if all == estimated => self.booked_bps,
            // No over-commitment, which is the usual case.
            all if all == self.booked_bps => estimated,
            all => share_rounded_up(self.booked_bps, estimated, all),
        };
        self.estimated_bps -= estimated;
        self.booked_bps -= booked;
        Sum { estimated_bps: estimated, booked_bps: booked }
    }
}

/// Returns `value` x `part` / `whole`, rounded up. `part` is at most `whole`, so the result is at
/// most `value`. Needs one wide division; `div_ceil` needs two.
fn share_rounded_up(value: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(value) * u128::from(part);
    let quotient = (product / u128::from(whole)) as u64;
    quotient + u64::from(u128::from(quotient) * u128::from(whole) < product)
}
