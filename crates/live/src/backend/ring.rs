//! A thread that reads and writes a file by io_uring: many requests at once, without a switch of
//! threads for each.
//!
//! Reads use the ring; writes and flushes do if that is configured. By default they do not: the
//! kernel hands writes of files to threads of its own. Those were slower than ours (a third to a
//! half at a depth of 32 on ext4, Linux 6.18). Rare operations (zeros, copies, verification,
//! comparisons) go to the pool of threads beside it. A compare-and-write must see no change between
//! its two halves: it is carried out here, when nothing else is outstanding.

use super::pool::{Awaited, Job};
use super::storage::{DiskFile, aligned};
use super::work::{of_read, of_write};
use crate::backend::disk::Disk;
use crate::clock::Clock;
use compio_buf::{BufResult, IntoInner, IoBuf, Slice};
use compio_driver::op::{ReadAt, Sync, WriteAt};
use compio_driver::{DriverType, Key, OpCode, Proactor, PushEntry, SharedFd};
use nvme::target::{IoOperation, IoResult, IoStatus};
use runtime::lock::lock;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread::{self, JoinHandle};

/// Requests that the kernel holds at a time; more wait in order. As many as a queue of most hosts.
const UNDERWAY_MAX: usize = 128;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

/// Hands jobs to the thread. Jobs that wait when it is dropped are done first.
pub(crate) struct Ring {
    queue: Arc<Mutex<Queue>>,
    writes: bool,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

impl Ring {
    /// Starts a thread for the file of `disk`, or returns why the kernel has no ring for it. With
    /// `writes`, changes of the file use the ring too.
    pub(crate) fn start(name: &str, disk: Arc<Disk>, writes: bool, clock: Clock) -> io::Result<Ring> {
        let queue = Arc::new(Mutex::new(Queue::default()));
        let theirs = queue.clone();
        let (sender, receiver) = sync_channel(1);
        let work = move || match Loop::new(theirs, disk, clock) {
            Ok(mut ring) => {
                // The receiver waits until the result has come.
                let _ = sender.send(Ok(ring.proactor.waker()));
                ring.run();
            }
            Err(error) => drop(sender.send(Err(error))),
        };
        let thread = Some(thread::Builder::new().name(format!("{name}-ring")).spawn(work)?);
        let waker = receiver.recv().map_err(|_| io::Error::other("the ring's thread has ended"))??;
        Ok(Ring { queue, writes, waker, thread })
    }

    /// Whether the ring carries it out; threads do the rest.
    pub(crate) fn takes(&self, operation: &IoOperation) -> bool {
        use IoOperation::{CompareAndWrite, Flush, Read, Write};
        match operation {
            Read { .. } | CompareAndWrite { .. } => true,
            Write { .. } | Flush => self.writes,
            _ => false,
        }
    }

    /// Takes a job; returns it if the ring has failed.
    pub(crate) fn submit(&self, job: Job) -> Option<Job> {
        let mut queue = lock(&self.queue);
        if queue.is_closed {
            return Some(job);
        }
        queue.jobs.push_back(job);
        let was_empty = queue.jobs.len() == 1;
        drop(queue);
        // The thread takes all waiting jobs: an earlier one has woken it.
        if was_empty {
            self.waker.wake_by_ref();
        }
        None
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        lock(&self.queue).is_closed = true;
        self.waker.wake_by_ref();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}

type Fd = SharedFd<File>;
type Room = Slice<Vec<u8>>;

/// The kernel's current operation for a request.
enum Step {
    Read(Key<ReadAt<Room, Fd>>),
    Write(Key<WriteAt<Room, Fd>>),
    /// For these requests too.
    Sync(Key<Sync<Fd>>, Vec<Held>),
}

/// A request.
struct Held {
    awaited: Awaited,
    /// First byte.
    at: u64,
    /// Bytes.
    length: usize,
    /// A sync follows the write.
    is_durable: bool,
    /// The buffer to return, while the kernel does not hold it itself.
    buffer: Vec<u8>,
}

/// A request, and the kernel's current operation for it.
struct Underway {
    held: Held,
    step: Step,
}

struct Loop {
    proactor: Proactor,
    queue: Arc<Mutex<Queue>>,
    disk: Arc<Disk>,
    fd: Fd,
    clock: Clock,
    underway: Vec<Underway>,
    /// Whether a sync is under way, and requests for the next one: the system tells a failure to
    /// one of two, so they do not run at the same time.
    syncs: bool,
    to_sync: Vec<Held>,
}

impl Loop {
    fn new(queue: Arc<Mutex<Queue>>, disk: Arc<Disk>, clock: Clock) -> io::Result<Loop> {
        let proactor = Proactor::builder().capacity(UNDERWAY_MAX as u32).driver_type(DriverType::IoUring).build()?;
        let file = disk.storage.file().ok_or(io::ErrorKind::Unsupported)?.another()?;
        let (underway, to_sync) = (Vec::new(), Vec::new());
        Ok(Loop { proactor, queue, disk, fd: SharedFd::new(file), clock, underway, syncs: false, to_sync })
    }

