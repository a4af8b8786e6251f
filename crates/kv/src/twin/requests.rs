//! What doors were asked, and where the time went: seen in journals and in a simulation alike.

use crate::journal::Entry;
use base::{Span, Time};
use runtime::times::Times;
use scalio::{ClientId, ClientIn, ClientOut, Length, RequestId, ServerIn, ServerOut, Source};
use std::collections::BTreeMap;

/// How an operation was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answered {
    /// A GET, by a slot.
    Slot,
    /// A GET, by flash.
    Flash,
    /// An update, by the helper.
    Helper,
}

/// One operation of a door that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When the client of the loop got it.
    pub asked: Time,
    /// When the loop got what ended it.
    pub ended: Time,
    /// How it was answered.
    pub answered: Answered,
    /// Time that it waited for verbs.
    pub verbs: Span,
    /// Time that it waited for reads of flash.
    pub flash: Span,
    /// Of an update: to the helper, there, and back. None where the helper's journal is missing.
    pub helper: Option<[Span; 3]>,
    /// Its number at the helper, if it is an update.
    update: Option<Update>,
    /// When the turn of its loop ended, in which it left.
    left: Option<Time>,
    /// From then to the helper, and from the end of the helper's turn back; and how long before the
    /// end of the loop's turn it was at the helper.
    ways: Option<[Span; 3]>,
    /// Whether the helper slept until it came, and the loop until it was answered.
    woke: [bool; 2],
}

impl Request {
    /// All of its time.
    pub fn total(&self) -> Span {
        self.ended.saturating_since(self.asked)
    }
}

/// An update: its door's name at the JBOF, and its number.
type Update = (ClientId, u64);

/// An operation that has no end yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    asked: Time,
    verbs: Span,
    flash: Span,
    update: Option<Update>,
    left: Option<Time>,
}

/// Where the helper of a JBOF was with an update.
#[derive(Clone, Copy, Debug)]
struct Handled {
    came: Time,
    /// Whether the helper slept until then.
    woke: bool,
    answered: Option<Time>,
    /// When the turn of the helper ended, in which it was answered.
    left: Option<Time>,
}

/// The operations of a loop that are under way.
#[derive(Clone, Debug, Default)]
struct Loop {
    open: BTreeMap<u64, Open>,
    /// Whose the last input was.
    current: Option<u64>,
    at: Time,
    /// Whether the last input was the first of its turn, and whether the turn has ended.
    woke: bool,
    rests: bool,
    /// Tickets by the places of their tasks.
    tasks: BTreeMap<u64, u64>,
    /// Requests to memory and flash: whose, since when, and whether to flash.
    asked: BTreeMap<RequestId, (u64, Time, bool)>,
    sent: BTreeMap<u64, u64>,
    /// Tickets of updates that leave with the end of the turn.
    leaving: Vec<u64>,
}

/// The operations of all doors of a JBOF.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    loops: BTreeMap<usize, Loop>,
    ended: Vec<Request>,
    handled: BTreeMap<Update, Handled>,
    /// When the helper got its last input, and whether its turn has ended.
    at: Time,
    rests: bool,
    /// What the helper answers in this turn.
    answering: Vec<Update>,
    asked: u64,
}

impl Requests {
    /// Those that have ended, in order of their ends at each loop.
    pub fn all(&self) -> &[Request] {
        &self.ended
    }

    /// Those that were asked and have no end, or ended without an answer.
    pub fn open(&self) -> u64 {
        self.asked - self.ended.len() as u64
    }

    /// A loop was told or decided something.
    pub(super) fn see_loop(
        &mut self,
        number: usize,
        at: Option<Time>,
        entry: &Entry<ClientIn<Length>, ClientOut<Length>>,
    ) {
        let its = self.loops.entry(number).or_default();
        its.at = at.unwrap_or(its.at);
        match entry {
            Entry::Input { input, .. } => {
                its.woke = std::mem::take(&mut its.rests);
                self.asked += u64::from(its.told(input));
            }
            Entry::Rested { .. } => its.rest(),
            Entry::Woke { .. } | Entry::Lost { .. } | Entry::Met { .. } => its.current = None,
            Entry::Decided(out) => self.ended.extend(its.decided(out)),
            _ => {}
        }
    }

    /// The helper was told or decided something.
    pub(super) fn see_helper(&mut self, at: Option<Time>, entry: &Entry<ServerIn<Length>, ServerOut<Length>>) {
        // Its own memory answers within what caused that.
        if !matches!(entry, Entry::Input { input: ServerIn::Memory { .. }, .. }) {
            self.at = at.unwrap_or(self.at);
        }
        let at = self.at;
        match entry {
            Entry::Rested { .. } => {
                self.rests = true;
                for update in std::mem::take(&mut self.answering) {
                    self.handled.entry(update).and_modify(|handled| handled.left = Some(at));
                }
            }
            Entry::Input { input, .. } => {
                let woke = std::mem::take(&mut self.rests);
                if let ServerIn::Request(request) = input {
                    let handled = Handled { came: at, woke, answered: None, left: None };
                    self.handled.entry((request.client, request.number)).or_insert(handled);
                }
            }
            Entry::Decided(ServerOut::Reply(reply)) => {
                if let Some(handled) = self.handled.get_mut(&(reply.client, reply.number)) {
                    handled.answered = Some(at);
                    self.answering.push((reply.client, reply.number));
                }
            }
            _ => {}
        }
    }

