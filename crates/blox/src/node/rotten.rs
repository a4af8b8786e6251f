//! Pages whose data on flash are not those that were written: what scrubs and reads find, and who
//! hears of it.

use super::StorageNode;
use super::interface::{DeviceJob, NodeOut};
use super::serving::Read;
use super::timers::Alarm;
use super::vssd::Purpose;
use crate::hermes::Ticket;
use crate::id::{Page, Value};
use base::{Span, Time};

impl StorageNode {
    /// The device has no sound copy of a page that it was to read.
    pub(super) fn on_read_rotten(&mut self, now: Time, name: DeviceJob, named: Option<Value>, out: &mut Vec<NodeOut>) {
        let Some((index, page, purpose)) = self.take_back(name, |purpose| purpose != Purpose::Flush) else { return };
        self.complete(now, name.slot as usize);
        match purpose {
            Purpose::Read(request) => self.on_fetched(now, request, Err(named), out),
            Purpose::Scrub => {
                self.scrubbed();
                // What is in memory is on its way to the flash.
                if self.held(index, page).is_none() {
                    self.meet_rot(now, index, page, named, None, out);
                }
            }
            _ => self.on_loaded(now, index, page, Err(named), out),
        }
        self.settle(now, index, out);
    }

    /// A page is rotten here, and perhaps somebody waits to read it.
    pub(super) fn meet_rot(
        &mut self,
        now: Time,
        index: usize,
        page: Page,
        named: Option<Value>,
        reader: Option<Ticket>,
        out: &mut Vec<NodeOut>,
    ) {
        let is_new = self.vssds[index].replica.rotten(now, page, named, reader, &mut self.replica_out);
        self.counters.pages_rotten += u64::from(is_new);
        self.carry_out(now, index, Span::ZERO, out);
    }

    /// A page for another replica has been read, here or in memory.
    pub(super) fn loaded(&mut self, now: Time, index: usize, page: Page, read: Read) {
        let replica = &mut self.vssds[index].replica;
        let named = match read {
            Ok(value) if value != Value::ROTTEN => return replica.loaded(page, value, &mut self.replica_out),
            Ok(_) => None,
            Err(named) => named,
        };
        let is_new = replica.load_rotten(now, page, named, &mut self.replica_out);
        self.counters.pages_rotten += u64::from(is_new);
    }

    /// A round of scrubbing begins.
    pub(super) fn begin_scrub(&mut self, now: Time) {
        let pages = self.pages();
        if let Some(scrub) = &mut self.scrub {
            scrub.begin(now, pages, self.life);
        }
        self.arm_scrub();
    }

    /// Has the device read the page whose turn it is.
    pub(super) fn wake_scrub(&mut self, now: Time, out: &mut Vec<NodeOut>) {
        let pages = self.pages();
        while let Some(place) = self.scrub.as_mut().and_then(|scrub| scrub.take(now, pages)) {
            match self.page_at(place) {
                Some((index, page)) if self.held(index, page).is_none() => {
                    self.enqueue(now, index, Purpose::Scrub, page, (now, Span::ZERO));
                    self.settle(now, index, out);
                }
                _ => self.scrubbed(),
            }
        }
        self.arm_scrub();
    }

    /// The page whose turn it was has been read, or is in memory.
    pub(super) fn scrubbed(&mut self) {
        self.counters.pages_scrubbed += 1;
        self.scrub.iter_mut().for_each(crate::scrub::Scrub::answered);
        self.arm_scrub();
    }

    fn arm_scrub(&mut self) {
        if let Some(due) = self.scrub.as_ref().and_then(crate::scrub::Scrub::next_due) {
            self.timers.ring_by(Alarm::Scrub, due);
        }
    }

    fn pages(&self) -> u64 {
        self.vssds.iter().map(|vssd| vssd.config.pages).sum()
    }

    /// The page at a place in the row of all vSSDs' pages. New vSSDs join at its end.
    fn page_at(&self, mut place: u64) -> Option<(usize, Page)> {
        for (index, vssd) in self.vssds.iter().enumerate() {
            if place < vssd.config.pages {
                return Some((index, Page(place)));
            }
            place -= vssd.config.pages;
        }
        None
    }
}
