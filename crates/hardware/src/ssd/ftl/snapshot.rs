//! Snapshots: all of a layer as little-endian 64-bit words, with a CRC-32 at the end.
//!
//! Derived values (valid counts, receivers of a victim's data) are not written. Sizes are checked
//! before memory is allocated, and a snapshot is used only if the whole passes
//! [`TranslationLayer::check`]. A damaged snapshot is thus an error wherever the damage is.

use super::blocks::State;
use super::dies::{Collection, Die, Frontier};
use super::mapping::Mapping;
use super::{FtlConfig, FtlCounters, SnapshotError, TranslationLayer};
use crate::ssd::geometry::DieId;
use crc32fast::Hasher;
use std::io::{Read, Write};

/// "RWFTL" and the version of the format.
const MAGIC: u64 = u64::from_le_bytes(*b"RWFTL\0\0\x01");
/// Words that are read or written at once.
const CHUNK: usize = 1024;
const NONE: u64 = u64::MAX;

impl TranslationLayer {
    /// Writes everything that [`restore`](Self::restore) needs.
    pub fn save(&self, target: impl Write) -> std::io::Result<()> {
        if self.pending.is_empty() { self.save_settled(target) } else { self.settled().save_settled(target) }
    }
    fn save_settled(&self, target: impl Write) -> std::io::Result<()> {
        let mut sink = Sink { target, hasher: Hasher::new() };
        sink.words(&shape(&self.config))?;
        self.save_blocks(&mut sink)?;
        self.save_dies(&mut sink)?;
        self.save_rest(&mut sink)?;
        self.mapping.tables().iter().try_for_each(|table| sink.words(table))?;
        sink.finish()
    }
    /// Loads a snapshot. `config` must have the geometry, the logical units and the separation of
    /// hot and cold of the original; victim policy, endurance and seed may differ. The layer
    /// continues exactly as the saved one.
    pub fn restore(config: FtlConfig, source: impl Read) -> Result<TranslationLayer, SnapshotError> {
        config.geometry.check().map_err(|error| unusable(error.to_string()))?;
        let mut source = Source { source, hasher: Hasher::new() };
        for expected in shape(&config) {
            let word = source.word()?;
            require(word == expected, || format!("{word} where its format or configuration has {expected}"))?;
        }
        let mut layer = TranslationLayer::read(config, &mut source)?;
        source.finish()?;
        layer.count_valid()?;
        layer.check().map_err(unusable)?;
        Ok(layer)
    }

    fn save_blocks(&self, sink: &mut Sink<impl Write>) -> std::io::Result<()> {
        sink.word(u64::from(self.blocks.slots()))?;
        sink.words(&self.mapping.widths())?;
        (0..self.blocks.slots()).try_for_each(|slot| sink.words(&self.blocks.row(slot)))?;
        sink.word(u64::from(self.blocks.filled()))
    }
    fn save_dies(&self, sink: &mut Sink<impl Write>) -> std::io::Result<()> {
        sink.word(u64::from(self.dies.len()))?;
        for die in self.dies.iter() {
            sink.word(u64::from(die.id.0))?;
            let ends: Vec<u32> = die.segments.iter().flat_map(|(from, to)| [*from, *to]).collect();
            sink.list(&ends)?;
            sink.list(&die.vacant)?;
            sink.list(&die.free.iter().copied().collect::<Vec<_>>())?;
            die.open.iter().try_for_each(|open| sink.words(&frontier_words(*open)))?;
            sink.words(&collection_words(die.collection))?;
        }
        Ok(())
    }
    fn save_rest(&self, sink: &mut Sink<impl Write>) -> std::io::Result<()> {
        sink.list(&self.collecting)?;
        sink.words(&self.dies.turns().map(u64::from))?;
        sink.words(&self.search_turns.map(u64::from))?;
        sink.word(self.draws.count())?;
        sink.words(&counter_words(&self.counters))
    }

