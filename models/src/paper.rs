//! The paper's client, after its section 5.2. Where the text is silent the kindest reading is
//! taken.

use crate::client::{PaperPhase, PaperView, Phase, Piece};
use crate::judge::Answer;
use crate::model::CacheModel;
use crate::scenario::{SLOTS_MAX, Tearing, Value};
use crate::state::{Header, Lease, PaperSlot, State};
use crate::variant::{Flaw, Protocol};

impl CacheModel {
    fn paper_pieces(&self, view: &PaperView) -> Vec<Piece> {
        let slots = 0..self.scenario.slots;
        let mut pieces: Vec<Piece> = match self.scenario.tearing {
            Tearing::None => vec![Piece::Block],
            Tearing::Slots => slots.map(Piece::Slot).chain([Piece::Header]).collect(),
            Tearing::Words => {
                slots.flat_map(|slot| [Piece::Word(slot), Piece::Part(slot, 0)]).chain([Piece::Header]).collect()
            }
        };
        pieces.retain(|piece| view.lacks(*piece));
        pieces
    }

    fn has_lease(&self) -> bool {
        self.variant.protocol == Protocol::Paper { has_lease: true }
    }

    fn is_lockable(slot: &PaperSlot) -> bool {
        slot.complete || slot.lease == Lease::Over
    }

    /// In how many ways the client can go on; 0 if it waits.
    pub fn paper_choices(&self, state: &State, phase: PaperPhase) -> usize {
        match phase {
            PaperPhase::Look(view) | PaperPhase::Check { view, .. } | PaperPhase::InvalidateLook { view, .. } => {
                self.paper_pieces(&view).len()
            }
            PaperPhase::Wait { slot, seen } => {
                let now = state.memory.paper[slot];
                usize::from(
                    (now.occupied, now.complete, now.key, now.lease)
                        != (seen.occupied, seen.complete, seen.key, seen.lease),
                )
            }
            PaperPhase::WaitForVictim => usize::from(state.memory.paper.iter().any(Self::is_lockable)),
            PaperPhase::Lock { candidates, .. } => candidates.iter().filter(|it| **it).count(),
            _ => 1,
        }
    }

    /// The client's next step.
    pub fn paper_step(&self, state: &mut State, client: usize, phase: PaperPhase, choice: usize) {
        let next = match phase {
            PaperPhase::Look(view) => self.paper_look(state, client, view, choice),
            PaperPhase::Wait { .. } | PaperPhase::WaitForVictim => Some(PaperPhase::Look(PaperView::default())),
            PaperPhase::Lock { candidates, first } => Some(self.paper_lock(state, candidates, first, choice)),
            PaperPhase::Mark { slot, first } => Some(self.paper_mark(state, client, slot, first)),
            PaperPhase::Check { slot, first, view } => Some(self.paper_check(state, client, slot, first, view, choice)),
            PaperPhase::Reset { slot } => Some(self.paper_reset(state, slot)),
            PaperPhase::Flash { slot, header } => Some(self.paper_flash(state, client, slot, header)),
            PaperPhase::Fill { slot, value } => {
                state.memory.paper[slot].value = value;
                Some(PaperPhase::Complete { slot, value })
            }
            PaperPhase::Complete { slot, value } => self.paper_complete(state, client, slot, value),
            PaperPhase::InvalidateLook { view, answer } => {
                self.paper_invalidate_look(state, client, view, answer, choice)
            }
            PaperPhase::Invalidate { slots, answer } => self.paper_invalidate(state, client, slots, answer),
        };
        if let Some(next) = next {
            state.clients[client].phase = Phase::Paper(next);
        }
    }

    fn paper_look(&self, state: &mut State, client: usize, mut view: PaperView, choice: usize) -> Option<PaperPhase> {
        view.read(self.paper_pieces(&view)[choice], &state.memory);
        if !self.paper_pieces(&view).is_empty() {
            return Some(PaperPhase::Look(view));
        }
        let key = self.operation(state, client).key();
        let mut candidates = [false; SLOTS_MAX];
        for (slot, candidate) in candidates.iter_mut().enumerate().take(self.scenario.slots) {
            let seen = view.slot(slot);
            let is_match = view.holds(slot, key);
            if is_match && seen.complete {
                self.finish(
                    state,
                    client,
                    Answer::Value(view.values[slot].expect("a view is judged when it is whole")),
                );
                return None;
            }
            if is_match && seen.lease != Lease::Over {
                return Some(PaperPhase::Wait { slot, seen });
            }
            *candidate = Self::is_lockable(&seen);
        }
        let first = view.header.filter(|_| self.variant.has(Flaw::OffsetOfFirstRead)).unwrap_or_default();
        Some(if candidates.contains(&true) {
            PaperPhase::Lock { candidates, first }
        } else {
            PaperPhase::WaitForVictim
        })
    }

