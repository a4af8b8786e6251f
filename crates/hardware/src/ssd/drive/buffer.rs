//! The write buffer: what it holds, and when room comes free.

use super::config::{FlushPolicy, WriteBuffer};
use crate::ssd::array::{Booked, FlashArray, Ticket};
use crate::ssd::geometry::{DieId, Geometry, PageAddress, Suspension};
use base::{Span, Time};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Counts in units. What has ended is forgotten when somebody needs its room.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    flush: FlushPolicy,
    capacity: u64,
    page_units: u32,
    /// Units of pages that gather and of those that are programmed.
    held: u64,
    gathering: u32,
    programs: BinaryHeap<Reverse<Program>>,
    booked: u64,
    /// For each die, the pages that are programmed, oldest first.
    by_die: Vec<VecDeque<(PageAddress, Time)>>,
    last_write: Time,
    /// Whether programs are interrupted for reads.
    may_be_prolonged: bool,
}

/// A page that is being written to flash.
#[derive(Clone, Copy, Debug)]
struct Program {
    end: Time,
    number: u64,
    units: u32,
    collection_wait: Span,
    ticket: Option<Ticket>,
}

/// When room came free, and how long the program that made it had waited for collection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) at: Time,
    pub(super) collection_wait: Span,
}

impl Buffer {
    pub(super) fn new(config: WriteBuffer, geometry: &Geometry, suspension: Suspension) -> Buffer {
        Buffer {
            flush: config.flush,
            capacity: config.capacity.count() / geometry.unit.count(),
            page_units: geometry.units_per_page(),
            held: 0,
            gathering: 0,
            programs: BinaryHeap::new(),
            booked: 0,
            by_die: vec![VecDeque::new(); geometry.dies() as usize],
            last_write: Time::ZERO,
            may_be_prolonged: suspension != Suspension::None,
        }
    }
    pub(super) fn has_room(&self) -> bool {
        self.held < self.capacity
    }
    /// Returns whether only programming pages that are not full can make room.
    pub(super) fn is_all_gathering(&self) -> bool {
        self.programs.is_empty()
    }
    /// Takes a unit in.
    pub(super) fn put(&mut self, now: Time) {
        self.held += 1;
        self.gathering += 1;
        self.last_write = now;
    }
    /// A full page leaves.
    pub(super) fn programming(&mut self, now: Time, die: DieId, page: PageAddress, booked: &Booked) {
        self.leave(now, die, page, booked, self.page_units.min(self.gathering));
    }
    /// All pages leave that are not full; nobody knows which holds how much, and the last to end is
    /// taken to hold what the others do not.
    pub(super) fn programming_partial(
        &mut self,
        now: Time,
        die: DieId,
        page: PageAddress,
        booked: &Booked,
        is_last: bool,
    ) {
        let units = if is_last { self.gathering } else { self.gathering.min(1) };
        self.leave(now, die, page, booked, units);
    }
    /// Forgets programs, the first to end first, until a unit fits.
    pub(super) fn make_room(&mut self, array: &FlashArray) -> Room {
        let mut room = Room { at: Time::ZERO, collection_wait: Span::ZERO };
        while !self.has_room() {
            let Some(Reverse(program)) = self.programs.pop() else {
                // Everything that it held was given up before it was programmed.
                self.held = 0;
                break;
            };
            match end_by_now(array, &program) {
                end if end > program.end => self.programs.push(Reverse(Program { end, ..program })),
                end => {
                    self.held -= u64::from(program.units);
                    room = Room { at: end, collection_wait: program.collection_wait };
                }
            }
        }
        room
    }
    /// Returns whether a page is still here because its program has not ended.
    pub(super) fn holds(&mut self, now: Time, die: DieId, page: PageAddress) -> bool {
        self.programmed_by(now, die).iter().any(|(held, _)| *held == page)
    }
    /// Lets all programs have ended.
    pub(super) fn rest(&mut self) {
        self.programs.clear();
        self.by_die.iter_mut().for_each(VecDeque::clear);
        self.held = 0;
        self.gathering = 0;
    }
    /// Returns the time at which all that has been programmed so far is in flash.
    pub(super) fn empty_at(&self, array: &FlashArray) -> Time {
        self.programs.iter().map(|Reverse(program)| end_by_now(array, program)).max().unwrap_or(Time::ZERO)
    }
    /// Returns the time at which pages that are not full have waited long enough.
    pub(super) fn idle_flush_at(&self) -> Option<Time> {
        match self.flush {
            FlushPolicy::AfterIdle(idle) if self.gathering > 0 => Some(self.last_write + idle),
            _ => None,
        }
    }
    /// Nothing gathers any more.
    pub(super) fn gathers_nothing(&mut self) {
        self.held -= u64::from(self.gathering);
        self.gathering = 0;
    }

    /// The pages of a die that are not yet programmed.
    fn programmed_by(&mut self, now: Time, die: DieId) -> &mut VecDeque<(PageAddress, Time)> {
        let pages = &mut self.by_die[die.0 as usize];
        while pages.front().is_some_and(|(_, end)| *end <= now) {
            pages.pop_front();
        }
        pages
    }
    fn leave(&mut self, now: Time, die: DieId, page: PageAddress, booked: &Booked, units: u32) {
        self.gathering -= units;
        self.booked += 1;
        self.programs.push(Reverse(Program {
            end: booked.end,
            number: self.booked,
            units,
            collection_wait: booked.collection_wait,
            ticket: booked.ticket.filter(|_| self.may_be_prolonged),
        }));
        self.programmed_by(now, die).push_back((page, booked.end));
    }
}

/// Returns the time at which a program ends, interruptions since its booking included.
fn end_by_now(array: &FlashArray, program: &Program) -> Time {
    let prolonged = program.ticket.and_then(|ticket| array.end_of(ticket));
    prolonged.map_or(program.end, |end| end.max(program.end))
}

impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Program {}
impl PartialOrd for Program {
    fn partial_cmp(&self, other: &Program) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Program {
    /// By their end, and by their booking where that is equal.
    fn cmp(&self, other: &Program) -> Ordering {
        (self.end, self.number).cmp(&(other.end, other.number))
    }
}