    /// Runs until the channel is closed and nothing is left.
    fn run(&mut self) {
        loop {
            let is_closed = self.begin_waiting();
            if self.underway.is_empty() && is_closed {
                return;
            }
            if let Err(error) = self.proactor.poll(None)
                && error.kind() != io::ErrorKind::Interrupted
            {
                return self.give_up(&error);
            }
            self.collect();
        }
    }

    /// The ring has failed: outstanding requests fail, and threads do the rest.
    fn give_up(&mut self, error: &io::Error) {
        tracing::error!(%error, "io_uring has failed: from now on threads read and write the file");
        let mut all = std::mem::take(&mut self.to_sync);
        for Underway { held, step } in std::mem::take(&mut self.underway) {
            all.push(held);
            if let Step::Sync(_, others) = step {
                all.extend(others);
            }
        }
        all.into_iter().for_each(|held| self.finish(held.awaited, IoResult::bare(IoStatus::Unavailable)));
        let jobs = {
            let mut queue = lock(&self.queue);
            queue.is_closed = true;
            std::mem::take(&mut queue.jobs)
        };
        for job in jobs {
            let result = job.disk.carry_out(job.operation, &job.sources);
            self.finish(job.awaited, result);
        }
    }

    /// Starts waiting jobs, as far as there is room. Returns whether the channel is closed.
    fn begin_waiting(&mut self) -> bool {
        while self.underway.len() + self.to_sync.len() < UNDERWAY_MAX {
            let mut queue = lock(&self.queue);
            let is_closed = queue.is_closed;
            let Some(job) = queue.jobs.front() else { return is_closed };
            if matches!(job.operation, IoOperation::CompareAndWrite { .. }) && !self.underway.is_empty() {
                return false;
            }
            let Some(job) = queue.jobs.pop_front() else { return is_closed };
            drop(queue);
            self.begin(job);
        }
        false
    }

    fn file(&self) -> Option<&DiskFile> {
        self.disk.storage.file()
    }

    fn begin(&mut self, job: Job) {
        let Job { mut awaited, operation, sources, disk, .. } = job;
        awaited.facts.taken_up = self.clock.now();
        let bytes = |range| disk.blocks.bytes(range);
        let (at, length, buffer, is_durable, is_read) = match operation {
            IoOperation::Read { range, buffer } => (bytes(range).0, buffer.len(), buffer, false, true),
            IoOperation::Write { range, data, is_durable } => (bytes(range).0, data.len(), data, is_durable, false),
            IoOperation::Flush => (0, 0, Vec::new(), true, false),
            other => {
                let result = disk.carry_out(other, &sources);
                return self.finish(awaited, result);
            }
        };
        let held = Held { awaited, at, length, is_durable, buffer };
        let unsupported = || Err(io::ErrorKind::Unsupported.into());
        let checked = self.file().map_or_else(unsupported, |file| file.check_access(at, length as u64, is_read));
        match checked {
            Err(error) => self.fail(held, error, is_read),
            Ok(()) if length == 0 => self.sync(held),
            Ok(()) if is_read => self.read(held),
            Ok(()) => self.write(held),
        }
    }

    fn is_direct(&self) -> bool {
        self.file().is_some_and(DiskFile::is_direct)
    }

