//! The credits of a communicating pair's FIFO: the bytes that may be in flight to it.

/// Bytes of a FIFO. Space is reserved before data are requested, occupied when they arrive, and
/// free when they have left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Credits {
    bound: u64,
    /// Requested and not yet arrived.
    reserved: u64,
    /// There.
    occupied: u64,
    /// The most that was ever there.
    highest: u64,
}

impl Credits {
    pub(crate) fn new(bound: u64) -> Credits {
        Credits { bound, reserved: 0, occupied: 0, highest: 0 }
    }
    /// Returns whether `bytes` more may be requested.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.reserved + self.occupied + bytes <= self.bound
    }
    /// Reserves space. The caller has checked that there is room.
    pub(crate) fn reserve(&mut self, bytes: u64) {
        self.reserved += bytes;
    }
    /// Reserved bytes that will not come.
    pub(crate) fn cancel(&mut self, bytes: u64) {
        self.reserved -= bytes;
    }
    /// Reserved bytes are there.
    pub(crate) fn fill(&mut self, bytes: u64) {
        self.reserved -= bytes;
        self.occupied += bytes;
        self.highest = self.highest.max(self.occupied);
    }
    /// Bytes have left.
    pub(crate) fn drain(&mut self, bytes: u64) {
        self.occupied -= bytes;
    }
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }
    /// Takes the most from now on.
    pub(crate) fn restart_highest(&mut self) {
        self.highest = self.occupied;
    }
    pub(crate) fn is_idle(&self) -> bool {
        self.reserved == 0 && self.occupied == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_and_what_is_there_share_the_bound() {
        let mut fifo = Credits::new(100);
        assert!(fifo.has_room(100) && !fifo.has_room(101));
        fifo.reserve(60);
        assert!(fifo.has_room(40) && !fifo.has_room(41));
        fifo.fill(50);
        assert!(fifo.has_room(40) && !fifo.has_room(41), "arriving takes no more room");
        fifo.drain(30);
        assert!(fifo.has_room(70));
        fifo.cancel(10);
        fifo.drain(20);
        assert!(fifo.is_idle());
        assert_eq!(fifo.highest(), 50);
    }
}
