//! What is on flash, as far as anybody can still be led to it.

use super::Folding;
use crate::client::Phase;
use crate::model::CacheModel;
use crate::state::{Durability, Header, Item, State};
use crate::variant::Flaw;

/// Places of records and of values that matter, and their numbers.
pub struct Places {
    records: Vec<Option<u8>>,
    values: Vec<Option<u8>>,
}

/// The header that a client has read and may yet follow.
fn followed(phase: &Phase) -> [Option<Header>; 2] {
    match *phase {
        Phase::Flash { header, .. } | Phase::BypassFlash { header } => [Some(header), None],
        Phase::BypassLook { header, view } => [Some(header), view.header],
        Phase::Look(view) | Phase::Check { view, .. } => [view.header, None],
        _ => [None, None],
    }
}

impl Places {
    /// Of a state.
    pub fn new(folding: &Folding, state: &State) -> Places {
        let model = &folding.model;
        let records = needed_records(model, state);
        let values = needed_values(state, &records);
        let keeps_order = model.scenario.budget.overwrites > 0;
        Places { records: numbers(&records, keeps_order), values: numbers(&values, keeps_order) }
    }

    /// Where a header leads, and to which record.
    pub fn of(&self, header: Header) -> [u8; 2] {
        [self.records[usize::from(header.place)].unwrap_or(u8::MAX), header.sequence]
    }

    /// Where an item leads, and to which value.
    pub fn of_value(&self, item: Item) -> [u8; 2] {
        let place = self.values.get(usize::from(item.place)).copied().flatten();
        [place.unwrap_or(u8::MAX), item.sequence]
    }

    /// Returns whether anybody can still be led there.
    pub fn has_record(&self, place: u8) -> bool {
        self.records[usize::from(place)].is_some()
    }

    /// Returns whether anybody can still be led there.
    pub fn has_value(&self, place: u8) -> bool {
        self.values[usize::from(place)].is_some()
    }

    /// All that is there, and where the server is.
    pub fn write(&self, model: &CacheModel, state: &State, out: &mut Vec<u8>) {
        let server = &state.server;
        let can_crash = state.budget.crashes > 0;
        out.extend(self.of(state.memory.header));
        out.push(server.sequence);
        out.extend(server.values);
        if model.scenario.values_apart {
            server.items.iter().for_each(|item| out.extend(self.of_value(*item)));
        }
        let recycles = model.scenario.budget.overwrites > 0;
        for (record, number) in state.flash.iter().zip(&self.records) {
            match number {
                None if recycles => out.push(u8::MAX),
                None => {}
                Some(_) => {
                    out.extend([record.sequence, if can_crash { record.durability as u8 } else { 0 }]);
                    out.extend(record.values);
                    if model.scenario.values_apart {
                        record.items.iter().for_each(|item| out.extend(self.of_value(*item)));
                    }
                }
            }
        }
        out.push(u8::MAX);
        for (value, number) in state.values.iter().zip(&self.values) {
            match number {
                None if recycles => out.push(u8::MAX),
                None => {}
                Some(_) => out.extend([value.sequence, value.value, u8::from(can_crash && value.is_durable)]),
            }
        }
        out.push(u8::MAX);
    }
}

/// Where another block may be written, the first place that is free is taken: then places keep
/// their numbers.
fn numbers(needed: &[bool], keeps_order: bool) -> Vec<Option<u8>> {
    let mut next = 0;
    let number = |needed: &bool| {
        let number = needed.then_some(next);
        next += u8::from(*needed || keeps_order);
        number
    };
    needed.iter().map(number).collect()
}

fn needed_records(model: &CacheModel, state: &State) -> Vec<bool> {
    let current = state.memory.header;
    let in_flight = state.server.lanes.iter().flatten().map(|batch| batch.header);
    let seen = state.clients.iter().flat_map(|client| followed(&client.phase)).flatten();
    let firsts = state.clients.iter().filter_map(|client| match client.phase {
        Phase::Lock { first, .. } => Some(first),
        phase => phase.hold().map(|hold| hold.first),
    });
    let firsts = firsts.filter(|_| model.variant.has(Flaw::OffsetOfFirstRead));
    let mut needed = vec![false; state.flash.len()];
    [current].into_iter().chain(in_flight).chain(seen).chain(firsts).for_each(|header| {
        needed[usize::from(header.place)] = true;
    });
    // Recovery takes the newest that is whole.
    if state.budget.crashes > 0 || state.server.recovering.is_some() {
        let record = state.flash[usize::from(current.place)];
        let is_safe = record.durability == Durability::Durable && record.sequence == current.sequence;
        let oldest = if is_safe { current.sequence } else { 1 };
        state.flash.iter().zip(&mut needed).for_each(|(record, needed)| *needed |= record.sequence >= oldest);
    }
    needed
}

fn needed_values(state: &State, records: &[bool]) -> Vec<bool> {
    let mut needed = vec![false; state.values.len()];
    let listed = state.flash.iter().zip(records).filter(|(_, needed)| **needed).map(|(record, _)| record.items);
    let followed = state.clients.iter().filter_map(|client| match client.phase {
        Phase::Value { item, .. } | Phase::BypassValue { item } => Some(item),
        _ => None,
    });
    for item in listed.flatten().chain(state.server.items).chain(followed) {
        if let Some(needed) = needed.get_mut(usize::from(item.place)) {
            *needed = true;
        }
    }
    needed
}
