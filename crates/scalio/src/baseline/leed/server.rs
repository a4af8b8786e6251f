//! The server of one device. GETs are here; what changes a segment is in `update`, what moves one
//! in `compact`.

mod compact;
mod update;

use super::index::Index;
use super::key_of;
use super::locks::Locks;
use super::log::CircularLog;
use super::tokens::TokenQueue;
use super::{Answer, Call, CallResult, LogConfig, ServerConfig, ServerConfigError, ServerIn, ServerOut};
use crate::{
    BUCKETS_MAX, Content, Expiry, Extent, FlashAnswer, FlashOperation, Item, Key, Operation, PAGE_HEADER_BYTES, Page,
    Record, Refusal, RequestBody, RequestId, RequestResult, SECTOR_BYTES, Segment, SegmentPointer, Sequence,
    VALUE_BYTES_MAX, Value, record_bytes,
};
use base::{Program, Time};
use compact::{RecordJob, SegmentJob};
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;
use update::Update;

/// What a server has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounters {
    /// Calls answered.
    pub calls: u64,
    /// GETs that began again, since compaction had moved what they were reading.
    pub restarts: u64,
    /// Segments and records with wrong content, although nothing had moved them.
    pub corrupt: u64,
    /// Reads of the device for calls.
    pub reads: u64,
    /// Segments that the next holder of a lock got from the one before, without a read.
    pub handed_over: u64,
    /// Writes to the device for calls.
    pub writes: u64,
    /// Reads of the device for compaction.
    pub compaction_reads: u64,
    /// Writes to the device for compaction.
    pub compaction_writes: u64,
    /// Segments and records that compaction moved.
    pub moved: u64,
    /// Sectors that compaction won back, what it moved not counted.
    pub reclaimed_sectors: u64,
    /// Most calls that ever waited for tokens, or since [`Server::restart_waiting_max`].
    pub waiting_max: u64,
    /// Answers of the device that match no request.
    pub unknown_answers: u64,
}

/// The server of one device.
#[derive(Clone, Debug)]
pub struct Server<V> {
    config: ServerConfig,
    tokens: TokenQueue<usize>,
    index: Index,
    locks: Locks<Holder>,
    segments: Space,
    records: Space,
    /// Calls that have not been answered, those that wait for tokens among them.
    works: Slab<Work<V>>,
    operations: Slab<Operated>,
    segment_job: Option<SegmentJob>,
    record_jobs: Slab<RecordJob<V>>,
    /// Operations that wait for room in the log of segments, oldest first; compaction of segments
    /// does not wait.
    waiting_for_segments: VecDeque<Holder>,
    /// Calls that wait for room in the log of records, oldest first.
    waiting_for_records: VecDeque<usize>,
    /// Compaction that waits for readers to leave its room in the log of records.
    waiting_jobs: VecDeque<usize>,
    /// Locks with a new holder that has not acted on it, oldest first.
    granted: VecDeque<Grant>,
    /// The device failed compaction: what then waits for room is refused.
    has_failed: bool,
    sequence: u64,
    counters: ServerCounters,
}

/// A log with the number of its sectors that are of use.
#[derive(Clone, Debug)]
struct Space {
    log: CircularLog,
    /// What the index knows, and what is being written and it will know.
    live: u64,
    config: LogConfig,
}

/// Holders of locks, and waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// A call.
    Work(usize),
    /// Compaction of records.
    Job(usize),
}

/// A lock and its new holder.
#[derive(Clone, Debug)]
struct Grant {
    segment: u32,
    holder: Holder,
    /// The segment as the holder before left it; `None`: it has to be read.
    listed: Option<Arc<Segment>>,
}

/// An open call.
#[derive(Clone, Debug)]
struct Work<V> {
    call: Call<V>,
    cost: u32,
    /// Its segment, by its place in the index.
    segment: u32,
    /// The place of the segment at the last lookup of the index.
    pointer: Option<SegmentPointer>,
    update: Option<Update<V>>,
}

