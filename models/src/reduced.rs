//! The model with fewer states and the same verdict: indistinguishable steps are merged with the
//! next one, and states with the same possible futures count as one ([`crate::fold`]).
//!
//! No flaw is missed, for three reasons. An operation that is invoked later, or answered earlier,
//! than possible has fewer orders that explain it. So the server's clients invoke when the server
//! is free, and an answer is given as soon as it is decided. A step that reads constant data, or
//! that compares with a version that is gone, has the same result at any time. With one batch at a
//! time and no restart ahead, no client sees a record without a pointer, so appending, flushing and
//! storing its offset are one step.

use crate::client::{After, Phase, Piece};
use crate::fold::Folding;
use crate::model::{CacheModel, Step};
use crate::scenario::{Operation, SLOTS_MAX};
use crate::server::{Stage, order_of};
use crate::state::{Durability, Header, Item, State, Word};
use crate::variant::Flaw;
use stateright::{Model, Property};
use std::hash::{Hash, Hasher};

/// A model whose states are folded.
#[derive(Clone, Debug)]
pub struct Reduced {
    folding: Folding,
}

/// A state of which the key alone counts.
#[derive(Clone, Debug)]
pub struct Folded {
    pub state: State,
    key: Vec<u8>,
}

impl PartialEq for Folded {
    fn eq(&self, other: &Folded) -> bool {
        self.key == other.key
    }
}

impl Hash for Folded {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write(&self.key);
    }
}

impl Reduced {
    /// Of that model.
    pub fn new(model: CacheModel) -> Reduced {
        Reduced { folding: Folding::new(model) }
    }

    fn model(&self) -> &CacheModel {
        &self.folding.model
    }

    fn fold(&self, state: State) -> Folded {
        Folded { key: self.folding.key(&state), state }
    }

    /// The step, and those that follow at once, each with the state after it.
    pub fn steps(&self, state: &State, step: Step) -> Vec<(Step, State)> {
        let mut taken = Vec::new();
        let mut next = Some((step, state.clone()));
        while let Some((step, before)) = next {
            let after = self.model().next_state(&before, step).expect("a step that is offered can be taken");
            next = self.forced(&after).map(|step| (step, after.clone()));
            taken.push((step, after));
        }
        taken
    }

    /// A step that may as well be taken at once.
    fn forced(&self, state: &State) -> Option<Step> {
        if state.fault.is_some() {
            return None;
        }
        let lanes = (0..state.server.lanes.len()).filter(|lane| self.is_hidden(state, *lane));
        let of_server = lanes.map(|lane| Step::Advance { lane }).next();
        of_server.or_else(|| (0..state.clients.len()).find_map(|client| self.forced_of_client(state, client)))
    }

    /// Returns whether nobody sees the next step of a batch.
    fn is_hidden(&self, state: &State, lane: usize) -> bool {
        let Some(batch) = &state.server.lanes[lane] else { return false };
        let model = self.model();
        let cannot_crash = state.budget.crashes == 0;
        match batch.stage {
            Stage::Flush => cannot_crash,
            Stage::Store => {
                let is_durable = state.flash[usize::from(batch.header.place)].durability == Durability::Durable;
                let is_alone = model.scenario.batches == 1 && !model.variant.has(Flaw::InvalidatesThenStores);
                is_alone && is_durable
            }
            Stage::Invalidate { .. } => false,
            Stage::Acknowledge => cannot_crash || !model.writer_invalidates(),
        }
    }

    fn forced_of_client(&self, state: &State, client: usize) -> Option<Step> {
        let phase = state.clients[client].phase;
        if phase == Phase::Sent {
            return self.taken_at_once(state, client);
        }
        let is_next = !state.clients[client].is_dead && (self.is_settled(state, phase) || self.is_lost(state, phase));
        (is_next && self.model().choices(state, client) > 0).then_some(Step::Client { client, choice: 0 })
    }

    /// A request that no other can be taken together with, or a read.
    fn taken_at_once(&self, state: &State, client: usize) -> Option<Step> {
        let model = self.model();
        if matches!(model.operation(state, client), Operation::ServerGet(_)) {
            return model.serves_reads(state).then_some(Step::ServeGet { client });
        }
        let is_alone = (0..state.clients.len()).all(|other| other == client || !self.writes_yet(state, other));
        (is_alone && model.free_lane(state).is_some()).then_some(Step::Take { order: order_of(&[client]) })
    }

