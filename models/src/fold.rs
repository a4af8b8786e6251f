//! Equivalence of states: states with the same possible futures count as one.
//!
//! A state contains irrelevant details. Versions of a slot never recur, so a word that was read is
//! either unchanged or gone forever, and a payload either has a version that a client may accept or
//! is damaged: the version itself does not matter. Records without a pointer are irrelevant. So is
//! the identity of a client, apart from its remaining work. The key of a state has only the rest;
//! equal keys mean equal futures (`tests/reduction.rs` checks every pair of states of the small
//! scenarios). Variants whose versions recur, or whose readers ignore versions, keep the whole
//! state as their key.

mod flash;
#[cfg(test)]
mod tests;
mod view;

use crate::client::{After, Hold, Phase};
use crate::judge::Answer;
use crate::model::CacheModel;
use crate::scenario::{CLIENTS_MAX, Operation};
use crate::state::{Part, State, Version, Word};
use crate::variant::{Flaw, Protocol};
use flash::Places;
use std::hash::{Hash, Hasher};

/// The flaws under which a word or a payload of an old version may count again.
const UNVERSIONED: [Flaw; 7] = [
    Flaw::PlainPayload,
    Flaw::PlainWord,
    Flaw::LockThenInstall,
    Flaw::VersionsBeginAgain,
    Flaw::RecoversSlotsFirst,
    Flaw::PlainStores,
    Flaw::VersionsWrap,
];

/// Folds the states of one model.
#[derive(Clone, Debug)]
pub struct Folding {
    /// What runs, in what.
    pub model: CacheModel,
    /// By client and operations done: a number for what is yet to do, the same for the same.
    rests: Vec<Vec<u8>>,
    /// A version that is gone never recurs, and every client checks versions.
    pub is_versioned: bool,
}

impl Folding {
    /// Of that model.
    pub fn new(model: CacheModel) -> Folding {
        let mut known: Vec<&[Operation]> = Vec::new();
        let mut number = |rest| {
            known.iter().position(|it| *it == rest).unwrap_or_else(|| {
                known.push(rest);
                known.len() - 1
            }) as u8
        };
        let programs = model.scenario.programs.iter();
        let rests =
            programs.map(|program| (0..=program.len()).map(|done| number(&program[done..])).collect()).collect();
        let is_ours = model.variant.protocol == Protocol::Ours;
        let is_versioned = is_ours && !UNVERSIONED.iter().any(|flaw| model.variant.has(*flaw));
        Folding { rests, is_versioned, model }
    }

    /// Returns whether anybody can still be led to a record there.
    pub fn leads_to(&self, state: &State, place: u8) -> bool {
        !self.is_versioned || Places::new(self, state).has_record(place)
    }

    /// Returns whether anybody can still be led to a value there.
    pub fn leads_to_value(&self, state: &State, place: u8) -> bool {
        !self.is_versioned || Places::new(self, state).has_value(place)
    }

    /// The key of a state.
    pub fn key(&self, state: &State) -> Vec<u8> {
        let mut out = Bytes(Vec::with_capacity(160));
        if !self.is_versioned {
            state.hash(&mut out);
            return out.0;
        }
        let fold = Fold { folding: self, state, places: Places::new(self, state), old: Vec::new() };
        Fold { old: fold.old_versions(), ..fold }.write(&mut out.0);
        out.0
    }
}

/// Takes what would be hashed as it is.
struct Bytes(Vec<u8>);

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
    fn finish(&self) -> u64 {
        0
    }
}

/// A state that is being folded.
struct Fold<'a> {
    folding: &'a Folding,
    state: &'a State,
    places: Places,
    /// By slot, in order: versions of valid words that are gone, but whose payload somebody is yet
    /// to read.
    old: Vec<Vec<Version>>,
}

