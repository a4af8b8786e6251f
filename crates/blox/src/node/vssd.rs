//! One vSSD of a server: its content, and the jobs that wait for its device.
//!
//! A job passes the token bucket (software isolation), the I/O scheduler and the device, which
//! accepts `device_depth` at a time. A write for which the device has no free block is *rejected*:
//! it is set aside, so that reads continue, and retried once blocks are free. While any is set
//! aside, further writes join it without trying the device.

use super::interface::{NodeConfig, VssdConfig};
use crate::hermes::{Contents, Membership, Replica, ReplicaConfig};
use crate::id::earlier;
use crate::isolate::TokenBucket;
use crate::own::QueuedJob;
use crate::predict::{AlphaError, IdlePredictor, ReturnPredictor};
use crate::schedule::{Job, JobId, JobKind, Scheduler};
use base::{Decide, Span, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// Purpose of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A client's read: its place among the requests.
    Read(usize),
    /// A page requested by another replica.
    Load,
    /// A page that is read to see whether it is sound.
    Scrub,
    /// A flush of the write cache.
    Flush,
}

/// One page's worth of work for the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Which of the server's vSSDs.
    pub vssd: usize,
    /// Its purpose.
    pub purpose: Purpose,
    /// As the scheduler knows it.
    pub job: Job,
    /// Time at which it was given to the device; none while it waits or is set aside.
    pub given: Option<Time>,
}

/// The state of one vSSD.
pub(super) struct Vssd {
    /// As configured.
    pub config: VssdConfig,
    /// Its unit of collection, as a place among the server's units.
    pub unit: usize,
    /// Which of the server's caches holds its pages.
    pub cache: usize,
    /// Its number in that cache.
    pub cache_slot: u32,
    /// Its part in its group.
    pub replica: Replica,
    /// Expected return latency of answers.
    pub returns: ReturnPredictor,
    /// Whether it is idle.
    pub idle: IdlePredictor,
    /// The device takes no new writes from clients.
    pub is_worn_out: bool,
    order: Option<Arc<dyn Decide<QueuedJob>>>,
    lanes: Lanes,
}

/// Where the jobs of a vSSD wait and how many are out.
struct Lanes {
    bucket: Option<TokenBucket>,
    throttled: VecDeque<(u64, Job)>,
    scheduler: Scheduler,
    depth: u32,
    at_device: u32,
    refused: VecDeque<JobId>,
    /// Free blocks have come since a write was last refused.
    may_offer: bool,
}

impl Lanes {
    fn new(node: &NodeConfig, config: &VssdConfig) -> Lanes {
        Lanes {
            bucket: config.isolation.map(|isolation| TokenBucket::new(isolation.per_second, isolation.burst)),
            throttled: VecDeque::new(),
            scheduler: Scheduler::new(node.scheduler),
            depth: node.device_depth,
            at_device: 0,
            refused: VecDeque::new(),
            may_offer: false,
        }
    }
}

impl Vssd {
    /// A vSSD at the start of the run, or after a restart (then its contents are
    /// [`Contents::Lost`]).
    pub fn new(
        node: &NodeConfig,
        config: VssdConfig,
        unit: usize,
        cache: (usize, u32),
        contents: Contents,
    ) -> Result<Vssd, AlphaError> {
        Ok(Vssd {
            config,
            unit,
            cache: cache.0,
            cache_slot: cache.1,
            replica: Replica::new(replica_config(node, &config), contents),
            returns: ReturnPredictor::new(node.return_window),
            idle: IdlePredictor::new(node.idle)?,
            is_worn_out: false,
            order: None,
            lanes: Lanes::new(node, &config),
        })
    }

    /// Takes a policy of a user's own in place of the scheduler. Nothing may wait yet.
    pub fn set_order(&mut self, node: &NodeConfig, order: Option<Arc<dyn Decide<QueuedJob>>>) {
        self.order = order;
        self.empty_lanes(node);
    }

