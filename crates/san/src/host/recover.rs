//! Recovery of a host from missing, late and failing answers.

use super::lane::Reset;
use super::{
    Attempt, Host, HostConfig, HostOut, IoPlace, Ios, Outcome, Packet, PacketKind, RetryPolicy, Stage, Tag, Uplinks,
    bare_command,
};
use crate::id::Port;
use base::{Operation, Span, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A delayed action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Later {
    /// Send an I/O for the first time: its core has come to it.
    Begin(IoPlace),
    /// Resend the same command: its back-off is over.
    Again(IoPlace),
    /// Put the I/O back into the queue of its session.
    Requeue(IoPlace),
    /// Check whether a send was answered.
    Deadline(IoPlace, Tag),
    /// Check whether the reset of a lane was confirmed.
    Reset {
        /// Internal index of the session.
        session: u32,
        lane: u8,
        command: u16,
    },
}

/// The timers of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    /// Unanswered first sends. All have the same timeout, so the order of sending is that of the
    /// deadlines.
    sends: VecDeque<(Time, IoPlace, Tag)>,
    /// Other timers, which are rare: by time, then by order of creation.
    later: BinaryHeap<Reverse<(Time, u64, Later)>>,
    asked: u64,
}

impl Timers {
    pub(super) fn watch(&mut self, deadline: Time, place: IoPlace, tag: Tag) {
        self.sends.push_back((deadline, place, tag));
    }

    pub(super) fn at(&mut self, time: Time, later: Later) {
        self.asked += 1;
        self.later.push(Reverse((time, self.asked, later)));
    }

    /// Drops the oldest sends that were answered, so that the next wake-up is that of an unanswered
    /// one.
    pub(super) fn forget_answered(&mut self, ios: &Ios) {
        while let Some((_, place, tag)) = self.sends.front() {
            if ios.get(*place).is_some_and(|io| io.tag == *tag && io.stage == Stage::Sent) {
                return;
            }
            self.sends.pop_front();
        }
    }

    fn due_send(&mut self, now: Time) -> Option<(IoPlace, Tag)> {
        let (deadline, place, tag) = *self.sends.front()?;
        (deadline <= now).then(|| self.sends.pop_front()).map(|_| (place, tag))
    }

    fn due(&mut self, now: Time) -> Option<Later> {
        let Reverse((time, _, later)) = *self.later.peek()?;
        (time <= now).then(|| self.later.pop()).map(|_| later)
    }

    pub(super) fn next(&self) -> Option<Time> {
        let send = self.sends.front().map(|(deadline, ..)| *deadline);
        // Rare, so that there is nearly always nothing to compare.
        let Some(Reverse((later, ..))) = self.later.peek() else { return send };
        Some(send.map_or(*later, |send| send.min(*later)))
    }
}

impl Host {
    pub(super) fn run_timers(&mut self, now: Time, out: &mut Vec<HostOut>) {
        while let Some((place, tag)) = self.timers.due_send(now) {
            self.on_deadline(now, place, tag, out);
        }
        while let Some(later) = self.timers.due(now) {
            self.on_later(now, later, out);
        }
    }

    fn on_later(&mut self, now: Time, later: Later, out: &mut Vec<HostOut>) {
        match later {
            Later::Begin(place) => {
                if let Some(session) = self.ios.get(place).map(|io| io.session) {
                    self.begin(now, session, place, out);
                }
            }
            Later::Again(place) => {
                if self.ios.get(place).is_some_and(|io| io.stage == Stage::BackedOff) {
                    self.send_again(now, place, out);
                }
            }
            Later::Requeue(place) => self.requeue(now, place, out),
            Later::Deadline(place, tag) => self.on_deadline(now, place, tag, out),
            Later::Reset { session, lane, command } => self.repeat_reset(now, session, lane, command, out),
        }
    }

    fn on_deadline(&mut self, now: Time, place: IoPlace, tag: Tag, out: &mut Vec<HostOut>) {
        let Some(io) = self.ios.get(place).filter(|io| io.tag == tag && io.stage == Stage::Sent) else { return };
        let deadline = io.heard + self.send_timeout(io.session, io.losses);
        if deadline > now {
            return self.timers.at(deadline, Later::Deadline(place, tag));
        }
        self.counters.timeouts += 1;
        self.on_lost(now, place, false, out);
    }

    /// Returns the timeout of a command with `losses` unanswered sends.
    fn send_timeout(&self, session: u32, losses: u8) -> Span {
        let HostConfig { probe, timeout, timeout_min, .. } = self.config;
        if let Some(floor) = timeout_min {
            let seen = self.sessions[session].round_trip.timeout();
            if seen > Span::ZERO {
                return (seen.max(floor) * (1 << losses.min(20))).min(timeout);
            }
        }
        if losses == 0 { probe.min(timeout) } else { timeout }
    }