    fn read(&mut self, mut held: Held) {
        let room = match self.is_direct() {
            true => aligned_room(held.length),
            false => std::mem::take(&mut held.buffer).slice(..held.length),
        };
        match self.proactor.push(ReadAt::new(self.fd.clone(), held.at, room)) {
            PushEntry::Pending(key) => self.underway.push(Underway { held, step: Step::Read(key) }),
            PushEntry::Ready(result) => self.after_read(held, result),
        }
    }

    fn write(&mut self, mut held: Held) {
        let room = match self.is_direct() {
            true => {
                let (mut room, start) = aligned(held.length);
                room[start..start + held.length].copy_from_slice(&held.buffer);
                room.slice(start..start + held.length)
            }
            false => std::mem::take(&mut held.buffer).slice(..held.length),
        };
        match self.proactor.push(WriteAt::new(self.fd.clone(), held.at, room)) {
            PushEntry::Pending(key) => self.underway.push(Underway { held, step: Step::Write(key) }),
            PushEntry::Ready(result) => self.after_write(held, result),
        }
    }

    /// As fdatasync(2): after the answered writes, which the kernel has finished.
    fn sync(&mut self, held: Held) {
        self.to_sync.push(held);
        self.begin_sync();
    }

    /// Begins a sync for all that wait for one.
    fn begin_sync(&mut self) {
        if self.syncs {
            return;
        }
        let mut others = std::mem::take(&mut self.to_sync);
        let Some(held) = others.pop() else { return };
        self.syncs = true;
        match self.proactor.push(Sync::new(self.fd.clone(), true)) {
            PushEntry::Pending(key) => self.underway.push(Underway { held, step: Step::Sync(key, others) }),
            PushEntry::Ready(BufResult(result, _)) => self.after_sync(held, others, result.map(drop)),
        }
    }

    /// Continues all requests that the kernel has completed.
    fn collect(&mut self) {
        let mut left = std::mem::take(&mut self.underway);
        for underway in left.drain(..) {
            let underway = self.advance(underway);
            self.underway.extend(underway);
        }
    }

    /// Continues a request; returns it if the kernel is not done with it.
    fn advance(&mut self, Underway { held, step }: Underway) -> Option<Underway> {
        match step {
            Step::Read(key) => match popped(&mut self.proactor, key) {
                Ok(result) => self.after_read(held, result),
                Err(key) => return Some(Underway { held, step: Step::Read(key) }),
            },
            Step::Write(key) => match popped(&mut self.proactor, key) {
                Ok(result) => self.after_write(held, result),
                Err(key) => return Some(Underway { held, step: Step::Write(key) }),
            },
            Step::Sync(key, others) => match popped(&mut self.proactor, key) {
                Ok(BufResult(result, _)) => self.after_sync(held, others, result.map(drop)),
                Err(key) => return Some(Underway { held, step: Step::Sync(key, others) }),
            },
        }
        None
    }

    fn after_read(&mut self, mut held: Held, BufResult(result, operation): BufResult<usize, ReadAt<Room, Fd>>) {
        let room = operation.into_inner();
        match self.is_direct() {
            true => held.buffer.copy_from_slice(&room[..held.length]),
            false => held.buffer = room.into_inner(),
        }
        let is_whole = matches!(result, Ok(count) if count == held.length);
        // A part, or an error that may pass: once more by a plain system call, which gives the
        // reason.
        let read = if is_whole { Ok(()) } else { self.disk.storage.read(held.at, &mut held.buffer) };
        let Held { awaited, buffer, .. } = held;
        self.finish(awaited, IoResult { status: of_read(read), buffer });
    }

    fn after_write(&mut self, mut held: Held, BufResult(result, operation): BufResult<usize, WriteAt<Room, Fd>>) {
        if !self.is_direct() {
            held.buffer = operation.into_inner().into_inner();
        }
        let is_whole = matches!(result, Ok(count) if count == held.length);
        let written = if is_whole { Ok(()) } else { self.disk.storage.write(held.at, &held.buffer) };
        match written {
            Err(error) => self.fail(held, error, false),
            Ok(()) if held.is_durable => self.sync(held),
            Ok(()) => self.succeed(held),
        }
    }

