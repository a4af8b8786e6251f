//! Garbage collection of a vSSD, or of a channel group of them: the monitor of Algorithm 2 (lines 9
//! to 19) and the states of a request (RackBlox, 3.5.1 and 3.5.2).
//!
//! A *unit* collects together: one hardware-isolated vSSD, or all software-isolated vSSDs on the
//! same channels. Its free-block ratio is that of all its members. Each member sends a request
//! packet of its own; one "not now" delays the whole unit, and grants of the others are returned.
//! This module knows neither packets nor devices: the owner executes the [`CollectorAction`]s.
//!
//! Our decisions where the paper is silent:
//! * An unanswered soft request is abandoned (and withdrawn, in case only the answer was lost)
//!   until the next check.
//! * A stream of collection ends when a block is free, not in the middle of a victim.
//! * Background collection stops at its next step for the first request that arrives.
//! * A vSSD that runs out of free blocks between two checks requests at once. If it collects
//!   already, its ended streams restart.
//! * A finish that the switch does not echo (Algorithm 1, lines 24 and 25) is repeated at the
//!   checks, because a stale bit would delay the replica and redirect reads forever.

mod stream;

use crate::id::VssdId;
use crate::own::CollectionCheck;
use crate::packet::CollectionNote;
use base::{Decide, NodeId, Span, Time};
use std::sync::Arc;

pub use stream::{CollectionStep, CollectionStream};

/// A million parts: ratios are integers, so that a threshold has two exact sides.
const PARTS: u64 = 1_000_000;

/// Thresholds and time limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectionConfig {
    /// Interval between checks of the free-block ratio (paper: 30 s).
    pub check_period: Span,
    /// Time of the first check.
    pub first_check: Time,
    /// Below this share of free blocks, in millionths, a unit must collect (paper: 25 %).
    pub regular_ppm: u32,
    /// Below this share it would like to (paper: 35 %). At least `regular_ppm`.
    pub soft_ppm: u32,
    /// Share of free blocks at which collection ends. The paper does not name it; at least
    /// `soft_ppm`, or a collection would end with a request for the next.
    pub stop_ppm: u32,
    /// How often an unanswered regular request is repeated before the unit collects without an
    /// answer (paper: 3).
    pub retries: u32,
    /// How long an answer is waited for.
    pub answer_timeout: Span,
    /// Whether idle units collect in the background (3.5.1).
    pub background: bool,
    /// Below this share of free blocks an idle unit collects. Algorithm 2 (line 14) asks for idle
    /// time alone, which a million is.
    pub background_ppm: u32,
    /// Recipient of requests.
    pub coordination: Coordination,
    /// What serves no requests during a step.
    pub grain: Grain,
}

/// Decides when a unit collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordination {
    /// Nobody: a unit collects once it must (the VDC baseline).
    Uncoordinated,
    /// The switch, by `gc_op` packets (RackBlox). The packets are addressed to this node; the
    /// switch answers them in transit.
    Switch(NodeId),
    /// A controller on a server (RackBlox in software), which also names the replica that reads are
    /// sent to meanwhile.
    Controller(NodeId),
}

/// What serves no requests during a step of collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// The dies that take part in it.
    Die,
    /// The unit's channels: "an SSD channel cannot issue new I/O requests during GC" (2.2). Its
    /// streams take their steps together, and requests are issued between two such rounds.
    Channel,
}

/// Reason why a unit collects or wants to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It has time.
    Background,
    /// Collection is desirable and can be delayed.
    Soft,
    /// It must.
    Regular,
}

/// Result of a check of the ratio (Algorithm 2, lines 10 to 16). `idle` is the idle predictor's
/// result.
pub fn urgency(config: &CollectionConfig, free: u64, owned: u64, idle: bool) -> Option<Urgency> {
    if is_below(free, owned, config.regular_ppm) {
        return Some(Urgency::Regular);
    }
    let coordinated = config.coordination != Coordination::Uncoordinated;
    if coordinated && is_below(free, owned, config.soft_ppm) {
        return Some(Urgency::Soft);
    }
    (config.background && idle && is_below(free, owned, config.background_ppm)).then_some(Urgency::Background)
}

/// Returns whether `free` of `owned` is less than this many millionths.
fn is_below(free: u64, owned: u64, ppm: u32) -> bool {
    free * PARTS < owned * u64::from(ppm)
}

/// What the owner of a [`Collector`] has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectorAction {
    /// Send this note about that vSSD to the recipient of requests.
    Say {
        /// The member that it is about.
        vssd: VssdId,
        /// Soft, regular, background or finish.
        note: CollectionNote,
    },
    /// Have one step of a stream of collection done, and report it with [`Collector::step_done`].
    Step {
        /// The member that collects.
        vssd: VssdId,
        /// The of its parallel streams.
        stream: u32,
    },
    /// The unit has ended a collection; blocks that were borrowed go back now.
    Ended,
}

