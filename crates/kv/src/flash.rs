//! The flash in a file, read and written by threads. Writes of a turn that lie side by side are one
//! for the system: a group commit has some eighty, and a file takes one at a time.

use crate::superblock::SUPERBLOCK_BYTES;
use crate::writes::joined;
use bytes::Bytes;
use mio::Waker;
use runtime::clock::Clock;
use runtime::lock::lock;
use runtime::storage::{DiskFile, Storage};
use runtime::throttle::Throttle;
use scalio::layout::{Seal, decode_head, decode_record, decode_segment, encode_content, scan, zone_kind};
use scalio::{
    Content, Extent, FlashAnswer, FlashOperation, Length, RECORD_HEADER_BYTES, RequestId, SECTOR_BYTES, Value,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Threads: enough to write the pages of a group at once while a flush is under way.
const THREADS: usize = 4;
/// Bytes of a zone that a thread reads at once when it lists what is there.
const PIECE_BYTES: usize = 8 << 20;

/// Work for a thread.
#[derive(Debug)]
pub enum Job {
    /// The helper's.
    Helper {
        /// For the answer.
        request: RequestId,
        /// The operation.
        operation: FlashOperation<Bytes>,
    },
    /// A client's.
    Read {
        /// For the answer.
        request: RequestId,
        /// The sectors.
        extent: Extent,
    },
}

/// Work that is done.
#[derive(Debug)]
pub enum Ended {
    /// The helper's.
    Helper {
        /// Its request.
        request: RequestId,
        /// The answer.
        answer: FlashAnswer<Bytes>,
    },
    /// A client's.
    Read {
        /// Its request.
        request: RequestId,
        /// What is there; `None` where the device failed.
        bytes: Option<Vec<u8>>,
    },
}

/// What a thread does at once.
#[derive(Debug)]
enum Task {
    One(Job),
    /// Writes in the order of their sectors, without a gap.
    Row {
        extent: Extent,
        writes: Vec<(RequestId, Content<Bytes>)>,
    },
}

/// Joins the writes that lie side by side. None of the jobs waits for another, so their order does
/// not matter.
fn tasks(jobs: impl Iterator<Item = Job>) -> Vec<Task> {
    let (mut tasks, mut writes) = (Vec::new(), Vec::new());
    for job in jobs {
        match job {
            Job::Helper { request, operation: FlashOperation::Write { extent, content } } => {
                writes.push((extent, (request, content)));
            }
            other => tasks.push(Task::One(other)),
        }
    }
    tasks.extend(joined(writes).into_iter().map(|(extent, writes)| Task::Row { extent, writes }));
    tasks
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    is_closed: bool,
}

struct Shared {
    file: DiskFile,
    seal: Seal,
    queue: Mutex<Queue>,
    changed: Condvar,
    ended: Mutex<Vec<Ended>>,
    waker: Arc<Waker>,
    clock: Clock,
    failures: Mutex<Throttle>,
}

impl From<(RequestId, FlashAnswer<Bytes>)> for Ended {
    fn from((request, answer): (RequestId, FlashAnswer<Bytes>)) -> Ended {
        Ended::Helper { request, answer }
    }
}

/// The device. Jobs that were handed to the threads when it is dropped are done first.
pub struct Flash {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Jobs of this turn.
    fresh: Vec<Job>,
}

fn behind(row: Extent, sectors: u32) -> Extent {
    Extent { sector: row.sector + u64::from(sectors), sectors: row.sectors - sectors }
}

/// First byte and bytes of sectors in the file.
fn place(extent: Extent) -> (u64, usize) {
    (SUPERBLOCK_BYTES + extent.sector * u64::from(SECTOR_BYTES), extent.sectors as usize * SECTOR_BYTES as usize)
}

/// Decodes what was read of a segment or a record. The record's value is a part of what was read.
pub fn decode(operation: &FlashOperation<Bytes>, bytes: Bytes, seal: Seal) -> FlashAnswer<Bytes> {
    match operation {
        FlashOperation::ReadSegment { .. } => FlashAnswer::Segment(decode_segment(&bytes, seal).map(Arc::new)),
        FlashOperation::ReadRecord { item } => {
            let bytes = bytes.slice(bytes.len().min(item.record.within())..);
            FlashAnswer::Record(decode_record::<Length>(&bytes, seal).map(|record| {
                let value = bytes.slice(RECORD_HEADER_BYTES as usize..).split_to(record.value.0 as usize);
                record.with(value)
            }))
        }
        FlashOperation::ReadHead { item } => {
            FlashAnswer::Head(decode_head(item, bytes.get(item.record.within()..).unwrap_or(&[])))
        }
        _ => FlashAnswer::Failed,
    }
}

impl Flash {
    /// Starts the threads. `waker` wakes the loop when work is done.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub fn start(file: DiskFile, seal: Seal, waker: Arc<Waker>) -> io::Result<Flash> {
        let shared = Arc::new(Shared {
            file,
            seal,
            queue: Mutex::default(),
            changed: Condvar::new(),
            ended: Mutex::default(),
            waker,
            clock: Clock::start(),
            failures: Mutex::default(),
        });
        let mut workers = Vec::new();
        for number in 0..THREADS {
            let shared = shared.clone();
            let builder = thread::Builder::new().name(format!("flash-{number}"));
            workers.push(builder.spawn(move || shared.work())?);
        }
        Ok(Flash { shared, workers, fresh: Vec::new() })
    }

    /// The seal of what is written.
    pub fn seal(&self) -> Seal {
        self.shared.seal
    }

    /// The file once more, for reading alone.
    ///
    /// # Errors
    /// When the system does not open it.
    pub fn for_reading(&self) -> io::Result<File> {
        self.shared.file.for_reading()
    }

    /// Takes a job for the next [`Self::flush`].
    pub fn submit(&mut self, job: Job) {
        self.fresh.push(job);
    }

    /// Has threads do what was submitted.
    pub fn flush(&mut self) {
        if self.fresh.is_empty() {
            return;
        }
        let tasks = tasks(self.fresh.drain(..));
        let is_one = tasks.len() == 1;
        lock(&self.shared.queue).tasks.extend(tasks);
        if is_one {
            self.shared.changed.notify_one();
        } else {
            self.shared.changed.notify_all();
        }
    }

    /// Reads from the page cache, if it is there: waking a thread costs several times as much.
    pub fn read_cached(&self, extent: Extent) -> Option<Vec<u8>> {
        let (at, length) = place(extent);
        let mut bytes = vec![0; length];
        self.shared.file.read_cached(at, &mut bytes).then_some(bytes)
    }

    /// Moves all that is done to the end of `out`.
    pub fn take(&self, out: &mut Vec<Ended>) {
        out.append(&mut lock(&self.shared.ended));
    }
}

