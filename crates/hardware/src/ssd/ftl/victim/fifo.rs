//! The block that was filled first: blocks are cleaned in the order of their writing, as a log is.

use super::Pool;

pub(super) fn choose(pool: &Pool) -> Option<u32> {
    let candidates = pool.slots().filter(|slot| pool.candidate(*slot).is_some());
    candidates.max_by_key(|slot| pool.blocks.age(*slot))
}
