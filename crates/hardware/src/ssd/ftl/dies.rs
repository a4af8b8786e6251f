//! The dies that a region has blocks on: their free blocks, the blocks that are being filled, and
//! the order in which dies take turns.

use super::blocks::Stream;
use crate::ssd::geometry::{DieId, Geometry};
use std::collections::VecDeque;

/// Free blocks of a die that only collection may open, so that it can always go on.
pub(super) const RESERVE: usize = 1;

/// A block that is being filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frontier {
    pub(super) slot: u32,
    /// The page that gathers units, below the pages of a block.
    pub(super) page: u32,
    /// Units that it has, below the units of a page.
    pub(super) gathered: u32,
}

/// A victim whose data are being moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collection {
    pub(super) slot: u32,
    /// The die, by its place in [`Dies`], that takes the data: its own, unless that has no room
    /// left.
    pub(super) target: u32,
    /// The offset up to which all has been moved.
    pub(super) next: u32,
    /// The offset up to which entries of the map have been prefetched.
    pub(super) warmed: u32,
    /// Whether it levels wear: blocks opened for it are the most worn free ones.
    pub(super) levels_wear: bool,
}

/// One die's share of a region.
#[derive(Clone, Debug)]
pub(super) struct Die {
    pub(super) id: DieId,
    /// Its slots, as ranges.
    pub(super) segments: Vec<(u32, u32)>,
    /// Slots of those that have no block.
    pub(super) vacant: Vec<u32>,
    /// Erased blocks, the one that waited longest first.
    pub(super) free: VecDeque<u32>,
    /// Good blocks.
    pub(super) owned: u32,
    /// By stream.
    pub(super) open: [Option<Frontier>; 4],
    /// Its victim, of which a die has one at a time.
    pub(super) collection: Option<Collection>,
    /// The slot of the victim whose data it takes; one at a time, so that its room is promised
    /// once.
    pub(super) receives: Option<u32>,
}

impl Die {
    fn new(id: DieId) -> Die {
        Die {
            id,
            segments: Vec::new(),
            vacant: Vec::new(),
            free: VecDeque::new(),
            owned: 0,
            open: [None; 4],
            collection: None,
            receives: None,
        }
    }
    /// Its slots.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.segments.iter().flat_map(|(from, to)| *from..*to)
    }
    /// Adds a slot at the end of all slots.
    pub(super) fn add_slot(&mut self, slot: u32) {
        match self.segments.last_mut() {
            Some((_, to)) if *to == slot => *to += 1,
            _ => self.segments.push((slot, slot + 1)),
        }
    }
    #[inline]
    fn can_take_from_host(&self, stream: Stream) -> bool {
        self.open[stream as usize].is_some() || self.free.len() > RESERVE
    }
    fn memory_bytes(&self) -> u64 {
        let slots = self.vacant.capacity() + self.free.capacity() + 2 * self.segments.capacity();
        size_of::<Die>() as u64 + slots as u64 * 4
    }
}

/// The dies of a region.
#[derive(Clone, Debug)]
pub(super) struct Dies {
    list: Vec<Die>,
    /// By die of the array: the place in `list`, or the largest number.
    place_of: Vec<u32>,
    /// Places in `list` in the order of writing: first over channels, then over the dies of a
    /// channel.
    stripe: Vec<u32>,
    /// By die, as in `list`: where it is in `stripe`.
    rank_of: Vec<u32>,
    /// By stream of the host: the place in `stripe` of the die whose turn it is.
    turns: [u32; 2],
    /// By stream of the host: a bit for each place in `stripe` whose die can take a unit. When free
    /// blocks are few, most cannot.
    ready: [Vec<u64>; 2],
    /// By die, as in `list`: its free and its good blocks when it was noted last; and the sums.
    noted: Vec<[u32; 2]>,
    sums: [u32; 2],
    dies_per_channel: u32,
}