impl Drop for Flash {
    fn drop(&mut self) {
        lock(&self.shared.queue).is_closed = true;
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A thread that panicked has reported it.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        while let Some((task, flushes)) = self.next() {
            match task {
                Task::One(Job::Helper { request, operation }) => {
                    let answer = self.carry_out(operation);
                    self.end(flushes.into_iter().chain([request]).map(|request| (request, answer.clone())));
                }
                Task::One(Job::Read { request, extent }) => {
                    self.end([Ended::Read { request, bytes: self.noted(Some(extent), self.read(extent)) }]);
                }
                Task::Row { extent, writes } => {
                    let written = self.write(extent, writes.iter().map(|(_, content)| content));
                    let answer = self.done(Some(extent), written);
                    self.end(writes.into_iter().map(|(request, _)| (request, answer.clone())));
                }
            }
        }
    }

    /// The next task; with a flush all that wait, since one does for all.
    fn next(&self) -> Option<(Task, Vec<RequestId>)> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(task) = queue.tasks.pop_front() {
                let mut others = Vec::new();
                if flush_of(&task).is_some() {
                    others = queue.tasks.iter().filter_map(flush_of).collect();
                    queue.tasks.retain(|task| flush_of(task).is_none());
                }
                return Some((task, others));
            }
            if queue.is_closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end<T: Into<Ended>>(&self, ended: impl IntoIterator<Item = T>) {
        let mut all = lock(&self.ended);
        let was_empty = all.is_empty();
        all.extend(ended.into_iter().map(Into::into));
        if was_empty && !all.is_empty() {
            // It fails only when the loop is gone, and nobody waits for the result.
            let _ = self.waker.wake();
        }
    }

