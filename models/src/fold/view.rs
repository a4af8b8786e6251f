//! What a client has read of the block, as far as it still matters to it.

use super::Fold;
use crate::client::{Hold, Phase, View};
use crate::state::{Part, SlotState, Version, Word};

impl Fold<'_> {
    /// By slot: versions of valid words that are gone, but whose payload somebody is yet to read.
    pub(super) fn old_versions(&self) -> Vec<Vec<Version>> {
        let mut old = vec![Vec::new(); self.state.memory.slots.len()];
        for (client, it) in self.state.clients.iter().enumerate() {
            let (view, own) = match it.phase {
                Phase::Look(view) | Phase::BypassLook { view, .. } => (view, None),
                Phase::Check { view, hold } => (view, Some(hold.slot)),
                _ => continue,
            };
            for (slot, old) in old.iter_mut().enumerate().filter(|(slot, _)| Some(*slot) != own) {
                old.extend(view.words[slot].and_then(|(word, _)| self.is_old(client, slot, word, &view)));
            }
        }
        old.iter_mut().for_each(|versions| {
            versions.sort_unstable();
            versions.dedup();
        });
        old
    }

    fn is_old(&self, client: usize, slot: usize, word: Word, view: &View) -> Option<Version> {
        let is_of_use = self.is_valid(client, word) && !self.has(slot, word);
        let parts = self.parts(slot, view);
        let is_open = parts.contains(&None) && parts.iter().flatten().all(|part| part.version == word.version);
        (is_of_use && is_open).then_some(word.version)
    }

    fn is_of_key(&self, client: usize, word: Word) -> bool {
        let key = self.model().operation(self.state, client).key();
        word.state != SlotState::Free && word.fingerprint == self.model().fingerprint(key)
    }

    fn is_valid(&self, client: usize, word: Word) -> bool {
        word.state == SlotState::Valid && self.is_of_key(client, word)
    }

    fn parts(&self, slot: usize, view: &View) -> Vec<Option<Part>> {
        view.parts[slot][..self.model().scenario.payload_parts].to_vec()
    }

    /// A view; `hold` is the slot that its reader has locked.
    pub(super) fn view(&self, client: usize, view: &View, hold: Option<Hold>, out: &mut Vec<u8>) {
        out.extend(view.header.map_or([u8::MAX; 2], |header| self.places.of(header)));
        for slot in 0..self.state.memory.slots.len() {
            match (hold.filter(|hold| hold.slot == slot), view.words[slot]) {
                (Some(hold), word) => out.push(word.map_or(0, |(word, _)| 1 + u8::from(word == hold.word))),
                (None, None) => self.unlabelled(slot, view, out),
                (None, Some(word)) => self.seen(client, slot, view, word, hold.is_none(), out),
            }
        }
    }

    /// Parts that were read before their word: of use if the word that is read later may be of
    /// their version.
    fn unlabelled(&self, slot: usize, view: &View, out: &mut Vec<u8>) {
        out.push(0);
        for part in self.parts(slot, view) {
            match part {
                None => out.push(0),
                Some(part) if self.is_current(slot, &part) => out.extend([1, part.key, part.value]),
                Some(_) => out.push(2),
            }
        }
    }

    fn seen(
        &self,
        client: usize,
        slot: usize,
        view: &View,
        (word, is_lapsed): (Word, bool),
        locks_next: bool,
        out: &mut Vec<u8>,
    ) {
        let is_there = u8::from(self.has(slot, word));
        if self.is_valid(client, word) {
            return self.seen_valid(client, slot, view, word, locks_next, out);
        }
        if self.is_of_key(client, word) {
            out.extend([2, is_lapsed.into(), is_there]);
        } else {
            self.seen_other(word, is_lapsed, is_there, locks_next, out);
        }
        out.extend(self.parts(slot, view).iter().map(|part| u8::from(part.is_some())));
    }

    /// Not of the key: whether the next locking client can lock it.
    fn seen_other(&self, word: Word, is_lapsed: bool, is_there: u8, locks_next: bool, out: &mut Vec<u8>) {
        match locks_next && (word.state != SlotState::Fill || is_lapsed) {
            true => out.extend([1, 1, is_there]),
            false => out.extend([1, 0]),
        }
    }

    fn seen_valid(&self, client: usize, slot: usize, view: &View, word: Word, locks_next: bool, out: &mut Vec<u8>) {
        let is_there = u8::from(self.has(slot, word));
        let parts = self.parts(slot, view);
        let is_bad = |part: &Part| part.version != word.version;
        if parts.iter().flatten().any(is_bad) {
            out.extend([3, is_there]);
            return out.extend(parts.iter().map(|part| u8::from(part.is_some())));
        }
        let key = self.model().operation(self.state, client).key();
        if let (false, Some(Some(first))) = (parts.contains(&None), parts.first()) {
            // All is read: a hit, or another key with the same fingerprint.
            return match first.key == key {
                true => out.extend([4, first.value]),
                false => {
                    self.seen_other(word, false, is_there, locks_next, out);
                    out.extend(parts.iter().map(|_| 1));
                }
            };
        }
        let old = self.old.get(slot).and_then(|old| old.binary_search(&word.version).ok());
        out.extend([5, is_there, old.map_or(0, |old| 1 + old as u8)]);
        for part in parts {
            out.extend(part.map_or([0, 0, 0], |part| [1, part.key, part.value]));
        }
    }
}
