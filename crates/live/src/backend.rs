//! Backends: the data of namespaces, and how requests to them are carried out.
//!
//! | kind | carried out | answered |
//! | --- | --- | --- |
//! | `ram`, `null` | in the loop | at once |
//! | `file` | by io_uring, or by threads of its own | when that is done, after the sync where one was asked for |
//! | `flash` | in the loop, or by threads where data lie in a file | when the emulated drive is done, and not before the data are |
//!
//! A copy between two backends goes to threads if one of them has threads.

mod disk;
mod flash;
mod memory;
mod pool;
mod ring;
mod watched;
mod work;

use crate::clock::Clock;
use crate::error::StartError;
use crate::state::{Keeper, NamespaceName, SharedState};
use base::{Operation, Time};
use disk::{Disk, Sources};
pub(crate) use flash::{Drive, DriveTime};
use hardware::ssd::DriveError;
pub(crate) use memory::Memory;
use nvme::target::{BackendId, IoOperation, IoRequest, IoResult, IoStatus, IoTag};
use plan::target::IoName;
pub(crate) use pool::Done;
use pool::{Awaited, Job, Pool};
use ring::Ring;
use runtime::lock::lock;
pub use runtime::storage;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::sync::{Arc, Mutex};
use storage::{Leave, Storage};
use watched::Watched;

/// Bytes of a read that the loop tries by itself. More would keep other connections waiting.
const CACHED_MAX: usize = 16 << 10;

/// Facts of a request beside its result, for records and metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub backend: BackendId,
    /// The controller that sent it.
    pub controller: u16,
    /// Read or write, first byte and bytes; `None` for other requests.
    pub transfer: Option<(Operation, u64, u64)>,
    /// Time of arrival.
    pub came: Time,
    /// Time at which a thread started it.
    pub taken_up: Time,
    /// Time at which its data were ready.
    pub done: Time,
    /// The emulated drive's report.
    pub drive: Option<DriveTime>,
}

/// A completed request.
#[derive(Debug)]
pub(crate) struct Completion {
    pub tag: IoTag,
    pub result: IoResult,
    pub facts: Facts,
    /// Earliest time of the answer.
    pub due: Time,
}

/// State of a submitted request.
pub(crate) enum Submitted {
    /// Completed.
    Over(Completion),
    /// Completes later.
    Later,
}

/// How a new backend carries out requests.
pub(crate) struct BackendParts {
    pub storage: Arc<dyn Storage>,
    pub block_shift: u8,
    /// How a file is read and written.
    pub io: IoName,
    /// Threads that carry requests out; none for the loop itself.
    pub threads: u32,
    pub drive: Option<Drive>,
}

pub(crate) struct Backend {
    disk: Arc<Disk>,
    /// Reads, writes and flushes by io_uring.
    ring: Option<Ring>,
    pool: Option<Pool>,
    drive: Option<Mutex<Timed>>,
}

/// An emulated drive, which several loops ask.
struct Timed {
    drive: Drive,
    /// The latest time of a request: a drive takes none from before it.
    latest: Time,
}

impl Backend {
    /// Gives `job` to the ring or to `pool`.
    fn submit(ring: Option<&Ring>, pool: &Pool, job: Job) {
        let left = match ring.filter(|ring| ring.takes(&job.operation)) {
            Some(ring) => ring.submit(job),
            None => Some(job),
        };
        if let Some(job) = left {
            pool.submit(job);
        }
    }
}

/// The backends that all loops of a server use.
pub(crate) type AllBackends = BTreeMap<BackendId, Arc<Backend>>;

/// All backends of a server, as one loop uses them.
pub(crate) struct Backends {
    clock: Clock,
    all: AllBackends,
    /// Other loops use them too: a disk in memory is not this loop's alone.
    is_shared: bool,
    done: Arc<Done>,
    keeper: Arc<Keeper>,
    /// Completed requests that are due later: the earliest first, then in the order of completion.
    held: BinaryHeap<Reverse<Held>>,
    holds: u64,
    fetched: Vec<Completion>,
    /// Outstanding requests.
    open: usize,
    /// Those that end early when their hosts have gone.
    leaves: BTreeMap<IoTag, Leave>,
    next: u32,
}

impl Backends {
    /// No backends yet. Threads wake the loop by `waker`; `state` keeps changes of reservations.
    /// `is_shared` says whether there will be [others](Self::for_loop).
    pub(crate) fn new(
        clock: Clock,
        waker: Arc<mio::Waker>,
        state: SharedState,
        is_shared: bool,
    ) -> Result<Backends, StartError> {
        let keeper = Keeper::start(state).map_err(StartError::system("threads"))?;
        Ok(Backends::of(clock, AllBackends::new(), is_shared, (waker, Arc::new(keeper))))
    }