impl Fold<'_> {
    fn model(&self) -> &CacheModel {
        &self.folding.model
    }

    fn write(&self, out: &mut Vec<u8>) {
        let state = self.state;
        let budget = state.budget;
        out.extend([budget.lapses, budget.deaths, budget.crashes, budget.overwrites, budget.moves, state.given_way]);
        out.push(state.fault.map_or(0, |fault| 1 + fault as u8));
        out.push(state.server.recovering.map_or(0, |step| 1 + step as u8));
        (0..state.memory.slots.len()).for_each(|slot| self.slot(slot, out));
        self.places.write(self.model(), state, out);
        let clients: Vec<Vec<u8>> = (0..state.clients.len()).map(|client| self.client(client)).collect();
        let mut sorted: Vec<usize> = (0..clients.len()).collect();
        sorted.sort_by(|one, other| clients[*one].cmp(&clients[*other]));
        sorted.iter().for_each(|client| {
            out.push(clients[*client].len() as u8);
            out.extend(&clients[*client]);
        });
        // Among equal clients, the order that reads first.
        let orders = orders(&sorted, &|one, other| clients[one] == clients[other]);
        out.extend(orders.iter().map(|order| self.of_clients(order)).min().unwrap_or_default());
    }

    fn slot(&self, slot: usize, out: &mut Vec<u8>) {
        let it = &self.state.memory.slots[slot];
        out.extend([it.word.state as u8, it.word.fingerprint, u8::from(it.is_lapsed)]);
        it.payload.iter().take(self.model().scenario.payload_parts).for_each(|part| self.part(slot, part, out));
    }

    /// A part of a payload, as far as anybody may yet take it for whole.
    fn part(&self, slot: usize, part: &Part, out: &mut Vec<u8>) {
        let old = self.old.get(slot).and_then(|old| old.binary_search(&part.version).ok());
        match old {
            _ if self.is_current(slot, part) => out.extend([1, part.key, part.value]),
            Some(old) => out.extend([2 + old as u8, part.key, part.value]),
            None => out.push(0),
        }
    }

    fn is_current(&self, slot: usize, part: &Part) -> bool {
        let word = self.word(slot);
        word.state != crate::state::SlotState::Free && part.version == word.version
    }

    fn word(&self, slot: usize) -> Word {
        self.state.memory.slots[slot].word
    }

    /// Returns whether the slot still has the word.
    fn has(&self, slot: usize, word: Word) -> bool {
        self.word(slot) == word
    }

    fn client(&self, client: usize) -> Vec<u8> {
        let it = &self.state.clients[client];
        if self.model().is_finished(self.state, client) && !matches!(it.phase, Phase::Sent | Phase::Taken) {
            return vec![u8::MAX];
        }
        let mut out = vec![self.folding.rests[client][usize::from(it.done)]];
        out.push(u8::from(it.is_answered) | u8::from(it.is_dead) << 1);
        self.phase(client, it.phase, &mut out);
        out
    }

    fn phase(&self, client: usize, phase: Phase, out: &mut Vec<u8>) {
        match phase {
            Phase::Idle => out.push(0),
            Phase::Look(view) => {
                out.push(1);
                self.view(client, &view, None, out);
            }
            Phase::Wait { slot, word } => out.extend([2, slot as u8, self.has(slot, word).into()]),
            Phase::Lock { candidates, first } => {
                out.push(3);
                let seen = candidates.iter().enumerate();
                out.extend(seen.map(|(slot, word)| word.map_or(0, |word| 1 + u8::from(self.has(slot, word)))));
                self.first(first, out);
            }
            Phase::BypassHeader => out.push(12),
            Phase::BypassLook { header, view } => {
                out.push(13);
                out.extend(self.places.of(header));
                self.view(client, &view, None, out);
            }
            Phase::BypassFlash { header } => out.extend([&[14], &self.places.of(header)[..]].concat()),
            Phase::BypassValue { item } => out.extend([&[15], &self.places.of_value(item)[..]].concat()),
            Phase::Sent => out.push(16),
            Phase::Taken => out.push(17),
            Phase::Invalidate { slot, answer } => out.extend([18, slot as u8, self::answer(Some(answer))]),
            Phase::Paper(_) | Phase::Unanswered | Phase::Install { .. } | Phase::PublishWrite { .. } => out.push(19),
            _ => self.holding(client, phase, out),
        }
    }

    /// Phases in which the client has locked a slot.
    fn holding(&self, client: usize, phase: Phase, out: &mut Vec<u8>) {
        let hold = phase.hold().expect("all others are told apart before");
        out.extend([phase_number(&phase), hold.slot as u8, self.has(hold.slot, hold.word).into()]);
        self.first(hold.first, out);
        match phase {
            Phase::Check { view, .. } => self.view(client, &view, Some(hold), out),
            Phase::CheckWait { slot, word, .. } | Phase::Kill { slot, word, .. } => {
                out.extend([slot as u8, self.has(slot, word).into()])
            }
            Phase::Release { after, .. } => match after {
                After::Restart => out.push(0),
                After::Answer(value) => out.extend([1, value]),
            },
            Phase::Flash { header, .. } => out.extend(self.places.of(header)),
            Phase::Value { item, .. } => out.extend(self.places.of_value(item)),
            Phase::Fill { value, part, .. } => out.extend([self.kept(client, hold, value), part as u8]),
            Phase::Publish { value, .. } => out.push(self.kept(client, hold, value)),
            _ => {}
        }
    }

    /// The payload of a client that has lost its slot and has answered is damaged, whatever its
    /// content.
    fn kept(&self, client: usize, hold: Hold, value: u8) -> u8 {
        let is_lost = self.state.clients[client].is_answered && !self.has(hold.slot, hold.word);
        if is_lost { 0 } else { value }
    }

    /// The header of the first read matters for H1 alone.
    fn first(&self, first: crate::state::Header, out: &mut Vec<u8>) {
        if self.model().variant.has(Flaw::OffsetOfFirstRead) {
            out.extend(self.places.of(first));
        }
    }

    /// What is known of clients by number: batches, and what each key may hold.
    fn of_clients(&self, order: &[usize]) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        let mut lanes: Vec<Vec<u8>> =
            self.state.server.lanes.iter().flatten().map(|it| self.batch(it, order)).collect();
        lanes.sort();
        out.push(lanes.len() as u8);
        out.extend(lanes.concat());
        let is_over = |client: usize| self.model().is_finished(self.state, client);
        for judge in &self.state.judges {
            judge.write(order, &is_over, &mut out);
        }
        out
    }

    fn batch(&self, batch: &crate::server::Batch, order: &[usize]) -> Vec<u8> {
        let mut out: Vec<u8> = order.iter().map(|client| answer(batch.answers[*client])).collect();
        out.extend(batch.keys.map(u8::from));
        out.extend(self.places.of(batch.header));
        out.extend(match batch.stage {
            crate::server::Stage::Flush => [0, 0],
            crate::server::Stage::Store => [1, 0],
            crate::server::Stage::Invalidate { slot, found } => [2 + slot as u8, found.into()],
            crate::server::Stage::Acknowledge => [u8::MAX, 0],
        });
        out
    }
}