    fn read(config: FtlConfig, source: &mut Source<impl Read>) -> Result<TranslationLayer, SnapshotError> {
        let slots = source.number(config.geometry.blocks())?;
        let mut layer = TranslationLayer::without_blocks(config, 0);
        layer.read_mapping_shape(slots, source)?;
        layer.read_blocks(slots, source)?;
        layer.read_dies(slots, source)?;
        layer.read_rest(slots, source)?;
        layer.mapping.tables_mut().into_iter().try_for_each(|table| source.fill(table))?;
        Ok(layer)
    }
    fn read_mapping_shape(&mut self, slots: u32, source: &mut Source<impl Read>) -> Result<(), SnapshotError> {
        let widths = [source.word()?, source.word()?];
        let units_max = u64::from(slots) * u64::from(self.units_per_block);
        require(self.config.logical_units <= units_max, || format!("{slots} blocks hold at most {units_max} units"))?;
        let mapping = Mapping::with_widths(self.config.logical_units, slots, self.units_per_block, widths);
        self.mapping = mapping.ok_or_else(|| unusable(format!("{widths:?} are no widths of tables")))?;
        Ok(())
    }
    fn read_blocks(&mut self, slots: u32, source: &mut Source<impl Read>) -> Result<(), SnapshotError> {
        self.blocks.grow(slots);
        for slot in 0..slots {
            let mut row = [0; 5];
            source.fill(&mut row)?;
            require(self.blocks.set_row(slot, row), || format!("{row:?} says nothing about block {slot}"))?;
        }
        self.blocks.set_filled(source.number(u32::MAX)?);
        Ok(())
    }
    fn read_dies(&mut self, slots: u32, source: &mut Source<impl Read>) -> Result<(), SnapshotError> {
        let dies = source.number(self.config.geometry.dies())?;
        for place in 0..dies {
            let id = source.number(self.config.geometry.dies() - 1)?;
            let added = self.dies.place_or_add(DieId(id));
            require(added == place, || format!("die {id} comes twice"))?;
            let die = self.dies.get_mut(place);
            read_die(die, slots, source)?;
            let is_inside = |open: &Frontier| {
                open.page < self.config.geometry.pages_per_block && open.gathered < self.units_per_page
            };
            require(die.open.iter().flatten().all(is_inside), || format!("die {id} fills a block beyond its end"))?;
            let states = die.slots().map(|slot| self.blocks.state(slot));
            die.owned = states.filter(|state| !matches!(state, State::Vacant | State::Bad)).count() as u32;
            self.dies.note_ready(place);
        }
        self.connect_collections()
    }
    /// Sets the source of the data that each die receives.
    fn connect_collections(&mut self) -> Result<(), SnapshotError> {
        let collections: Vec<Collection> = self.dies.iter().filter_map(|die| die.collection).collect();
        for collection in collections {
            require(collection.target < self.dies.len(), || "a victim's data go to no die".into())?;
            self.dies.get_mut(collection.target).receives = Some(collection.slot);
        }
        Ok(())
    }
    fn read_rest(&mut self, slots: u32, source: &mut Source<impl Read>) -> Result<(), SnapshotError> {
        self.collecting = source.list(slots)?;
        let turn_max = self.dies.len().saturating_sub(1);
        self.dies.set_turns([source.number(turn_max)?, source.number(turn_max)?]);
        self.search_turns = [source.number(turn_max)?, source.number(turn_max)?];
        self.draws.set_count(source.word()?);
        let mut words = [0; 8];
        source.fill(&mut words)?;
        self.counters = counters_of(words);
        Ok(())
    }
    fn count_valid(&mut self) -> Result<(), SnapshotError> {
        for slot in 0..self.blocks.slots() {
            let is_known = self.blocks.state(slot) != State::Open || self.has_die(slot);
            require(is_known, || format!("no die knows the open block of slot {slot}"))?;
            let valid = self.written(slot).checked_sub(self.mapping.invalid_units(slot));
            let valid =
                valid.ok_or_else(|| unusable(format!("slot {slot} has more invalid units than were written")))?;
            self.blocks.set_valid(slot, valid);
        }
        Ok(())
    }
    fn has_die(&self, slot: u32) -> bool {
        let block = self.blocks.block_of(slot);
        self.dies.find(self.config.geometry.die_of(block)).is_some()
    }
}

/// What a snapshot begins with: its format, and what must be as it was.
fn shape(config: &FtlConfig) -> [u64; 10] {
    let geometry = &config.geometry;
    [
        MAGIC,
        u64::from(geometry.channels),
        u64::from(geometry.dies_per_channel),
        u64::from(geometry.planes_per_die),
        u64::from(geometry.blocks_per_plane),
        u64::from(geometry.pages_per_block),
        geometry.page.count(),
        geometry.unit.count(),
        config.logical_units,
        u64::from(config.hot_cold),
    ]
}

fn frontier_words(open: Option<Frontier>) -> [u64; 3] {
    open.map_or([NONE; 3], |open| [open.slot, open.page, open.gathered].map(u64::from))
}

fn collection_words(collection: Option<Collection>) -> [u64; 4] {
    collection.map_or([NONE; 4], |collection| {
        let Collection { slot, target, next, levels_wear, .. } = collection;
        [slot, target, next, u32::from(levels_wear)].map(u64::from)
    })
}

fn counter_words(counters: &FtlCounters) -> [u64; 8] {
    let FtlCounters { host_units, relocated_units, padded_units, programs, erases, bad_blocks, trims, levelled_blocks } =
        *counters;
    [host_units, relocated_units, padded_units, programs, erases, bad_blocks, trims, levelled_blocks]
}