    /// The same backends for another loop, which `waker` wakes.
    pub(crate) fn for_loop(&self, waker: Arc<mio::Waker>) -> Backends {
        Backends::of(self.clock, self.all.clone(), true, (waker, self.keeper.clone()))
    }

    fn of(
        clock: Clock,
        all: AllBackends,
        is_shared: bool,
        (waker, keeper): (Arc<mio::Waker>, Arc<Keeper>),
    ) -> Backends {
        let (held, fetched, done) = (BinaryHeap::new(), Vec::new(), Arc::new(Done::new(waker)));
        let leaves = BTreeMap::new();
        Backends { clock, all, is_shared, done, keeper, held, holds: 0, fetched, open: 0, leaves, next: 0 }
    }

    /// All of them, for another loop.
    pub(crate) fn all(&self) -> AllBackends {
        self.all.clone()
    }

    /// Takes `all` in place of what there is.
    pub(crate) fn replace(&mut self, all: AllBackends) {
        let gone: Vec<BackendId> = self.all.keys().copied().filter(|id| !all.contains_key(id)).collect();
        gone.into_iter().for_each(|id| self.remove(id));
        self.all = all;
    }

    /// Names the namespace whose reservations a backend keeps.
    pub(crate) fn name(&self, id: BackendId, name: NamespaceName) {
        self.keeper.name(id, name);
    }

    /// Adds a backend. Failures without a file are logged under `name`.
    pub(crate) fn add(&mut self, name: &NamespaceName, parts: BackendParts) -> Result<BackendId, StartError> {
        let id = BackendId(self.next);
        self.next += 1;
        let pool = match parts.threads {
            0 => None,
            threads => {
                let pool = Pool::start(&format!("backend-{}", id.0), threads, self.clock);
                Some(pool.map_err(StartError::system("threads"))?)
            }
        };
        // Memory does not fail, and has too many requests to be watched.
        let storage = match parts.threads {
            0 => parts.storage,
            _ => Arc::new(Watched::new(parts.storage, name, self.clock)),
        };
        let disk = Arc::new(Disk::new(storage, parts.block_shift));
        let ring = self.ring(id, &disk, parts.io)?;
        let drive = parts.drive.map(|drive| Mutex::new(Timed { drive, latest: Time::ZERO }));
        self.all.insert(id, Arc::new(Backend { disk, ring, pool, drive }));
        Ok(id)
    }

    /// A ring for a file, if it is wanted and the kernel supports it.
    fn ring(&self, id: BackendId, disk: &Arc<Disk>, io: IoName) -> Result<Option<Ring>, StartError> {
        let Some(file) = disk.storage.file().filter(|_| io != IoName::Threads) else { return Ok(None) };
        let path = file.path().display();
        let writes = io == IoName::Uring;
        match Ring::start(&format!("backend-{}", id.0), disk.clone(), writes, self.clock) {
            Ok(ring) => {
                let written_by = if writes { "io_uring" } else { "threads" };
                tracing::info!(%path, written_by, "read by io_uring");
                Ok(Some(ring))
            }
            Err(error) if io == IoName::Auto => {
                tracing::info!(%path, reason = %error, "read and written by threads: the kernel has no io_uring for it");
                Ok(None)
            }
            Err(error) => Err(StartError::file(
                file.path(),
                format!("io_uring is not available ({error}); `io = \"threads\"` works"),
            )),
        }
    }

    /// Removes a backend. A thread of its own finishes and answers outstanding requests.
    pub(crate) fn remove(&mut self, id: BackendId) {
        if let Some(backend) = self.all.remove(&id) {
            std::thread::spawn(move || drop(backend));
        }
    }

    /// Returns the number of outstanding requests.
    pub(crate) fn open(&self) -> usize {
        self.open
    }

    /// Starts a request.
    pub(crate) fn submit(&mut self, now: Time, request: IoRequest) -> Submitted {
        let submitted = self.begin(now, request);
        self.open += usize::from(matches!(submitted, Submitted::Later));
        submitted
    }