/// An operation on the device, and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operated {
    /// A GET reads a segment from a position.
    GetSegment { work: usize, position: u64 },
    /// A GET reads a record from a position.
    GetRecord { work: usize, position: u64 },
    /// A change reads its locked segment.
    UpdateSegment { work: usize, position: u64 },
    /// A compare-and-swap reads what is there.
    UpdateOldRecord { work: usize, position: u64 },
    /// A change writes its record or its segment.
    UpdateWrite { work: usize },
    /// Compaction of segments reads a chunk.
    SegmentChunk { position: u64 },
    /// ... and writes what lives.
    SegmentRun,
    /// Compaction of records reads a chunk.
    RecordChunk { job: usize, position: u64 },
    /// ... and a segment that it has locked,
    JobSegment { job: usize, segment: u32, position: u64 },
    /// ... and writes what lives,
    RecordRun { job: usize },
    /// ... and segments, `count` of them beginning with the job's `first`.
    SegmentRunOfJob { job: usize, first: usize, count: usize },
}

impl Space {
    fn new(config: LogConfig) -> Space {
        let log = CircularLog::new(config.extent.sector, u64::from(config.extent.sectors), config.reserve());
        Space { log, live: 0, config }
    }

    /// Counts sectors as of use before there is a place for them. Refused where they, and `kept`
    /// for compaction, could never all be.
    fn claim(&mut self, sectors: u32, kept: u32) -> Result<(), Refusal> {
        if self.live + u64::from(sectors) + u64::from(kept) > self.usable() {
            return Err(self.full());
        }
        self.live += u64::from(sectors);
        Ok(())
    }

    /// Sectors that may be of use at once: not the reserve, nor what may be skipped at the log's
    /// end.
    fn usable(&self) -> u64 {
        u64::from(self.config.extent.sectors) - self.config.reserve() - 2 * u64::from(self.config.chunk_sectors)
    }

    fn full(&self) -> Refusal {
        let bytes = u64::from(SECTOR_BYTES);
        Refusal::Full { live: self.live * bytes, capacity: self.usable() * bytes }
    }

    fn extent(&self, position: u64, sectors: u32) -> Extent {
        Extent { sector: self.log.sector_of(position), sectors }
    }
}

impl<V: Value> Server<V> {
    /// A server of an empty device.
    pub fn new(config: ServerConfig) -> Result<Server<V>, ServerConfigError> {
        check(&config)?;
        let mine = config.blocks / config.devices + u32::from(config.device < config.blocks % config.devices);
        Ok(Server {
            tokens: TokenQueue::new(config.tokens.capacity),
            index: Index::new(mine as usize),
            locks: Locks::new(),
            segments: Space::new(config.segments),
            records: Space::new(config.records),
            works: Slab::new(),
            operations: Slab::new(),
            segment_job: None,
            record_jobs: Slab::new(),
            waiting_for_segments: VecDeque::new(),
            waiting_for_records: VecDeque::new(),
            waiting_jobs: VecDeque::new(),
            granted: VecDeque::new(),
            has_failed: false,
            sequence: 0,
            counters: ServerCounters::default(),
            config,
        })
    }

    /// What has been counted.
    pub fn counters(&self) -> &ServerCounters {
        &self.counters
    }

    /// Takes the most calls that wait for tokens from now on.
    pub fn restart_waiting_max(&mut self) {
        self.counters.waiting_max = self.tokens.waiting() as u64;
    }

    /// Tokens taken, and calls that wait for some.
    pub fn tokens(&self) -> (u32, usize) {
        (self.tokens.taken(), self.tokens.waiting())
    }

    /// Bytes of use in the logs, of segments and of records.
    pub fn live_bytes(&self) -> (u64, u64) {
        (self.segments.live * u64::from(SECTOR_BYTES), self.records.live * u64::from(SECTOR_BYTES))
    }

    /// Returns whether no operation is open.
    pub fn is_idle(&self) -> bool {
        self.works.is_empty() && self.operations.is_empty() && self.segment_job.is_none() && self.record_jobs.is_empty()
    }

    /// Puts all keys of a block into the logs, as if they had been stored long ago, without a word
    /// to the device: what it returns has to be there when the server starts. For a block that has
    /// no keys yet.
    pub fn load(&mut self, block: u32, values: Vec<(Key, V)>) -> Result<Vec<(Extent, Content<V>)>, Refusal> {
        let segment = self.segment_of(block);
        let mut loaded = Vec::new();
        let mut items = Vec::with_capacity(values.len());
        for (key, value) in values {
            crate::check_value(&value, VALUE_BYTES_MAX)?;
            let record = Record { key, sequence: self.next_sequence(), expiry: Expiry(0), value };
            let page = Page { epoch: 0, records: vec![record] };
            let extent = load_into(&mut self.records, page.sectors(), 0)?;
            items.push(item_of(&page, extent.sector));
            loaded.push((extent, Content::Page(Arc::new(page))));
        }
        items.sort_by_key(|item| item.key);
        let sequence = self.next_sequence();
        let listed = Segment { block, epoch: 0, sequence, settled: crate::Sequence(0), items };
        check_length(&listed)?;
        let extent = load_into(&mut self.segments, listed.sectors(), BUCKETS_MAX)?;
        self.index.set(segment, Some(SegmentPointer::new(extent, sequence)));
        loaded.push((extent, Content::Segment(Arc::new(listed))));
        Ok(loaded)
    }

