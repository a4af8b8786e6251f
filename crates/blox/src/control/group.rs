//! One group of replicas: its epochs, and the confirmations of its members.

use crate::Membership;
use crate::id::VssdId;
use crate::packet::REPLICAS_MAX;
use base::{NodeId, Time};
use serde::{Deserialize, Serialize};

type Member = (NodeId, VssdId);

/// A replica that the group has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    pub member: Member,
    /// Counts from its start for a control plane that has been started again.
    #[serde(skip)]
    pub since: Time,
    rank: usize,
}

/// What a report means for the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reported {
    /// Others are awaited, or the report is old.
    Incomplete,
    /// The last member has confirmed the epoch; its stale member, if it has one, has every page.
    Complete { stale: Option<Member> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The vSSD of its first replica at the start of the run.
    pub name: VssdId,
    epoch: u32,
    /// With their ranks, in their order.
    members: Vec<(usize, Member)>,
    stale: Option<Member>,
    /// In the order of their loss.
    lost: Vec<Lost>,
    /// Members that have not confirmed the epoch.
    awaited: Vec<Member>,
    /// Former members that have not confirmed that they left.
    leaving: Vec<Member>,
}

impl Group {
    pub fn new(replicas: &[Member]) -> Group {
        Group {
            name: replicas[0].1,
            epoch: 1,
            members: replicas.iter().copied().enumerate().collect(),
            stale: None,
            lost: Vec::new(),
            awaited: replicas.to_vec(),
            leaving: Vec::new(),
        }
    }
    /// A lost replica's wait begins anew.
    pub fn resumed(&mut self, now: Time) {
        self.lost.iter_mut().for_each(|lost| lost.since = now);
    }
    pub fn membership(&self) -> Membership {
        let mut replicas = [None; REPLICAS_MAX];
        for (place, (_, member)) in replicas.iter_mut().zip(&self.members) {
            *place = Some(*member);
        }
        Membership { epoch: self.epoch, replicas, stale: self.stale }
    }
    /// Members that serve.
    pub fn serving(&self) -> impl Iterator<Item = Member> {
        self.members.iter().map(|(_, member)| *member).filter(|member| self.stale != Some(*member))
    }
    pub fn hosts(&self, node: NodeId) -> bool {
        self.members.iter().any(|(_, member)| member.0 == node)
    }
    /// Returns whether orders of this group go, or went until lately, to that vSSD.
    pub fn knows(&self, node: NodeId, vssd: VssdId) -> bool {
        let member = (node, vssd);
        self.members.iter().any(|(_, other)| *other == member) || self.leaving.contains(&member)
    }
    pub fn is_leaving(&self, node: NodeId) -> bool {
        self.leaving.iter().any(|member| member.0 == node)
    }
    pub fn unconfirmed(&self) -> impl Iterator<Item = Member> {
        self.awaited.iter().chain(&self.leaving).copied()
    }
    /// Removes the server from the group; returns whether that began an epoch. The only holder of
    /// the data stays, to be trusted again with the data that survive a restart. A silent server
    /// stays as long as none of the other serving ones `is_heard`.
    pub fn lose(&mut self, now: Time, node: NodeId, has_restarted: bool, is_heard: &[NodeId]) -> bool {
        let Some(place) = self.members.iter().position(|(_, member)| member.0 == node) else { return false };
        let (_, member) = self.members[place];
        let others_serve = self.serving().any(|other| other != member);
        let may_go = has_restarted || self.serving().any(|other| other != member && is_heard.contains(&other.0));
        if others_serve && !may_go {
            return false;
        }
        if others_serve {
            self.remove(now, place);
        } else if has_restarted {
            let stale = self.stale.filter(|stale| *stale != member);
            let rebuilt = stale.and_then(|stale| self.members.iter().position(|(_, other)| *other == stale));
            rebuilt.into_iter().for_each(|place| self.remove(now, place));
            self.stale = Some(member);
        } else {
            return false;
        }
        self.begin_epoch();
        true
    }
    fn remove(&mut self, now: Time, place: usize) {
        let (rank, member) = self.members.remove(place);
        self.stale = self.stale.filter(|stale| *stale != member);
        self.lost.push(Lost { member, since: now, rank });
        self.leaving.push(member);
    }
    /// The replica to bring back next: one at a time, those whose server is back first.
    pub fn next_lost(&self, is_alive: impl Fn(NodeId) -> bool) -> Option<Lost> {
        if self.stale.is_some() {
            return None;
        }
        self.lost.iter().find(|lost| is_alive(lost.member.0)).or(self.lost.first()).copied()
    }
    /// Since when the next replica has been lost, if nothing but time keeps it from being built
    /// elsewhere.
    pub fn waits_since(&self) -> Option<Time> {
        self.lost.first().filter(|_| self.stale.is_none()).map(|lost| lost.since)
    }
    /// Begins an epoch with `replica` as the stale member in the place of the lost one.
    pub fn bring_back(&mut self, lost: Lost, replica: Member) {
        self.lost.retain(|other| *other != lost);
        self.members.push((lost.rank, replica));
        self.members.sort_by_key(|(rank, _)| *rank);
        self.stale = Some(replica);
        self.begin_epoch();
    }
    pub fn on_report(&mut self, node: NodeId, epoch: u32) -> Reported {
        if epoch != self.epoch {
            return Reported::Incomplete;
        }
        self.leaving.retain(|member| member.0 != node);
        let awaited = self.awaited.len();
        self.awaited.retain(|member| member.0 != node);
        if awaited > 0 && self.awaited.is_empty() {
            return Reported::Complete { stale: self.stale };
        }
        Reported::Incomplete
    }
    /// The stale member serves from a new epoch on.
    pub fn promote(&mut self) {
        self.stale = None;
        self.begin_epoch();
    }
    fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.awaited.clear();
        self.awaited.extend(self.members.iter().map(|(_, member)| *member));
    }
}
