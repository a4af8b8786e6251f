//! The fewest valid units; of equals the lowest slot.

use super::Pool;

pub(super) fn choose(pool: &Pool) -> Option<u32> {
    let emptiest = pool.segments.iter().filter_map(|(from, to)| pool.blocks.emptiest(*from, *to, pool.units_per_block));
    emptiest.min().map(|(_, slot)| slot)
}
