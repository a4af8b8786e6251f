//! Separation of hot and cold units of the host, after SepBIT (Wang, Li and Lee, FAST 2022, 3.2): a unit is expected to live as long as its
//! previous version did. It is hot if that was shorter than the mean life of the last collected hot blocks. Only SepBIT's two classes of host
//! writes are here; moved units share one stream, and a version's age is that of its block.

use super::blocks::Stream;

/// Hot blocks over whose lives the threshold is a mean (SepBIT, Algorithm 1).
const BLOCKS_FOR_MEAN: u32 = 16;

/// Tells hot units from cold ones. Ages are in blocks that the region filled meanwhile.
#[derive(Clone, Debug)]
pub(super) struct Heat {
    is_on: bool,
    /// Younger than this is hot.
    threshold: u32,
    age_sum: u64,
    collected: u32,
}

impl Heat {
    pub(super) fn new(is_on: bool) -> Heat {
        Heat { is_on, threshold: u32::MAX, age_sum: 0, collected: 0 }
    }
    /// Where a unit goes whose previous version has the given age; one without goes to the cold ones, as all do without separation.
    #[inline]
    pub(super) fn stream(&self, age: impl FnOnce() -> Option<u32>) -> Stream {
        if self.is_on && age().is_some_and(|age| age < self.threshold) { Stream::Hot } else { Stream::Cold }
    }
    /// A block of a stream becomes a victim at this age.
    pub(super) fn on_collected(&mut self, stream: Stream, age: u32) {
        if stream != Stream::Hot {
            return;
        }
        self.age_sum += u64::from(age);
        self.collected += 1;
        if self.collected == BLOCKS_FOR_MEAN {
            let mean = self.age_sum / u64::from(BLOCKS_FOR_MEAN);
            *self = Heat { threshold: mean as u32, ..Heat::new(self.is_on) };
        }
    }
    /// What a snapshot keeps.
    pub(super) fn state(&self) -> [u64; 3] {
        [u64::from(self.threshold), self.age_sum, u64::from(self.collected)]
    }
    /// Takes up what a snapshot kept; false if it is impossible.
    pub(super) fn set_state(&mut self, [threshold, age_sum, collected]: [u64; 3]) -> bool {
        let is_possible = threshold <= u64::from(u32::MAX) && collected < u64::from(BLOCKS_FOR_MEAN) && age_sum < 1 << 40;
        if is_possible {
            *self = Heat { is_on: self.is_on, threshold: threshold as u32, age_sum, collected: collected as u32 };
        }
        is_possible
    }
}
