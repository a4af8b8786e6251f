//! The control plane: liveness, group membership, and the place where a lost replica is rebuilt
//! (3.7).
//!
//! Obligations of a storage server:
//!
//! * every `beat`, it sends a heartbeat with the number from its [`Lease`]. An echo is passed to
//!   [`Lease::echoed`]; while the lease does not hold, the server sends nothing to clients;
//! * it passes each `Members` order to the replica that the packet's vSSD names. For an unknown
//!   vSSD that is listed as stale on this server, it creates a vSSD with
//!   [`Contents::Lost`](crate::Contents::Lost); for any other unknown one, it answers `UpToDate`
//!   with the order's epoch at once;
//! * after a restart, it creates every replica anew with [`Contents::Lost`](crate::Contents::Lost),
//!   and a new lease with the start count increased by one;
//! * it sends a replica's `UpToDate` as [`ControlMessage::UpToDate`] in a packet with the replica's
//!   vSSD.
//!
//! A client gets the same `Members` orders with the group's name in the packet: the vSSD of its
//! first replica at the start of the run. It neither reads from nor writes to the stale member. The
//! switch gets `Create` and `Delete`; a vSSD that is its own replica has none in the rack.
//!
//! *No two epochs serve.* A write is complete when every member of its coordinator's epoch has
//! acknowledged it in that epoch. A member that moves on acknowledges no more, so an epoch can
//! complete a write only while all its members are in it. Reads of a removed member end with its
//! lease, before the new epoch begins. A returning server gets no echo until it has confirmed its
//! removal; then it is brought up to date as a stale member.
//!
//! The last member that is not stale is never removed: only it has the data. While it is silent the
//! group waits.
//!
//! *No member is removed for a silence of all.* Where nobody was heard, the network failed. The
//! first that is heard again would be alone with the data until the others are up to date. So all
//! others have the time of a silence again, from then on.

mod check;
mod group;
mod lease;
mod patience;
mod state;

pub use lease::Lease;
pub use state::ControlState;

use crate::id::VssdId;
use crate::packet::{Body, ControlMessage, Packet};
use base::{NodeId, Program, Span, Time};
use group::{Group, Reported};
use patience::Patience;
use serde::{Deserialize, Serialize};

/// A storage server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPlace {
    /// The node.
    pub node: NodeId,
    /// Its rack; a lost replica is built again in the same.
    pub rack: u32,
    /// How many replicas that others have lost it can take in, over the whole run.
    pub room: u32,
}

/// Configuration of the control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlConfig {
    /// The controller itself.
    pub own: NodeId,
    /// The rack whose switch has the tables.
    pub rack: u32,
    /// Every storage server.
    pub servers: Vec<ServerPlace>,
    /// The replicas of each group, in the order of their rank.
    pub groups: Vec<Vec<(NodeId, VssdId)>>,
    /// Recipients of group membership.
    pub clients: Vec<NodeId>,
    /// Time between two heartbeats of a server.
    pub beat: Span,
    /// Missed heartbeats after which a server counts as dead, at least.
    pub misses: u32,
    /// How long a server may be silent at most: from `misses` beats on, the time grows with the
    /// silences of servers that were heard again. As long as `misses` beats: it is fixed.
    pub patience: Span,
    /// How long a server that was never heard has to start, if that is more than `misses` beats. It
    /// has no data yet that others could be without.
    pub first_beat: Span,
    /// How long an echo lets a server serve; shorter than `misses` beats. It grows with the time of
    /// silence.
    pub lease: Span,
    /// An order that was not confirmed is sent again after so long.
    pub resend: Span,
    /// A lost replica whose server does not come back within this span is built on another.
    pub replace_after: Span,
    /// The first number for new vSSDs.
    pub next_vssd: u32,
    /// Distance between the numbers of two new vSSDs. 1: they are numbered in their order. From the
    /// number of groups on: a group's place is added, so that a number tells its group.
    pub vssd_step: u32,
}