    fn begin(&mut self, now: Time, request: IoRequest) -> Submitted {
        let IoRequest { tag, backend: id, controller, mut operation } = request;
        let mut facts =
            Facts { backend: id, controller, transfer: None, came: now, taken_up: now, done: now, drive: None };
        let over = move |result| Submitted::Over(Completion { tag, result, facts, due: now });
        if let IoOperation::PersistReservations { state } = operation {
            let kept = self.keeper.persist(tag, state, facts, &self.done);
            return kept.map_or_else(|status| over(IoResult::bare(status)), |()| Submitted::Later);
        }
        let (Some(sources), true) = (self.sources(&operation), self.all.contains_key(&id)) else {
            return over(answer_to(operation, IoStatus::Unavailable));
        };
        let due = match self.ask_drive(now, id, &operation, &mut facts) {
            Ok(due) => due,
            Err(error) => {
                tracing::error!(backend = id.0, %error, "the emulated drive refuses a request");
                return over(answer_to(operation, IoStatus::OutOfRange));
            }
        };
        if let Some((backend, pool)) = self.runs_on(id, &operation) {
            if self.read_cached(id, &mut operation) {
                return over(answer_to(operation, IoStatus::Done));
            }
            let awaited = Awaited { tag, facts, due, done: self.done.clone() };
            let (leavable, leave) = backend.disk.storage.leavable().unzip();
            let job = Job { awaited, disk: backend.disk.clone(), leavable, operation, sources };
            Backend::submit(backend.ring.as_ref(), pool, job);
            self.leaves.extend(leave.map(|leave| (tag, leave)));
            return Submitted::Later;
        }
        let disk = &self.all[&id].disk;
        let result = match self.is_shared {
            true => disk.carry_out(operation, &sources),
            false => disk.carry_out_alone(operation, &sources),
        };
        self.over_or_held(Completion { tag, result, facts, due }, now)
    }

    /// The disk of a backend whose requests the loop carries out and answers at once.
    fn memory_disk(&self, id: BackendId) -> Option<&Disk> {
        let backend = self.all.get(&id)?;
        (backend.pool.is_none() && backend.drive.is_none()).then_some(&*backend.disk)
    }

    /// Whether a backend can lend what is read: its bytes are in memory.
    pub(crate) fn lends(&self, id: BackendId) -> bool {
        self.memory_disk(id).is_some_and(|disk| disk.storage.lend(false).is_some())
    }

    /// Whether loops of other threads use the backends too.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Reads from the page cache, where a thread would not have to wait either.
    fn read_cached(&self, id: BackendId, operation: &mut IoOperation) -> bool {
        let IoOperation::Read { range, buffer } = operation else { return false };
        let Some(backend) = self.all.get(&id).filter(|backend| backend.drive.is_none()) else { return false };
        let at = backend.disk.blocks.bytes(*range).0;
        buffer.len() <= CACHED_MAX && backend.disk.storage.read_cached(at, buffer)
    }

    /// Time at which an emulated drive completes; `now` without a drive.
    fn ask_drive(
        &self,
        now: Time,
        id: BackendId,
        operation: &IoOperation,
        facts: &mut Facts,
    ) -> Result<Time, DriveError> {
        let Some(backend) = self.all.get(&id) else { return Ok(now) };
        facts.transfer = transfer(operation, backend);
        let Some(timed) = &backend.drive else { return Ok(now) };
        let mut timed = lock(timed);
        timed.latest = timed.latest.max(now);
        let now = timed.latest;
        let (end, time) = timed.drive.submit(now, operation, backend.disk.blocks.shift)?;
        facts.drive = Some(time);
        Ok(end)
    }

    /// Moves requests that are completed by `now` to `out`.
    pub(crate) fn take_over(&mut self, now: Time, out: &mut Vec<Completion>) {
        let before = out.len();
        let mut fetched = std::mem::take(&mut self.fetched);
        self.done.take(&mut fetched);
        for completion in fetched.drain(..) {
            self.leaves.remove(&completion.tag);
            if let Submitted::Over(completion) = self.over_or_held(completion, now) {
                out.push(completion);
            }
        }
        self.fetched = fetched;
        while self.held.peek().is_some_and(|Reverse(held)| held.completion.due <= now) {
            out.extend(self.held.pop().map(|Reverse(held)| held.completion));
        }
        self.open -= out.len() - before;
    }

    /// Ends outstanding requests early, where that is possible, that nobody waits for.
    pub(crate) fn leave(&mut self, is_abandoned: impl Fn(IoTag) -> bool) {
        self.leaves.extract_if(.., |tag, _| is_abandoned(*tag)).for_each(|(_, leave)| leave());
    }

    /// Time of the next answer of an emulated drive.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.held.peek().map(|Reverse(held)| held.completion.due)
    }

    /// Syncs all storages, for an orderly shutdown.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        self.all.values().try_for_each(|backend| backend.disk.storage.sync())
    }

    fn over_or_held(&mut self, completion: Completion, now: Time) -> Submitted {
        if completion.due <= now {
            return Submitted::Over(completion);
        }
        self.holds += 1;
        self.held.push(Reverse(Held { order: (completion.due, self.holds), completion }));
        Submitted::Later
    }

    /// The disks that a copy reads; `None` if one is gone.
    fn sources(&self, operation: &IoOperation) -> Option<Sources> {
        let IoOperation::Copy { sources, .. } = operation else { return Some(Vec::new()) };
        sources.iter().map(|source| Some((self.all.get(&source.backend)?.disk.clone(), source.range))).collect()
    }

    /// The threads that carry a copy out, if any do.
    fn runs_on(&self, id: BackendId, operation: &IoOperation) -> Option<(&Backend, &Pool)> {
        let own = &*self.all[&id];
        let pool = own.pool.as_ref().or_else(|| match operation {
            IoOperation::Copy { sources, .. } => {
                sources.iter().find_map(|source| self.all.get(&source.backend)?.pool.as_ref())
            }
            _ => None,
        })?;
        Some((own, pool))
    }
}