    /// Writes contents that lie side by side at once.
    fn write<'a>(&self, extent: Extent, contents: impl Iterator<Item = &'a Content<Bytes>>) -> io::Result<()> {
        let mut row = Vec::new();
        for content in contents {
            let mut bytes = encode_content(content, self.seal);
            match row.is_empty() {
                true => row = bytes,
                false => row.append(&mut bytes),
            }
        }
        self.file.write(place(extent).0, &row)
    }

    fn carry_out(&self, operation: FlashOperation<Bytes>) -> FlashAnswer<Bytes> {
        let extent = operation.extent();
        let of_read = |read| self.noted(extent, read).unwrap_or(FlashAnswer::Failed);
        let no_extent = || io::Error::from(io::ErrorKind::InvalidInput);
        match &operation {
            FlashOperation::ReadSegment { .. }
            | FlashOperation::ReadRecord { .. }
            | FlashOperation::ReadHead { .. } => {
                let read = extent.ok_or_else(no_extent).and_then(|extent| self.read(extent));
                of_read(read.map(|bytes| decode(&operation, bytes.into(), self.seal)))
            }
            FlashOperation::ReadKind { sector } => {
                let first = self.read(Extent { sector: *sector, sectors: 1 });
                of_read(first.map(|bytes| FlashAnswer::Kind(zone_kind(&bytes, self.seal))))
            }
            FlashOperation::Scan { extent } => of_read(self.scan(*extent).map(FlashAnswer::Scanned)),
            FlashOperation::List { extent } => of_read(self.scan(*extent).map(FlashAnswer::Listed)),
            FlashOperation::Write { extent: at, content } => self.done(extent, self.write(*at, [content].into_iter())),
            FlashOperation::Flush => self.done(extent, self.file.sync()),
            FlashOperation::Trim { extent: at } => {
                let (first, bytes) = place(*at);
                self.done(extent, self.file.zero(first, bytes as u64, true))
            }
        }
    }

    /// Reads a row of sectors piece by piece: it may be longer than memory has room for.
    fn scan<V: Value>(&self, mut left: Extent) -> io::Result<Vec<(u64, Content<V>)>> {
        let (mut found, mut bytes) = (Vec::new(), Vec::new());
        let mut needs = 0;
        loop {
            left = self.behind_hole(left)?;
            if left.sectors == 0 {
                return Ok(found);
            }
            let sectors = PIECE_BYTES.max(needs).div_ceil(SECTOR_BYTES as usize) as u32;
            let (at, length) = place(Extent { sectors: sectors.min(left.sectors), ..left });
            if bytes.len() < length {
                bytes.resize(length, 0);
            }
            self.file.read(at, &mut bytes[..length])?;
            let scanned = scan(left, &bytes[..length], self.seal);
            found.extend(scanned.found);
            needs = scanned.needs;
            left = behind(left, scanned.sectors);
        }
    }

    /// The row without the hole of the file at its front: there is nothing in it.
    fn behind_hole(&self, row: Extent) -> io::Result<Extent> {
        let (at, length) = place(row);
        let skipped = self.file.next_data(at)?.map_or(length as u64, |data| (data - at).min(length as u64));
        Ok(behind(row, (skipped / u64::from(SECTOR_BYTES)) as u32))
    }

    fn read(&self, extent: Extent) -> io::Result<Vec<u8>> {
        let (at, length) = place(extent);
        let mut bytes = vec![0; length];
        self.file.read(at, &mut bytes)?;
        Ok(bytes)
    }

    fn done(&self, extent: Option<Extent>, outcome: io::Result<()>) -> FlashAnswer<Bytes> {
        self.noted(extent, outcome).map_or(FlashAnswer::Failed, |()| FlashAnswer::Done)
    }

    /// What succeeded. A failing disk fails often, and the log has a line a second of it.
    fn noted<T>(&self, extent: Option<Extent>, outcome: io::Result<T>) -> Option<T> {
        let Err(error) = outcome else { return outcome.ok() };
        lock(&self.failures).tell(self.clock.now(), |left_out| {
            let path = self.file.path().display();
            tracing::error!(%path, ?extent, %error, left_out, "the flash failed");
        });
        None
    }
}