/// Reason why a configuration cannot work.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// A server could serve after another has taken its place.
    #[error("a lease of {lease:?} must be shorter than the control plane's limit of {misses} beats of {beat:?}")]
    LeaseTooLong {
        /// The lease.
        lease: Span,
        /// The time between beats.
        beat: Span,
        /// How many may be missed.
        misses: u32,
    },
    /// The longest silence is shorter than the shortest.
    #[error("a patience of {patience:?} is shorter than {misses} beats of {beat:?}")]
    Patience {
        /// The patience.
        patience: Span,
        /// The time between beats.
        beat: Span,
        /// How many may be missed.
        misses: u32,
    },
    /// A lease that ends before the next beat has been echoed would end all the time.
    #[error(
        "a lease of {lease:?} must be longer than a beat of {beat:?}, and a beat and the time to resend ({resend:?}) longer than nothing"
    )]
    LeaseTooShort {
        /// The lease.
        lease: Span,
        /// The time between beats.
        beat: Span,
        /// The time to resend.
        resend: Span,
    },
    /// No replica, too many, or two on one server.
    #[error(
        "group {group}: {got} replicas on {servers} servers; allowed are 1 to 3 (a fourth place is for rebuilding), each on a server of its own"
    )]
    Replicas {
        /// Which, from 0.
        group: usize,
        /// How many replicas it has.
        got: usize,
        /// How many different servers.
        servers: usize,
    },
    /// A replica on a server that is not listed.
    #[error("group {group}: a replica on node {}, which is no storage server", node.0)]
    UnknownServer {
        /// Which group, from 0.
        group: usize,
        /// The server.
        node: NodeId,
    },
    /// The state of an earlier start is about other servers or groups.
    #[error("the state that was kept has no {what}: the rack has changed")]
    Changed {
        /// What it lacks, or has too much.
        what: String,
    },
    /// A vSSD that is in use twice, or whose number is kept for new ones.
    #[error("group {group}: vSSD {} is taken; numbers from {next_vssd} are for new vSSDs", vssd.0)]
    VssdTaken {
        /// Which group, from 0.
        group: usize,
        /// The vssd.
        vssd: VssdId,
        /// The first number for new ones.
        next_vssd: u32,
    },
    /// Numbers of new vSSDs would meet.
    #[error("new vSSDs are {vssd_step} numbers apart: 1, or at least as many as there are groups ({groups})")]
    VssdStep {
        /// The distance.
        vssd_step: u32,
        /// How many groups.
        groups: usize,
    },
}

/// Inputs of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlIn {
    /// A packet for it: heartbeats and `UpToDate`; others are ignored.
    Packet(Packet),
    /// The switch runs again, with empty tables.
    SwitchRecovered,
}

/// What the control plane does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlOut {
    /// Sends a packet. Those for the switch have the controller itself as their target.
    Send(Packet),
    /// No action; for callers that log the run.
    Happened(Event),
}

/// Something worth noting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A server is taken for dead.
    Suspected(NodeId),
    /// A server has lost its memory and runs again.
    Restarted(NodeId),
    /// A server that was taken for dead, or has restarted, may serve again.
    Returned(NodeId),
    /// A replica is brought up to date from now on.
    Rebuilding {
        /// The group's name.
        group: VssdId,
        /// The replica.
        replica: (NodeId, VssdId),
    },
    /// A replica has been brought up to date.
    Rebuilt {
        /// The group's name.
        group: VssdId,
        /// The replica.
        replica: (NodeId, VssdId),
    },
}

/// A server whose last heartbeat is at most this many beats old was up recently.
const BEATS_HEARD: u64 = 2;

/// What the control plane thinks of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Standing {
    /// Has been heard in time; its beats are echoed.
    Alive,
    /// Has been silent for too long.
    Suspected,
    /// Is heard again, and has yet to confirm that it left its groups.
    Returning,
}

struct Server {
    place: ServerPlace,
    standing: Standing,
    last_heard: Time,
    last_beat: Option<u64>,
    patience: Patience,
    /// Until then it stays in its groups, even if it is silent.
    spared_until: Time,
}

