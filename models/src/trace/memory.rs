//! What the block holds, a cell a slot and one for the offset.

use super::{client_name, key_name, value_text};
use crate::model::CacheModel;
use crate::scenario::KEYS_MAX;
use crate::state::{Lease, PaperSlot, Part, Slot, SlotState, State, Version};

/// The names of the cells.
pub fn header(state: &State) -> Vec<String> {
    let slots = state.memory.slots.len() + state.memory.paper.len();
    (0..slots).map(|slot| format!("slot {slot}")).chain(["offset".to_owned()]).collect()
}

/// The cells.
pub fn cells(model: &CacheModel, state: &State) -> Vec<String> {
    let ours = state.memory.slots.iter().map(|slot| slot_text(model, slot));
    let papers = state.memory.paper.iter().map(paper_text);
    ours.chain(papers).chain([offset_text(state)]).collect()
}

fn offset_text(state: &State) -> String {
    let header = state.memory.header;
    let record = state.flash[usize::from(header.place)];
    let is_written = |key: &usize| record.values[*key] != 0;
    let values: Vec<String> =
        (0..KEYS_MAX).filter(is_written).map(|key| value_text(key as u8, record.values[key])).collect();
    let values = if values.is_empty() { "nothing".to_owned() } else { values.join(" ") };
    format!("{}: {values}", header.sequence)
}

fn slot_text(model: &CacheModel, slot: &Slot) -> String {
    let word = slot.word;
    let version = version_text(word.version);
    let key = (0..KEYS_MAX as u8).find(|key| model.fingerprint(*key) == word.fingerprint).map_or('?', key_name);
    match word.state {
        SlotState::Free => format!("free {version}"),
        SlotState::Fill => {
            let owner = client_name(usize::from(word.owner.saturating_sub(1)));
            let lease = if slot.is_lapsed { ", lapsed" } else { "" };
            format!("FILL {key} by {owner} {version}{lease}")
        }
        SlotState::Valid => format!("VALID {key} {version}: {}", payload_text(slot.payload)),
    }
}

fn version_text(version: Version) -> String {
    match version.epoch {
        0 => format!("v{}", version.count),
        epoch => format!("v{epoch}.{}", version.count),
    }
}

fn payload_text([first, last]: [Part; 2]) -> String {
    match first == last {
        true => format!("{} v{}", value_text(first.key, first.value), first.version.count),
        false => format!("{}|{}", key_name(first.key), last.value),
    }
}

/// The paper's states by their letters.
fn paper_text(slot: &PaperSlot) -> String {
    let key = slot.key.map_or(String::new(), |key| format!(" {}", key_name(key)));
    let lease = if slot.lease == Lease::Over { ", lapsed" } else { "" };
    match (slot.occupied, slot.complete) {
        (false, true) => "A".to_owned(),
        (true, false) => format!("B{key}{lease}"),
        (true, true) => format!("C {}", slot.key.map_or("?".to_owned(), |key| value_text(key, slot.value))),
        (false, false) => format!("D{key}{lease}"),
    }
}
