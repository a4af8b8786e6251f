//! How long a server may be silent before it counts as dead: it is measured.
//!
//! It begins with the least time, and is twice the longest silence after which a server was heard
//! again without having restarted, up to a limit. With each beat a part of what it has grown by is
//! taken back. A machine whose processors are busy delays beats, and its servers are not dead.

use base::{Span, Time};

/// With each beat it loses this part of what it has grown by: half of it in 710 beats.
const FORGOTTEN: u64 = 1_024;

/// The patience with one server.
#[derive(Clone, Debug)]
pub(super) struct Patience {
    least: Span,
    most: Span,
    now: Span,
    until: Time,
}

impl Patience {
    /// At first the least. It never exceeds the most.
    pub fn new(least: Span, most: Span) -> Patience {
        Patience { least, most, now: least, until: Time::ZERO }
    }

    /// The server was heard, `silence` after the last time.
    pub fn heard(&mut self, now: Time, silence: Span) {
        let grown = self.now - self.least;
        let kept = self.least + (grown - grown / FORGOTTEN);
        self.now = kept.max(self.most.min(silence * 2));
        self.extend(now + self.now);
    }

    /// Nothing is known of it but that it may have a lease of any length: it was granted one by a
    /// control plane that has ended.
    pub fn begin(&mut self, now: Time, is_resumed: bool) {
        self.extend(now + if is_resumed { self.most } else { self.least });
    }

    /// A lease that was granted once is not taken back when the patience falls.
    fn extend(&mut self, until: Time) {
        self.until = self.until.max(until);
    }

    /// When the server counts as dead unless it is heard before.
    pub fn until(&self) -> Time {
        self.until
    }

    /// The time that may be granted now: the same part of the patience that `lease` is of the
    /// least. [`None`] while that is `lease` itself.
    pub fn grant(&self, lease: Span) -> Option<Span> {
        let span = || u128::from(lease.as_ps()) * u128::from(self.now.as_ps()) / u128::from(self.least.as_ps());
        (self.now > self.least).then(|| Span::ps(u64::try_from(span()).unwrap_or(u64::MAX)))
    }
}