    /// All was seen: updates learn where they were.
    pub(super) fn finish(&mut self) {
        for request in &mut self.ended {
            let Some(handled) = request.update.and_then(|update| self.handled.get(&update)) else { continue };
            if let Some(answered) = handled.answered {
                let parts = [(request.asked, handled.came), (handled.came, answered), (answered, request.ended)];
                request.woke[0] = handled.woke;
                request.helper = Some(parts.map(|(from, to)| to.saturating_since(from)));
                let left = request.left.zip(handled.left);
                let came = handled.came;
                let ways = left.map(|(left, back)| [(left, came), (back, request.ended), (came, left)]);
                request.ways = ways.map(|ways| ways.map(|(from, to)| to.saturating_since(from)));
            }
        }
    }

    /// From a door to the helper, and back, and how long they were at the helper before their turn
    /// ended: times of updates that came to one which slept until then, or of all where there are
    /// none.
    pub(super) fn ways(&self) -> [Times; 3] {
        [0, 1, 2].map(|way| {
            let end = way % 2;
            let any = self.ended.iter().any(|request| request.ways.is_some() && request.woke[end]);
            let mut seen = Times::default();
            for request in self.ended.iter().filter(|request| request.woke[end] == any) {
                request.ways.iter().for_each(|ways| seen.note(request.asked, ways[way]));
            }
            seen
        })
    }
}

impl Loop {
    /// Its turn ends, and updates leave.
    fn rest(&mut self) {
        self.rests = true;
        for ticket in std::mem::take(&mut self.leaving) {
            self.open.entry(ticket).and_modify(|open| open.left = Some(self.at));
        }
    }

    /// Returns whether it is a new operation.
    fn told(&mut self, input: &ClientIn<Length>) -> bool {
        let (asked, at) = (&mut self.asked, self.at);
        self.current = match input {
            ClientIn::Issue { ticket, .. } | ClientIn::Describe { ticket, .. } => {
                let none = Open { asked: at, verbs: Span::ZERO, flash: Span::ZERO, update: None, left: None };
                self.open.insert(*ticket, none);
                self.current = Some(*ticket);
                return true;
            }
            ClientIn::Memory { request, .. } | ClientIn::Flash { request, .. } => {
                let found = asked.remove(request);
                if let Some((ticket, since, is_flash)) = found
                    && let Some(open) = self.open.get_mut(&ticket)
                {
                    let waited = at.saturating_since(since);
                    *(if is_flash { &mut open.flash } else { &mut open.verbs }) += waited;
                }
                found.map(|(ticket, ..)| ticket)
            }
            ClientIn::Reply(reply) => self.sent.remove(&reply.number),
            // Walks are not followed.
            ClientIn::Names { .. } => None,
        };
        false
    }

    /// Returns the operation that has ended with it.
    fn decided(&mut self, out: &ClientOut<Length>) -> Option<Request> {
        match out {
            ClientOut::Memory { request: Some(request), .. } => self.asks(*request, false),
            ClientOut::Flash { request, .. } => self.asks(*request, true),
            ClientOut::Memory { request: None, .. } => {}
            ClientOut::Send { request, .. } => {
                if let Some(open) = self.current.and_then(|ticket| self.open.get_mut(&ticket)) {
                    open.update = Some((request.client, request.number));
                    self.sent.extend(self.current.map(|ticket| (request.number, ticket)));
                    self.leaving.extend(self.current);
                }
            }
            ClientOut::Done { ticket, source, .. } => return self.done(*ticket, *source),
        }
        None
    }

    /// A request is that of the task at its place; of the last input where the task is new.
    fn asks(&mut self, request: RequestId, is_flash: bool) {
        let place = request.0 & u64::from(u32::MAX);
        let known = self.tasks.get(&place).copied().filter(|ticket| self.open.contains_key(ticket));
        let Some(ticket) = known.or(self.current) else { return };
        self.tasks.insert(place, ticket);
        self.asked.insert(request, (ticket, self.at, is_flash));
    }

    fn done(&mut self, ticket: u64, source: Source) -> Option<Request> {
        let Open { asked, verbs, flash, update, left } = self.open.remove(&ticket)?;
        let answered = match source {
            Source::Cache => Answered::Slot,
            Source::Flash => Answered::Flash,
            Source::Server => Answered::Helper,
        };
        let (ended, helper, ways, woke) = (self.at, None, None, [false, self.woke]);
        Some(Request { asked, ended, answered, verbs, flash, helper, update, left, ways, woke })
    }
}