    fn writes_yet(&self, state: &State, client: usize) -> bool {
        let it = &state.clients[client];
        let is_write = |operation: &Operation| !matches!(operation, Operation::Get(_) | Operation::ServerGet(_));
        it.phase == Phase::Sent || self.model().scenario.programs[client][usize::from(it.done)..].iter().any(is_write)
    }

    /// Returns whether the next read has but one result: what is read can change no more.
    fn is_settled(&self, state: &State, phase: Phase) -> bool {
        match phase {
            Phase::Flash { header, .. } | Phase::BypassFlash { header } => self.is_fixed(state, header),
            Phase::Value { item, .. } | Phase::BypassValue { item } => self.is_fixed_value(state, item),
            _ => false,
        }
    }

    fn is_fixed(&self, state: &State, header: Header) -> bool {
        let record = state.flash[usize::from(header.place)];
        let is_safe = record.durability == Durability::Durable || state.budget.crashes == 0;
        self.model().scenario.budget.overwrites == 0 && record.sequence == header.sequence && is_safe
    }

    fn is_fixed_value(&self, state: &State, item: Item) -> bool {
        let record = state.values[usize::from(item.place)];
        let is_safe = record.is_durable || state.budget.crashes == 0;
        self.model().scenario.budget.overwrites == 0 && record.sequence == item.sequence && is_safe
    }

    /// Returns whether the client compares with a word that is gone for ever, or has seen that it
    /// is.
    fn is_lost(&self, state: &State, phase: Phase) -> bool {
        let is_gone = |slot: usize, word: Word| state.memory.slots[slot].word != word;
        self.folding.is_versioned
            && match phase {
                Phase::Wait { .. } | Phase::CheckWait { .. } => true,
                Phase::Lock { candidates, .. } => {
                    (0..SLOTS_MAX).all(|slot| candidates[slot].is_none_or(|word| is_gone(slot, word)))
                }
                Phase::Kill { slot, word, .. } => is_gone(slot, word),
                Phase::Publish { hold, .. } => is_gone(hold.slot, hold.word),
                Phase::Release { hold, after: After::Answer(_) } => is_gone(hold.slot, hold.word),
                Phase::Check { hold, view } => {
                    let is_unseen = view.lacks(Piece::Word(hold.slot));
                    is_unseen && is_gone(hold.slot, hold.word) && !self.model().variant.has(Flaw::OwnWordUnchecked)
                }
                _ => false,
            }
    }

    /// Returns whether the step is worth taking now.
    fn is_worth(&self, state: &State, step: Step) -> bool {
        match step {
            Step::Client { client, .. } if state.clients[client].phase == Phase::Idle => self.can_begin(state, client),
            Step::Overwrite { place } => self.folding.leads_to(state, place),
            Step::OverwriteValue { place } => self.folding.leads_to_value(state, place),
            _ => true,
        }
    }

    /// The server is called when it can take the call.
    fn can_begin(&self, state: &State, client: usize) -> bool {
        match self.model().operation(state, client) {
            Operation::Get(_) => true,
            Operation::ServerGet(_) => self.model().serves_reads(state),
            _ => self.model().free_lane(state).is_some(),
        }
    }
}

impl Model for Reduced {
    type State = Folded;
    type Action = Step;

    fn init_states(&self) -> Vec<Folded> {
        self.model().init_states().into_iter().map(|state| self.fold(state)).collect()
    }

    fn actions(&self, folded: &Folded, steps: &mut Vec<Step>) {
        self.model().actions(&folded.state, steps);
        steps.retain(|step| self.is_worth(&folded.state, *step));
    }

    fn next_state(&self, folded: &Folded, step: Step) -> Option<Folded> {
        let mut taken = self.steps(&folded.state, step);
        taken.pop().map(|(_, state)| self.fold(state))
    }

    fn properties(&self) -> Vec<Property<Reduced>> {
        vec![Property::always("nothing is wrong", |_, folded: &Folded| folded.state.fault.is_none())]
    }
}
