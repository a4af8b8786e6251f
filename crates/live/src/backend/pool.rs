//! Threads for work that would block the loop.

use super::disk::{Disk, Sources};
use super::storage::Storage;
use super::{Completion, Facts};
use crate::clock::Clock;
use base::Time;
use mio::Waker;
use nvme::target::{IoOperation, IoResult, IoTag};
use runtime::lock::lock;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Completions of threads, for the loop. The first of several wakes it.
pub(crate) struct Done {
    waker: Arc<Waker>,
    list: Mutex<Vec<Completion>>,
}

impl Done {
    pub(crate) fn new(waker: Arc<Waker>) -> Done {
        Done { waker, list: Mutex::default() }
    }
    pub(crate) fn add(&self, completion: Completion) {
        let mut list = lock(&self.list);
        list.push(completion);
        if list.len() == 1 {
            // It fails only when the loop is gone, and nobody waits for the result.
            let _ = self.waker.wake();
        }
    }
    /// Moves all completions to the end of `out`.
    pub(crate) fn take(&self, out: &mut Vec<Completion>) {
        out.append(&mut lock(&self.list));
    }
}

/// A request that a loop waits for.
pub(crate) struct Awaited {
    pub tag: IoTag,
    pub facts: Facts,
    /// Earliest time of the answer, from an emulated drive.
    pub due: Time,
    /// The list of the loop.
    pub done: Arc<Done>,
}

impl Awaited {
    pub(crate) fn answer(self, result: IoResult) {
        let Awaited { tag, facts, due, done } = self;
        done.add(Completion { tag, result, facts, due });
    }
}

/// One request for a worker.
pub(crate) struct Job {
    pub awaited: Awaited,
    pub disk: Arc<Disk>,
    /// The disk's storage for this request, where its host may leave it.
    pub leavable: Option<Arc<dyn Storage>>,
    pub operation: IoOperation,
    pub sources: Sources,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// Threads that take jobs in order. Jobs that wait when the pool is dropped are done first.
pub(crate) struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Pool {
    pub(crate) fn start(name: &str, threads: u32, clock: Clock) -> io::Result<Pool> {
        let shared = Arc::new(Shared::default());
        let mut workers = Vec::new();
        for number in 0..threads {
            let shared = shared.clone();
            let builder = thread::Builder::new().name(format!("{name}-{number}"));
            workers.push(builder.spawn(move || work(&shared, clock))?);
        }
        Ok(Pool { shared, workers })
    }

    pub(crate) fn submit(&self, job: Job) {
        lock(&self.shared.queue).jobs.push_back(job);
        self.shared.changed.notify_one();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.queue).is_closed = true;
        self.shared.changed.notify_all();
        for worker in self.workers.drain(..) {
            // A thread that panicked has reported it.
            let _ = worker.join();
        }
    }
}

fn work(shared: &Shared, clock: Clock) {
    while let Some(mut job) = next(shared) {
        job.awaited.facts.taken_up = clock.now();
        let storage = job.leavable.as_deref().unwrap_or(&*job.disk.storage);
        let result = job.disk.carry_out_on(storage, job.operation, &job.sources);
        job.awaited.facts.done = clock.now();
        job.awaited.answer(result);
    }
}

fn next(shared: &Shared) -> Option<Job> {
    let mut queue = lock(&shared.queue);
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            return Some(job);
        }
        if queue.is_closed {
            return None;
        }
        queue = shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}