/// State of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Idle.
    Quiet,
    /// Members have sent requests, and not all answers have arrived.
    Asking { urgency: Urgency, repeats_left: u32, deadline: Time },
    /// Streams are collecting.
    Collecting { urgency: Urgency },
}

#[derive(Clone, Debug)]
struct Member {
    vssd: VssdId,
    free: u32,
    owned: u32,
    granted: bool,
    /// It has said finish, and that was not echoed.
    owes_finish: bool,
    /// The replica that reads may be sent to while this member collects.
    replica: Option<(NodeId, VssdId)>,
    /// The streams with an open step.
    streams: Vec<bool>,
}

/// Decides for one unit.
#[derive(Clone, Debug)]
pub struct Collector {
    config: CollectionConfig,
    /// The server, and the policy of a user's own that decides at its checks.
    own: Option<(NodeId, Arc<dyn Decide<CollectionCheck>>)>,
    members: Vec<Member>,
    phase: Phase,
    next_check: Time,
    /// Requests have come since a background collection began.
    disturbed: bool,
    /// The current collection has freed a block.
    has_freed: bool,
    /// The last collection found nothing to free: until the next check it would not find anything
    /// either.
    barren: bool,
}

impl Collector {
    /// A quiet unit without members.
    pub fn new(config: CollectionConfig) -> Self {
        let next_check = config.first_check;
        Collector {
            config,
            own: None,
            members: Vec::new(),
            phase: Phase::Quiet,
            next_check,
            disturbed: false,
            has_freed: false,
            barren: false,
        }
    }

    /// Takes a policy of a user's own in place of the thresholds at checks.
    pub fn set_policy(&mut self, server: NodeId, policy: Option<Arc<dyn Decide<CollectionCheck>>>) {
        self.own = policy.map(|policy| (server, policy));
    }

    /// Adds a vSSD that collects in `streams` parallel streams. Until its blocks are reported it
    /// counts for nothing.
    pub fn add_member(&mut self, vssd: VssdId, streams: u32) {
        let streams = vec![false; streams as usize];
        self.members.push(Member {
            vssd,
            free: 0,
            owned: 0,
            granted: false,
            owes_finish: false,
            replica: None,
            streams,
        });
    }

    /// The device's count of a member's blocks.
    pub fn report(&mut self, vssd: VssdId, free: u32, owned: u32) {
        if let Some(member) = self.member_mut(vssd) {
            (member.free, member.owned) = (free, owned);
        }
    }