    /// A sync that failed is never retried: the system may have dropped what it could not write.
    fn after_sync(&mut self, held: Held, others: Vec<Held>, result: io::Result<()>) {
        self.syncs = false;
        let noted = match self.file() {
            Some(file) => file.note_sync(result),
            None => result,
        };
        for held in others.into_iter().chain([held]) {
            match &noted {
                Ok(()) => self.succeed(held),
                Err(error) => self.fail(held, error.kind().into(), false),
            }
        }
        self.begin_sync();
    }

    fn succeed(&mut self, held: Held) {
        let Held { awaited, buffer, .. } = held;
        self.finish(awaited, IoResult { status: IoStatus::Done, buffer });
    }

    fn fail(&mut self, held: Held, error: io::Error, is_read: bool) {
        let Held { awaited, buffer, .. } = held;
        let status = if is_read { of_read(Err(error)) } else { of_write(Err(error)) };
        self.finish(awaited, IoResult { status, buffer });
    }

    fn finish(&mut self, mut awaited: Awaited, result: IoResult) {
        awaited.facts.done = self.clock.now();
        awaited.answer(result);
    }
}

/// The result of an operation, or its key while there is none.
fn popped<T: OpCode + 'static>(proactor: &mut Proactor, key: Key<T>) -> Result<BufResult<usize, T>, Key<T>> {
    match proactor.pop(key) {
        PushEntry::Ready(result) => Ok(result),
        PushEntry::Pending(key) => Err(key),
    }
}

/// A buffer of a direct read.
fn aligned_room(length: usize) -> Room {
    let (room, start) = aligned(length);
    room.slice(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::super::Facts;
    use super::super::pool::Done;
    use super::*;
    use base::Time;
    use mio::Poll;
    use nvme::target::{BackendId, BlockRange, IoTag};
    use std::path::Path;
    use std::time::Duration;

    /// A file, its completions, and a ring over it once that is started.
    struct Bench {
        ring: Option<Ring>,
        done: Arc<Done>,
        disk: Arc<Disk>,
        _poll: Poll,
    }

    /// What the kernel has for us; `None`, with a message, if it has no io_uring.
    fn unless_missing<T>(made: io::Result<T>) -> Option<T> {
        made.inspect_err(|error| println!("skipped: the kernel has no io_uring for us ({error})")).ok()
    }

    fn bench_without_ring(folder: &Path, direct: bool) -> Bench {
        let file = DiskFile::open(&folder.join("disk"), Some(1 << 20), direct, false).expect("it is made");
        let poll = Poll::new().expect("there is one");
        let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).expect("there is one"));
        let disk = Arc::new(Disk::new(Arc::new(file), 12));
        Bench { ring: None, done: Arc::new(Done::new(waker)), disk, _poll: poll }
    }

    fn bench(folder: &Path, direct: bool) -> Option<Bench> {
        let bench = bench_without_ring(folder, direct);
        let ring = unless_missing(Ring::start("test", bench.disk.clone(), true, Clock::start()))?;
        Some(Bench { ring: Some(ring), ..bench })
    }

    impl Bench {
        fn job(&self, number: u64, operation: IoOperation) -> Job {
            let (backend, now) = (BackendId(0), Time::ZERO);
            let facts =
                Facts { backend, controller: 0, transfer: None, came: now, taken_up: now, done: now, drive: None };
            let awaited = Awaited { tag: IoTag::of_bits(number), facts, due: now, done: self.done.clone() };
            Job { awaited, disk: self.disk.clone(), leavable: None, operation, sources: Vec::new() }
        }

        fn submit(&self, number: u64, operation: IoOperation) {
            let job = self.job(number, operation);
            assert!(self.ring.as_ref().expect("it runs").submit(job).is_none(), "the ring takes it");
        }

        /// Returns the next `count` completions, by their numbers.
        fn wait(&self, count: usize) -> Vec<(u64, IoResult)> {
            let mut over = Vec::new();
            while over.len() < count {
                self.done.take(&mut over);
                thread::sleep(Duration::from_millis(1));
            }
            let mut over: Vec<_> = over.into_iter().map(|over| (over.tag.bits(), over.result)).collect();
            over.sort_by_key(|(number, _)| *number);
            over
        }
    }

    fn block(start: u64) -> BlockRange {
        BlockRange { start, blocks: 1 }
    }

