//! The flash in a file, read and written by threads.

use crate::superblock::SUPERBLOCK_BYTES;
use bytes::Bytes;
use mio::Waker;
use runtime::lock::lock;
use runtime::storage::{DiskFile, Storage};
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

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

struct Shared {
    file: DiskFile,
    seal: Seal,
    queue: Mutex<Queue>,
    changed: Condvar,
    ended: Mutex<Vec<Ended>>,
    waker: Arc<Waker>,
}

/// The device. Jobs that wait when it is dropped are done first.
pub struct Flash {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
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
        });
        let mut workers = Vec::new();
        for number in 0..THREADS {
            let shared = shared.clone();
            let builder = thread::Builder::new().name(format!("flash-{number}"));
            workers.push(builder.spawn(move || shared.work())?);
        }
        Ok(Flash { shared, workers })
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

    /// Has a thread do it.
    pub fn submit(&self, job: Job) {
        lock(&self.shared.queue).jobs.push_back(job);
        self.shared.changed.notify_one();
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
        while let Some((job, flushes)) = self.next() {
            let ended = match job {
                Job::Helper { request, operation } => {
                    let answer = self.carry_out(operation);
                    let also = flushes.into_iter().map(|request| Ended::Helper { request, answer: answer.clone() });
                    self.end(also);
                    Ended::Helper { request, answer }
                }
                Job::Read { request, extent } => Ended::Read { request, bytes: self.read(extent).ok() },
            };
            self.end([ended]);
        }
    }

    /// The next job; with a flush all that wait, since one does for all.
    fn next(&self) -> Option<(Job, Vec<RequestId>)> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                let mut others = Vec::new();
                if flush_of(&job).is_some() {
                    others = queue.jobs.iter().filter_map(flush_of).collect();
                    queue.jobs.retain(|job| flush_of(job).is_none());
                }
                return Some((job, others));
            }
            if queue.is_closed {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, ended: impl IntoIterator<Item = Ended>) {
        let mut all = lock(&self.ended);
        let was_empty = all.is_empty();
        all.extend(ended);
        if was_empty && !all.is_empty() {
            // It fails only when the loop is gone, and nobody waits for the result.
            let _ = self.waker.wake();
        }
    }

    fn carry_out(&self, operation: FlashOperation<Bytes>) -> FlashAnswer<Bytes> {
        let done = match &operation {
            FlashOperation::ReadSegment { .. }
            | FlashOperation::ReadRecord { .. }
            | FlashOperation::ReadHead { .. } => {
                let read = operation.extent().map(|extent| self.read(extent));
                return match read {
                    Some(Ok(bytes)) => decode(&operation, bytes.into(), self.seal),
                    _ => failed(&operation, io::ErrorKind::UnexpectedEof.into()),
                };
            }
            FlashOperation::ReadKind { sector } => {
                let first = self.read(Extent { sector: *sector, sectors: 1 });
                let kind = |bytes: Vec<u8>| FlashAnswer::Kind(zone_kind(&bytes, self.seal));
                return first.map_or_else(|error| failed(&operation, error), kind);
            }
            FlashOperation::Scan { extent } => {
                return self.scan(*extent).map_or_else(|error| failed(&operation, error), FlashAnswer::Scanned);
            }
            FlashOperation::List { extent } => {
                return self.scan(*extent).map_or_else(|error| failed(&operation, error), FlashAnswer::Listed);
            }
            FlashOperation::Write { extent, content } => {
                self.file.write(place(*extent).0, &encode_content(content, self.seal))
            }
            FlashOperation::Flush => self.file.sync(),
            FlashOperation::Trim { extent } => {
                let (at, bytes) = place(*extent);
                self.file.zero(at, bytes as u64, true)
            }
        };
        done.map_or_else(|error| failed(&operation, error), |()| FlashAnswer::Done)
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
}

fn flush_of(job: &Job) -> Option<RequestId> {
    match job {
        Job::Helper { request, operation: FlashOperation::Flush } => Some(*request),
        _ => None,
    }
}

fn failed(operation: &FlashOperation<Bytes>, error: io::Error) -> FlashAnswer<Bytes> {
    tracing::error!(%error, extent = ?operation.extent(), "the flash failed");
    FlashAnswer::Failed
}
