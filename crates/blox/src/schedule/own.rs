//! A queue of jobs in the order of a user's policy. Equals leave in the order in which they came.

use super::Job;
use crate::id::VssdId;
use crate::own::QueuedJob;
use base::{Decide, NodeId};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct OwnQueue {
    policy: Arc<dyn Decide<QueuedJob>>,
    server: NodeId,
    vssd: VssdId,
    pushed: u64,
    /// By rank, then arrival.
    waiting: BTreeMap<(i64, u64), Job>,
}

impl OwnQueue {
    pub(super) fn new(policy: Arc<dyn Decide<QueuedJob>>, server: NodeId, vssd: VssdId) -> OwnQueue {
        OwnQueue { policy, server, vssd, pushed: 0, waiting: BTreeMap::new() }
    }

    pub(super) fn push(&mut self, job: Job) {
        self.pushed += 1;
        let Job { kind, page, key, arrived, .. } = job;
        let situation = QueuedJob {
            server: self.server,
            vssd: self.vssd,
            kind,
            page,
            arrived,
            network: key.priority(arrived),
            order: self.pushed,
        };
        self.waiting.insert((self.policy.decide(&situation), self.pushed), job);
    }

    pub(super) fn pop(&mut self) -> Option<Job> {
        self.waiting.pop_first().map(|(_, job)| job)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }
}