    fn write(start: u64, fill: u8, is_durable: bool) -> IoOperation {
        IoOperation::Write { range: block(start), data: vec![fill; 4096], is_durable }
    }

    #[test]
    fn more_requests_than_the_ring_holds_are_all_answered_once_with_their_own_data() {
        for direct in [false, true] {
            let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a folder");
            let Some(bench) = bench(folder.path(), direct) else { return };
            for number in 0..256 {
                bench.submit(number, write(number, number as u8 | 1, number % 5 == 0));
            }
            let over = bench.wait(256);
            assert!(over.iter().all(|(_, result)| result.status == IoStatus::Done && result.buffer.len() == 4096));
            bench.submit(256, IoOperation::Flush);
            for number in 0..256 {
                bench.submit(number, IoOperation::Read { range: block(number), buffer: vec![0; 4096] });
            }
            for (number, result) in bench.wait(257).into_iter().take(256) {
                assert_eq!(result.buffer, vec![number as u8 | 1; 4096], "block {number}");
            }
        }
    }

    #[test]
    fn of_the_flushes_that_come_together_one_syncs_and_the_others_share_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let (bench, queue) = (bench_without_ring(folder.path(), false), Arc::new(Mutex::new(Queue::default())));
        let made = Loop::new(queue.clone(), bench.disk.clone(), Clock::start());
        let Some(mut ring) = unless_missing(made) else { return };
        lock(&queue).jobs.extend((0..5).map(|number| bench.job(number, IoOperation::Flush)));
        ring.begin_waiting();
        assert_eq!((ring.underway.len(), ring.to_sync.len()), (1, 4));
        while ring.to_sync.len() == 4 {
            ring.proactor.poll(None).expect("it ends");
            ring.collect();
        }
        assert_eq!((ring.underway.len(), ring.to_sync.len()), (1, 0));
        lock(&queue).is_closed = true;
        ring.run();
        assert!(bench.wait(5).iter().all(|(_, result)| result.status == IoStatus::Done));
    }

    #[test]
    fn what_waits_when_the_ring_ends_is_done_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(mut bench) = bench(folder.path(), false) else { return };
        (0..200).for_each(|number| bench.submit(number, write(number, 9, number == 199)));
        bench.ring = None;
        let mut over = Vec::new();
        bench.done.take(&mut over);
        assert_eq!(over.len(), 200);
        let mut back = [0; 4096];
        bench.disk.storage.read(199 << 12, &mut back).expect("it is inside");
        assert_eq!(back, [9; 4096]);
    }

    #[test]
    fn a_compare_and_write_sees_all_that_was_asked_for_before_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(bench) = bench(folder.path(), false) else { return };
        let both = |expected: u8, fill: u8| IoOperation::CompareAndWrite {
            range: block(3),
            expected: vec![expected; 4096],
            data: vec![fill; 4096],
            is_durable: false,
        };
        bench.submit(0, write(3, 1, false));
        bench.submit(1, both(1, 2));
        bench.submit(2, both(1, 3));
        bench.submit(3, both(2, 4));
        let over: Vec<_> = bench.wait(4).into_iter().map(|(_, result)| result.status).collect();
        assert_eq!(over, [IoStatus::Done, IoStatus::Done, IoStatus::Miscompare, IoStatus::Done]);
    }

    #[test]
    fn outside_of_the_file_and_after_a_failed_sync_nothing_is_promised() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(bench) = bench(folder.path(), false) else { return };
        bench.submit(0, write(256, 1, false));
        bench.submit(1, IoOperation::Read { range: block(u64::MAX >> 12), buffer: vec![0; 4096] });
        assert!(bench.wait(2).iter().all(|(_, result)| result.status == IoStatus::OutOfRange));
        let file = bench.disk.storage.file().expect("it lies in a file");
        file.note_sync(Err(io::ErrorKind::StorageFull.into())).expect_err("it is noted");
        bench.submit(2, write(0, 1, false));
        bench.submit(3, IoOperation::Flush);
        bench.submit(4, IoOperation::Read { range: block(0), buffer: vec![7; 4096] });
        let over: Vec<_> = bench.wait(3).into_iter().map(|(_, result)| result.status).collect();
        assert_eq!(over, [IoStatus::WriteError, IoStatus::WriteError, IoStatus::Done]);
    }
}