    /// The compare-and-swap sees the flag alone, or an expired timeout.
    fn paper_lock(&self, state: &mut State, candidates: [bool; SLOTS_MAX], first: Header, choice: usize) -> PaperPhase {
        let mut slots = (0..SLOTS_MAX).filter(|slot| candidates[*slot]);
        let slot = slots.nth(choice).expect("as many choices as candidates");
        let target = &mut state.memory.paper[slot];
        if !Self::is_lockable(target) {
            return PaperPhase::Look(PaperView::default());
        }
        target.complete = false;
        target.lease = Lease::None;
        PaperPhase::Mark { slot, first }
    }

    fn paper_mark(&self, state: &mut State, client: usize, slot: usize, first: Header) -> PaperPhase {
        let key = self.operation(state, client).key();
        let target = &mut state.memory.paper[slot];
        target.key = Some(key);
        target.occupied = true;
        target.lease = if self.has_lease() { Lease::Runs } else { Lease::None };
        PaperPhase::Check { slot, first, view: PaperView::default() }
    }

    fn paper_check(
        &self,
        state: &State,
        client: usize,
        slot: usize,
        first: Header,
        mut view: PaperView,
        choice: usize,
    ) -> PaperPhase {
        view.read(self.paper_pieces(&view)[choice], &state.memory);
        if !self.paper_pieces(&view).is_empty() {
            return PaperPhase::Check { slot, first, view };
        }
        let key = self.operation(state, client).key();
        if (0..self.scenario.slots).any(|other| other != slot && view.holds(other, key)) {
            return PaperPhase::Reset { slot };
        }
        let last = view.header.expect("a view is judged when it is whole");
        PaperPhase::Flash { slot, header: if self.variant.has(Flaw::OffsetOfFirstRead) { first } else { last } }
    }

    fn paper_reset(&self, state: &mut State, slot: usize) -> PaperPhase {
        let target = &mut state.memory.paper[slot];
        target.occupied = false;
        target.complete = true;
        target.lease = Lease::None;
        state.given_way += 1;
        PaperPhase::Look(PaperView::default())
    }

    /// Records carry nothing that could be checked.
    fn paper_flash(&self, state: &State, client: usize, slot: usize, header: Header) -> PaperPhase {
        let key = self.operation(state, client).key();
        let value = state.flash[usize::from(header.place)].values[usize::from(key)];
        PaperPhase::Fill { slot, value }
    }

    fn paper_complete(&self, state: &mut State, client: usize, slot: usize, value: Value) -> Option<PaperPhase> {
        state.memory.paper[slot].complete = true;
        state.memory.paper[slot].lease = Lease::None;
        self.finish(state, client, Answer::Value(value));
        None
    }

    fn paper_invalidate_look(
        &self,
        state: &mut State,
        client: usize,
        mut view: PaperView,
        answer: Answer,
        choice: usize,
    ) -> Option<PaperPhase> {
        view.read(self.paper_pieces(&view)[choice], &state.memory);
        if !self.paper_pieces(&view).is_empty() {
            return Some(PaperPhase::InvalidateLook { view, answer });
        }
        let key = self.operation(state, client).key();
        let mut slots = std::array::from_fn(|slot| slot < self.scenario.slots && view.holds(slot, key));
        if self.variant.has(Flaw::FirstMatchAlone) {
            let first = slots.iter().position(|it| *it);
            slots = std::array::from_fn(|slot| Some(slot) == first);
        }
        self.paper_next_invalidation(state, client, slots, answer)
    }

    fn paper_next_invalidation(
        &self,
        state: &mut State,
        client: usize,
        slots: [bool; SLOTS_MAX],
        answer: Answer,
    ) -> Option<PaperPhase> {
        if slots.contains(&true) {
            return Some(PaperPhase::Invalidate { slots, answer });
        }
        self.finish(state, client, answer);
        None
    }

    fn paper_invalidate(
        &self,
        state: &mut State,
        client: usize,
        mut slots: [bool; SLOTS_MAX],
        answer: Answer,
    ) -> Option<PaperPhase> {
        let slot = slots.iter().position(|it| *it).expect("there is a slot to invalidate");
        state.memory.paper[slot].occupied = false;
        slots[slot] = false;
        self.paper_next_invalidation(state, client, slots, answer)
    }

    /// The answer of a slot to a reader of the key at this moment.
    pub fn paper_shown(&self, state: &State, slot: usize, key: u8) -> Option<Value> {
        let slot = state.memory.paper[slot];
        (slot.occupied && slot.complete && slot.key == Some(key)).then_some(slot.value)
    }
}
