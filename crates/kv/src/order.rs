//! Which verbs may be under way together, where what carries them keeps no order.
//!
//! A swap, of a whole word or of bits, is what others go by: it makes valid what was written
//! before. So, within a block, a swap waits for the end of all writes and swaps that were posted
//! before it, and what was posted behind a swap waits for its end. Reads and writes pass each
//! other: who waits for an answer has it before it posts the next verb. Verbs of one post are
//! executed in their order.

use scalio::{Done, RequestId, Verb};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

/// Names a verb: its post, and which one of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VerbId {
    post: usize,
    number: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Look,
    Store,
    Swap,
}

struct Post {
    request: Option<RequestId>,
    verbs: Vec<Verb>,
    results: Vec<Option<Done>>,
    block: u64,
    kind: Kind,
}

/// What is posted on a block and has not ended.
#[derive(Default)]
struct Lane {
    stores: usize,
    swaps: usize,
    looks: usize,
    waiting: VecDeque<usize>,
}

impl Lane {
    fn may_start(&self, kind: Kind) -> bool {
        self.swaps == 0 && (kind != Kind::Swap || self.stores == 0)
    }

    fn count(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Look => &mut self.looks,
            Kind::Store => &mut self.stores,
            Kind::Swap => &mut self.swaps,
        }
    }

    fn is_empty(&self) -> bool {
        self.stores + self.swaps + self.looks + self.waiting.len() == 0
    }
}

/// Posts that have not ended.
pub struct Order {
    block_bytes: u64,
    /// Whether reads that are issued one behind the other are executed so.
    reads_keep_order: bool,
    posts: Slab<Post>,
    lanes: BTreeMap<u64, Lane>,
    ready: VecDeque<VerbId>,
}

impl Order {
    /// No posts on blocks of so many bytes.
    pub fn new(block_bytes: usize, reads_keep_order: bool) -> Order {
        let block_bytes = block_bytes.max(1) as u64;
        Order { block_bytes, reads_keep_order, posts: Slab::new(), lanes: BTreeMap::new(), ready: VecDeque::new() }
    }

    /// Takes verbs on one block.
    pub fn post(&mut self, request: Option<RequestId>, verbs: Vec<Verb>) {
        let Some(first) = verbs.first() else { return };
        let block = at(first) / self.block_bytes;
        let kind = verbs.iter().map(kind_of).max_by_key(|kind| *kind as u8).unwrap_or(Kind::Look);
        let results = vec![None; verbs.len()];
        let post = self.posts.insert(Post { request, verbs, results, block, kind });
        self.lanes.entry(block).or_default().waiting.push_back(post);
        self.start(block);
    }

    /// Starts what waits for nothing more.
    fn start(&mut self, block: u64) {
        let Some(lane) = self.lanes.get_mut(&block) else { return };
        while let Some(post) = lane.waiting.front().copied().filter(|post| lane.may_start(self.posts[*post].kind)) {
            lane.waiting.pop_front();
            *lane.count(self.posts[post].kind) += 1;
            let together = if self.reads_keep_order && self.posts[post].kind == Kind::Look {
                self.posts[post].verbs.len()
            } else {
                1
            };
            self.ready.extend((0..together).map(|number| VerbId { post, number }));
        }
        if lane.is_empty() {
            self.lanes.remove(&block);
        }
    }

    /// The verb that is to be issued next. It stays the next one until [`Self::issued`].
    pub fn next(&self) -> Option<(VerbId, &Verb)> {
        let id = *self.ready.front()?;
        Some((id, &self.posts[id.post].verbs[id.number]))
    }

    /// The next verb is issued.
    pub fn issued(&mut self) {
        self.ready.pop_front();
    }

    /// A verb has ended. Returns the request and the results of its post, if somebody waits for
    /// them and they are complete.
    pub fn ended(&mut self, id: VerbId, result: Done) -> Option<(RequestId, Vec<Done>)> {
        let post = self.posts.get_mut(id.post)?;
        post.results[id.number] = Some(result);
        if post.results.iter().any(Option::is_none) {
            let next = id.number + 1;
            let is_alone = !(self.reads_keep_order && post.kind == Kind::Look);
            if is_alone && next < post.verbs.len() {
                self.ready.push_back(VerbId { post: id.post, number: next });
            }
            return None;
        }
        let Post { request, results, block, kind, .. } = self.posts.remove(id.post);
        if let Some(lane) = self.lanes.get_mut(&block) {
            *lane.count(kind) -= 1;
        }
        self.start(block);
        request.map(|request| (request, results.into_iter().flatten().collect()))
    }

    /// Whether nothing is posted that has not ended.
    pub fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }
}