    fn segment_of(&self, block: u32) -> u32 {
        block / self.config.devices
    }

    fn block_of(&self, segment: u32) -> u32 {
        segment * self.config.devices + self.config.device
    }

    fn next_sequence(&mut self) -> Sequence {
        self.sequence += 1;
        Sequence(self.sequence)
    }

    fn on_call(&mut self, call: Call<V>) {
        let tokens = &self.config.tokens;
        let cost = match &call.operation {
            Operation::Get { .. } => tokens.get,
            Operation::Update(RequestBody::Delete { .. }) => tokens.delete,
            Operation::Update(_) => tokens.put,
        };
        let block = key_of(&call.operation).place(self.config.blocks).block;
        let segment = self.segment_of(block);
        let work = self.works.insert(Work { call, cost, segment, pointer: None, update: None });
        self.tokens.push(cost, work);
    }

    /// Starts all work that can continue: nothing here waits for time.
    fn go_on(&mut self, now: Time, out: &mut Vec<ServerOut<V>>) {
        loop {
            self.hand_out_locks(now, out);
            self.hand_out_room(out);
            self.start_compaction(out);
            match self.tokens.next() {
                Some(work) => self.start(now, work, out),
                None if self.granted.is_empty() => break,
                None => {}
            }
        }
        self.counters.waiting_max = self.counters.waiting_max.max(self.tokens.waiting() as u64);
    }

    /// Tells new holders that they have their locks; some release them at once.
    fn hand_out_locks(&mut self, now: Time, out: &mut Vec<ServerOut<V>>) {
        while let Some(Grant { segment, holder, listed }) = self.granted.pop_front() {
            match holder {
                Holder::Work(work) => self.on_locked(now, work, listed, out),
                Holder::Job(job) => self.on_job_locked(job, segment, listed, out),
            }
        }
    }

    /// Gives room to those that wait for it, in their order; compaction first.
    fn hand_out_room(&mut self, out: &mut Vec<ServerOut<V>>) {
        self.place_segment_run(out);
        while let Some(job) = self.waiting_jobs.front().copied() {
            if !self.place_record_run(job, out) {
                break;
            }
            self.waiting_jobs.pop_front();
        }
        while let Some(holder) = self.waiting_for_segments.front().copied() {
            let is_placed = match holder {
                Holder::Work(work) => self.place_segment(work, out),
                Holder::Job(job) => self.place_job_segments(job, out),
            };
            if !is_placed {
                break;
            }
            self.waiting_for_segments.pop_front();
        }
        while let Some(work) = self.waiting_for_records.front().copied() {
            if !self.place_record(work, out) {
                break;
            }
            self.waiting_for_records.pop_front();
        }
        if self.has_failed {
            self.refuse_waiting(out);
        }
    }

    /// Compaction has failed: no more room will come.
    fn refuse_waiting(&mut self, out: &mut Vec<ServerOut<V>>) {
        for work in std::mem::take(&mut self.waiting_for_records) {
            self.refuse_unlocked(work, Refusal::Device, out);
        }
        for holder in std::mem::take(&mut self.waiting_for_segments) {
            match holder {
                Holder::Work(work) => self.refuse(work, Refusal::Device, out),
                Holder::Job(job) => self.abandon_job(job),
            }
        }
        for job in std::mem::take(&mut self.waiting_jobs) {
            self.abandon_job(job);
        }
    }

    fn start(&mut self, now: Time, work: usize, out: &mut Vec<ServerOut<V>>) {
        match self.works[work].call.operation {
            Operation::Get { .. } => self.get_segment(work, out),
            Operation::Update(_) => self.start_update(now, work, out),
        }
    }

    fn get_segment(&mut self, work: usize, out: &mut Vec<ServerOut<V>>) {
        let segment = self.works[work].segment;
        let pointer = self.index.get(segment);
        self.works[work].pointer = pointer;
        match pointer {
            None => self.answer(work, CallResult::Value(None), out),
            Some(pointer) => {
                let position = self.segments.log.begin_read(pointer.extent.sector);
                self.counters.reads += 1;
                self.read_segment(segment, pointer, Operated::GetSegment { work, position }, out);
            }
        }
    }

