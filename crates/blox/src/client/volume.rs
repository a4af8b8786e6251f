//! A client's view of one volume: its replicas, its open requests, and its rate limit.

use super::{ClientConfig, LimitConfig};
use crate::{Tag, TokenBucket, VssdId};
use base::{NodeId, Time};
use std::collections::{BTreeSet, VecDeque};

#[derive(Clone, Debug)]
pub(super) struct Volume {
    /// Its first vSSD at the start of the run.
    pub name: VssdId,
    /// Replicas that serve: the rack's by rank, then the others. Never empty.
    pub targets: Vec<(NodeId, VssdId)>,
    /// The first outside the rack; 0 where there is none.
    pub first_outside: u32,
    epoch: Option<u32>,
    /// Members, stale ones too, and the epoch since which each has been one.
    since: Vec<((NodeId, VssdId), u32)>,
    /// Writes that are open, where they may be sent again.
    open_writes: BTreeSet<Tag>,
    /// Requests that wait for the rate limit.
    pub waiting: VecDeque<Tag>,
    bucket: Option<TokenBucket>,
    write_cost: u64,
    /// Requests since the last report, and how many of them were writes.
    demand: (u32, u32),
}

impl Volume {
    /// `replicas` must not be empty.
    pub fn new(replicas: &[(NodeId, VssdId)], config: &ClientConfig) -> Volume {
        let mut volume = Volume {
            name: replicas[0].1,
            targets: Vec::new(),
            first_outside: 0,
            epoch: None,
            since: replicas.iter().map(|replica| (*replica, 0)).collect(),
            open_writes: BTreeSet::new(),
            waiting: VecDeque::new(),
            bucket: None,
            write_cost: config.limit.map_or(0, |limit| u64::from(limit.write_cost)),
            demand: (0, 0),
        };
        volume.set_targets(replicas.iter().copied(), config.rack_nodes);
        volume
    }

    /// Accepts an order of the control plane, unless it is older than the last or leaves no
    /// replica; returns whether it did.
    pub fn members(
        &mut self,
        epoch: u32,
        members: impl Iterator<Item = (NodeId, VssdId)> + Clone,
        stale: Option<(NodeId, VssdId)>,
        rack_nodes: u32,
    ) -> bool {
        let serving = members.clone().filter(|member| Some(*member) != stale);
        let is_new = self.epoch.is_none_or(|known| known <= epoch) && serving.clone().next().is_some();
        if is_new {
            self.epoch = Some(epoch);
            self.set_targets(serving, rack_nodes);
            let before = std::mem::take(&mut self.since);
            let known = |member| before.iter().find(|(other, _)| *other == member).map_or(epoch, |(_, since)| *since);
            self.since.extend(members.map(|member| (member, known(member))));
        }
        is_new
    }

    fn set_targets(&mut self, replicas: impl Iterator<Item = (NodeId, VssdId)> + Clone, rack_nodes: u32) {
        let is_inside = |replica: &(NodeId, VssdId)| replica.0.0 < rack_nodes;
        self.targets.clear();
        self.targets.extend(replicas.clone().filter(is_inside));
        let inside = self.targets.len();
        self.targets.extend(replicas.filter(|replica| !is_inside(replica)));
        self.first_outside = if inside < self.targets.len() { inside as u32 } else { 0 };
    }

    /// A write is open that may be sent again.
    pub fn begin(&mut self, tag: Tag) {
        self.open_writes.insert(tag);
    }

    /// A request has ended.
    pub fn end(&mut self, tag: Tag) {
        self.open_writes.remove(&tag);
    }

    /// The oldest write that is open and may be sent again.
    pub fn oldest(&self) -> Option<Tag> {
        self.open_writes.first().copied()
    }

    /// The epoch that it knows; 0 before the first order.
    pub fn epoch(&self) -> u32 {
        self.epoch.unwrap_or(0)
    }

    /// Where a second copy of a write goes that was first sent in epoch `first`: where it was, if
    /// it `stays` and that server has been a member since then, else to the next that has. Only
    /// they have seen the write if it is done. After two losses nobody may have.
    pub fn target_of_copy(
        &self,
        (asked, stays): ((NodeId, VssdId), bool),
        first: u32,
        turn: usize,
    ) -> (NodeId, VssdId) {
        let is_steady =
            |target: &(NodeId, VssdId)| self.since.iter().any(|(member, since)| member == target && *since <= first);
        if stays && is_steady(&asked) && self.targets.contains(&asked) {
            return asked;
        }
        let next = self.targets.iter().position(|target| *target == asked).map_or(turn, |place| place + 1);
        let from = |place: usize| self.targets.iter().copied().cycle().skip(place % self.targets.len());
        let steady = from(next).take(self.targets.len()).find(is_steady);
        steady.or_else(|| from(turn).next()).unwrap_or(asked)
    }

    /// Counts a request into the demand.
    pub fn ask(&mut self, is_write: bool) {
        self.demand.0 = self.demand.0.saturating_add(1);
        self.demand.1 = self.demand.1.saturating_add(u32::from(is_write));
    }

    /// Requests and writes since the last call; `None` if there were none.
    pub fn take_demand(&mut self) -> Option<(u32, u32)> {
        Some(std::mem::take(&mut self.demand)).filter(|(requests, _)| *requests > 0)
    }

    pub fn set_rate(&mut self, now: Time, per_second: u32, limit: &LimitConfig) {
        let rate = u64::from(per_second);
        match &mut self.bucket {
            _ if per_second == 0 => self.bucket = None,
            Some(bucket) => bucket.set_rate(now, rate),
            None => self.bucket = Some(TokenBucket::new(rate, u64::from(limit.burst))),
        }
    }

    /// Returns whether a new request may be sent now: those that came before go first. Takes the
    /// tokens if so.
    pub fn may_go(&mut self, now: Time, is_write: bool) -> bool {
        self.waiting.is_empty() && self.may_leave(now, is_write)
    }

    /// The same for the first that waits.
    pub fn may_leave(&mut self, now: Time, is_write: bool) -> bool {
        let cost = self.cost(is_write);
        self.bucket.as_mut().is_none_or(|bucket| bucket.try_take(now, cost))
    }

    /// Returns the time at which the first that waits may be sent.
    pub fn allowed_at(&self, now: Time, is_write: impl Fn(&Tag) -> bool) -> Option<Time> {
        let first = self.waiting.front()?;
        let cost = self.cost(is_write(first));
        Some(self.bucket.as_ref().map_or(now, |bucket| bucket.next_allowed(now, cost)))
    }

    fn cost(&self, is_write: bool) -> u64 {
        if is_write { self.write_cost } else { 1 }
    }
}