impl Dies {
    pub(super) fn new(geometry: &Geometry) -> Dies {
        Dies {
            list: Vec::new(),
            place_of: vec![u32::MAX; geometry.dies() as usize],
            stripe: Vec::new(),
            rank_of: Vec::new(),
            turns: [0; 2],
            ready: [Vec::new(), Vec::new()],
            noted: Vec::new(),
            sums: [0; 2],
            dies_per_channel: geometry.dies_per_channel,
        }
    }
    /// The place of a die, which is added if it is new.
    pub(super) fn place_or_add(&mut self, id: DieId) -> u32 {
        if let Some(place) = self.place_of(id) {
            return place;
        }
        let place = self.list.len() as u32;
        self.list.push(Die::new(id));
        self.noted.push([0; 2]);
        self.place_of[id.0 as usize] = place;
        self.insert_into_stripe(place);
        place
    }
    pub(super) fn place_of(&self, id: DieId) -> Option<u32> {
        self.place_of.get(id.0 as usize).copied().filter(|place| *place != u32::MAX)
    }
    pub(super) fn find(&self, id: DieId) -> Option<&Die> {
        self.place_of(id).map(|place| self.get(place))
    }
    #[inline]
    pub(super) fn get(&self, place: u32) -> &Die {
        &self.list[place as usize]
    }
    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> &mut Die {
        &mut self.list[place as usize]
    }
    pub(super) fn len(&self) -> u32 {
        self.list.len() as u32
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &Die> {
        self.list.iter()
    }
    /// In the order of writing.
    pub(super) fn striped(&self) -> impl Iterator<Item = &Die> {
        self.stripe.iter().map(|place| self.get(*place))
    }
    /// Returns the die for the next unit of a host stream: the next in turn with room.
    #[inline]
    pub(super) fn next_for_host(&mut self, stream: Stream) -> Option<u32> {
        let ready = &self.ready[stream as usize];
        let turn = self.turns[stream as usize];
        let found = next_bit(ready, turn).or_else(|| next_bit(ready, 0))?;
        self.turns[stream as usize] = found;
        Some(self.stripe[found as usize])
    }
    /// Free and good blocks of all dies.
    pub(super) fn sums(&self) -> [u32; 2] {
        self.sums
    }
    /// Takes note of how many blocks a die has, and whether it can take units of the host: to be
    /// called whenever its open, free or good blocks have changed.
    pub(super) fn note_ready(&mut self, place: u32) {
        let die = self.get(place);
        let now = [die.free.len() as u32, die.owned];
        let noted = std::mem::replace(&mut self.noted[place as usize], now);
        for (sum, (now, noted)) in self.sums.iter_mut().zip(now.into_iter().zip(noted)) {
            *sum = *sum + now - noted;
        }
        let rank = self.rank_of[place as usize];
        let (word, bit) = (rank as usize / 64, rank % 64);
        for stream in [Stream::Cold, Stream::Hot] {
            let is_ready = self.get(place).can_take_from_host(stream);
            let ready = &mut self.ready[stream as usize][word];
            *ready = *ready & !(1 << bit) | u64::from(is_ready) << bit;
        }
    }
    /// Returns whether all dies that can take units of a stream, and no others, are noted.
    pub(super) fn are_noted(&self, stream: Stream) -> bool {
        let is_noted = |rank: u32| self.ready[stream as usize][rank as usize / 64] >> (rank % 64) & 1 == 1;
        (0u32..).zip(self.striped()).all(|(rank, die)| is_noted(rank) == die.can_take_from_host(stream))
    }
    /// The die whose turn it is.
    pub(super) fn at_turn(&self, stream: Stream) -> Option<u32> {
        self.stripe.get(self.turns[stream as usize] as usize).copied()
    }
    /// The next die's turn.
    #[inline]
    pub(super) fn advance(&mut self, stream: Stream) {
        let turn = &mut self.turns[stream as usize];
        *turn = if *turn + 1 < self.stripe.len() as u32 { *turn + 1 } else { 0 };
    }
    pub(super) fn turns(&self) -> [u32; 2] {
        self.turns
    }
    pub(super) fn set_turns(&mut self, turns: [u32; 2]) {
        self.turns = turns;
    }
    pub(super) fn memory_bytes(&self) -> u64 {
        let spare = self.list.capacity() - self.list.len();
        let dies: u64 = self.list.iter().map(Die::memory_bytes).sum();
        dies + (spare * size_of::<Die>()) as u64
            + (self.place_of.capacity() + self.stripe.capacity() + self.rank_of.capacity()) as u64 * 4
            + self.noted.capacity() as u64 * 8
    }

    fn insert_into_stripe(&mut self, place: u32) {
        let rank = |place: u32| {
            let die = self.get(place).id.0;
            (die % self.dies_per_channel, die / self.dies_per_channel)
        };
        let at = self.stripe.partition_point(|other| rank(*other) < rank(place));
        self.stripe.insert(at, place);
        self.rank_of.push(0);
        (0u32..).zip(&self.stripe).for_each(|(rank, place)| self.rank_of[*place as usize] = rank);
        self.ready = [(); 2].map(|()| vec![0; self.stripe.len().div_ceil(64)]);
        for turn in &mut self.turns {
            if self.stripe.len() > 1 && at as u32 <= *turn {
                *turn += 1;
            }
        }
        (0..self.len()).for_each(|place| self.note_ready(place));
    }
}

/// The first bit that is set from `from` on.
#[inline]
fn next_bit(words: &[u64], from: u32) -> Option<u32> {
    let mut at = from as usize / 64;
    let mut word = words.get(at)? & (u64::MAX << (from % 64));
    while word == 0 {
        at += 1;
        word = *words.get(at)?;
    }
    Some(at as u32 * 64 + word.trailing_zeros())
}