    fn read_segment(&mut self, segment: u32, pointer: SegmentPointer, operated: Operated, out: &mut Vec<ServerOut<V>>) {
        let block = self.block_of(segment);
        self.operate(operated, FlashOperation::ReadSegment { block, pointer }, out);
    }

    /// Requests a lock, which `holder` gets at once or when all before it have released it.
    fn lock(&mut self, segment: u32, holder: Holder) {
        if self.locks.ask(segment, holder) {
            self.granted.push_back(Grant { segment, holder, listed: None });
        }
    }

    /// Releases a lock, and hands the segment in memory to the next holder: it is `listed`, and on
    /// the device. LEED's `kv_bucket_unlock` does so with what was committed or left unchanged.
    fn unlock(&mut self, segment: u32, listed: Option<Arc<Segment>>) {
        let Some(holder) = self.locks.give_back(segment) else { return };
        let listed = listed.filter(|_| self.config.hand_over);
        self.counters.handed_over += u64::from(listed.is_some());
        self.granted.push_back(Grant { segment, holder, listed });
    }

    fn operate(&mut self, operated: Operated, operation: FlashOperation<V>, out: &mut Vec<ServerOut<V>>) {
        let request = RequestId(self.operations.insert(operated) as u64);
        out.push(ServerOut::Flash { request, operation });
    }

    fn get_record(&mut self, now: Time, work: usize, answer: FlashAnswer<V>, out: &mut Vec<ServerOut<V>>) {
        let segment = match segment_in(answer) {
            Ok(segment) => segment,
            Err(refusal) => return self.restart(work, refusal, out),
        };
        let key = key_of(&self.works[work].call.operation);
        let Some(item) = segment.find(key).filter(|item| !item.expiry.is_past(now, 0)).copied() else {
            return self.answer(work, CallResult::Value(None), out);
        };
        let position = self.records.log.begin_read(item.record.sector());
        self.counters.reads += 1;
        self.operate(Operated::GetRecord { work, position }, FlashOperation::ReadRecord { item }, out);
    }

    fn end_get(&mut self, work: usize, answer: FlashAnswer<V>, out: &mut Vec<ServerOut<V>>) {
        match record_in(answer) {
            Ok(record) => self.answer(work, CallResult::Value(Some(record.value)), out),
            Err(refusal) => self.restart(work, refusal, out),
        }
    }

    /// A GET found wrong content: either the segment was moved, as the index shows, or it is
    /// corrupt.
    fn restart(&mut self, work: usize, refusal: Refusal, out: &mut Vec<ServerOut<V>>) {
        let Work { segment, pointer, .. } = self.works[work];
        if refusal == Refusal::Corrupt && self.index.get(segment) != pointer {
            self.counters.restarts += 1;
            return self.get_segment(work, out);
        }
        self.counters.corrupt += u64::from(refusal == Refusal::Corrupt);
        self.answer(work, CallResult::Update(RequestResult::Refused(refusal)), out);
    }

    fn answer(&mut self, work: usize, result: CallResult<V>, out: &mut Vec<ServerOut<V>>) {
        let work = self.works.remove(work);
        self.tokens.give_back(work.cost);
        self.counters.calls += 1;
        out.push(ServerOut::Answer(Answer { client: work.call.client, number: work.call.number, result }));
    }

    fn on_flash(&mut self, now: Time, request: RequestId, answer: FlashAnswer<V>, out: &mut Vec<ServerOut<V>>) {
        let Some(operated) = self.operations.try_remove(request.0 as usize) else {
            self.counters.unknown_answers += 1;
            return;
        };
        self.end_read(operated);
        match operated {
            Operated::GetSegment { work, .. } => self.get_record(now, work, answer, out),
            Operated::GetRecord { work, .. } => self.end_get(work, answer, out),
            Operated::UpdateSegment { work, .. } => self.on_update_segment(now, work, answer, out),
            Operated::UpdateOldRecord { work, .. } => self.on_old_record(work, answer, out),
            Operated::UpdateWrite { work } => self.on_written(work, answer, out),
            Operated::SegmentChunk { .. } => self.on_segment_chunk(answer),
            Operated::SegmentRun => self.on_segment_run(answer),
            Operated::JobSegment { job, .. } | Operated::RecordRun { job } | Operated::SegmentRunOfJob { job, .. }
                if self.is_abandoned(job) => {}
            Operated::RecordChunk { job, .. } => self.on_record_chunk(job, answer),
            Operated::JobSegment { job, segment, .. } => self.on_job_segment(job, segment, answer),
            Operated::RecordRun { job } => self.on_record_run(job, answer),
            Operated::SegmentRunOfJob { job, first, count } => self.on_job_run(job, first, count, answer),
        }
    }

