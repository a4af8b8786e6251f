//! What is booked on one port, by class of sessions.

use super::{ClassId, ReservationConfig};
use base::{Rate, Time};

/// The bookings of a port.
#[derive(Clone, Debug)]
pub struct Bookings {
    /// What may be booked, bits a second.
    limit_bps: u64,
    booked_bps: u64,
    /// The span that `now` was last in.
    epoch: u64,
    /// Empty until the first booking: most ports of a network never see a request come in.
    classes: Vec<Class>,
}

/// Bookings of one class, made in the span of even and of odd number.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    spans: [Sum; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    estimated_bps: u64,
    booked_bps: u64,
}

/// Which booking a response gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Whose.
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
        Bookings { limit_bps, booked_bps: 0, epoch: 0, classes: Vec::new() }
    }

    /// What was booked in all when this was last booked on or given back to.
    pub fn booked(&self) -> Rate {
        Rate::bps(self.booked_bps)
    }

    /// What is booked in all at `now`: bookings also lapse while nothing happens. Looks at every class.
    pub fn booked_at(&self, config: &ReservationConfig, now: Time) -> Rate {
        let mut swept = self.clone();
        swept.lapse(config, now);
        swept.booked()
    }

    /// Books for a read of `bytes`; `false` and no change when the limit would be passed. A read that would take more than the limit alone
    /// books all of it, or it would never pass.
    pub fn book(&mut self, config: &ReservationConfig, now: Time, class: ClassId, bytes: u32) -> bool {
        self.lapse(config, now);
        let estimated = config.estimate_bps(bytes).min(self.limit_bps);
        let free = self.limit_bps.saturating_sub(self.booked_bps);
        let booked = estimated * config.factor(free, self.limit_bps) / 1024;
        if booked > free {
            return false;
        }
        if self.classes.is_empty() {
            self.classes = vec![Class::default(); config.classes as usize];
        }
        let sum = &mut self.classes[class.index()].spans[self.epoch as usize & 1];
        sum.estimated_bps += estimated;
        sum.booked_bps += booked;
        self.booked_bps += booked;
        true
    }

    /// Gives a booking back; one that has lapsed or was revoked is passed over. A factor that has changed since is made up for: of the bookings
    /// made in the same span each gives back its share.
    pub fn release(&mut self, config: &ReservationConfig, now: Time, release: Release) {
        self.lapse(config, now);
        let epoch = epoch_of(config, release.booked_at);
        if self.classes.is_empty() || epoch + 1 < self.epoch || epoch > self.epoch {
            return;
        }
        let estimated = config.estimate_bps(release.bytes).min(self.limit_bps);
        let sum = &mut self.classes[release.class.index()].spans[epoch as usize & 1];
        self.booked_bps -= sum.give_back(estimated);
    }

    /// What the bucket of a class fills at; zero when it has booked nothing.
    pub fn fill_rate(&self, config: &ReservationConfig, class: ClassId) -> Rate {
        let Some(Class { spans: [even, odd] }) = self.classes.get(class.index()) else { return Rate::bps(0) };
        Rate::bps(if config.fills_at_booked {
            even.booked_bps + odd.booked_bps
        } else {
            even.estimated_bps + odd.estimated_bps
        })
    }

    /// Forgets everything: the port has failed (paper, 4.6).
    pub fn revoke(&mut self) {
        self.classes.clear();
        self.booked_bps = 0;
    }

    /// Forgets what was booked before the last span.
    fn lapse(&mut self, config: &ReservationConfig, now: Time) {
        let epoch = epoch_of(config, now);
        if epoch <= self.epoch {
            return;
        }
        let gone: &[usize] = if epoch == self.epoch + 1 { &[epoch as usize & 1] } else { &[0, 1] };
        self.epoch = epoch;
        for class in &mut self.classes {
            for span in gone {
                self.booked_bps -= std::mem::take(&mut class.spans[*span]).booked_bps;
            }
        }
    }
}

impl Sum {
    /// Takes out one booking of `estimated_bps`; what it had booked.
    fn give_back(&mut self, estimated_bps: u64) -> u64 {
        let estimated = estimated_bps.min(self.estimated_bps);
        let booked = match self.estimated_bps {
            0 => 0,
            all if all == estimated => self.booked_bps,
            all => (u128::from(self.booked_bps) * u128::from(estimated)).div_ceil(u128::from(all)) as u64,
        };
        self.estimated_bps -= estimated;
        self.booked_bps -= booked;
        booked
    }
}

fn epoch_of(config: &ReservationConfig, now: Time) -> u64 {
    now.as_ps() / config.lapse.as_ps()
}
