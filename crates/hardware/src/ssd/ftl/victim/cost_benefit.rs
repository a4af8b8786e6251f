//! The largest `age * (1 - u) / 2u` (Kawaguchi, Nishioka and Motoda, USENIX 1995, 3.4): space won
//! times the time that it is likely to stay won, for the cost of reading and writing what is valid.
//! Age is in blocks that the region filled since.

use super::Pool;

pub(super) fn choose(pool: &Pool) -> Option<u32> {
    let scored = pool.slots().filter_map(|slot| pool.candidate(slot).map(|valid| (score(pool, slot, valid), slot)));
    scored.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, slot)| slot)
}

/// Infinite for a block without valid units.
fn score(pool: &Pool, slot: u32, valid: u32) -> f64 {
    // One more, so that valid units still distinguish freshly filled blocks.
    let age = f64::from(pool.blocks.age(slot)) + 1.0;
    age * f64::from(pool.units_per_block - valid) / (2.0 * f64::from(valid))
}