/// The control plane of a rack.
pub struct Control {
    config: ControlConfig,
    servers: Vec<Server>,
    groups: Vec<Group>,
    next_vssd: u32,
    /// The switch's starts, as it told them last.
    switch_starts: Option<u64>,
    /// Time at which unconfirmed orders are sent again.
    resend_at: Option<Time>,
    /// What was due then, replacements and the spared that stay silent, has been tried.
    tried_at: Time,
    wake: Option<Time>,
    has_begun: bool,
    is_resumed: bool,
}

impl Control {
    /// A control plane that announces its groups at its first wake-up.
    pub fn new(config: ControlConfig) -> Result<Control, ControlError> {
        check::check(&config)?;
        let patience = Patience::new(config.beat * u64::from(config.misses), config.patience);
        let server = |place: &ServerPlace| Server {
            place: *place,
            standing: Standing::Alive,
            last_heard: Time::ZERO,
            last_beat: None,
            patience: patience.clone(),
            spared_until: Time::ZERO,
        };
        Ok(Control {
            servers: config.servers.iter().map(server).collect(),
            groups: config.groups.iter().map(|replicas| Group::new(replicas)).collect(),
            next_vssd: config.next_vssd,
            switch_starts: None,
            resend_at: None,
            tried_at: Time::ZERO,
            wake: Some(Time::ZERO),
            has_begun: false,
            is_resumed: false,
            config,
        })
    }
    /// The group's epoch, members and stale member as the control plane has them.
    pub fn members(&self, group: usize) -> Option<crate::Membership> {
        self.groups.get(group).map(Group::membership)
    }
}

impl Program for Control {
    type In = ControlIn;
    type Out = ControlOut;
    fn on(&mut self, now: Time, input: ControlIn, out: &mut Vec<ControlOut>) {
        match input {
            ControlIn::SwitchRecovered => (0..self.groups.len()).for_each(|group| self.tell_switch(group, out)),
            ControlIn::Packet(packet) => match packet.body {
                Body::Heartbeat { beat } if packet.source == self.config.own => self.on_switch(beat, out),
                Body::Heartbeat { .. } if self.config.clients.contains(&packet.source) => {
                    self.tell_client(packet.source, out);
                }
                Body::Heartbeat { beat } => self.on_heartbeat(now, packet.source, beat, out),
                Body::Control(ControlMessage::UpToDate { epoch }) => {
                    self.on_up_to_date(now, packet.source, packet.vssd, epoch, out);
                }
                _ => {}
            },
        }
        self.plan_wakeup();
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.wake
    }
    fn on_wakeup(&mut self, now: Time, out: &mut Vec<ControlOut>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.begin(now, out);
        }
        for server in 0..self.servers.len() {
            let one = &self.servers[server];
            if one.standing != Standing::Suspected && now >= self.silent_at(one) {
                self.suspect(now, server, out);
            }
        }
        self.drop_silent(now, out);
        if self.resend_at.is_some_and(|at| at <= now) {
            self.resend(now, out);
        }
        self.fill_groups(now, out);
        self.tried_at = now;
        self.plan_wakeup();
    }
}