/// A completion that is due later.
struct Held {
    order: (Time, u64),
    completion: Completion,
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.order == other.order
    }
}
impl Eq for Held {}
impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Held {
    fn cmp(&self, other: &Held) -> std::cmp::Ordering {
        self.order.cmp(&other.order)
    }
}

/// The answer to an operation, with its buffer.
fn answer_to(operation: IoOperation, status: IoStatus) -> IoResult {
    let buffer = match operation {
        IoOperation::Read { buffer, .. } | IoOperation::EndLoan { buffer, .. } => buffer,
        IoOperation::Write { data, .. }
        | IoOperation::Compare { data, .. }
        | IoOperation::CompareAndWrite { data, .. } => data,
        _ => Vec::new(),
    };
    IoResult { status, buffer }
}

fn transfer(operation: &IoOperation, backend: &Backend) -> Option<(Operation, u64, u64)> {
    let (kind, range) = match operation {
        IoOperation::Read { range, .. } => (Operation::Read, *range),
        IoOperation::Write { range, .. } => (Operation::Write, *range),
        _ => return None,
    };
    let (address, bytes) = backend.disk.blocks.bytes(range);
    Some((kind, address, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;
    use nvme::target::BlockRange;
    use runtime::in_use::InUse;
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    /// Memory whose writes wait until their hosts have gone.
    struct Slow {
        memory: storage::Memory,
        left: Option<Mutex<std::sync::mpsc::Receiver<()>>>,
    }

    impl Storage for Slow {
        fn bytes(&self) -> u64 {
            self.memory.bytes()
        }
        fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.memory.read(at, buffer)
        }
        fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
            let left = self.left.as_ref().expect("each request has its own");
            lock(left).recv_timeout(Duration::from_secs(60)).expect("its host goes");
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        fn zero(&self, at: u64, bytes: u64, gives_back: bool) -> io::Result<()> {
            self.memory.zero(at, bytes, gives_back)
        }
        fn give_back(&self, at: u64, bytes: u64) -> io::Result<()> {
            self.memory.give_back(at, bytes)
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        fn leavable(&self) -> Option<(Arc<dyn Storage>, Leave)> {
            let (leave, left) = channel();
            let one = Slow { memory: storage::Memory::new(4096).ok()?, left: Some(Mutex::new(left)) };
            Some((Arc::new(one), Box::new(move || leave.send(()).expect("it waits"))))
        }
        fn resize(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
    }

    /// The next completion; there is one in a minute.
    fn next(backends: &mut Backends, now: Time) -> Completion {
        let (mut over, until) = (Vec::new(), Instant::now() + Duration::from_secs(60));
        while over.is_empty() {
            assert!(Instant::now() < until, "nothing is completed");
            backends.take_over(now, &mut over);
        }
        over.remove(0)
    }

    #[test]
    fn what_a_host_has_left_ends_early_and_what_others_wait_for_does_not() {
        let poll = mio::Poll::new().expect("the system has one");
        let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).expect("the system has one"));
        let state = Arc::new(Mutex::new(State::open(None, &InUse::Refused).expect("it has no file")));
        let clock = Clock::start();
        let mut backends = Backends::new(clock, waker, state, false).expect("there is a thread");
        let storage = Arc::new(Slow { memory: storage::Memory::new(4096).expect("there is memory"), left: None });
        let parts = BackendParts { storage, block_shift: 9, io: IoName::Threads, threads: 2, drive: None };
        let name = NamespaceName { subsystem: "nqn".into(), namespace: 1 };
        let backend = backends.add(&name, parts).expect("it is one");
        let now = clock.now();
        let [first, second, third] = [1, 2, 3].map(IoTag::of_bits);
        for tag in [first, second, third] {
            let range = BlockRange { start: 0, blocks: 1 };
            let operation = IoOperation::Write { range, data: vec![0; 512], is_durable: false };
            let request = IoRequest { tag, backend, controller: 1, operation };
            assert!(matches!(backends.submit(now, request), Submitted::Later));
        }
        // The third waits for a thread until the second is over.
        for tag in [second, third, first] {
            backends.leave(|other| other == tag);
            assert_eq!(next(&mut backends, now).tag, tag);
        }
        assert_eq!((backends.open(), backends.leaves.len()), (0, 0));
    }
}
