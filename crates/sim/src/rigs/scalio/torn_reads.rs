//! Reads of blocks from afar while others change them.
//!
//! An adapter reads a block line by line, each at some moment of the time that it takes, in no
//! order that anybody promises. So a read that others write into brings back some lines from before
//! and some from after. The contents of a block before each change are kept while a reader that
//! began earlier is reading. The moments of the lines are drawn only then, since otherwise they do
//! not matter. Words of 8 B lie within a line and are whole.
//!
//! When a slot was last used is a hint, written at every hit: what is read of it is always the
//! newest.

use crate::slab::Slab;
use base::{Span, Stream, Time};
use scalio::layout::{block_bytes, encode_block, offset};
use scalio::{BlockHeader, Index, Slot, SlotWord, Token};
use std::collections::BTreeMap;
use std::iter::successors;
use std::sync::Arc;

/// What memory and adapter move at once.
const LINE: usize = 64;

/// A block at one moment: its header, if it has one, and its slots.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// What stands in front; `None`: closed.
    pub header: Option<BlockHeader>,
    /// Its slots.
    pub slots: Vec<Slot<Token>>,
}

impl State {
    /// Of a block now.
    pub fn of(index: &Index<Token>, block: u32) -> State {
        State { header: index.header(block), slots: index.slots(block).to_vec() }
    }

    /// The same with the times of the last use of `newest`.
    fn used_like(&self, newest: &State) -> State {
        let slots = self.slots.iter().zip(&newest.slots);
        let slots = slots.map(|(slot, last)| Slot { last_use: last.last_use, ..*slot }).collect();
        State { header: self.header, slots }
    }

    /// As it lies in memory.
    fn bytes(&self) -> Vec<u8> {
        encode_block(self.header.as_ref(), self.slots.iter().copied())
    }
}

/// Where each line ends of a block that begins wherever it does, counted from its beginning.
fn lines_of(block: u32, slots: usize) -> Vec<usize> {
    let length = block_bytes(slots as u8);
    let first = LINE - (offset::block(block, slots as u8) % LINE as u64) as usize;
    (first..length).step_by(LINE).chain([length]).collect()
}

/// From when to when something is read.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The first moment.
    pub from: Time,
    /// The last.
    pub until: Time,
}

impl Window {
    /// A window that begins now, or as soon as another has ended.
    pub fn after(now: Time, before: Option<Window>, span: Span) -> Window {
        let from = before.map_or(now, |before| before.until.max(now));
        Window { from, until: from + span }
    }
}

/// A read on its way: of a block, or of a block, then its header, then the word of a slot.
#[derive(Clone, Debug)]
pub struct BlockRead {
    /// The block.
    pub block: u32,
    /// The slot whose word is read at last.
    pub slot: Option<u8>,
    /// When the block is read.
    pub lines: Window,
    /// When its header is read again.
    pub header: Option<Window>,
    /// When the word is read.
    pub word: Option<Window>,
}

/// A block as a read has found it.
pub enum Found {
    /// As it was at one moment.
    Whole(State),
    /// Its bytes, of several moments.
    Mixed(Vec<u8>),
}

/// What a read has found.
pub struct Seen {
    /// The block.
    pub found: Found,
    /// The header that was read after them.
    pub header: Option<BlockHeader>,
    /// The word that was read after that.
    pub word: Option<SlotWord>,
}

/// What a block held before changes, and when these were, in order.
type Before = Vec<(Time, Arc<State>)>;

/// Somebody who reads a block.
#[derive(Clone, Copy, Debug)]
struct Reader {
    /// When he began.
    begun: Time,
    /// Who began before and still reads the same block; [`NOBODY`] if none does.
    earlier: u32,
}

/// The end of a chain of readers.
const NOBODY: u32 = u32::MAX;

/// All reads on their way. One that nobody disturbs costs a link in a chain and nothing more.
pub struct TornReads {
    stream: Stream,
    /// Who began last to read each block, in `readers`.
    latest: Vec<u32>,
    readers: Slab<Reader>,
    /// Blocks that were changed while somebody who still reads them did.
    changed: BTreeMap<u32, Before>,
    torn: u64,
}

impl TornReads {
    /// None, in a store of so many blocks. The stream draws the moments of lines.
    pub fn new(stream: Stream, blocks: u32) -> TornReads {
        let latest = vec![NOBODY; blocks as usize];
        TornReads { stream, latest, readers: Slab::new(), changed: BTreeMap::new(), torn: 0 }
    }

