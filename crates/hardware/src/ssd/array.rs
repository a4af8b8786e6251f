//! The timing of a flash array: dies and channels that answer *when* an operation ends, and what it
//! waited for.
//!
//! Booking is eager: [`FlashArray::submit`] fixes start and end at once, there is no event queue,
//! and `now` never runs backward over the calls.
//!
//! * A **die** executes one operation at a time, first come, first served. A read occupies it from
//!   the begin of its array time until its data have left over the channel (there is one register
//!   and no cache read); a program from the begin of its transfer until the end of its array time;
//!   an erase for its array time. Planes add blocks, not operations: a multi-plane operation is
//!   modelled by a larger [`Geometry::page`].
//! * A **channel** carries one transfer at a time. A transfer takes the first gap that is long
//!   enough, so a late transfer of a busy die does not block the channel until then.
//! * **Suspension** ([`Suspension::Reads`](super::Suspension::Reads)): a read precedes every
//!   program and erase that has not begun. It interrupts the running one if its array time has
//!   begun and it has interruptions left. A read that finds the die already reading for an earlier
//!   one joins it and interrupts nothing. Everything behind the read is delayed by the read and,
//!   for an interruption, twice the overhead. An operation that would end before it could stop is
//!   not interrupted. The end of a read is therefore final; that of a program or erase may grow,
//!   and [`FlashArray::end_of`] has the latest. Data for a delayed program stay in the cache
//!   register at their booked time.
//!
//! An operation's wait is split by the work of the die or the channel meanwhile: collection counts
//! as `collection_wait`, everything else as `wait`, including a gap that was too short for the
//! transfer.

mod calendar;
mod die;

use super::geometry::{BlockId, DieId, Geometry, GeometryError, PageAddress, Timing};
use base::{Bytes, Span, Time};
pub(super) use calendar::Calendar;
use die::{Die, Slot};
use serde::Serialize;

/// An operation of a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashOperation {
    /// Array to register, then over the channel.
    Read {
        /// The page.
        page: PageAddress,
        /// Bytes that cross the channel.
        bytes: Bytes,
        /// How often it is sensed and transferred again before its errors can be corrected.
        retries: u32,
    },
    /// Over the channel, then register to array: a whole page.
    Program {
        /// The page.
        page: PageAddress,
    },
    /// No data.
    Erase {
        /// The block.
        block: BlockId,
    },
}

/// The purpose of an operation; operations that wait for it learn it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A request.
    Host,
    /// Garbage collection, wear levelling, erasing of what was lent.
    Collection,
}

/// When an operation ends, and why then: the three spans sum to the time from its submission to
/// `end`, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Booked {
    /// Time at which it is done.
    pub end: Time,
    /// Waiting behind other requests.
    pub wait: Span,
    /// Waiting behind collection.
    pub collection_wait: Span,
    /// Being served.
    pub service: Span,
    /// The handle for [`FlashArray::end_of`]; `None` for operations without flash.
    pub ticket: Option<Ticket>,
}

/// Names an operation that was booked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    die: DieId,
    sequence: u32,
}

/// How long something was, or is booked to be, busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// For requests.
    pub host: Span,
    /// For collection.
    pub collection: Span,
}

/// What an array has done and has been booked to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrayCounters {
    /// Each channel's transfers, commands included.
    pub channels: Vec<Busy>,
    /// Each die's operations, waiting for the channel included.
    pub dies: Vec<Busy>,
    /// Reads, retries not counted.
    pub reads: u64,
    /// Reads that were repeated, each time counted.
    pub retries: u64,
    /// Programs.
    pub programs: u64,
    /// Erases.
    pub erases: u64,
    /// Programs and erases that were interrupted, each time counted.
    pub interruptions: u64,
}

/// Channels and dies, see the [module's description](self).
#[derive(Clone, Debug)]
pub struct FlashArray {
    geometry: Geometry,
    timing: Timing,
    channels: Vec<Calendar>,
    dies: Vec<Die>,
    counters: ArrayCounters,
    /// A whole page's transfer, which programs need all the time.
    page_transfer: Span,
    /// What was read last and how long its transfer takes: most reads are of one size, and the
    /// division is slow.
    read_transfer: (Bytes, Span),
}

impl FlashArray {
    /// An idle array. Fails when geometry or timing do not hold together.
    pub fn new(geometry: Geometry, timing: Timing) -> Result<FlashArray, GeometryError> {
        geometry.check()?;
        timing.check()?;
        let (channels, dies) = (geometry.channels as usize, geometry.dies() as usize);
        let counters = ArrayCounters {
            channels: vec![Busy::default(); channels],
            dies: vec![Busy::default(); dies],
            ..ArrayCounters::default()
        };
        let page_transfer = timing.transfer(geometry.page);
        let (channels, dies) = (vec![Calendar::default(); channels], vec![Die::default(); dies]);
        let read_transfer = (geometry.page, page_transfer);
        Ok(FlashArray { geometry, timing, channels, dies, counters, page_transfer, read_transfer })
    }
    /// Books an operation behind what is there. Its address must lie in the array, and `now` not
    /// before that of any earlier call.
    pub fn submit(&mut self, now: Time, operation: FlashOperation, purpose: Purpose) -> Booked {
        match operation {
            FlashOperation::Read { page, bytes, retries } => self.read(now, page, bytes, retries, purpose),
            FlashOperation::Program { page } => self.program(now, page, purpose),
            FlashOperation::Erase { block } => self.erase(now, block, purpose),
        }
    }
    /// Returns the end of an operation, with all interruptions since its booking; `None` when it is
    /// over (or, at the latest, at the next booking of its die).
    pub fn end_of(&self, ticket: Ticket) -> Option<Time> {
        self.dies[ticket.die.0 as usize].end_of(ticket.sequence)
    }
    /// Returns the end of all booked operations of a die; not after the present if it is idle.
    pub fn die_free_at(&self, die: DieId) -> Time {
        self.dies[die.0 as usize].free_at()
    }
    /// What it is made of.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }
    /// How long its parts take.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }
    /// What it has done so far.
    pub fn counters(&self) -> &ArrayCounters {
        &self.counters
    }

