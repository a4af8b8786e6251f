//! The last timestamp of every written page: eight bytes each, in chunks that are made when a page
//! of theirs is first written.

use crate::id::Page;
use crate::packet::Timestamp;
use base::NodeId;

/// Pages of a chunk: 512 entries of 8 B fill a 4 KiB page of memory.
const CHUNK_PAGES: usize = 512;
/// The top bit of an entry: the rest is then the slot of the page's state, which has the timestamp.
const IN_FLIGHT: u64 = 1 << 63;
/// The last version that a page can have: the bit above it is taken.
pub const VERSION_MAX: u32 = u32::MAX >> 1;

/// What is known of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Valid, last written at this time; version 0 when never.
    Settled(Timestamp),
    /// Anything else: the slot of its state.
    InFlight(usize),
}

pub struct Table {
    pages: u64,
    chunks: Vec<Option<Box<[u64; CHUNK_PAGES]>>>,
}

impl Table {
    pub fn new(pages: u64) -> Table {
        let chunks = pages.div_ceil(CHUNK_PAGES as u64) as usize;
        Table { pages, chunks: vec![None; chunks] }
    }
    /// `None` beyond the last page.
    pub fn get(&self, page: Page) -> Option<Entry> {
        if page.0 >= self.pages {
            return None;
        }
        let (chunk, place) = place(page);
        Some(decode(self.chunks[chunk].as_ref().map_or(0, |entries| entries[place])))
    }
    /// `page` must lie within.
    pub fn set(&mut self, page: Page, entry: Entry) {
        let (chunk, place) = place(page);
        self.chunks[chunk].get_or_insert_with(|| Box::new([0; CHUNK_PAGES]))[place] = encode(entry);
    }
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.chunks.fill(None);
    }
}

fn place(page: Page) -> (usize, usize) {
    let page = page.0 as usize;
    (page / CHUNK_PAGES, page % CHUNK_PAGES)
}

fn encode(entry: Entry) -> u64 {
    match entry {
        Entry::Settled(timestamp) => u64::from(timestamp.version) << 32 | u64::from(timestamp.node.0),
        Entry::InFlight(slot) => IN_FLIGHT | slot as u64,
    }
}

fn decode(entry: u64) -> Entry {
    if entry & IN_FLIGHT != 0 {
        return Entry::InFlight((entry & !IN_FLIGHT) as usize);
    }
    Entry::Settled(Timestamp { version: (entry >> 32) as u32, node: NodeId(entry as u32) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_what_was_written_on_both_sides_of_a_chunk() {
        let mut table = Table::new(1_000);
        let newest = Timestamp { version: VERSION_MAX, node: NodeId(u32::MAX) };
        table.set(Page(511), Entry::Settled(newest));
        table.set(Page(512), Entry::InFlight(7));
        assert_eq!(table.get(Page(511)), Some(Entry::Settled(newest)));
        assert_eq!(table.get(Page(512)), Some(Entry::InFlight(7)));
        assert_eq!(table.get(Page(510)), Some(Entry::Settled(Timestamp::default())));
        assert_eq!((table.get(Page(999)).is_some(), table.get(Page(1_000))), (true, None));
    }

    #[test]
    fn memory_is_taken_for_chunks_that_were_written_alone() {
        let mut table = Table::new(1 << 24);
        table.set(Page(5), Entry::InFlight(0));
        assert_eq!(table.chunks.iter().flatten().count(), 1);
        table.clear();
        assert_eq!(table.get(Page(5)), Some(Entry::Settled(Timestamp::default())));
    }
}