fn counters_of(words: [u64; 8]) -> FtlCounters {
    let [host_units, relocated_units, padded_units, programs, erases, bad_blocks, trims, levelled_blocks] = words;
    FtlCounters { host_units, relocated_units, padded_units, programs, erases, bad_blocks, trims, levelled_blocks }
}

fn read_die(die: &mut Die, slots: u32, source: &mut Source<impl Read>) -> Result<(), SnapshotError> {
    let ends = source.list(slots.saturating_mul(2))?;
    die.segments = ends.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    let rises = ends.windows(2).all(|pair| pair[0] <= pair[1]) && ends.last().is_none_or(|last| *last <= slots);
    require(rises && ends.len().is_multiple_of(2), || format!("die {} has no ranges of slots", die.id.0))?;
    die.vacant = source.list(slots)?;
    die.free = source.list(slots)?.into();
    for stream in 0..die.open.len() {
        let [slot, page, gathered] = source.optional(slots)?;
        die.open[stream] = slot.map(|slot| Frontier { slot, page: page.unwrap_or(0), gathered: gathered.unwrap_or(0) });
    }
    let [slot, target, next, levels] = source.optional(slots)?;
    die.collection = slot.zip(target).zip(next).map(|((slot, target), next)| {
        let levels_wear = levels == Some(1);
        Collection { slot, target, next, warmed: 0, levels_wear }
    });
    Ok(())
}

fn unusable(reason: impl Into<String>) -> SnapshotError {
    SnapshotError::Unusable(reason.into())
}

fn require(condition: bool, reason: impl FnOnce() -> String) -> Result<(), SnapshotError> {
    if condition { Ok(()) } else { Err(unusable(reason())) }
}

/// Where words go, with their checksum.
struct Sink<W> {
    target: W,
    hasher: Hasher,
}

impl<W: Write> Sink<W> {
    fn word(&mut self, word: u64) -> std::io::Result<()> {
        self.words(&[word])
    }
    fn words(&mut self, words: &[u64]) -> std::io::Result<()> {
        let mut bytes = [0; 8 * CHUNK];
        for chunk in words.chunks(CHUNK) {
            let used = &mut bytes[..8 * chunk.len()];
            used.chunks_exact_mut(8).zip(chunk).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
            self.hasher.update(used);
            self.target.write_all(used)?;
        }
        Ok(())
    }
    fn list(&mut self, numbers: &[u32]) -> std::io::Result<()> {
        self.word(numbers.len() as u64)?;
        numbers.iter().try_for_each(|number| self.word(u64::from(*number)))
    }
    fn finish(mut self) -> std::io::Result<()> {
        let checksum = u64::from(self.hasher.finalize());
        self.target.write_all(&checksum.to_le_bytes())?;
        self.target.flush()
    }
}

/// Where words come from, with their checksum.
struct Source<R> {
    source: R,
    hasher: Hasher,
}

impl<R: Read> Source<R> {
    fn word(&mut self) -> Result<u64, SnapshotError> {
        let mut word = [0];
        self.fill(&mut word)?;
        Ok(word[0])
    }
    fn fill(&mut self, words: &mut [u64]) -> Result<(), SnapshotError> {
        let mut bytes = [0; 8 * CHUNK];
        for chunk in words.chunks_mut(CHUNK) {
            let used = &mut bytes[..8 * chunk.len()];
            self.source.read_exact(used)?;
            self.hasher.update(used);
            let words = used.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            chunk.iter_mut().zip(words).for_each(|(word, read)| *word = read);
        }
        Ok(())
    }
    /// A number up to `max`.
    fn number(&mut self, max: u32) -> Result<u32, SnapshotError> {
        let word = self.word()?;
        let number = u32::try_from(word).ok().filter(|number| *number <= max);
        number.ok_or_else(|| unusable(format!("{word} where at most {max} is possible")))
    }
    /// A list of at most `max` numbers.
    fn list(&mut self, max: u32) -> Result<Vec<u32>, SnapshotError> {
        let count = self.number(max)?;
        (0..count).map(|_| self.number(u32::MAX)).collect()
    }
    /// Numbers of which the first is a slot, or says that there are none.
    fn optional<const N: usize>(&mut self, slots: u32) -> Result<[Option<u32>; N], SnapshotError> {
        let mut words = [0; N];
        self.fill(&mut words)?;
        let numbers = words.map(|word| u32::try_from(word).ok());
        let is_slot = numbers[0].is_none_or(|slot| slot < slots);
        require(is_slot, || format!("there is no slot {}", words[0]))?;
        Ok(numbers)
    }
    /// Compares the checksum, which must be the last thing.
    fn finish(mut self) -> Result<(), SnapshotError> {
        let computed = u64::from(std::mem::take(&mut self.hasher).finalize());
        let stored = self.word()?;
        require(computed == stored, || format!("its checksum is {computed:#x}, and {stored:#x} was written"))
    }
}
