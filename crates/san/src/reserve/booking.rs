//! What is booked on one port, by class of sessions.

use super::class::{Classes, Sum};
use super::{Buckets, ClassId, ReservationConfig};
use base::{Rate, Span, Time};
use transport::TokenBucket;

/// The bookings of a port.
#[derive(Clone, Debug)]
pub struct Bookings {
    /// What may be booked, bits a second.
    limit_bps: u64,
    booked_bps: u64,
    /// What those who booked are expected to take.
    estimated_bps: u64,
    /// The span that `now` was last in: its number, and when it began.
    epoch: u64,
    since: Time,
    classes: Classes,
}

/// [`Bookings`] with what they follow, as [`Buckets`].
pub(crate) struct Ledger<'a> {
    /// What is booked.
    pub bookings: &'a mut Bookings,
    /// By which parameters.
    pub config: &'a ReservationConfig,
}

impl Buckets for Ledger<'_> {
    fn bucket(&mut self, now: Time, class: ClassId) -> &mut TokenBucket {
        self.bookings.bucket(self.config, now, class)
    }
}

/// Which booking a response gives back.
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
    /// Nothing booked on a port of `rate`.
    pub fn new(config: &ReservationConfig, rate: Rate) -> Bookings {
        let limit_bps = (u128::from(rate.as_bps()) * u128::from(config.limit) / 1024) as u64;
        Bookings {
            limit_bps,
            booked_bps: 0,
            estimated_bps: 0,
            epoch: 0,
            since: Time::ZERO,
            classes: Classes::default(),
        }
    }

    /// What was booked in all when this was last booked on or given back to.
    pub fn booked(&self) -> Rate {
        Rate::bps(self.booked_bps)
    }

    /// What is booked in all at `now`: bookings also lapse while nothing happens. Looks at every
    /// class.
    pub fn booked_at(&self, config: &ReservationConfig, now: Time) -> Rate {
        let mut swept = self.clone();
        swept.lapse(config, now);
        swept.booked()
    }

    /// Books for a read of `bytes`; `false` and no change when the limit would be passed. A read
    /// that would take more than the limit alone books all of it, or it would never pass.
    pub fn book(&mut self, config: &ReservationConfig, now: Time, class: ClassId, bytes: u32) -> bool {
        self.lapse(config, now);
        let estimated = config.estimate_bps(bytes).min(self.limit_bps);
        let headroom = self.limit_bps.saturating_sub(self.estimated_bps);
        let booked = estimated * config.factor(headroom, self.limit_bps) / 1024;
        if booked > self.limit_bps - self.booked_bps {
            return false;
        }
        let sum = &mut self.classes.meet(config, class).spans[self.epoch as usize & 1];
        sum.estimated_bps += estimated;
        sum.booked_bps += booked;
        self.booked_bps += booked;
        self.estimated_bps += estimated;
        true
    }

    /// Whether reads under way are expected to take all that may be booked, or more.
    pub fn is_over_subscribed(&self) -> bool {
        self.estimated_bps >= self.limit_bps
    }

    /// Gives a booking back; one that has lapsed or was revoked is passed over. A factor that has
    /// changed since is made up for: of the bookings made in the same span each gives back its
    /// share.
    pub fn release(&mut self, config: &ReservationConfig, now: Time, release: Release) {
        self.lapse(config, now);
        let Some(epoch) = self.live_epoch(config, release.booked_at) else { return };
        let Some(class) = self.classes.get_mut(release.class) else { return };
        let estimated = config.estimate_bps(release.bytes).min(self.limit_bps);
        let back = class.spans[epoch as usize & 1].give_back(estimated);
        self.booked_bps -= back.booked_bps;
        self.estimated_bps -= back.estimated_bps;
    }

    /// Something will be booked for a class or given back by it soon.
    #[inline]
    pub(crate) fn foresee(&self, class: ClassId) {
        self.classes.foresee(class);
    }

    /// Prefetches what [`foresee`](Self::foresee) found the place of.
    #[inline]
    pub(crate) fn foresee_live(&self, class: ClassId) {
        self.classes.foresee_live(class);
    }

    /// What the bucket of a class fills at; zero when it has booked nothing.
    pub fn fill_rate(&self, config: &ReservationConfig, class: ClassId) -> Rate {
        self.classes.get(class).map_or(Rate::bps(0), |class| class.fill_rate(config))
    }

    /// The bucket of a class, which fills at [`fill_rate`](Self::fill_rate) from `now` on.
    #[inline]
    pub fn bucket(&mut self, config: &ReservationConfig, now: Time, class: ClassId) -> &mut TokenBucket {
        let class = self.classes.meet(config, class);
        class.bucket.set_rate(now, class.fill_rate(config));
        &mut class.bucket
    }

    /// Nothing more happens to a class for now.
    pub(crate) fn settle(&mut self, class: ClassId) {
        self.classes.settle(class);
    }

    /// Forgets every booking: the port has failed (paper, 4.6).
    pub fn revoke(&mut self) {
        self.classes.iter_mut().for_each(|class| class.spans = [Sum::default(); 2]);
        (self.booked_bps, self.estimated_bps) = (0, 0);
    }

    /// The number of the span of a booking that has not lapsed. Compares instead of dividing: every
    /// answer asks.
    fn live_epoch(&self, config: &ReservationConfig, booked_at: Time) -> Option<u64> {
        let (ahead, behind) = (booked_at.saturating_since(self.since), self.since.saturating_since(booked_at));
        if behind == Span::ZERO {
            return (ahead < config.lapse).then_some(self.epoch);
        }
        (behind <= config.lapse).then(|| self.epoch - 1)
    }

    /// Forgets what was booked before the last span.
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
    /// Takes out one booking of `estimated_bps`, and returns it.
    fn give_back(&mut self, estimated_bps: u64) -> Sum {
        let estimated = estimated_bps.min(self.estimated_bps);
        let booked = match self.estimated_bps {
            0 => 0,
            all if all == estimated => self.booked_bps,
            // Nothing of it was over-committed, which is usual.
            all if all == self.booked_bps => estimated,
            all => share_rounded_up(self.booked_bps, estimated, all),
        };
        self.estimated_bps -= estimated;
        self.booked_bps -= booked;
        Sum { estimated_bps: estimated, booked_bps: booked }
    }
}

/// `value` x `part` / `whole`, rounded up. `part` is at most `whole`, so that the result is at most
/// `value`. With one wide division, where `div_ceil` has two.
fn share_rounded_up(value: u64, part: u64, whole: u64) -> u64 {
    let product = u128::from(value) * u128::from(part);
    let quotient = (product / u128::from(whole)) as u64;
    quotient + u64::from(u128::from(quotient) * u128::from(whole) < product)
}