    /// Sets the timeout of a send that starts now. That of a first one is looked at again when it
    /// is due: until then the floor keeps the order of deadlines.
    pub(super) fn watch(&mut self, now: Time, place: IoPlace, session: u32, losses: u8, tag: Tag) {
        if losses == 0 {
            let first = self.config.probe.min(self.config.timeout);
            let deadline = now + self.config.timeout_min.map_or(first, |floor| floor.min(first));
            self.timers.watch(deadline, place, tag);
        } else {
            let deadline = now + self.send_timeout(session, losses);
            self.timers.at(deadline, Later::Deadline(place, tag));
        }
    }

    /// Handles a missing part of an answer or of a write's data that later packets reveal: TCP's
    /// receiver would send duplicate acknowledgements. It does not count as an unanswered send. The
    /// back-off doubles with each, like TCP halves its window.
    pub(super) fn on_gap(&mut self, now: Time, place: IoPlace) {
        self.counters.gaps += 1;
        if self.format.config().fast_retransmit {
            self.back_off(now, place);
        }
    }

    /// Handles a lost send: resends the command at once or after a back-off, or fails the
    /// association.
    pub(super) fn on_lost(&mut self, now: Time, place: IoPlace, backs_off: bool, out: &mut Vec<HostOut>) {
        let Some(io) = self.ios.get_mut(place) else { return };
        io.losses += 1;
        if io.losses >= self.config.sends_max.max(1) {
            let (session, lane) = (io.session, Attempt::of_bits(io.tag.attempt).lane);
            self.lanes[(session, usize::from(lane))].suspect_until = now + self.config.suspect_for;
            self.fail_lane(now, session, lane, out);
        } else if backs_off {
            self.back_off(now, place);
        } else {
            self.send_again(now, place, out);
        }
    }

    /// Resends the same command.
    fn send_again(&mut self, now: Time, place: IoPlace, out: &mut Vec<HostOut>) {
        if let Some(io) = self.ios.get_mut(place) {
            io.tag.attempt = Attempt::of_bits(io.tag.attempt).again().bits();
            self.send(now, place, out);
        }
    }

    /// Resends the same command later. It keeps its identifier: an earlier copy may still be in
    /// flight, and the target must recognise it.
    pub(super) fn back_off(&mut self, now: Time, place: IoPlace) {
        let Some(io) = self.ios.get_mut(place) else { return };
        io.stage = Stage::BackedOff;
        let span = (self.config.back_off * (1 << io.refusals.min(20))).min(self.config.back_off_max);
        io.refusals += 1;
        self.timers.at(now + span, Later::Again(place));
    }

    /// Handles an abort by the target, after which no copy of the command will be executed. The I/O
    /// becomes a new command after a back-off.
    pub(super) fn on_aborted(&mut self, now: Time, place: IoPlace) {
        self.counters.aborted += 1;
        let Some(io) = self.ios.get_mut(place) else { return };
        io.stage = Stage::Held;
        let span = (self.config.back_off * (1 << io.refusals.min(20))).min(self.config.back_off_max);
        io.refusals += 1;
        let (session, tag) = (io.session, io.tag);
        self.release(session, tag);
        self.timers.at(now + span, Later::Requeue(place));
    }

    /// Queues a held I/O ahead of those that were never sent.
    fn requeue(&mut self, now: Time, place: IoPlace, out: &mut Vec<HostOut>) {
        let Some(io) = self.ios.get_mut(place).filter(|io| io.stage == Stage::Held) else { return };
        io.stage = Stage::Waiting;
        let session = io.session;
        self.sessions[session].waiting.push_front(place);
        self.pump(now, session, out);
    }

    pub(super) fn link_down(&mut self, now: Time, port: Port, out: &mut Vec<HostOut>) {
        if let Uplinks::Routed(router) = &mut self.uplinks {
            router.link_down(now, port);
        }
        let Some(is_up) = self.ports_up.get_mut(port.index()) else { return };
        *is_up = false;
        for session in self.sessions.in_order() {
            self.fail_lane(now, session, port.0 as u8, out);
        }
    }

    pub(super) fn link_up(&mut self, now: Time, port: Port, out: &mut Vec<HostOut>) {
        if let Uplinks::Routed(router) = &mut self.uplinks {
            router.link_up(now, port);
        }
        let Some(is_up) = self.ports_up.get_mut(port.index()) else { return };
        *is_up = true;
        for session in self.sessions.in_order() {
            for lane in 0..self.ports_up.len() as u8 {
                self.send_reset(now, session, lane, out);
            }
            self.pump(now, session, out);
        }
    }