/// Servers.
impl Control {
    fn begin(&mut self, now: Time, out: &mut Vec<ControlOut>) {
        for server in &mut self.servers {
            server.last_heard = now;
            server.patience.begin(now, self.is_resumed);
        }
        for group in 0..self.groups.len() {
            self.announce(now, group, out);
        }
    }
    /// When a server counts as dead unless it is heard before.
    fn silent_at(&self, server: &Server) -> Time {
        let until = server.patience.until();
        if server.last_beat.is_none() { until.max(server.last_heard + self.config.first_beat) } else { until }
    }
    fn on_heartbeat(&mut self, now: Time, source: NodeId, beat: u64, out: &mut Vec<ControlOut>) {
        let Some(place) = self.servers.iter().position(|server| server.place.node == source) else { return };
        let server = &mut self.servers[place];
        if server.last_beat.is_some_and(|last| beat <= last) {
            return;
        }
        // One that has never been heard had not started before, or has lost its memory since.
        let has_restarted = server.last_beat.unwrap_or(0) >> 32 != beat >> 32;
        let is_known = server.last_beat.is_some() && !has_restarted;
        let silence = if is_known { now.saturating_since(server.last_heard) } else { Span::ZERO };
        server.patience.heard(now, silence);
        self.spare_others(now, place);
        let server = &mut self.servers[place];
        (server.last_heard, server.last_beat) = (now, Some(beat));
        if has_restarted {
            out.push(ControlOut::Happened(Event::Restarted(source)));
            self.drop_unheard(now, source, out);
            self.leave_groups(now, source, true, out);
        }
        let server = &mut self.servers[place];
        if has_restarted || server.standing == Standing::Suspected {
            server.standing = Standing::Returning;
            self.remind(now, source, out);
        }
        self.readmit(now, place, out);
        self.drop_silent(now, out);
        let server = &self.servers[place];
        if server.standing == Standing::Alive {
            let echo = match server.patience.grant(self.config.lease) {
                None => Body::Heartbeat { beat },
                Some(span) => Body::Control(ControlMessage::Lease { beat, span }),
            };
            out.push(self.packet(source, VssdId::default(), echo));
        }
    }
    /// If nobody was heard for a while, all but the one that is heard now may be heard soon.
    fn spare_others(&mut self, now: Time, heard: usize) {
        let least = self.config.beat * u64::from(self.config.misses);
        let last = self.servers.iter().map(|server| server.last_heard).max().unwrap_or(now);
        if now.saturating_since(last) >= (self.config.beat * BEATS_HEARD).max(least / 2) {
            let others = self.servers.iter_mut().enumerate().filter(|(place, _)| *place != heard);
            // Who has to start first has no data.
            let is_known = |server: &Server| server.last_beat.is_some() || self.config.first_beat == Span::ZERO;
            let others = others.filter(|(_, server)| is_known(server));
            others.for_each(|(_, server)| server.spared_until = now + least);
        }
    }
    fn suspect(&mut self, now: Time, server: usize, out: &mut Vec<ControlOut>) {
        self.servers[server].standing = Standing::Suspected;
        let node = self.servers[server].place.node;
        out.push(ControlOut::Happened(Event::Suspected(node)));
        self.drop_silent(now, out);
    }
    /// Servers that were never there are not waited for by one that has to leave its groups
    /// otherwise: nobody would have its data.
    fn drop_unheard(&mut self, now: Time, source: NodeId, out: &mut Vec<ControlOut>) {
        for server in 0..self.servers.len() {
            let Server { place, standing, last_beat, .. } = &self.servers[server];
            let is_awaited = last_beat.is_none() && *standing == Standing::Alive;
            let shares = |group: &Group| group.hosts(place.node) && group.hosts(source);
            if self.config.first_beat > Span::ZERO && is_awaited && self.groups.iter().any(shares) {
                self.suspect(now, server, out);
            }
        }
    }
    /// Silent servers leave their groups when a member that continues without them is heard, and
    /// they are not spared. Until then, the control plane itself may be cut off. The member that it
    /// then kept as the last might be the dead one, and the writes of all others would be lost.
    fn drop_silent(&mut self, now: Time, out: &mut Vec<ControlOut>) {
        for server in 0..self.servers.len() {
            let Server { place, standing, spared_until, .. } = self.servers[server];
            if standing == Standing::Suspected && now >= spared_until {
                self.leave_groups(now, place.node, false, out);
            }
        }
    }
    /// Returns whether a server has been heard so lately that it is up.
    fn is_heard(&self, now: Time, node: NodeId) -> bool {
        let lately = self.config.beat * BEATS_HEARD.min(u64::from(self.config.misses));
        let is_late = |server: &Server| now.saturating_since(server.last_heard) >= lately;
        self.servers
            .iter()
            .any(|server| server.place.node == node && server.standing != Standing::Suspected && !is_late(server))
    }
    fn leave_groups(&mut self, now: Time, node: NodeId, has_restarted: bool, out: &mut Vec<ControlOut>) {
        for group in 0..self.groups.len() {
            let is_heard: Vec<NodeId> = self.groups[group]
                .serving()
                .map(|(other, _)| other)
                .filter(|other| self.is_heard(now, *other))
                .collect();
            if self.groups[group].lose(now, node, has_restarted, &is_heard) {
                self.announce(now, group, out);
            }
        }
    }
    /// A server that has confirmed all that it had to may serve again.
    fn readmit(&mut self, now: Time, server: usize, out: &mut Vec<ControlOut>) {
        let Server { place, standing, .. } = self.servers[server];
        let owes = self.groups.iter().any(|group| group.is_leaving(place.node));
        if standing == Standing::Returning && !owes {
            self.servers[server].standing = Standing::Alive;
            out.push(ControlOut::Happened(Event::Returned(place.node)));
            self.fill_groups(now, out);
        }
    }
    fn is_alive(&self, node: NodeId) -> bool {
        self.servers.iter().any(|server| server.place.node == node && server.standing == Standing::Alive)
    }
}

