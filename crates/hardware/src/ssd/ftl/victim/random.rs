//! Candidates drawn at random, with replacement, of which the emptiest is taken (Van Houdt,
//! SIGMETRICS 2013); a single one is plain random selection. Blocks that hold valid data only are
//! drawn again: they would only be moved.

use super::{Draws, Pool};

/// Draws that may hit no candidate before the next one in order is taken.
const MISSES_MAX: u32 = 64;

pub(super) fn choose(pool: &Pool, count: u32, draws: &mut Draws) -> Option<u32> {
    let drawn = (0..count).map_while(|_| draw(pool, draws));
    drawn.min_by_key(|slot| pool.candidate(*slot))
}

fn draw(pool: &Pool, draws: &mut Draws) -> Option<u32> {
    let slots: u32 = pool.segments.iter().map(|(from, to)| to - from).sum();
    if slots == 0 {
        return None;
    }
    let mut drawn = 0;
    for _ in 0..MISSES_MAX {
        drawn = draws.below(slots);
        let slot = nth(pool, drawn);
        if pool.candidate(slot).is_some() {
            return Some(slot);
        }
    }
    let is_candidate = |slot: &u32| pool.candidate(*slot).is_some();
    pool.slots().skip(drawn as usize).find(is_candidate).or_else(|| pool.slots().find(is_candidate))
}

fn nth(pool: &Pool, mut index: u32) -> u32 {
    for (from, to) in pool.segments {
        if index < to - from {
            return from + index;
        }
        index -= to - from;
    }
    unreachable!("a number below the count of slots is in one of the segments")
}