fn flush_of(task: &Task) -> Option<RequestId> {
    match task {
        Task::One(Job::Helper { request, operation: FlashOperation::Flush }) => Some(*request),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Poll, Token};
    use proptest::prelude::*;
    use scalio::{Segment, Sequence};
    use std::time::Duration;

    fn segment(block: u32) -> Content<Bytes> {
        let (sequence, settled) = (Sequence::default(), Sequence::default());
        Content::Segment(Arc::new(Segment { block, epoch: 1, sequence, settled, items: Vec::new() }))
    }

    /// A write whose request and block are its first sector.
    fn write(sector: u64, sectors: u32) -> Job {
        let operation = FlashOperation::Write { extent: Extent { sector, sectors }, content: segment(sector as u32) };
        Job::Helper { request: RequestId(sector), operation }
    }

    #[test]
    fn what_is_no_write_stays_as_it_is() {
        let flush = Job::Helper { request: RequestId(1), operation: FlashOperation::Flush };
        let read = Job::Read { request: RequestId(2), extent: Extent { sector: 1, sectors: 1 } };
        let tasks = tasks([write(0, 1), flush, write(1, 1), read].into_iter());
        assert!(matches!(tasks[..], [Task::One(_), Task::One(Job::Read { .. }), Task::Row { .. }]), "{tasks:?}");
    }

    const SECTORS: u64 = 64;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Whatever the turns: each write is answered once, lies at its place, and nothing else was
        /// written.
        #[test]
        fn each_write_of_a_row_is_answered_and_lies_at_its_place(
            turns in proptest::collection::vec(proptest::collection::hash_set(0..SECTORS, 0..20), 1..4),
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let bytes = SUPERBLOCK_BYTES + SECTORS * u64::from(SECTOR_BYTES);
            let file = DiskFile::open(&folder.path().join("flash"), Some(bytes), false, false).expect("a file");
            let mut poll = Poll::new().expect("there are events");
            let waker = Arc::new(Waker::new(poll.registry(), Token(0)).expect("there are events"));
            let mut flash = Flash::start(file, Seal(7), waker).expect("there are threads");
            for turn in &turns {
                turn.iter().for_each(|sector| flash.submit(write(*sector, 1)));
                flash.flush();
                let (mut ended, mut events) = (Vec::new(), mio::Events::with_capacity(1));
                while ended.len() < turn.len() {
                    poll.poll(&mut events, Some(Duration::from_secs(20))).expect("there are events");
                    prop_assert!(!events.is_empty(), "{} of {} answers", ended.len(), turn.len());
                    flash.take(&mut ended);
                }
                let mut answered: Vec<u64> = ended.iter().map(|ended| match ended {
                    Ended::Helper { request, answer: FlashAnswer::Done } => request.0,
                    other => panic!("{other:?}"),
                }).collect();
                answered.sort_unstable();
                let mut asked: Vec<u64> = turn.iter().copied().collect();
                asked.sort_unstable();
                prop_assert_eq!(answered, asked);
            }
            for sector in 0..SECTORS {
                let there = flash.shared.read(Extent { sector, sectors: 1 }).expect("it can be read");
                let is_written = turns.iter().any(|turn| turn.contains(&sector));
                let expected = encode_content(&segment(sector as u32), Seal(7));
                prop_assert!(there == if is_written { expected } else { vec![0; there.len()] }, "sector {sector}");
            }
        }
    }
}
