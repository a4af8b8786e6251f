//! One queue of jobs: by arrival, or by key. Equals leave in the order in which they came.

use super::{Job, SchedulingKey};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

#[derive(Clone, Debug)]
pub(super) enum JobQueue {
    Arrival(VecDeque<Job>),
    Urgency { heap: BinaryHeap<Reverse<Entry>>, pushed: u64 },
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    job: Job,
    sequence: u64,
}

impl JobQueue {
    pub(super) fn new(coordinated: bool) -> JobQueue {
        if coordinated {
            JobQueue::Urgency { heap: BinaryHeap::new(), pushed: 0 }
        } else {
            JobQueue::Arrival(VecDeque::new())
        }
    }

    pub(super) fn push(&mut self, job: Job) {
        match self {
            JobQueue::Arrival(queue) => queue.push_back(job),
            JobQueue::Urgency { heap, pushed } => {
                heap.push(Reverse(Entry { job, sequence: *pushed }));
                *pushed += 1;
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<Job> {
        match self {
            JobQueue::Arrival(queue) => queue.pop_front(),
            JobQueue::Urgency { heap, .. } => heap.pop().map(|Reverse(entry)| entry.job),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            JobQueue::Arrival(queue) => queue.len(),
            JobQueue::Urgency { heap, .. } => heap.len(),
        }
    }
}

impl Entry {
    fn order(&self) -> (SchedulingKey, u64) {
        (self.job.key, self.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> Ordering {
        self.order().cmp(&other.order())
    }
}
