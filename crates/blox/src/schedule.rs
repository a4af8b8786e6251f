//! Coordinated I/O scheduling of one vSSD (RackBlox, 3.4 and 4.5.1): FIFO, Deadline or Kyber, each
//! plain or coordinated.
//!
//! Calling order: [`push`](Scheduler::push) what has come, [`pop`](Scheduler::pop) until it gives
//! nothing or the device is full, [`completed`](Scheduler::completed) for everything popped, once
//! each; then pop again. After any of them [`next_wakeup`](Scheduler::next_wakeup) says when
//! [`on_wakeup`](Scheduler::on_wakeup) is due; pop again after that, too.

mod deadline;
mod kyber;
mod own;
mod queue;

use crate::id::{Page, VssdId};
use crate::own::QueuedJob;
use base::{Decide, NodeId, Span, Time};
use deadline::Deadline;
use kyber::Kyber;
use own::OwnQueue;
use queue::JobQueue;
use std::sync::Arc;

/// The caller's name for a job, handed back with it. The scheduler does not interpret it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u32);

/// What a job does, which decides the queue that it waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobKind {
    /// Reads a page.
    Read,
    /// Writes a page.
    Write,
    /// Anything else: without a target in Kyber, among the writes in Deadline.
    Other,
}

/// One page's worth of work for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The caller's name for it.
    pub id: JobId,
    /// The operation.
    pub kind: JobKind,
    /// Where; plain Deadline serves in this order (Linux's `mq-deadline` sorts by sector).
    pub page: Page,
    /// Its urgency; only coordinated schedulers use it.
    pub key: SchedulingKey,
    /// Time at which it joined the queue of the storage stack.
    pub arrived: Time,
}

/// Urgency of a job: the smaller, the more urgent.
///
/// The paper's priority is Net + Storage + Predict, and the largest is first. Storage time grows
/// equally for all waiting jobs, so `arrived - (Net + Predict)` is constant and gives the same
/// order: a heap replaces sorting at every dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchedulingKey(u64);

/// Added to keys, which would otherwise be negative at the start of a run: twice the 2^32 ns that
/// the LAT field can hold.
const KEY_ORIGIN: Span = Span::ns(2 << 32);

impl SchedulingKey {
    /// For a job that joined the queue at `arrived`, has spent `network` in transit, and whose
    /// answer will probably spend `predicted`. More than 2^33 ns of latency counts as that much.
    pub fn new(arrived: Time, network: Span, predicted: Span) -> SchedulingKey {
        let latency = network.as_ps().saturating_add(predicted.as_ps());
        SchedulingKey((arrived + KEY_ORIGIN).as_ps().saturating_sub(latency))
    }

    /// Net + Storage + Predict at `now`, the paper's priority.
    pub fn priority(self, now: Time) -> Span {
        (now + KEY_ORIGIN).saturating_since(Time::ps(self.0))
    }
}

/// Which scheduler, and whether it knows of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// The scheduler.
    pub policy: Policy,
    /// Whether jobs of one queue are served by [`SchedulingKey`] (RackBlox), or as the plain
    /// scheduler does.
    pub coordinated: bool,
}

/// The schedulers that the paper coordinates. Its targets are in 4.1 and 4.5.1; coordinated ones
/// are 1 ms higher there. Targets and `coordinated` are independent here, to separate the effect of
/// reordering from that of a higher target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// First come, first served (Linux's `none`).
    Fifo,
    /// Linux's `mq-deadline`: reads and writes apart, each with the age at which a job may no
    /// longer be overtaken.
    Deadline {
        /// For reads.
        read: Span,
        /// For writes.
        write: Span,
    },
    /// Linux's `kyber` since 4.20: depths that follow latency percentiles.
    Kyber {
        /// Target latency of reads.
        read: Span,
        /// Target latency of writes.
        write: Span,
    },
}

/// The queue of one vSSD between the storage stack and the device.
#[derive(Clone, Debug)]
pub struct Scheduler {
    coordinated: bool,
    queues: Queues,
}