    /// Reads whose block has never been as they saw it.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Somebody begins to read a block.
    pub fn open(&mut self, now: Time, block: u32) {
        let latest = &mut self.latest[block as usize];
        *latest = self.readers.insert(Reader { begun: now, earlier: *latest });
    }

    /// A block is about to change. What it holds until now is remembered for those who read it.
    pub fn changes(&mut self, now: Time, block: u32, index: &Index<Token>) {
        if self.latest[block as usize] != NOBODY {
            let state = Arc::new(State::of(index, block));
            self.changed.entry(block).or_default().push((now, state));
        }
    }

    /// A read has ended: what it has found, if others changed the block after it had begun; else it
    /// is as it is now.
    pub fn close(&mut self, read: &BlockRead, index: &Index<Token>) -> Option<Seen> {
        self.leave(read.block, read.lines.from);
        let before = self.since(read.block, read.lines.from);
        if before.is_empty() {
            return None;
        }
        let newest = Arc::new(State::of(index, read.block));
        let found = self.found(read, &before, &newest);
        let header = read.header.map(|window| self.at(window, &before, &newest).header);
        let word = read.word.zip(read.slot);
        let word = word.map(|(window, slot)| self.at(window, &before, &newest).slots[usize::from(slot)].word);
        Some(Seen { found, header: header.unwrap_or(newest.header), word })
    }

    /// One reader less: whoever began at that moment.
    fn leave(&mut self, block: u32, begun: Time) {
        let (mut later, mut at) = (NOBODY, self.latest[block as usize]);
        while at != NOBODY && self.readers[at].begun != begun {
            (later, at) = (at, self.readers[at].earlier);
        }
        if at == NOBODY {
            return;
        }
        let earlier = self.readers.remove(at).earlier;
        match later {
            NOBODY => self.latest[block as usize] = earlier,
            later => self.readers[later].earlier = earlier,
        }
    }

    /// The changes of a block after a moment. Those that nobody needs any more are forgotten.
    fn since(&mut self, block: u32, begun: Time) -> Before {
        let Some(before) = self.changed.get_mut(&block) else { return Before::new() };
        let since = before[before.partition_point(|(at, _)| *at <= begun)..].to_vec();
        match first_begun(&self.readers, self.latest[block as usize]) {
            None => drop(self.changed.remove(&block)),
            Some(first) => drop(before.drain(..before.partition_point(|(at, _)| *at <= first))),
        }
        since
    }

    /// Line by line, each from the state of its moment.
    fn found(&mut self, read: &BlockRead, before: &[(Time, Arc<State>)], newest: &Arc<State>) -> Found {
        let ends = lines_of(read.block, newest.slots.len());
        let moments: Vec<usize> = ends.iter().map(|_| self.state_at(read.lines, before)).collect();
        if moments.iter().all(|moment| *moment == moments[0]) {
            return Found::Whole(before.get(moments[0]).map_or(newest, |(_, state)| state).used_like(newest));
        }
        let states = before.iter().map(|(_, state)| state).chain([newest]);
        let states: Vec<Vec<u8>> = states.map(|state| state.used_like(newest).bytes()).collect();
        let mut bytes = Vec::with_capacity(states[0].len());
        for (end, moment) in ends.into_iter().zip(moments) {
            bytes.extend_from_slice(&states[moment][bytes.len()..end]);
        }
        self.torn += u64::from(!states.contains(&bytes));
        Found::Mixed(bytes)
    }

    /// Which state a moment of the window finds: that before the first change after it.
    fn state_at(&mut self, window: Window, before: &[(Time, Arc<State>)]) -> usize {
        let span = window.until.saturating_since(window.from).as_ps();
        let moment = window.from + Span::ps(self.stream.below(span + 1));
        before.partition_point(|(at, _)| *at <= moment)
    }

    fn at(&mut self, window: Window, before: &[(Time, Arc<State>)], newest: &Arc<State>) -> Arc<State> {
        let state = self.state_at(window, before);
        Arc::clone(before.get(state).map_or(newest, |(_, state)| state))
    }
}