    fn read(&mut self, now: Time, page: PageAddress, bytes: Bytes, retries: u32, purpose: Purpose) -> Booked {
        let die_id = self.geometry.die_of(page.block);
        let sense = self.timing.of_page(page.page).read;
        let transfer = self.transfer(bytes);
        let suspension = self.timing.suspension;
        let die = &mut self.dies[die_id.0 as usize];
        let place = die.place_read(now, suspension);
        let start = die.start_at(now, place, suspension);
        let mut collection_wait = die.collection_between(now, start, place);
        let channel_id = self.geometry.channel_of(die_id);
        let channel = &mut self.channels[channel_id as usize];
        let mut end = start;
        for _ in 0..=retries {
            let (sent, behind_collection) = channel.book(now, end + sense, transfer, purpose);
            collection_wait += behind_collection;
            end = sent + transfer;
        }
        let slot = Slot::read(start, end, purpose);
        let (sequence, interrupted) = die.insert(place, slot, suspension);
        if let Some(interrupted) = interrupted {
            self.counters.interruptions += 1;
            self.counters.dies[die_id.0 as usize].add(interrupted, die::overhead(suspension) * 2);
        }
        let rounds = u64::from(retries) + 1;
        self.counters.reads += 1;
        self.counters.retries += u64::from(retries);
        self.counters.channels[channel_id as usize].add(purpose, transfer * rounds);
        self.counters.dies[die_id.0 as usize].add(purpose, end - start);
        Booked::of(now, end, collection_wait, (sense + transfer) * rounds, Ticket { die: die_id, sequence })
    }
    fn transfer(&mut self, bytes: Bytes) -> Span {
        if self.read_transfer.0 != bytes {
            self.read_transfer = (bytes, self.timing.transfer(bytes));
        }
        self.read_transfer.1
    }
    fn program(&mut self, now: Time, page: PageAddress, purpose: Purpose) -> Booked {
        let die_id = self.geometry.die_of(page.block);
        let array_time = self.timing.of_page(page.page).program;
        let die = &mut self.dies[die_id.0 as usize];
        let start = die.append_at(now);
        let behind_die = die.collection_queued(now);
        let channel_id = self.geometry.channel_of(die_id);
        let channel = &mut self.channels[channel_id as usize];
        let (sent, behind_channel) = channel.book(now, start, self.page_transfer, purpose);
        let work = sent + self.page_transfer;
        let end = work + array_time;
        let sequence = die.append(Slot::modify(start, work, end, purpose, self.timing.suspension));
        self.counters.programs += 1;
        self.counters.channels[channel_id as usize].add(purpose, self.page_transfer);
        self.counters.dies[die_id.0 as usize].add(purpose, end - start);
        let ticket = Ticket { die: die_id, sequence };
        Booked::of(now, end, behind_die + behind_channel, self.page_transfer + array_time, ticket)
    }
    fn erase(&mut self, now: Time, block: BlockId, purpose: Purpose) -> Booked {
        let die_id = self.geometry.die_of(block);
        let die = &mut self.dies[die_id.0 as usize];
        let start = die.append_at(now);
        let behind_die = die.collection_queued(now);
        let end = start + self.timing.erase;
        let sequence = die.append(Slot::modify(start, start, end, purpose, self.timing.suspension));
        self.counters.erases += 1;
        self.counters.dies[die_id.0 as usize].add(purpose, self.timing.erase);
        Booked::of(now, end, behind_die, self.timing.erase, Ticket { die: die_id, sequence })
    }
}

impl Booked {
    /// What needs no flash and takes `service` alone: an answer from the controller's memory.
    pub fn without_flash(now: Time, service: Span) -> Booked {
        Booked { end: now + service, wait: Span::ZERO, collection_wait: Span::ZERO, service, ticket: None }
    }
    /// All of its time.
    pub fn total(&self) -> Span {
        self.wait + self.collection_wait + self.service
    }

    /// What is neither service nor behind collection was waiting behind requests.
    fn of(now: Time, end: Time, collection_wait: Span, service: Span, ticket: Ticket) -> Booked {
        let wait = (end - now) - service - collection_wait;
        Booked { end, wait, collection_wait, service, ticket: Some(ticket) }
    }
}

impl Busy {
    /// For both.
    pub fn total(&self) -> Span {
        self.host + self.collection
    }

    fn add(&mut self, purpose: Purpose, span: Span) {
        match purpose {
            Purpose::Host => self.host += span,
            Purpose::Collection => self.collection += span,
        }
    }
}