/// Groups.
impl Control {
    fn on_up_to_date(&mut self, now: Time, source: NodeId, vssd: VssdId, epoch: u32, out: &mut Vec<ControlOut>) {
        let Some(place) = self.groups.iter().position(|group| group.knows(source, vssd)) else { return };
        let group = &mut self.groups[place];
        if let Reported::Complete { stale: Some(replica) } = group.on_report(source, epoch) {
            out.push(ControlOut::Happened(Event::Rebuilt { group: group.name, replica }));
            group.promote();
            self.announce(now, place, out);
            self.fill(now, place, out);
        }
        if let Some(server) = self.servers.iter().position(|server| server.place.node == source) {
            self.readmit(now, server, out);
        }
    }
    fn fill_groups(&mut self, now: Time, out: &mut Vec<ControlOut>) {
        (0..self.groups.len()).for_each(|group| self.fill(now, group, out));
    }
    /// Brings back a replica that the group has lost, at home if its server is back, else elsewhere
    /// after a while. One at a time.
    fn fill(&mut self, now: Time, place: usize, out: &mut Vec<ControlOut>) {
        let Some(lost) = self.groups[place].next_lost(|node| self.is_alive(node)) else { return };
        let (node, vssd) = lost.member;
        let replica = if self.is_alive(node) {
            (node, vssd)
        } else if now.saturating_since(lost.since) >= self.config.replace_after {
            let Some(server) = self.choose(place, node) else { return };
            let taken = self.servers.iter_mut().find(|other| other.place.node == server);
            taken.into_iter().for_each(|taken| taken.place.room -= 1);
            out.push(self.packet(self.config.own, vssd, Body::Delete));
            (server, self.name_vssd(place))
        } else {
            return;
        };
        let group = &mut self.groups[place];
        group.bring_back(lost, replica);
        out.push(ControlOut::Happened(Event::Rebuilding { group: group.name, replica }));
        self.announce(now, place, out);
    }
    /// The number of a new vSSD of a group.
    fn name_vssd(&mut self, group: usize) -> VssdId {
        let step = self.config.vssd_step;
        let vssd = VssdId(self.next_vssd + group as u32 % step);
        self.next_vssd += step;
        vssd
    }
    /// The server for a new replica: alive, in the rack of the lost one, without a replica of the
    /// group, with the fewest vSSDs.
    fn choose(&self, group: usize, lost: NodeId) -> Option<NodeId> {
        let rack = self.servers.iter().find(|server| server.place.node == lost)?.place.rack;
        let is_free = |node: NodeId| self.is_alive(node) && !self.groups[group].hosts(node);
        let places = self.servers.iter().map(|server| server.place);
        let free = places.filter(|place| place.rack == rack && place.room > 0 && is_free(place.node));
        let vssds = |node: NodeId| self.groups.iter().filter(|group| group.hosts(node)).count();
        free.map(|place| place.node).min_by_key(|node| (vssds(*node), *node))
    }
    /// Sends the current group to members, clients and the switch.
    fn announce(&mut self, now: Time, group: usize, out: &mut Vec<ControlOut>) {
        self.order(group, out);
        self.tell_switch(group, out);
        self.resend_at.get_or_insert(now + self.config.resend);
    }
    fn order(&self, group: usize, out: &mut Vec<ControlOut>) {
        let group = &self.groups[group];
        let body = order_of(group);
        for (node, vssd) in group.unconfirmed().filter(|(node, _)| !self.is_silent(*node)) {
            out.push(self.packet(node, vssd, body));
        }
        for client in &self.config.clients {
            out.push(self.packet(*client, group.name, body));
        }
    }
    /// A client asks for the members of all groups.
    fn tell_client(&self, client: NodeId, out: &mut Vec<ControlOut>) {
        out.extend(self.groups.iter().map(|group| self.packet(client, group.name, order_of(group))));
    }
    /// The switch's heartbeat, with its starts in the upper half: one that has started anew has
    /// empty tables.
    fn on_switch(&mut self, beat: u64, out: &mut Vec<ControlOut>) {
        if self.switch_starts.replace(beat >> 32) != Some(beat >> 32) {
            (0..self.groups.len()).for_each(|group| self.tell_switch(group, out));
        }
    }
    fn is_silent(&self, node: NodeId) -> bool {
        self.servers.iter().any(|server| server.place.node == node && server.standing == Standing::Suspected)
    }
    /// A server that is back hears at once what it left.
    fn remind(&mut self, now: Time, node: NodeId, out: &mut Vec<ControlOut>) {
        self.resend_at.get_or_insert(now + self.config.resend);
        for group in &self.groups {
            let own = group.unconfirmed().find(|(server, _)| *server == node);
            out.extend(own.map(|(_, vssd)| self.packet(node, vssd, order_of(group))));
        }
    }
    fn resend(&mut self, now: Time, out: &mut Vec<ControlOut>) {
        let open = |group: &Group| group.unconfirmed().any(|(node, _)| !self.is_silent(node));
        let groups: Vec<usize> = (0..self.groups.len()).filter(|group| open(&self.groups[*group])).collect();
        groups.iter().for_each(|group| self.order(*group, out));
        self.resend_at = (!groups.is_empty()).then(|| now + self.config.resend);
    }
    /// Each serving member in the switch's rack, with the other as its replica. A member that is
    /// alone is its own: never redirected.
    fn tell_switch(&self, group: usize, out: &mut Vec<ControlOut>) {
        let in_rack = |node: NodeId| {
            self.servers.iter().any(|server| server.place.node == node && server.place.rack == self.config.rack)
        };
        let members: Vec<(NodeId, VssdId)> = self.groups[group].serving().filter(|(node, _)| in_rack(*node)).collect();
        for member in &members {
            let (replica_server, replica) = *members.iter().find(|other| *other != member).unwrap_or(member);
            let body = Body::Create { server: member.0, replica, replica_server };
            out.push(self.packet(self.config.own, member.1, body));
        }
    }
    fn packet(&self, target: NodeId, vssd: VssdId, body: Body) -> ControlOut {
        ControlOut::Send(Packet { vssd, latency_ns: 0, source: self.config.own, target, body })
    }
    fn plan_wakeup(&mut self) {
        let watched = self.servers.iter().filter(|server| server.standing != Standing::Suspected);
        let silent = watched.map(|server| self.silent_at(server)).min();
        let spared = self.servers.iter().filter(|server| server.standing == Standing::Suspected);
        let spared = spared.map(|server| server.spared_until);
        let lost = self.groups.iter().filter_map(Group::waits_since).map(|since| since + self.config.replace_after);
        // A replacement that nobody could take waits for the next change among the servers. One
        // that is due and was not tried is not over: a packet may come before a late alarm.
        let untried = lost.chain(spared).filter(|at| *at > self.tried_at).min();
        let begin = (!self.has_begun).then_some(Time::ZERO);
        self.wake = if self.has_begun { [silent, self.resend_at, untried].into_iter().flatten().min() } else { begin };
    }
}

fn order_of(group: &Group) -> Body {
    let crate::Membership { epoch, replicas, stale } = group.membership();
    Body::Control(ControlMessage::Members { epoch, replicas, stale })
}
