//! A block cache.

/// Ways of a set. With eight of them, least recently used of a set is within some percent of least
/// recently used of all.
const WAYS: usize = 8;
const EMPTY: u64 = 0;

/// Blocks by a 64-bit hash of their name; evicts the least recently used of a set. No allocation
/// after the first.
#[derive(Clone, Debug)]
pub(super) struct BlockCache {
    /// Each set from the most recently used on.
    ways: Vec<[u64; WAYS]>,
}

impl BlockCache {
    /// A cache of this many blocks, in whole sets; without a set it never hits.
    pub(super) fn new(blocks: u64) -> BlockCache {
        BlockCache { ways: vec![[EMPTY; WAYS]; (blocks / WAYS as u64) as usize] }
    }

    /// Returns whether the block was there; it is from now on.
    pub(super) fn touch(&mut self, name: u64) -> bool {
        let Some(last) = (self.ways.len() as u64).checked_sub(1) else { return false };
        let tag = name.max(1);
        let set = &mut self.ways[((u128::from(tag) * u128::from(last + 1)) >> 64) as usize];
        let found = set.iter().position(|way| *way == tag);
        set[..=found.unwrap_or(WAYS - 1)].rotate_right(1);
        set[0] = tag;
        found.is_some()
    }
}

/// The first number of SplitMix64 from `value` on.
pub(super) fn mix(value: u64) -> u64 {
    base::mix(value.wrapping_add(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_the_least_recently_used_goes() {
        let mut cache = BlockCache::new(8);
        assert!((1..=8).all(|name| !cache.touch(name)));
        assert!((1..=8).all(|name| cache.touch(name)));
        assert!(!cache.touch(9), "9 takes the place of 1");
        assert!(cache.touch(2) && !cache.touch(1));
        assert!(!cache.touch(3), "1 has taken the place of 3");
    }

    #[test]
    fn a_cache_without_a_set_never_hits_and_a_large_one_holds_nearly_what_it_should() {
        let mut none = BlockCache::new(7);
        assert!(!none.touch(5) && !none.touch(5));
        let mut large = BlockCache::new(8_000);
        (0..4_000).for_each(|name| {
            large.touch(mix(name));
        });
        let hits = (0..4_000).filter(|name| large.touch(mix(*name))).count();
        assert!(hits > 3_700, "{hits}");
    }
}