    /// The group as configured.
    pub fn membership(&self) -> Membership {
        Membership { epoch: self.config.epoch, replicas: self.config.replicas, stale: None }
    }

    /// Power was lost: nothing waits or is out any more, and the data may be old.
    pub fn restart(&mut self, node: &NodeConfig) {
        self.empty_lanes(node);
        self.replica = Replica::new(replica_config(node, &self.config), Contents::Lost);
    }

    fn empty_lanes(&mut self, node: &NodeConfig) {
        self.lanes = Lanes::new(node, &self.config);
        if let Some(order) = &self.order {
            self.lanes.scheduler = Scheduler::own(order.clone(), node.id, self.config.id);
        }
    }

    /// A job joins the queue of the storage stack.
    pub fn enqueue(&mut self, now: Time, job: Job) {
        let cost = self.cost(job.kind);
        let lanes = &mut self.lanes;
        let passes =
            lanes.throttled.is_empty() && lanes.bucket.as_mut().is_none_or(|bucket| bucket.try_take(now, cost));
        if passes {
            lanes.scheduler.push(now, job);
        } else {
            lanes.throttled.push_back((cost, job));
        }
    }

    /// The job to give to the device now, if there is one and the device takes it.
    pub fn next_job(&mut self, now: Time) -> Option<JobId> {
        while self.lanes.at_device < self.lanes.depth {
            if self.lanes.may_offer
                && let Some(refused) = self.lanes.refused.pop_front()
            {
                self.lanes.at_device += 1;
                return Some(refused);
            }
            let job = self.lanes.scheduler.pop(now)?;
            if job.kind == JobKind::Write && !self.lanes.refused.is_empty() {
                self.lanes.refused.push_back(job.id);
                continue;
            }
            self.lanes.at_device += 1;
            return Some(job.id);
        }
        None
    }

    /// The device has done a job in `device_time`.
    pub fn completed(&mut self, now: Time, job: &Job, device_time: Span) {
        self.lanes.at_device -= 1;
        self.lanes.scheduler.completed(now, job, device_time);
    }

    /// The device has no free block for a write.
    pub fn refused(&mut self, job: JobId) {
        self.lanes.at_device -= 1;
        self.lanes.may_offer = false;
        self.lanes.refused.push_front(job);
    }

    /// There may be free blocks again: refused writes are offered once more. Says whether there are
    /// any.
    pub fn offer_again(&mut self) -> bool {
        self.lanes.may_offer = !self.lanes.refused.is_empty();
        self.lanes.may_offer
    }

    /// Lets time pass for bucket and scheduler; jobs may be ready afterwards.
    pub fn on_wakeup(&mut self, now: Time) {
        let lanes = &mut self.lanes;
        if let Some(bucket) = &mut lanes.bucket {
            while let Some(&(cost, job)) = lanes.throttled.front()
                && bucket.try_take(now, cost)
            {
                lanes.throttled.pop_front();
                lanes.scheduler.push(now, job);
            }
        }
        lanes.scheduler.on_wakeup(now);
    }

    /// Returns the time at which [`on_wakeup`](Self::on_wakeup) or the replica's is due.
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        let bucket = self.lanes.bucket.as_ref().zip(self.lanes.throttled.front());
        let tokens = bucket.map(|(bucket, (cost, _))| bucket.next_allowed(now, *cost));
        earlier(tokens, earlier(self.lanes.scheduler.next_wakeup(), self.replica.next_wakeup()))
    }

    fn cost(&self, kind: JobKind) -> u64 {
        match (kind, self.config.isolation) {
            (JobKind::Write, Some(isolation)) => isolation.write_cost,
            _ => 1,
        }
    }
}

fn replica_config(node: &NodeConfig, config: &VssdConfig) -> ReplicaConfig {
    ReplicaConfig {
        own: (node.id, config.id),
        pages: config.pages,
        retransmit: node.replication.retransmit,
        replay: node.replication.replay,
        fetch_window: node.replication.fetch_window,
        remember: node.remember,
    }
}