fn at(verb: &Verb) -> u64 {
    match verb {
        Verb::Read { at, .. } | Verb::Write { at, .. } | Verb::Swap { at, .. } | Verb::Bits { at, .. } => *at,
    }
}

fn kind_of(verb: &Verb) -> Kind {
    match verb {
        Verb::Read { .. } => Kind::Look,
        Verb::Write { .. } => Kind::Store,
        Verb::Swap { .. } | Verb::Bits { .. } => Kind::Swap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BLOCK: usize = 100;

    fn look(at: u64) -> Verb {
        Verb::Read { at, bytes: 8 }
    }
    fn store(at: u64) -> Verb {
        Verb::Write { at, data: vec![1; 8] }
    }
    fn swap(at: u64) -> Verb {
        Verb::Swap { at, expected: 1, new: 2 }
    }

    /// Issues all that may be.
    fn issue(order: &mut Order) -> Vec<(VerbId, u64)> {
        let mut all = Vec::new();
        while let Some((id, verb)) = order.next() {
            all.push((id, at(verb)));
            order.issued();
        }
        all
    }

    fn places(issued: &[(VerbId, u64)]) -> Vec<u64> {
        issued.iter().map(|(_, at)| *at).collect()
    }

    #[test]
    fn a_swap_waits_for_writes_before_it_and_all_behind_it_wait_for_the_swap() {
        let mut order = Order::new(BLOCK, true);
        for verb in [look(0), store(8), store(16), swap(24), look(32), store(40), swap(48)] {
            order.post(None, vec![verb]);
        }
        // Of another block: in nobody's way.
        order.post(None, vec![swap(100)]);
        let first = issue(&mut order);
        assert_eq!(places(&first), [0, 8, 16, 100]);
        order.ended(first[1].0, Done::Written);
        assert!(issue(&mut order).is_empty());
        order.ended(first[2].0, Done::Written);
        let second = issue(&mut order);
        assert_eq!(places(&second), [24], "the read before it may still be under way");
        order.ended(second[0].0, Done::Found(1));
        let third = issue(&mut order);
        assert_eq!(places(&third), [32, 40], "the last swap waits for the write");
        order.ended(third[1].0, Done::Written);
        assert_eq!(places(&issue(&mut order)), [48]);
    }

    #[test]
    fn verbs_of_a_post_follow_each_other_and_are_answered_together() {
        for keeps_order in [true, false] {
            let mut order = Order::new(BLOCK, keeps_order);
            order.post(Some(RequestId(7)), vec![look(0), look(8), look(16)]);
            let (mut places, mut answer) = (Vec::new(), None);
            while !order.is_empty() {
                let issued = issue(&mut order);
                assert_eq!(issued.len(), if keeps_order { 3 } else { 1 });
                for (id, at) in issued {
                    places.push(at);
                    answer = order.ended(id, Done::Found(at));
                }
            }
            assert_eq!(places, [0, 8, 16]);
            assert_eq!(answer, Some((RequestId(7), vec![Done::Found(0), Done::Found(8), Done::Found(16)])));
        }
    }

    proptest! {
        /// Whatever ends first, everything is issued once and answered once, and no swap is under
        /// way beside a write or another swap of its block.
        #[test]
        fn all_that_is_posted_ends(kinds in prop::collection::vec((0u8..3, 0u64..3), 1..40), ends in any::<u64>()) {
            let mut order = Order::new(BLOCK, ends.is_multiple_of(2));
            for (number, (kind, block)) in kinds.iter().enumerate() {
                let at = block * BLOCK as u64;
                let verbs = match kind { 0 => vec![look(at); 3], 1 => vec![store(at)], _ => vec![swap(at)] };
                order.post(Some(RequestId(number as u64)), verbs);
            }
            let (mut under_way, mut answered, mut ends) = (Vec::new(), Vec::new(), ends);
            while !order.is_empty() {
                while let Some((id, verb)) = order.next() {
                    under_way.push((id, kind_of(verb), at(verb)));
                    order.issued();
                }
                for (at, (id, kind, block)) in under_way.iter().enumerate() {
                    let beside = |(other, its, there): &(VerbId, Kind, u64)| other != id && there == block && *its != Kind::Look;
                    prop_assert!(*kind != Kind::Swap || !under_way.iter().any(beside), "{at}");
                }
                let (id, ..) = under_way.swap_remove(ends as usize % under_way.len());
                ends = ends.rotate_left(7).wrapping_mul(31).wrapping_add(1);
                answered.extend(order.ended(id, Done::Written).map(|(request, _)| request.0));
            }
            prop_assert!(under_way.is_empty() && order.lanes.is_empty());
            answered.sort_unstable();
            prop_assert_eq!(answered, (0..kinds.len() as u64).collect::<Vec<_>>());
        }
    }
}
