//! How the members of a group agree on reservations. The first one decides each command; it answers
//! when every member has the new state and carries out nothing more that the state refuses. So no
//! write of a host that lost its right follows the answer.

use crate::target::Target;
use crate::target::flight::{Own, Phase};
use crate::target::group::{Asked, Asker, Content, Drain, Member, News};
use crate::target::io::{IoResult, IoStatus, IoTag};
use crate::target::nvm::intent_of;
use crate::target::reservations::{Effects, Intent};
use crate::{Body, HostId, Io, Status};

impl Target {
    /// Has the first member decide a reservation command.
    pub(super) fn ask_first(&mut self, slot: u32, at: usize, host: HostId) {
        let flight = &mut self.io.flights[slot];
        (flight.phase, flight.pending) = (Phase::Working, 1);
        let (command, data) = (flight.command, std::mem::take(&mut flight.buffer));
        let subsystem = self.subsystems[at].config.name;
        let asker = Asker { member: self.group.own, tag: self.io.flights.tag(slot), subsystem, host };
        self.group.send(Member::FIRST, Content::Reserve(Box::new(Asked { asker, command, data })));
    }

    /// Another member asks for a reservation.
    pub(super) fn on_asked(&mut self, asked: Asked) {
        let slot = self.io.flights.open_own(self.clock.now(), Own::Reservation);
        let flight = &mut self.io.flights[slot];
        (flight.command, flight.buffer) = (asked.command, asked.data);
        self.group.askers.insert(slot, asked.asker);
        self.on_reservation(slot);
    }

    /// Answers a member whose command is over.
    pub(super) fn answer_asker(&mut self, slot: u32, status: Status) {
        if let Some(Asker { member, tag, .. }) = self.group.askers.remove(&slot) {
            self.group.send(member, Content::Reserved { tag, status });
        }
    }

    /// The first member has decided a command of this one.
    pub(super) fn on_decided(&mut self, tag: IoTag, status: Status) {
        if let Some(slot) = self.io.flights.working(tag) {
            self.io.flights[slot].pending = 0;
            self.finish(slot, status, 0);
        }
    }

    /// The first member has decided: every member has to take the new state of a namespace before
    /// the command of this flight is answered.
    pub(super) fn spread(&mut self, slot: u32, at: usize, effects: Effects) {
        let namespace = self.io.flights[slot].command.namespace;
        let subsystem = &mut self.subsystems[at];
        let name = subsystem.config.name;
        let Some(known) = subsystem.namespaces.get_mut(&namespace) else { return };
        known.reserving = Some(slot);
        let tag = self.io.flights.tag(slot);
        let state = known.config.reservations.clone();
        let news = News { tag, subsystem: name, namespace, state, effects };
        let flight = &mut self.io.flights[slot];
        flight.phase = Phase::Working;
        flight.pending += u32::from(self.group.size);
        self.group.send_others(self.group.own, || Content::Reservations(Box::new(news.clone())));
        self.drain(tag, at, namespace);
    }

    /// Takes what the first member has decided.
    pub(super) fn take_news(&mut self, news: News) {
        let at = self.subsystems.iter().position(|known| known.config.name == news.subsystem);
        let known = at.and_then(|at| Some((at, self.subsystems[at].namespaces.get_mut(&news.namespace)?)));
        let Some((at, namespace)) = known else { return self.tell_taken(news.tag) };
        namespace.config.reservations = news.state;
        self.on_effects(at, news.namespace, &news.effects);
        self.drain(news.tag, at, news.namespace);
    }

    /// Says that the new state of a namespace is taken when commands that it refuses are over.
    fn drain(&mut self, of: IoTag, at: usize, namespace: u32) {
        let commands: Vec<IoTag> = self.io.flights.working_ones(|slot| self.is_refused(slot, at, namespace));
        match commands.is_empty() {
            true => self.tell_taken(of),
            false => self.group.drains.push(Drain { of, commands }),
        }
    }

    /// Whether the reservations of a namespace refuse a command that backends work on. The host of
    /// a command whose connection is gone is not known: it may have lost its right.
    fn is_refused(&self, slot: u32, at: usize, namespace: u32) -> bool {
        let flight = &self.io.flights[slot];
        let Body::Io(io) = flight.command.body else { return false };
        // These two reach other namespaces too.
        let (is_wide, is_it) = (matches!(io, Io::Vendor(_) | Io::Copy(_)), flight.command.namespace == namespace);
        let intent = if is_wide { Some(Intent::Write) } else { intent_of(io) };
        let Some(intent) = intent.filter(|_| is_wide || is_it) else { return false };
        let Some(index) = flight.connection else { return flight.own.is_none() };
        let controller = self.connections[index].controller().and_then(|id| self.controllers.get(id));
        let Some(controller) = controller.filter(|known| known.subsystem() == Some(at)) else { return false };
        let state = self.subsystems[at].namespaces.get(&namespace).map(|known| &known.config.reservations);
        state.is_some_and(|state| !state.allows(controller.host_id, intent))
    }

    /// A command is over, which new reservations may wait for.
    pub(super) fn drained(&mut self, tag: IoTag) {
        let mut over = Vec::new();
        self.group.drains.retain_mut(|drain| {
            drain.commands.retain(|known| *known != tag);
            if drain.commands.is_empty() {
                over.push(drain.of);
            }
            !drain.commands.is_empty()
        });
        over.into_iter().for_each(|of| self.tell_taken(of));
    }

    fn tell_taken(&mut self, of: IoTag) {
        match self.group.is_first() {
            true => self.on_taken(of),
            false => self.group.send(Member::FIRST, Content::Taken(of)),
        }
    }

    /// A member has taken new reservations.
    pub(super) fn on_taken(&mut self, of: IoTag) {
        let now = self.clock.now();
        self.complete(now, of, IoResult::bare(IoStatus::Done));
    }
}
