//! One store: its threads, its log, its flushes and compactions.

use super::config::{LsmConfig, Wal};
use super::job::{Chunk, Job, Work};
use super::operations::{Kind, Operations};
use super::tree::{Key, Lookup, Tree};
use crate::permutation::Permutation;
use crate::storage::{Zipfian, zeta};
use base::{Operation, Seed, Stream, Time};

/// The unit of writes to the log.
const LOG_BLOCK: u64 = 4096;
/// Scatters popular keys over the order of keys.
const SCATTER_KEY: u64 = 0x2545_f491_4f6c_dd1d;

/// An I/O of a store, and what waits for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub operation: Operation,
    pub address: u64,
    pub bytes: u64,
    pub purpose: Purpose,
}

/// Purpose of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A block for this thread's lookup.
    Block(usize),
    /// A write of the log, whose threads the store knows.
    Log,
    /// A buffered log's write, by this thread.
    LogOf(usize),
    /// A chunk of a flush or a compaction.
    Chunk { lane: usize, is_read: bool },
}

/// A thread's request.
#[derive(Clone, Copy, Debug)]
struct Request {
    kind: Kind,
    key: Key,
    started: Time,
    is_timed: bool,
    ios: u32,
    phase: Phase,
}

/// What a request does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Searches its key from this run on.
    Read { run: usize },
    /// Writes its key.
    Write,
    /// Has ended.
    Done,
}

/// What all stores share.
pub(super) struct Shared<'a> {
    pub operations: &'a mut Operations,
    /// Requests that may still begin.
    pub left: &'a mut u64,
    pub end: Time,
    /// The request and its time.
    pub out: &'a mut Vec<(Time, Io)>,
}

#[derive(Clone, Debug)]
pub(super) struct Store {
    config: LsmConfig,
    tree: Tree,
    zipfian: Zipfian,
    zeta: f64,
    scatter: Permutation,
    threads: Vec<Option<Request>>,
    /// For the next write of the log, and in the current one.
    log_waiting: Vec<usize>,
    log_writing: Vec<usize>,
    log_buffer: u64,
    stalled: Vec<usize>,
    lanes: [Option<Job>; 2],
    kinds: Stream,
    keys: Stream,
    lookups: Stream,
}

const FLUSH: usize = 0;
const COMPACTION: usize = 1;

impl Store {
    /// A store from `start` on in its volume.
    pub(super) fn new(config: &LsmConfig, start: u64, seed: Seed) -> Store {
        Store {
            tree: Tree::new(config, start),
            zipfian: Zipfian::new(config.keys, config.theta),
            zeta: zeta(config.keys, config.theta),
            scatter: Permutation::new(config.keys, SCATTER_KEY),
            threads: vec![None; config.threads as usize],
            log_waiting: Vec::new(),
            log_writing: Vec::new(),
            log_buffer: 0,
            stalled: Vec::new(),
            lanes: [None, None],
            kinds: seed.stream("kinds"),
            keys: seed.stream("keys"),
            lookups: seed.stream("lookups"),
            config: config.clone(),
        }
    }

    /// Lets every thread begin.
    pub(super) fn start(&mut self, shared: &mut Shared<'_>) {
        for thread in 0..self.threads.len() {
            self.go_on(thread, Time::ZERO, shared);
        }
        self.settle(Time::ZERO, shared);
    }

    /// An I/O has ended.
    pub(super) fn ended(&mut self, purpose: Purpose, bytes: u64, now: Time, shared: &mut Shared<'_>) {
        match purpose {
            Purpose::Block(thread) => self.go_on(thread, now, shared),
            Purpose::LogOf(thread) => self.logged(thread, now, shared),
            Purpose::Log => {
                for thread in std::mem::take(&mut self.log_writing) {
                    self.logged(thread, now, shared);
                }
            }
            Purpose::Chunk { lane, is_read } => self.chunk_ended(lane, is_read, bytes, now, shared),
        }
        self.settle(now, shared);
    }

    fn logged(&mut self, thread: usize, now: Time, shared: &mut Shared<'_>) {
        self.request(thread).phase = Phase::Done;
        self.go_on(thread, now, shared);
    }

    /// Lets a thread go on, from request to request, until it has to wait.
    fn go_on(&mut self, thread: usize, mut now: Time, shared: &mut Shared<'_>) {
        while let Some(next) = self.step(thread, now, shared) {
            now = next;
        }
    }

    /// One step, and when the next may follow; `None` when something has to end first.
    fn step(&mut self, thread: usize, now: Time, shared: &mut Shared<'_>) -> Option<Time> {
        let Some(Request { kind, started, is_timed, ios, phase, .. }) = self.threads[thread] else {
            return self.begin(thread, now, shared);
        };
        match phase {
            Phase::Read { run } => self.look_up(thread, run, now, shared),
            Phase::Write => self.update(thread, now, shared),
            Phase::Done => {
                if is_timed {
                    shared.operations.ended(kind, started, ios, now);
                }
                self.threads[thread] = None;
                Some(now)
            }
        }
    }

    /// Begins a thread's next request, unless the load is over.
    fn begin(&mut self, thread: usize, now: Time, shared: &mut Shared<'_>) -> Option<Time> {
        if *shared.left == 0 || now >= shared.end {
            return None;
        }
        *shared.left -= 1;
        let (kind, key) = (self.draw_kind(), self.draw_key());
        let phase = if kind == Kind::Update { Phase::Write } else { Phase::Read { run: 0 } };
        let warm_until = Time::ZERO + self.config.warm_up;
        let is_timed = shared.operations.begins(now, self.config.warm_up_requests, warm_until);
        self.threads[thread] = Some(Request { kind, key, started: now, is_timed, ios: 0, phase });
        now.checked_add(self.config.service)
    }

