//! A sender's information from selective acknowledgements (RFC 6675).

use crate::common::Ranges;

/// Number of segments beyond a gap that prove it lost.
const SHOWN_BY: u64 = 3;

/// The receiver's ranges beyond the first gap, and the progress of retransmission.
#[derive(Clone, Debug, Default)]
pub(super) struct Selective {
    ranges: Ranges,
    /// All losses before this offset were retransmitted in this recovery ("HighRxt").
    resent: u64,
    /// Start of the recovery: the segment there is lost, however few were received beyond it.
    first: u64,
}

impl Selective {
    /// Records that the receiver has `[start, end)`.
    pub(super) fn add(&mut self, start: u64, end: u64) {
        self.ranges.insert(start, end);
    }
    /// Drops acknowledged ranges; returns `false` if none is left.
    pub(super) fn forget_below(&mut self, offset: u64) -> bool {
        self.ranges.forget_below(offset);
        !self.ranges.is_empty()
    }
    /// Starts a recovery whose first gap is at `offset`.
    pub(super) fn begin(&mut self, offset: u64) {
        (self.resent, self.first) = (offset, offset);
    }
    /// Records that lost data were retransmitted up to `end`.
    pub(super) fn note_resent(&mut self, end: u64) {
        self.resent = self.resent.max(end);
    }
    /// Returns whether the segment at `offset` was retransmitted in this recovery.
    pub(super) fn is_resent(&self, offset: u64) -> bool {
        offset < self.resent
    }
    /// Returns the end of the range that contains `offset`, or `offset`.
    pub(super) fn contiguous_from(&self, offset: u64) -> u64 {
        self.ranges.contiguous_from(offset)
    }
    /// Returns the number of bytes before `offset` that the receiver has.
    pub(super) fn selected_below(&self, offset: u64) -> u64 {
        self.ranges.iter().map(|(start, end)| end.min(offset).saturating_sub(start)).sum()
    }
    /// Returns whether enough was received beyond a gap.
    pub(super) fn shows_loss(&self, mss: u64) -> bool {
        self.lost_below(mss) > 0
    }
    /// Returns the offset below which gaps are lost: three ranges, or more than two full segments,
    /// were received beyond ("IsLost").
    fn lost_below(&self, mss: u64) -> u64 {
        let mut bytes = 0;
        let mut counted = (1..).zip(self.ranges.iter().rev());
        let enough = counted.find(|(count, (start, end))| {
            bytes += end - start;
            *count >= SHOWN_BY || bytes > (SHOWN_BY - 1) * mss
        });
        enough.map_or(0, |(_, (start, _))| start)
    }
    /// Returns the start of the next lost segment that was not retransmitted.
    pub(super) fn next_hole(&self, unacknowledged: u64, mss: u64) -> Option<u64> {
        let from = self.contiguous_from(self.resent.max(unacknowledged));
        (from < self.lost_below(mss).max(self.first + 1)).then_some(from)
    }
    /// Returns the number of lost bytes that were not retransmitted.
    pub(super) fn lost(&self, unacknowledged: u64, mss: u64) -> u64 {
        let (from, below) = (self.resent.max(unacknowledged), self.lost_below(mss));
        let selected = self.selected_below(below) - self.selected_below(from.min(below));
        below.saturating_sub(from).saturating_sub(selected)
    }
}
