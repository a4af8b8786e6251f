//! Linux's `mq-deadline` (block/mq-deadline.c; Documentation/block/deadline-iosched.rst) for one
//! vSSD: separate reads and writes, each sorted and with a FIFO of expiry times. A batch continues
//! in its direction from its position; a new batch prefers reads, and starts with the oldest job if
//! that has expired. I/O priority classes are left out: the paper has none.
//!
//! Without coordination jobs are sorted by page. With coordination the key replaces the page, and a
//! batch always takes the most urgent job. Expiry still counts from arrival, which bounds how long
//! jobs with slower networks can overtake a job.

use super::{Job, JobKind};
use base::{Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound::{Excluded, Unbounded};

/// Jobs a batch, Linux's default `fifo_batch`.
pub(super) const BATCH: u32 = 16;
/// Batches of reads that may pass waiting writes, Linux's default `writes_starved`.
pub(super) const WRITES_STARVED: u32 = 2;

#[derive(Clone, Debug)]
pub(super) struct Deadline {
    reads: Direction,
    writes: Direction,
    /// Direction of the batch.
    writing: bool,
    /// Jobs that the batch has sent.
    batched: u32,
    /// Batches of reads since writes have been waiting for one.
    starved: u32,
}

impl Deadline {
    pub(super) fn new(read: Span, write: Span, coordinated: bool) -> Deadline {
        Deadline {
            reads: Direction::new(read, coordinated),
            writes: Direction::new(write, coordinated),
            writing: false,
            // No batch has begun, so the first job begins one.
            batched: BATCH,
            starved: 0,
        }
    }

    pub(super) fn push(&mut self, job: Job) {
        match job.kind {
            JobKind::Read => self.reads.push(job),
            JobKind::Write | JobKind::Other => self.writes.push(job),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.reads.len() + self.writes.len()
    }

    pub(super) fn pop(&mut self, now: Time) -> Option<Job> {
        if self.batched < BATCH
            && let Some(place) = self.direction().next()
        {
            return self.send(place);
        }
        self.turn();
        self.batched = 0;
        let place = self.direction().first_of_batch(now)?;
        self.send(place)
    }

    /// Chooses the direction of the next batch.
    fn turn(&mut self) {
        let (reads_wait, writes_wait) = (self.reads.len() > 0, self.writes.len() > 0);
        self.writing = writes_wait && (!reads_wait || self.starved >= WRITES_STARVED);
        if self.writing {
            self.starved = 0;
        } else {
            self.starved += u32::from(writes_wait);
        }
    }

    fn direction(&mut self) -> &mut Direction {
        if self.writing { &mut self.writes } else { &mut self.reads }
    }

    fn send(&mut self, place: Place) -> Option<Job> {
        self.batched += 1;
        self.direction().take(place)
    }
}

/// Position of a job in the sorted order: page or key, then arrival.
type Place = (u64, u64);

#[derive(Clone, Debug)]
struct Direction {
    coordinated: bool,
    expiry: Span,
    sorted: BTreeMap<Place, Job>,
    /// In order of arrival; jobs that have left by the sorted order are removed when they come to
    /// the front.
    fifo: VecDeque<Place>,
    /// The last dispatched position: an uncoordinated batch continues after it.
    position: Option<Place>,
    pushed: u64,
}

impl Direction {
    fn new(expiry: Span, coordinated: bool) -> Direction {
        Direction { coordinated, expiry, sorted: BTreeMap::new(), fifo: VecDeque::new(), position: None, pushed: 0 }
    }

    fn push(&mut self, job: Job) {
        let place = (if self.coordinated { job.key.0 } else { job.page.0 }, self.pushed);
        self.pushed += 1;
        self.sorted.insert(place, job);
        self.fifo.push_back(place);
    }

    fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The next in sorted order: the most urgent, or the one behind the last page sent. A plain
    /// batch ends at the highest page.
    fn next(&self) -> Option<Place> {
        let mut rest = if self.coordinated {
            self.sorted.range(..)
        } else {
            self.sorted.range((Excluded(self.position?), Unbounded))
        };
        rest.next().map(|(place, _)| *place)
    }

    /// The oldest when it has expired or the sorted order has come to its end, else the next.
    fn first_of_batch(&self, now: Time) -> Option<Place> {
        let oldest = *self.fifo.front()?;
        let age = now.saturating_since(self.sorted.get(&oldest)?.arrived);
        if age >= self.expiry { Some(oldest) } else { self.next().or(Some(oldest)) }
    }

    fn take(&mut self, place: Place) -> Option<Job> {
        let job = self.sorted.remove(&place);
        self.position = Some(place);
        while self.fifo.front().is_some_and(|oldest| !self.sorted.contains_key(oldest)) {
            self.fifo.pop_front();
        }
        job
    }
}