    fn draw_kind(&mut self) -> Kind {
        let mix = self.config.mix;
        let draw = self.kinds.unit() * (mix.reads + mix.updates + mix.read_modify_writes);
        if draw < mix.reads {
            Kind::Read
        } else if draw < mix.reads + mix.updates {
            Kind::Update
        } else {
            Kind::ReadModifyWrite
        }
    }

    fn draw_key(&mut self) -> Key {
        let rank = self.zipfian.rank(self.keys.unit());
        let probability = ((rank + 1) as f64).powf(-self.config.theta) / self.zeta;
        let place = u128::from(self.scatter.at(rank)) << 64;
        Key { place: (place / u128::from(self.config.keys)) as u64, probability }
    }

    fn request(&mut self, thread: usize) -> &mut Request {
        self.threads[thread].as_mut().expect("a thread that waits has a request")
    }

    /// Continues a lookup until an I/O is needed or the key is found.
    fn look_up(&mut self, thread: usize, run: usize, now: Time, shared: &mut Shared<'_>) -> Option<Time> {
        let Request { key, kind, .. } = *self.request(thread);
        let behind = if kind == Kind::ReadModifyWrite { Phase::Write } else { Phase::Done };
        match self.tree.lookup(key, run, &mut self.lookups) {
            Lookup::Found => {
                self.request(thread).phase = behind;
                Some(now)
            }
            Lookup::Block { address, next, is_there } => {
                let request = self.request(thread);
                request.phase = if is_there { behind } else { Phase::Read { run: next } };
                request.ios += 1;
                let bytes = self.config.tree.block.count();
                let purpose = Purpose::Block(thread);
                shared.out.push((now, Io { operation: Operation::Read, address, bytes, purpose }));
                None
            }
        }
    }

    fn update(&mut self, thread: usize, now: Time, shared: &mut Shared<'_>) -> Option<Time> {
        if self.tree.is_stalled() {
            shared.operations.stalls += 1;
            self.stalled.push(thread);
            return None;
        }
        let record = self.config.record.count();
        shared.operations.updated += record;
        self.tree.update();
        match self.config.tree.wal {
            Wal::Synced => {
                self.log_waiting.push(thread);
                self.write_log(now, shared);
                None
            }
            Wal::Buffered { buffer } => {
                self.log_buffer += record;
                if self.log_buffer < buffer.count() {
                    self.request(thread).phase = Phase::Done;
                    return Some(now);
                }
                let bytes = std::mem::take(&mut self.log_buffer);
                self.append(bytes, Purpose::LogOf(thread), now, shared);
                self.request(thread).ios += 1;
                None
            }
        }
    }

    /// Writes the log for all waiting threads, unless a write is in progress.
    fn write_log(&mut self, now: Time, shared: &mut Shared<'_>) {
        if !self.log_writing.is_empty() || self.log_waiting.is_empty() {
            return;
        }
        self.log_writing = std::mem::take(&mut self.log_waiting);
        let bytes = self.log_writing.len() as u64 * self.config.record.count();
        for index in 0..self.log_writing.len() {
            let thread = self.log_writing[index];
            self.request(thread).ios += 1;
        }
        self.append(bytes, Purpose::Log, now, shared);
    }

    fn append(&mut self, bytes: u64, purpose: Purpose, now: Time, shared: &mut Shared<'_>) {
        let bytes = bytes.next_multiple_of(LOG_BLOCK);
        let address = self.tree.wal.take(bytes);
        shared.operations.written += bytes;
        shared.out.push((now, Io { operation: Operation::Write, address, bytes, purpose }));
    }

    fn chunk_ended(&mut self, lane: usize, is_read: bool, bytes: u64, now: Time, shared: &mut Shared<'_>) {
        let job = self.lanes[lane].as_mut().expect("a chunk belongs to a job");
        job.ended(is_read, bytes);
        if !job.is_done() {
            return;
        }
        match self.lanes[lane].take().map(|job| job.work) {
            Some(Work::Compact(compaction)) => self.tree.compacted(compaction),
            Some(Work::Flush) | None => self.tree.flushed(),
        }
        // They retry, and wait again if it is not enough.
        for thread in std::mem::take(&mut self.stalled) {
            self.go_on(thread, now, shared);
        }
    }

    /// Starts what is due: the log, a flush, a compaction and their chunks.
    fn settle(&mut self, now: Time, shared: &mut Shared<'_>) {
        self.write_log(now, shared);
        if *shared.left == 0 && self.threads.iter().all(Option::is_none) {
            return;
        }
        if self.lanes[FLUSH].is_none() && self.tree.has_full_memtable() {
            self.lanes[FLUSH] = Some(Job::flush(self.config.tree.memtable.count()));
        }
        if self.lanes[COMPACTION].is_none() {
            self.lanes[COMPACTION] = self.tree.due().map(Job::compact);
        }
        for lane in [FLUSH, COMPACTION] {
            self.issue_chunks(lane, now, shared);
        }
    }

    fn issue_chunks(&mut self, lane: usize, now: Time, shared: &mut Shared<'_>) {
        let Some(job) = &mut self.lanes[lane] else { return };
        let (chunk, depth) = (self.config.tree.chunk.count(), self.config.tree.chunk_depth);
        while let Some(Chunk { is_read, address, bytes }) = job.next(chunk, depth, &mut self.tree) {
            let operation = if is_read { Operation::Read } else { Operation::Write };
            if !is_read {
                shared.operations.written += bytes;
            }
            let purpose = Purpose::Chunk { lane, is_read };
            shared.out.push((now, Io { operation, address, bytes, purpose }));
        }
    }
}
