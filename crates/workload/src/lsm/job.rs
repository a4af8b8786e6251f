//! Flushes and compactions: long sequential reads and writes.

use super::tree::{Compaction, Tree};

/// The operation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    Flush,
    Compact(Compaction),
}

/// An open job.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) work: Work,
    /// Bytes to be read, of both levels.
    reads: u64,
    reads_issued: u64,
    reads_done: u64,
    writes: u64,
    writes_issued: u64,
    in_flight: u32,
}

/// One of its I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) is_read: bool,
    pub(super) address: u64,
    pub(super) bytes: u64,
}

impl Job {
    pub(super) fn flush(bytes: u64) -> Job {
        Job {
            work: Work::Flush,
            reads: 0,
            reads_issued: 0,
            reads_done: 0,
            writes: bytes,
            writes_issued: 0,
            in_flight: 0,
        }
    }

    pub(super) fn compact(compaction: Compaction) -> Job {
        let bytes = compaction.upper + compaction.lower;
        let work = Work::Compact(compaction);
        Job { work, reads: bytes, reads_issued: 0, reads_done: 0, writes: bytes, writes_issued: 0, in_flight: 0 }
    }

    /// The next I/O, if one may go: writes follow what was read.
    pub(super) fn next(&mut self, chunk: u64, depth: u32, tree: &mut Tree) -> Option<Chunk> {
        if self.in_flight >= depth {
            return None;
        }
        let next = self.next_write(chunk, tree).or_else(|| self.next_read(chunk, tree))?;
        self.in_flight += 1;
        Some(next)
    }

    fn next_write(&mut self, chunk: u64, tree: &mut Tree) -> Option<Chunk> {
        let bytes = chunk.min(self.writes - self.writes_issued);
        let needed = if self.reads == 0 { 0 } else { self.writes_issued + bytes };
        if bytes == 0 || needed > self.reads_done {
            return None;
        }
        self.writes_issued += bytes;
        let address = match self.work {
            Work::Flush => tree.flush_to(bytes),
            Work::Compact(compaction) => tree.write_below(compaction.from, bytes),
        };
        Some(Chunk { is_read: false, address, bytes })
    }

    fn next_read(&mut self, chunk: u64, tree: &mut Tree) -> Option<Chunk> {
        let Work::Compact(Compaction { from, upper, .. }) = self.work else { return None };
        let is_upper = self.reads_issued < upper;
        let end = if is_upper { upper } else { self.reads };
        let bytes = chunk.min(end - self.reads_issued);
        if bytes == 0 {
            return None;
        }
        self.reads_issued += bytes;
        let address = if is_upper { tree.read_from(from, bytes) } else { tree.read_below(from, bytes) };
        Some(Chunk { is_read: true, address, bytes })
    }

    /// One of its I/Os has ended.
    pub(super) fn ended(&mut self, is_read: bool, bytes: u64) {
        self.in_flight -= 1;
        if is_read {
            self.reads_done += bytes;
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.in_flight == 0 && self.writes_issued == self.writes
    }
}
