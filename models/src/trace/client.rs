//! What a client does in a step, in a few words.

use super::{operation_text, value_text};
use crate::client::{After, PaperPhase, PaperView, Phase, View};
use crate::model::CacheModel;
use crate::scenario::{Operation, SLOTS_MAX, Tearing};
use crate::state::{SlotState, State};

/// The step that led from `before` to `after`.
pub fn tell(model: &CacheModel, before: &State, after: &State, client: usize) -> String {
    let (old, new) = (before.clients[client].phase, after.clients[client].phase);
    let operation = model.operation(before, client);
    let key = operation.key();
    match old {
        Phase::Idle if matches!(operation, Operation::Get(_)) => {
            format!("{}: {}", operation_text(operation), look(model, View::default(), PaperView::default(), new))
        }
        Phase::Idle => format!("sends {}", operation_text(operation)),
        Phase::Paper(phase) => paper(model, phase, new, after, key),
        Phase::Look(view) | Phase::BypassLook { view, .. } => look(model, view, PaperView::default(), new),
        Phase::Wait { slot, .. } | Phase::CheckWait { slot, .. } => format!("sees slot {slot} changed"),
        Phase::Lock { .. } => match new.hold() {
            Some(hold) => format!("locks slot {}", hold.slot),
            None => "cannot lock, looks again".to_owned(),
        },
        Phase::Install { .. } => "writes fingerprint and lease".to_owned(),
        Phase::Check { view, .. } => check(model, view, new),
        Phase::Kill { slot, .. } => format!("frees slot {slot}"),
        Phase::Release { hold, .. } => format!("frees slot {}", hold.slot),
        Phase::Flash { header, .. } | Phase::BypassFlash { header } => flash(before, new, header, key),
        Phase::Value { item, .. } | Phase::BypassValue { item } => value_apart(before, new, item, key),
        Phase::Fill { hold, value, part } if model.scenario.payload_parts > 1 => match part {
            0 => format!("writes key {} into slot {}", super::key_name(key), hold.slot),
            _ => format!("writes value {value} into slot {}", hold.slot),
        },
        Phase::Fill { hold, value, .. } => format!("writes {} into slot {}", value_text(key, value), hold.slot),
        Phase::Publish { hold, .. } if matches!(new, Phase::PublishWrite { .. }) => {
            format!("swap, first half: slot {} as expected", hold.slot)
        }
        Phase::Publish { hold, .. } => match after.memory.slots[hold.slot].word.state {
            SlotState::Valid if before.memory != after.memory => format!("makes slot {} valid", hold.slot),
            _ => format!("has lost slot {}", hold.slot),
        },
        Phase::PublishWrite { .. } => "swap, second half: writes VALID".to_owned(),
        Phase::BypassHeader => format!("reads offset {}", before.memory.header.sequence),
        Phase::Invalidate { slot, .. } => format!("invalidates slot {slot}"),
        Phase::Sent | Phase::Taken | Phase::Unanswered => String::new(),
    }
}

fn flash(before: &State, new: Phase, header: crate::state::Header, key: u8) -> String {
    let record = before.flash[usize::from(header.place)];
    let is_refused = matches!(new, Phase::Check { .. } | Phase::Look(_));
    match is_refused {
        true => format!("reads place {}: another record", header.place),
        false => format!("reads record {}: {}", header.sequence, value_text(key, record.values[usize::from(key)])),
    }
}

fn value_apart(before: &State, new: Phase, item: crate::state::Item, key: u8) -> String {
    match new {
        Phase::Check { .. } | Phase::Look(_) => format!("reads value {}: another's", item.place),
        _ => format!("reads value {}: {}", item.place, value_text(key, before.values[usize::from(item.place)].value)),
    }
}

/// The piece that one view has and the other has not.
fn piece(tearing: Tearing, old: &View, new: &View) -> String {
    if tearing == Tearing::None {
        return "reads block".to_owned();
    }
    for slot in 0..SLOTS_MAX {
        if old.words[slot] != new.words[slot] {
            let what = if tearing == Tearing::Words { "word of slot" } else { "slot" };
            return format!("reads {what} {slot}");
        }
        if let Some(part) = (0..2).find(|part| old.parts[slot][*part] != new.parts[slot][*part]) {
            return format!("reads {} of slot {slot}", if part == 0 { "key" } else { "value" });
        }
    }
    "reads header".to_owned()
}

/// What the last piece of a view must have been.
fn last_piece(model: &CacheModel, old: &View) -> String {
    let slots = 0..model.scenario.slots;
    let is_lacking = |slot: &usize| old.words[*slot].is_none();
    match (model.scenario.tearing, slots.clone().find(is_lacking)) {
        (Tearing::None, _) => "reads block".to_owned(),
        (Tearing::Slots, Some(slot)) => format!("reads slot {slot}"),
        (Tearing::Words, Some(slot)) => format!("reads word of slot {slot}"),
        (Tearing::Words, None) => {
            let lacking = |slot: usize| {
                (0..model.scenario.payload_parts).find(|part| old.parts[slot][*part].is_none()).map(|part| (slot, part))
            };
            match slots.clone().find_map(lacking) {
                Some((slot, 0)) => format!("reads key of slot {slot}"),
                Some((slot, _)) => format!("reads value of slot {slot}"),
                None => "reads header".to_owned(),
            }
        }
        (Tearing::Slots, None) => "reads header".to_owned(),
    }
}