    fn end_read(&mut self, operated: Operated) {
        match operated {
            Operated::GetSegment { position, .. }
            | Operated::UpdateSegment { position, .. }
            | Operated::SegmentChunk { position }
            | Operated::JobSegment { position, .. } => self.segments.log.end_read(position),
            Operated::GetRecord { position, .. }
            | Operated::UpdateOldRecord { position, .. }
            | Operated::RecordChunk { position, .. } => self.records.log.end_read(position),
            _ => {}
        }
    }
}

impl<V: Value> Program for Server<V> {
    type In = ServerIn<V>;
    type Out = ServerOut<V>;

    fn on(&mut self, now: Time, input: ServerIn<V>, out: &mut Vec<ServerOut<V>>) {
        match input {
            ServerIn::Call(call) => self.on_call(call),
            ServerIn::Flash { request, answer } => self.on_flash(now, request, answer, out),
        }
        self.go_on(now, out);
    }

    /// Only an input can change anything.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    fn on_wakeup(&mut self, _now: Time, _out: &mut Vec<ServerOut<V>>) {}
}

fn check(config: &ServerConfig) -> Result<(), ServerConfigError> {
    if config.device >= config.devices {
        return Err(ServerConfigError::Device { device: config.device, devices: config.devices });
    }
    let tokens = &config.tokens;
    let cost = tokens.get.max(tokens.put).max(tokens.delete);
    if cost > tokens.capacity {
        return Err(ServerConfigError::Tokens { cost, capacity: tokens.capacity });
    }
    let record_sectors = (PAGE_HEADER_BYTES + record_bytes(VALUE_BYTES_MAX)).div_ceil(SECTOR_BYTES);
    check_log(&config.segments, BUCKETS_MAX)?;
    check_log(&config.records, record_sectors)
}

fn check_log(log: &LogConfig, longest: u32) -> Result<(), ServerConfigError> {
    if log.chunk_sectors < longest {
        return Err(ServerConfigError::Chunk { got: log.chunk_sectors, needed: longest });
    }
    let needed = log.reserve() + 2 * u64::from(log.chunk_sectors) + 2 * u64::from(longest);
    if u64::from(log.extent.sectors) < needed {
        return Err(ServerConfigError::Log { sectors: log.extent.sectors, needed });
    }
    Ok(())
}

fn check_length(segment: &Segment) -> Result<(), Refusal> {
    if segment.items.len() as u32 > crate::SEGMENT_ITEMS_MAX {
        return Err(Refusal::SegmentFull { most: crate::SEGMENT_ITEMS_MAX });
    }
    Ok(())
}

fn load_into(space: &mut Space, sectors: u32, kept: u32) -> Result<Extent, Refusal> {
    space.claim(sectors, kept)?;
    let position = space.log.append(u64::from(sectors), false).ok_or(space.full())?;
    space.log.known(position);
    Ok(space.extent(position, sectors))
}

/// The item of a page of one record that begins at `sector`.
fn item_of<V: Value>(page: &Page<V>, sector: u64) -> Item {
    let (place, record) = page.places(sector).next().expect("a page that is made here has a record");
    Item {
        key: record.key,
        record: place,
        sequence: record.sequence,
        value_bytes: crate::listed_bytes(record.value.bytes()),
        expiry: record.expiry,
        is_fresh: true,
    }
}

fn segment_in<V>(answer: FlashAnswer<V>) -> Result<Arc<Segment>, Refusal> {
    match answer {
        FlashAnswer::Segment(Ok(segment)) => Ok(segment),
        FlashAnswer::Segment(Err(_)) => Err(Refusal::Corrupt),
        _ => Err(Refusal::Device),
    }
}

fn record_in<V>(answer: FlashAnswer<V>) -> Result<Record<V>, Refusal> {
    match answer {
        FlashAnswer::Record(Ok(record)) => Ok(record),
        FlashAnswer::Record(Err(_)) => Err(Refusal::Corrupt),
        _ => Err(Refusal::Device),
    }
}