    /// Members whose blocks are known, and how many are free, in the order in which they joined.
    pub fn free_blocks(&self) -> impl Iterator<Item = (VssdId, u32)> + Clone + '_ {
        self.members.iter().filter(|member| member.owned > 0).map(|member| (member.vssd, member.free))
    }

    /// Returns whether the unit collects now.
    pub fn is_collecting(&self) -> bool {
        matches!(self.phase, Phase::Collecting { .. })
    }

    /// Where reads of `vssd` should be sent while it collects.
    pub fn replica_for_reads(&self, vssd: VssdId) -> Option<(NodeId, VssdId)> {
        let member = self.members.iter().find(|member| member.vssd == vssd)?;
        member.replica.filter(|_| self.is_collecting())
    }

    /// A request has come for a member: background collection makes way.
    pub fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// Returns the time at which [`on_wakeup`](Self::on_wakeup) should be called.
    pub fn next_wakeup(&self) -> Time {
        match self.phase {
            Phase::Asking { deadline, .. } => deadline.min(self.next_check),
            _ => self.next_check,
        }
    }

    /// Performs the check that is due, and abandons late answers. `idle` tells whether every member
    /// is idle.
    pub fn on_wakeup(&mut self, now: Time, idle: bool, out: &mut Vec<CollectorAction>) {
        if let Phase::Asking { deadline, .. } = self.phase
            && now >= deadline
        {
            self.on_silence(now, out);
        }
        if now >= self.next_check {
            let periods = now.saturating_since(self.next_check).as_ps() / self.config.check_period.as_ps() + 1;
            self.next_check += self.config.check_period * periods;
            self.barren = false;
            self.check(now, idle, out);
        }
    }

    /// After a loss of power: earlier grants are not used, and must not block the other replicas.
    pub fn restart(&mut self, out: &mut Vec<CollectorAction>) {
        self.reset();
        self.finish_where(|_| true, out);
    }

    /// A write found no free block: the unit requests at once, with the highest urgency.
    pub fn press(&mut self, now: Time, out: &mut Vec<CollectorAction>) {
        if !self.barren {
            self.resume(out);
            self.want(now, Urgency::Regular, out);
        }
    }

    /// Ended streams check again: later writes may have produced garbage. Otherwise a member whose
    /// dies had none when the others still had some would wait, full, until the others have enough.
    fn resume(&mut self, out: &mut Vec<CollectorAction>) {
        if !self.is_collecting() {
            return;
        }
        let stop = self.config.stop_ppm;
        let is_short = |member: &&mut Member| is_below(u64::from(member.free), u64::from(member.owned), stop);
        for member in self.members.iter_mut().filter(is_short) {
            for (stream, running) in (0..).zip(&mut member.streams).filter(|(_, running)| !**running) {
                *running = true;
                out.push(CollectorAction::Step { vssd: member.vssd, stream });
            }
        }
    }

    /// An answer to a member's request.
    pub fn answer(
        &mut self,
        vssd: VssdId,
        note: CollectionNote,
        replica: Option<(NodeId, VssdId)>,
        out: &mut Vec<CollectorAction>,
    ) {
        match note {
            CollectionNote::Accept => self.on_accept(vssd, replica, out),
            CollectionNote::Delay => self.on_delay(out),
            CollectionNote::Finish => self.on_echo(vssd),
            _ => {}
        }
    }

    /// A step has ended; `freed` a block, or found `nothing` to collect. The member's blocks have
    /// been reported before.
    pub fn step_done(&mut self, vssd: VssdId, stream: u32, freed: bool, nothing: bool, out: &mut Vec<CollectorAction>) {
        let Phase::Collecting { urgency } = self.phase else { return };
        self.has_freed |= freed;
        let yields = urgency == Urgency::Background && self.disturbed;
        let ends = nothing || yields || (freed && self.is_enough_for(vssd));
        let Some(running) = self.member_mut(vssd).and_then(|member| member.streams.get_mut(stream as usize)) else {
            return;
        };
        if !*running {
            return;
        }
        *running = !ends;
        if !ends {
            out.push(CollectorAction::Step { vssd, stream });
        } else if self.members.iter().all(|member| member.streams.iter().all(|running| !running)) {
            self.end(out);
        }
    }

    /// As after a loss of power: resets all state without a message.
    pub fn reset(&mut self) {
        self.phase = Phase::Quiet;
        self.forget_answers();
        self.members.iter_mut().for_each(|member| member.streams.fill(false));
        (self.disturbed, self.has_freed, self.barren) = (false, false, false);
    }

    fn check(&mut self, now: Time, idle: bool, out: &mut Vec<CollectorAction>) {
        if let Some(urgency) = self.decide(now, idle) {
            self.want(now, urgency, out);
        }
        if self.phase == Phase::Quiet {
            self.finish_where(|member| member.owes_finish, out);
        }
    }

    fn decide(&self, now: Time, is_idle: bool) -> Option<Urgency> {
        let (free, owned) = self.blocks();
        let Some((server, policy)) = &self.own else {
            return urgency(&self.config, free, owned, is_idle);
        };
        let vssd = self.members.first()?.vssd;
        let is_collecting = self.is_collecting();
        let is_coordinated = self.config.coordination != Coordination::Uncoordinated;
        let server = *server;
        policy.decide(&CollectionCheck { server, vssd, free, owned, is_coordinated, is_idle, is_collecting, now })
    }

    /// Requests, or starts, a collection unless one as urgent is in progress.
    fn want(&mut self, now: Time, urgency: Urgency, out: &mut Vec<CollectorAction>) {
        match &mut self.phase {
            Phase::Quiet if urgency == Urgency::Background => {
                self.say_all(CollectionNote::Background, out);
                self.begin(urgency, out);
            }
            Phase::Quiet => self.ask(now, urgency, out),
            Phase::Asking { urgency: Urgency::Soft, .. } if urgency == Urgency::Regular => self.ask(now, urgency, out),
            // A collection started in idle time continues even when requests arrive; the recipient
            // already knows that the unit collects.
            Phase::Collecting { urgency: under_way } if urgency == Urgency::Regular => *under_way = urgency,
            _ => {}
        }
    }

    fn ask(&mut self, now: Time, urgency: Urgency, out: &mut Vec<CollectorAction>) {
        if self.config.coordination == Coordination::Uncoordinated {
            return self.begin(urgency, out);
        }
        self.forget_answers();
        let deadline = now + self.config.answer_timeout;
        self.phase = Phase::Asking { urgency, repeats_left: self.config.retries, deadline };
        self.say_all(request_note(urgency), out);
    }

    fn on_accept(&mut self, vssd: VssdId, replica: Option<(NodeId, VssdId)>, out: &mut Vec<CollectorAction>) {
        match self.phase {
            // Too late, as with the answers after a "not now": the grant is given back, or it would
            // bind the replica for ever.
            Phase::Quiet => self.finish_where(|member| member.vssd == vssd, out),
            Phase::Asking { urgency, .. } => {
                self.grant(vssd, replica);
                if self.members.iter().all(|member| member.granted) {
                    self.begin(urgency, out);
                }
            }
            Phase::Collecting { .. } => self.grant(vssd, replica),
        }
    }

    fn grant(&mut self, vssd: VssdId, replica: Option<(NodeId, VssdId)>) {
        if let Some(member) = self.member_mut(vssd) {
            member.granted = true;
            member.replica = replica;
        }
    }

    /// One member must wait, so all do. A regular request is never denied (3.5.1): such an answer
    /// is to an earlier soft one.
    fn on_delay(&mut self, out: &mut Vec<CollectorAction>) {
        if let Phase::Asking { urgency: Urgency::Soft, .. } = self.phase {
            self.phase = Phase::Quiet;
            self.take_back(|member| member.granted, out);
        }
    }

    fn on_silence(&mut self, now: Time, out: &mut Vec<CollectorAction>) {
        match &mut self.phase {
            Phase::Asking { urgency: Urgency::Regular, repeats_left: 0, .. } => self.begin(Urgency::Regular, out),
            Phase::Asking { urgency: Urgency::Regular, repeats_left, deadline } => {
                *repeats_left -= 1;
                *deadline = now + self.config.answer_timeout;
                let silent = self.members.iter().filter(|member| !member.granted);
                out.extend(
                    silent.map(|member| CollectorAction::Say { vssd: member.vssd, note: CollectionNote::Regular }),
                );
            }
            Phase::Asking { .. } => {
                self.phase = Phase::Quiet;
                self.take_back(|_| true, out);
            }
            _ => {}
        }
    }

    fn take_back(&mut self, picks: impl Fn(&Member) -> bool, out: &mut Vec<CollectorAction>) {
        self.finish_where(picks, out);
        self.forget_answers();
    }

    fn finish_where(&mut self, picks: impl Fn(&Member) -> bool, out: &mut Vec<CollectorAction>) {
        let is_echoed = match self.config.coordination {
            Coordination::Uncoordinated => return,
            Coordination::Switch(_) => true,
            Coordination::Controller(_) => false,
        };
        for member in self.members.iter_mut().filter(|member| picks(member)) {
            member.owes_finish = is_echoed;
            out.push(CollectorAction::Say { vssd: member.vssd, note: CollectionNote::Finish });
        }
    }

    fn on_echo(&mut self, vssd: VssdId) {
        if let Some(member) = self.member_mut(vssd) {
            member.owes_finish = false;
        }
    }

    fn begin(&mut self, urgency: Urgency, out: &mut Vec<CollectorAction>) {
        self.phase = Phase::Collecting { urgency };
        (self.disturbed, self.has_freed) = (false, false);
        for member in &mut self.members {
            member.streams.fill(true);
            let streams = 0..member.streams.len() as u32;
            out.extend(streams.map(|stream| CollectorAction::Step { vssd: member.vssd, stream }));
        }
    }

    fn end(&mut self, out: &mut Vec<CollectorAction>) {
        self.phase = Phase::Quiet;
        self.barren = !self.has_freed;
        self.take_back(|_| true, out);
        out.push(CollectorAction::Ended);
    }

    /// Requests, or announces, a collection; an uncoordinated one sends no message.
    fn say_all(&mut self, note: CollectionNote, out: &mut Vec<CollectorAction>) {
        if self.config.coordination == Coordination::Uncoordinated {
            return;
        }
        for member in &mut self.members {
            member.owes_finish = false;
            out.push(CollectorAction::Say { vssd: member.vssd, note });
        }
    }

    fn forget_answers(&mut self) {
        for member in &mut self.members {
            (member.granted, member.replica) = (false, None);
        }
    }

    /// A member stops when it has enough itself, and at the latest when its unit has.
    fn is_enough_for(&self, vssd: VssdId) -> bool {
        let (free, owned) = self.blocks();
        let stop = self.config.stop_ppm;
        let own = self.members.iter().find(|member| member.vssd == vssd);
        !is_below(free, owned, stop)
            || own.is_some_and(|own| !is_below(u64::from(own.free), u64::from(own.owned), stop))
    }

    fn blocks(&self) -> (u64, u64) {
        self.members
            .iter()
            .fold((0, 0), |(free, owned), member| (free + u64::from(member.free), owned + u64::from(member.owned)))
    }

    fn member_mut(&mut self, vssd: VssdId) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.vssd == vssd)
    }
}

fn request_note(urgency: Urgency) -> CollectionNote {
    match urgency {
        Urgency::Background => CollectionNote::Background,
        Urgency::Soft => CollectionNote::Soft,
        Urgency::Regular => CollectionNote::Regular,
    }
}

#[cfg(test)]
mod tests;