#[derive(Clone, Debug)]
enum Queues {
    Fifo(JobQueue),
    Deadline(Deadline),
    Kyber(Box<Kyber>),
    Own(OwnQueue),
}

impl Scheduler {
    /// An empty scheduler.
    pub fn new(config: SchedulerConfig) -> Scheduler {
        let coordinated = config.coordinated;
        let queues = match config.policy {
            Policy::Fifo => Queues::Fifo(JobQueue::new(coordinated)),
            Policy::Deadline { read, write } => Queues::Deadline(Deadline::new(read, write, coordinated)),
            Policy::Kyber { read, write } => Queues::Kyber(Box::new(Kyber::new(read, write, coordinated))),
        };
        Scheduler { coordinated, queues }
    }

    /// An empty scheduler of a vSSD that follows a policy of a user's own.
    pub fn own(policy: Arc<dyn Decide<QueuedJob>>, server: NodeId, vssd: VssdId) -> Scheduler {
        Scheduler { coordinated: false, queues: Queues::Own(OwnQueue::new(policy, server, vssd)) }
    }

    /// Takes a job in. `job.arrived` must not be later than any `now` that follows.
    pub fn push(&mut self, now: Time, job: Job) {
        debug_assert!(job.arrived <= now, "a job arrives before it is pushed");
        match &mut self.queues {
            Queues::Fifo(queue) => queue.push(job),
            Queues::Deadline(deadline) => deadline.push(job),
            Queues::Kyber(kyber) => kyber.push(job),
            Queues::Own(queue) => queue.push(job),
        }
    }

    /// The job to send to the device now; `None` when nothing waits, or when what waits is
    /// throttled until something completes.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<Job> {
        match &mut self.queues {
            Queues::Fifo(queue) => queue.pop(),
            Queues::Deadline(deadline) => deadline.pop(now),
            Queues::Kyber(kyber) => kyber.pop(now),
            Queues::Own(queue) => queue.pop(),
        }
    }

    /// A popped job has ended at `now`, after `device_time` in the device.
    ///
    /// Kyber's total latency counts from the job's arrival when plain and is Net + Storage +
    /// Predict when coordinated, because the paper's coordinated targets contain network delay
    /// (4.1).
    pub fn completed(&mut self, now: Time, job: &Job, device_time: Span) {
        let total_time = if self.coordinated { job.key.priority(now) } else { now.saturating_since(job.arrived) };
        if let Queues::Kyber(kyber) = &mut self.queues {
            kyber.completed(now, job.kind, device_time, total_time);
        }
    }

    /// Returns the time at which [`on_wakeup`](Scheduler::on_wakeup) is due: at the end of Kyber's
    /// window, never for the others.
    pub fn next_wakeup(&self) -> Option<Time> {
        match &self.queues {
            Queues::Kyber(kyber) => kyber.window_ends(),
            Queues::Fifo(_) | Queues::Deadline(_) | Queues::Own(_) => None,
        }
    }

    /// Lets time pass to `now`. Early or twice changes nothing.
    pub fn on_wakeup(&mut self, now: Time) {
        if let Queues::Kyber(kyber) = &mut self.queues {
            kyber.settle(now);
        }
    }

    /// Returns how many jobs wait.
    pub fn len(&self) -> usize {
        match &self.queues {
            Queues::Fifo(queue) => queue.len(),
            Queues::Deadline(deadline) => deadline.len(),
            Queues::Kyber(kyber) => kyber.len(),
            Queues::Own(queue) => queue.len(),
        }
    }

    /// Returns whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many jobs of a kind may be at the device at once; `None` when the scheduler sets
    /// no limit.
    pub fn depth(&self, kind: JobKind) -> Option<u32> {
        match &self.queues {
            Queues::Kyber(kyber) => Some(kyber.depth(kind)),
            Queues::Fifo(_) | Queues::Deadline(_) | Queues::Own(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
