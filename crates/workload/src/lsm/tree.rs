//! A store's tree: what lies where, what is full, and what has to be compacted.

use super::cache::{BlockCache, mix};
use super::config::{LsmConfig, TreeConfig};
use base::Stream;

/// A piece of the volume that is written round and round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    start: u64,
    length: u64,
    cursor: u64,
}

impl Area {
    /// The address of the next `bytes`, at most its length.
    pub(super) fn take(&mut self, bytes: u64) -> u64 {
        if self.cursor + bytes > self.length {
            self.cursor = 0;
        }
        let address = self.start + self.cursor;
        self.cursor += bytes;
        address
    }
}

/// A level below level 0: one sorted run.
#[derive(Clone, Debug)]
struct Level {
    bytes: u64,
    target: u64,
    reading: Area,
    writing: Area,
    /// How often each piece of the size of a table was written anew.
    versions: Vec<u32>,
    next_table: usize,
}

/// What one key is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Key {
    /// A scattered name: its place in the order of keys.
    pub place: u64,
    /// How likely an update is one of this key.
    pub probability: f64,
}

/// Result of a lookup step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The key was found without a further I/O.
    Found,
    /// A block has to be read; then the lookup continues at `next`, unless the key `is_there`.
    Block { address: u64, next: usize, is_there: bool },
}

/// A merge that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compaction {
    /// The level that is merged into the next: 0 is level 0.
    pub from: usize,
    /// Tables of level 0.
    pub tables: u32,
    /// Bytes of the upper level.
    pub upper: u64,
    /// Bytes of the lower one.
    pub lower: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Tree {
    config: TreeConfig,
    record: u64,
    memtable: u64,
    full_memtables: u32,
    level0: u32,
    /// Tables that were ever flushed: they are numbered, and lie one behind the other.
    flushes: u64,
    level0_reading: Area,
    level0_writing: Area,
    pub(super) wal: Area,
    levels: Vec<Level>,
    cache: BlockCache,
}

/// Sizes of the levels below level 0: each a multiple of the one above, and the last one holds all
/// keys.
fn targets(config: &LsmConfig) -> Vec<u64> {
    let mut targets = Vec::new();
    let mut target = config.tree.level_base.count();
    while target < config.data() {
        targets.push(target);
        target = target.saturating_mul(u64::from(config.tree.multiplier));
    }
    targets.push(config.data());
    targets
}

fn level0_bytes(config: &LsmConfig) -> u64 {
    config
        .tree
        .memtable
        .count()
        .saturating_mul(u64::from(config.tree.level0_stop) + u64::from(config.tree.memtables_max))
}

fn wal_bytes(config: &LsmConfig) -> u64 {
    // A log is kept until its memtable is flushed; padding at most doubles small writes.
    config.tree.memtable.count().saturating_mul(2 * u64::from(config.tree.memtables_max)).max(1 << 31)
}

/// The area of a level with this target: a compaction writes beside what it reads, and level 1
/// takes level 0 whole.
fn level_bytes(config: &LsmConfig, target: u64) -> u64 {
    let room = level0_bytes(config).max(config.tree.table.count() * 4).max(config.tree.chunk.count());
    target.saturating_add(room).next_multiple_of(config.tree.block.count())
}

/// What a store takes of its volume.
pub(super) fn store_bytes(config: &LsmConfig) -> u64 {
    let levels = targets(config).into_iter().map(|target| level_bytes(config, target)).fold(0, u64::saturating_add);
    wal_bytes(config).saturating_add(level0_bytes(config)).saturating_add(levels)
}

impl Tree {
    /// A tree whose levels are all full, from `start` on in its volume.
    pub(super) fn new(config: &LsmConfig, start: u64) -> Tree {
        let mut next = start;
        let mut area = |length: u64| {
            let area = Area { start: next, length, cursor: 0 };
            next += length;
            area
        };
        let (wal, level0_area) = (area(wal_bytes(config)), area(level0_bytes(config)));
        let level = |target| {
            let length = level_bytes(config, target);
            let tables = length.div_ceil(config.tree.table.count()) as usize;
            let area = area(length);
            Level { bytes: target, target, reading: area, writing: area, versions: vec![0; tables], next_table: 0 }
        };
        let levels = targets(config).into_iter().map(level).collect();
        let blocks = config.tree.block_cache.count() / config.tree.block.count();
        Tree {
            config: config.tree,
            record: config.record.count(),
            memtable: 0,
            full_memtables: 0,
            level0: 0,
            flushes: 0,
            level0_reading: level0_area,
            level0_writing: level0_area,
            wal,
            levels,
            cache: BlockCache::new(blocks),
        }
    }

    /// Continues the lookup of `key` at run `from`: 0 is the memtables, then the tables of level 0
    /// and the levels follow.
    pub(super) fn lookup(&mut self, key: Key, from: usize, draws: &mut Stream) -> Lookup {
        let level0 = self.level0 as usize;
        let last = level0 + self.levels.len();
        for run in from..=last {
            let is_there = run == last || draws.unit() < self.presence(key, run);
            if run == 0 {
                if is_there {
                    return Lookup::Found;
                }
                continue;
            }
            if !is_there && draws.unit() >= self.config.false_positive {
                continue;
            }
            let (address, name) = self.block(key, run);
            match self.cache.touch(name) {
                true if is_there => return Lookup::Found,
                true => {}
                false => return Lookup::Block { address, next: run + 1, is_there },
            }
        }
        // Level 0 has shrunk meanwhile, and with it the number of runs: the key lies below.
        Lookup::Found
    }

