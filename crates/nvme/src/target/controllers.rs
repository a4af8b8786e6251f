//! All controllers, by their number.

use crate::Nqn;
use crate::target::TargetLimits;
use crate::target::controller::{Controller, Guest};
use base::Time;
use std::collections::BTreeMap;

/// Highest controller id that a subsystem may give (Base 2.0, 3.1.1).
const ID_MAX: u16 = 0xffef;

/// The controllers of all subsystems. A number is reused as late as possible.
#[derive(Debug, Default)]
pub(super) struct Controllers {
    all: BTreeMap<u16, Controller>,
    /// The number that was given last.
    last: u16,
}

impl Controllers {
    /// Gives numbers from `last + 1` on.
    pub(super) fn number_after(&mut self, last: u16) {
        self.last = last.min(ID_MAX);
    }

    /// A controller for `guest` with this number, whose admin queue is the connection `admin`.
    pub(super) fn open(&mut self, id: u16, guest: Guest, admin: u32, limits: &TargetLimits) -> &mut Controller {
        self.all.entry(id).or_insert(Controller::new(id, guest, admin, limits))
    }

    /// The number of the next controller, of those that are `free`.
    pub(super) fn next_id(&mut self, is_free: impl Fn(u16) -> bool) -> Option<u16> {
        let mut ids = (self.last + 1..=ID_MAX).chain(1..=self.last);
        self.last = ids.find(|id| !self.all.contains_key(id) && is_free(*id))?;
        Some(self.last)
    }

    /// Takes out one that has ended.
    pub(super) fn end(&mut self, id: u16) -> Option<Controller> {
        self.all.remove(&id)
    }

    pub(super) fn get(&self, id: u16) -> Option<&Controller> {
        self.all.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: u16) -> Option<&mut Controller> {
        self.all.get_mut(&id)
    }

    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// In the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Controller> {
        self.all.values()
    }

    /// In the order of their numbers.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Controller> {
        self.all.values_mut()
    }

    /// The numbers of those that `is_it`.
    pub(super) fn ids_of(&self, is_it: impl Fn(&Controller) -> bool) -> Vec<u16> {
        self.iter().filter(|known| is_it(known)).map(|known| known.id).collect()
    }

    /// The number of controllers of `host`.
    pub(super) fn count_of(&self, host: &Nqn) -> usize {
        self.iter().filter(|known| known.host == *host).count()
    }

    /// Controllers whose keep-alive timer has expired.
    pub(super) fn expired(&self, now: Time) -> Vec<u16> {
        self.ids_of(|known| known.keep_alive_deadline.is_some_and(|deadline| deadline <= now))
    }

    /// When the next one expires.
    pub(super) fn earliest_deadline(&self) -> Option<Time> {
        self.iter().filter_map(|controller| controller.keep_alive_deadline).min()
    }
}