fn look(model: &CacheModel, old: View, old_paper: PaperView, new: Phase) -> String {
    match new {
        Phase::Look(view) | Phase::BypassLook { view, .. } if view != View::default() => {
            piece(model.scenario.tearing, &old, &view)
        }
        Phase::Paper(PaperPhase::Look(view)) if view != PaperView::default() => {
            paper_piece(model, &old_paper, Some(&view))
        }
        Phase::Paper(phase) => format!("{}, {}", paper_piece(model, &old_paper, None), paper_outcome(phase)),
        Phase::Wait { slot, .. } => format!("{}, waits for slot {slot}", last_piece(model, &old)),
        Phase::Lock { .. } => format!("{}, miss", last_piece(model, &old)),
        Phase::BypassHeader => format!("{}, goes past it", last_piece(model, &old)),
        Phase::Idle if model.variant.protocol != crate::variant::Protocol::Ours => paper_piece(model, &old_paper, None),
        _ => last_piece(model, &old),
    }
}

fn check(model: &CacheModel, old: View, new: Phase) -> String {
    let read = match new {
        Phase::Check { view, .. } => return piece(model.scenario.tearing, &old, &view).replacen("reads", "rereads", 1),
        _ => last_piece(model, &old).replacen("reads", "rereads", 1),
    };
    match new {
        Phase::Flash { header, .. } => format!("{read}: offset {}", header.sequence),
        Phase::Look(_) => format!("{read}: own slot lost"),
        Phase::Release { after: After::Restart, .. } => format!("{read}: gives way"),
        Phase::Release { .. } => format!("{read}: hit"),
        Phase::CheckWait { slot, .. } => format!("{read}: waits for slot {slot}"),
        Phase::Kill { slot, .. } => format!("{read}: slot {slot} is nobody's"),
        _ => read,
    }
}

fn paper_piece(model: &CacheModel, old: &PaperView, new: Option<&PaperView>) -> String {
    if model.scenario.tearing == Tearing::None {
        return "reads block".to_owned();
    }
    let is_read = |slot: usize| old.slots[slot].is_none() && new.is_none_or(|view| view.slots[slot].is_some());
    let is_value_read = |slot: usize| old.values[slot].is_none() && new.is_none_or(|view| view.values[slot].is_some());
    match (
        (0..model.scenario.slots).find(|slot| is_read(*slot)),
        (0..model.scenario.slots).find(|slot| is_value_read(*slot)),
    ) {
        (Some(slot), _) if model.scenario.tearing == Tearing::Slots => format!("reads slot {slot}"),
        (Some(slot), _) => format!("reads flags and key of slot {slot}"),
        (None, Some(slot)) => format!("reads value of slot {slot}"),
        (None, None) => "reads header".to_owned(),
    }
}

fn paper_outcome(phase: PaperPhase) -> String {
    match phase {
        PaperPhase::Wait { slot, .. } => format!("waits for slot {slot}"),
        PaperPhase::WaitForVictim => "waits for a slot".to_owned(),
        PaperPhase::Lock { .. } => "miss".to_owned(),
        PaperPhase::Reset { .. } => "gives way".to_owned(),
        PaperPhase::Flash { header, .. } => format!("offset {}", header.sequence),
        _ => "done".to_owned(),
    }
}

fn paper(model: &CacheModel, old: PaperPhase, new: Phase, after: &State, key: u8) -> String {
    match old {
        PaperPhase::Look(view) => look(model, View::default(), view, new),
        PaperPhase::Wait { slot, .. } => format!("sees slot {slot} changed"),
        PaperPhase::WaitForVictim => "sees a slot to lock".to_owned(),
        PaperPhase::Lock { .. } => match new {
            Phase::Paper(PaperPhase::Mark { slot, .. }) => format!("locks slot {slot}: complete=0"),
            _ => "cannot lock, looks again".to_owned(),
        },
        PaperPhase::Mark { slot, .. } => format!("writes key into slot {slot}, occupied=1"),
        PaperPhase::Check { view, .. } => match new {
            Phase::Paper(PaperPhase::Check { view: new, .. }) => {
                paper_piece(model, &view, Some(&new)).replacen("reads", "rereads", 1)
            }
            Phase::Paper(phase) => {
                format!("{}: {}", paper_piece(model, &view, None).replacen("reads", "rereads", 1), paper_outcome(phase))
            }
            _ => String::new(),
        },
        PaperPhase::Reset { slot } => format!("frees slot {slot}"),
        PaperPhase::Flash { header, .. } => match new {
            Phase::Paper(PaperPhase::Fill { value, .. }) => {
                format!("reads record {}: {}", header.sequence, value_text(key, value))
            }
            _ => String::new(),
        },
        PaperPhase::Fill { slot, value } => format!("writes value {value} into slot {slot}"),
        PaperPhase::Complete { slot, .. } => format!("complete=1 in slot {slot}"),
        PaperPhase::InvalidateLook { view, .. } => match new {
            Phase::Paper(PaperPhase::InvalidateLook { view: new, .. }) => paper_piece(model, &view, Some(&new)),
            _ => paper_piece(model, &view, None),
        },
        PaperPhase::Invalidate { slots, .. } => {
            let slot = slots.iter().position(|it| *it).unwrap_or(after.memory.paper.len());
            format!("occupied=0 in slot {slot}")
        }
    }
}