    /// How likely `key` is in a run that is not the last.
    fn presence(&self, key: Key, run: usize) -> f64 {
        let bytes = match run.checked_sub(1 + self.level0 as usize) {
            Some(level) => self.levels[level].bytes,
            None if run == 0 => self.memtable + u64::from(self.full_memtables) * self.config.memtable.count(),
            None => self.config.memtable.count(),
        };
        let updates = bytes as f64 / self.record as f64;
        -(-key.probability * updates).exp_m1()
    }

    /// The address of the block that would hold `key`, and its name in the cache.
    fn block(&self, key: Key, run: usize) -> (u64, u64) {
        let block = self.config.block.count();
        let part = |bytes: u64| ((u128::from(key.place) * u128::from((bytes / block).max(1))) >> 64) as u64;
        match run.checked_sub(1 + self.level0 as usize) {
            Some(index) => {
                let level = &self.levels[index];
                let offset = part(level.bytes.min(level.reading.length)) * block;
                let version = level.versions[(offset / self.config.table.count()) as usize];
                let address = level.reading.start + offset;
                (address, mix(address ^ mix(u64::from(version))))
            }
            None => {
                let memtable = self.config.memtable.count();
                // Run 1 is the newest table.
                let table = self.flushes - run as u64;
                let slot = table % (self.level0_reading.length / memtable);
                let address = self.level0_reading.start + slot * memtable + part(memtable) * block;
                (address, mix(address ^ mix(table)))
            }
        }
    }

    /// Returns whether an update has to wait.
    pub(super) fn is_stalled(&self) -> bool {
        let is_full = self.memtable + self.record > self.config.memtable.count();
        (is_full && self.full_memtables + 1 >= self.config.memtables_max) || self.level0 >= self.config.level0_stop
    }

    /// Takes an update, which need not wait.
    pub(super) fn update(&mut self) {
        if self.memtable + self.record > self.config.memtable.count() {
            self.full_memtables += 1;
            self.memtable = 0;
        }
        self.memtable += self.record;
    }

    /// Returns whether there is a memtable to flush.
    pub(super) fn has_full_memtable(&self) -> bool {
        self.full_memtables > 0
    }

    /// A memtable is in level 0.
    pub(super) fn flushed(&mut self) {
        self.full_memtables -= 1;
        self.level0 += 1;
        self.flushes += 1;
    }

    /// The most urgent compaction.
    pub(super) fn due(&self) -> Option<Compaction> {
        let memtable = self.config.memtable.count();
        if self.level0 >= self.config.level0_trigger {
            let upper = u64::from(self.level0) * memtable;
            return Some(Compaction { from: 0, tables: self.level0, upper, lower: self.levels[0].bytes });
        }
        let over = |index: &usize| self.levels[*index].bytes > self.levels[*index].target;
        let excess = |index: &usize| self.levels[*index].bytes - self.levels[*index].target;
        let from = (0..self.levels.len() - 1).filter(over).max_by_key(excess)?;
        let (upper, lower) = (&self.levels[from], &self.levels[from + 1]);
        let bytes = self.config.table.count().min(upper.bytes);
        // The lower level's part of the same keys.
        let overlap = (u128::from(bytes) * u128::from(lower.bytes) / u128::from(upper.bytes.max(1))) as u64;
        Some(Compaction { from: from + 1, tables: 0, upper: bytes, lower: overlap.min(lower.bytes) })
    }

    /// A compaction has ended: what was above is below.
    pub(super) fn compacted(&mut self, compaction: Compaction) {
        let Compaction { from, tables, upper, lower } = compaction;
        self.level0 -= tables;
        if let Some(above) = from.checked_sub(1) {
            self.levels[above].bytes -= upper;
        }
        let is_last = from + 1 == self.levels.len();
        let table = self.config.table.count();
        let level = &mut self.levels[from];
        // The last level holds every key already: newer values take the places of older ones.
        if !is_last {
            level.bytes += upper;
        }
        let count = level.versions.len();
        for step in 0..((upper + lower).div_ceil(table) as usize).min(count) {
            level.versions[(level.next_table + step) % count] += 1;
        }
        level.next_table = (level.next_table + (upper + lower).div_ceil(table) as usize) % count;
    }

    /// Place of the next chunk of a flush.
    pub(super) fn flush_to(&mut self, bytes: u64) -> u64 {
        self.level0_writing.take(bytes)
    }

    /// Where the next chunk of a compaction's upper level comes from.
    pub(super) fn read_from(&mut self, level: usize, bytes: u64) -> u64 {
        match level.checked_sub(1) {
            None => self.level0_reading.take(bytes),
            Some(index) => self.levels[index].reading.take(bytes),
        }
    }

    /// Where the next chunk of the level below comes from.
    pub(super) fn read_below(&mut self, from: usize, bytes: u64) -> u64 {
        self.levels[from].reading.take(bytes)
    }

    /// Place of the next chunk of a compaction.
    pub(super) fn write_below(&mut self, from: usize, bytes: u64) -> u64 {
        self.levels[from].writing.take(bytes)
    }
}