fn phase_number(phase: &Phase) -> u8 {
    match phase {
        Phase::Check { .. } => 4,
        Phase::CheckWait { .. } => 5,
        Phase::Kill { .. } => 6,
        Phase::Release { .. } => 7,
        Phase::Flash { .. } => 8,
        Phase::Value { .. } => 9,
        Phase::Fill { .. } => 10,
        _ => 11,
    }
}

/// An answer, or none, as one byte.
pub fn answer(answer: Option<Answer>) -> u8 {
    match answer {
        None => 0,
        Some(Answer::Done) => 1,
        Some(Answer::Deleted(found)) => 2 + u8::from(found),
        Some(Answer::Swapped(done)) => 4 + u8::from(done),
        Some(Answer::Value(value)) => 6 + value,
    }
}

/// All orders that differ from `sorted` among equals alone.
fn orders(sorted: &[usize], is_equal: &dyn Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let Some((first, rest)) = sorted.split_first() else { return vec![Vec::new()] };
    let equals = 1 + rest.iter().take_while(|other| is_equal(*first, **other)).count();
    (0..equals.min(CLIENTS_MAX))
        .flat_map(|chosen| {
            let mut left = sorted.to_vec();
            let head = left.remove(chosen);
            orders(&left, is_equal).into_iter().map(move |tail| [vec![head], tail].concat())
        })
        .collect()
}