    /// Fails the association of a lane. The next one replaces it, and its I/Os become new commands
    /// as the retry policy allows.
    fn fail_lane(&mut self, now: Time, place: u32, lane: u8, out: &mut Vec<HostOut>) {
        let state = &mut self.lanes[(place, usize::from(lane))];
        let mut ios: Vec<IoPlace> = state.queue.abandon().into_iter().map(|(_, io)| io).collect();
        if ios.is_empty() {
            return;
        }
        self.sessions[place].outstanding -= ios.len() as u32;
        let dead = state.generation;
        state.generation = dead.wrapping_add(1);
        self.counters.path_failures += 1;
        self.counters.retries += ios.len() as u64;
        // Back into the queue from its front: the oldest last.
        ios.sort_by_key(|io| Reverse(self.ios.get(*io).map(|io| io.first_sent)));
        let (writes, reads) = ios.into_iter().partition(|io| self.hold(*io));
        self.retry_writes(now, place, lane, dead, writes, out);
        for read in reads {
            self.requeue(now, read, out);
        }
    }

    /// Takes an I/O out of its failed association. Returns whether it writes.
    fn hold(&mut self, place: IoPlace) -> bool {
        let Some(io) = self.ios.get_mut(place) else { return false };
        io.stage = Stage::Held;
        io.losses = 0;
        io.io.operation != Operation::Read
    }

    fn retry_writes(
        &mut self,
        now: Time,
        place: u32,
        lane: u8,
        dead: u8,
        writes: Vec<IoPlace>,
        out: &mut Vec<HostOut>,
    ) {
        match self.config.retry {
            RetryPolicy::Naive => writes.into_iter().for_each(|io| self.requeue(now, io, out)),
            RetryPolicy::Quiesce { wait } => {
                writes.into_iter().for_each(|io| self.timers.at(now + wait, Later::Requeue(io)));
            }
            RetryPolicy::CrossControllerReset if writes.is_empty() => {}
            RetryPolicy::CrossControllerReset => self.begin_reset(now, place, lane, dead, writes, out),
        }
    }

    /// Requests the end of every association of the lane up to `dead`. This replaces a pending
    /// reset of earlier ones, which the new one covers.
    fn begin_reset(&mut self, now: Time, place: u32, lane: u8, dead: u8, writes: Vec<IoPlace>, out: &mut Vec<HostOut>) {
        let state = &mut self.lanes[(place, usize::from(lane))];
        let mut held = state.reset.take().map_or(Vec::new(), |reset| reset.held);
        held.extend(writes);
        state.resets = state.resets.wrapping_add(1);
        state.reset = Some(Box::new(Reset { generation: dead, command: state.resets, send: 0, held }));
        self.send_reset(now, place, lane, out);
    }

    /// Sends the pending reset of a lane by a working uplink, preferably not the lane's own.
    /// Without one it waits for a link.
    fn send_reset(&mut self, now: Time, place: u32, lane: u8, out: &mut Vec<HostOut>) {
        let own = usize::from(lane);
        let others = (0..self.ports_up.len()).filter(|port| *port != own && self.ports_up[*port]);
        let port = others.min_by_key(|port| self.lanes[(place, *port)].suspect_until);
        let Some(port) = port.or(self.ports_up[own].then_some(own)) else { return };
        let session = &self.sessions[place];
        let Some(reset) = &mut self.lanes[(place, own)].reset else { return };
        let attempt = Attempt { lane, generation: reset.generation, send: reset.send };
        reset.send = attempt.again().send;
        let command = reset.command;
        let tag = Tag { session: session.id, command, attempt: attempt.bits() };
        let frame = self.format.frame(PacketKind::Command, 0, 0);
        let packet = bare_command(&self.config, session, tag, frame);
        out.push(HostOut::Send { port: Port(port as u16), packet });
        self.timers.at(now + self.config.timeout, Later::Reset { session: place, lane, command });
    }

    fn repeat_reset(&mut self, now: Time, place: u32, lane: u8, command: u16, out: &mut Vec<HostOut>) {
        let reset = &self.lanes[(place, usize::from(lane))].reset;
        if reset.as_ref().is_some_and(|reset| reset.command == command) {
            self.counters.timeouts += 1;
            self.send_reset(now, place, lane, out);
        }
    }

    /// Handles the answer to a reset; only success from the target confirms it.
    pub(super) fn on_reset_answer(&mut self, now: Time, place: u32, packet: &Packet, out: &mut Vec<HostOut>) {
        let lane = Attempt::of_bits(packet.tag.attempt).lane;
        let state = self.lanes.get_mut(place, lane);
        let reset = state.and_then(|state| state.reset.take_if(|reset| reset.command == packet.tag.command));
        match reset {
            Some(reset) if packet.status == Outcome::Success => {
                reset.held.into_iter().for_each(|io| self.requeue(now, io, out));
            }
            // Its timer will resend it.
            Some(reset) => self.lanes[(place, usize::from(lane))].reset = Some(reset),
            None => self.counters.stale += 1,
        }
    }
}
