//! What a sender learns from selective acknowledgements (RFC 6675).

use crate::common::Ranges;

/// Segments beyond a hole that show it to be lost.
const SHOWN_BY: u64 = 3;

/// The receiver's ranges beyond the first hole, and how far holes were filled.
#[derive(Clone, Debug, Default)]
pub(super) struct Selective {
    ranges: Ranges,
    /// Everything lost before this offset was sent again in this recovery ("HighRxt").
    resent: u64,
    /// Where the recovery began: the segment there is lost, however little came beyond it.
    first: u64,
}

impl Selective {
    /// The receiver has `[start, end)`.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        self.ranges.insert(start, end);
    }
    /// Forgets what was acknowledged; `false` when nothing is left.
    pub(super) fn forget_below(&mut self, offset: u64) -> bool {
        self.ranges.forget_below(offset);
        !self.ranges.is_empty()
    }
    /// A recovery begins whose first hole is at `offset`.
    pub(super) fn begin(&mut self, offset: u64) {
        (self.resent, self.first) = (offset, offset);
    }
    /// Something lost was sent again up to `end`.
    pub(super) fn note_resent(&mut self, end: u64) {
        self.resent = self.resent.max(end);
    }
    /// Returns whether the segment at `offset` was sent again in this recovery.
    pub(super) fn is_resent(&self, offset: u64) -> bool {
        offset < self.resent
    }
    /// The end of the range that holds `offset`, or `offset`.
    pub(super) fn contiguous_from(&self, offset: u64) -> u64 {
        self.ranges.contiguous_from(offset)
    }
    /// Bytes that the receiver has before `offset`.
    pub(super) fn selected_below(&self, offset: u64) -> u64 {
        self.ranges.iter().map(|(start, end)| end.min(offset).saturating_sub(start)).sum()
    }
    /// Returns whether enough came beyond a hole.
    pub(super) fn shows_loss(&self, mss: u64) -> bool {
        self.lost_below(mss) > 0
    }
    /// Holes before this offset are lost: three ranges, or more than two full segments, came beyond
    /// ("IsLost").
    fn lost_below(&self, mss: u64) -> u64 {
        let mut bytes = 0;
        let mut counted = (1..).zip(self.ranges.iter().rev());
        let enough = counted.find(|(count, (start, end))| {
            bytes += end - start;
            *count >= SHOWN_BY || bytes > (SHOWN_BY - 1) * mss
        });
        enough.map_or(0, |(_, (start, _))| start)
    }
    /// Where the next lost segment begins that was not sent again.
    pub(super) fn next_hole(&self, unacknowledged: u64, mss: u64) -> Option<u64> {
        let from = self.contiguous_from(self.resent.max(unacknowledged));
        (from < self.lost_below(mss).max(self.first + 1)).then_some(from)
    }
    /// Bytes that are lost and were not sent again.
    pub(super) fn lost(&self, unacknowledged: u64, mss: u64) -> u64 {
        let (from, below) = (self.resent.max(unacknowledged), self.lost_below(mss));
        let selected = self.selected_below(below) - self.selected_below(from.min(below));
        below.saturating_sub(from).saturating_sub(selected)
    }
}