/// When the first of those began who still read a block, if there are any.
fn first_begun(readers: &Slab<Reader>, latest: u32) -> Option<Time> {
    let known = |place: u32| (place != NOBODY).then_some(place);
    let chain = successors(known(latest), |place| known(readers[*place].earlier));
    chain.map(|place| readers[place].begun).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use scalio::layout::decode_block;
    use scalio::{Block, Expiry, Key, MemoryOperation, Payload, Version};

    fn payload(version: u32) -> MemoryOperation<Token> {
        let value = Token { id: u64::from(version), bytes: 64 };
        let key = Key::new(b"key").expect("short");
        let payload = Payload { version: Version(version), key, value, expiry: Expiry(0) };
        MemoryOperation::WritePayload { slot: 1, payload }
    }

    /// Nobody reads, and nothing is remembered.
    fn is_forgotten(torn_reads: &TornReads) -> bool {
        torn_reads.readers.len() == 0
            && torn_reads.changed.is_empty()
            && torn_reads.latest.iter().all(|latest| *latest == NOBODY)
    }

    /// What a read of 100 ns from 1 us on finds when the payload changes at `changed`.
    fn read(torn_reads: &mut TornReads, changed: Time) -> (Option<Seen>, Index<Token>) {
        let mut index: Index<Token> = Index::new(4, 2);
        index.carry_out(3, payload(1));
        let lines = Window { from: Time::us(1), until: Time::us(1) + Span::ns(100) };
        torn_reads.open(lines.from, 3);
        torn_reads.changes(changed, 3, &index);
        index.carry_out(3, payload(2));
        (torn_reads.close(&BlockRead { block: 3, slot: None, lines, header: None, word: None }, &index), index)
    }

    fn block_of(seen: &Seen) -> Block<Token> {
        match &seen.found {
            Found::Whole(State { header, slots }) => Block { header: header.expect("a header"), slots: slots.clone() },
            Found::Mixed(bytes) => decode_block(bytes).expect("a header and slots"),
        }
    }

    #[test]
    fn a_change_before_or_after_a_read_does_not_tear_it() {
        let mut torn_reads = TornReads::new(Seed(1).stream("looks"), 4);
        for _ in 0..50 {
            let (seen, _) = read(&mut torn_reads, Time::us(1) + Span::ns(101));
            let seen = seen.expect("it changed before the read was closed");
            let value = block_of(&seen).slots[1].payload.map(|payload| payload.value.id);
            assert_eq!(value, Some(1));
        }
        assert!(read(&mut torn_reads, Time::us(1)).0.is_none(), "a change before the read is all of what it finds");
        assert_eq!(torn_reads.torn(), 0);
        assert!(is_forgotten(&torn_reads));
    }

    #[test]
    fn a_change_within_a_read_is_found_whole_or_in_part_or_not_and_its_checksum_tells() {
        let mut torn_reads = TornReads::new(Seed(1).stream("looks"), 4);
        let mut found = [0u32; 3];
        for _ in 0..200 {
            let (seen, _) = read(&mut torn_reads, Time::us(1) + Span::ns(50));
            let seen = seen.expect("it changed meanwhile");
            let payload = block_of(&seen).slots[1].payload;
            // It lies in two lines: one from before and one from after agree with no checksum.
            found[payload.map_or(0, |payload| payload.value.id as usize)] += 1;
        }
        assert!(found.iter().all(|count| *count > 10), "{found:?}");
        assert_eq!(torn_reads.torn(), u64::from(found[0]));
    }

    #[test]
    fn readers_of_one_block_keep_what_those_before_them_need_and_no_more() {
        let mut torn_reads = TornReads::new(Seed(1).stream("looks"), 4);
        let mut index: Index<Token> = Index::new(1, 2);
        let read = |from: u64| {
            let lines = Window { from: Time::us(from), until: Time::us(from) + Span::ns(100) };
            BlockRead { block: 0, slot: None, lines, header: None, word: None }
        };
        for version in 1..5 {
            torn_reads.open(Time::us(u64::from(version)), 0);
            torn_reads.changes(Time::us(u64::from(version)) + Span::ns(500), 0, &index);
            index.carry_out(0, payload(version));
        }
        for version in 1..5 {
            assert_eq!(torn_reads.changed[&0].len() as u64, 5 - version);
            let seen = torn_reads.close(&read(version), &index).expect("it has changed since");
            let expected = (version > 1).then_some(version - 1);
            assert_eq!(block_of(&seen).slots[1].payload.map(|payload| payload.value.id), expected);
        }
        assert!(is_forgotten(&torn_reads));
    }
}
