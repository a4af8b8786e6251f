//! The model: what can happen next in a state, and what must never be found.

use crate::client::{Client, PaperPhase, PaperView, Phase, Told, View};
use crate::judge::{Answer, Judge};
use crate::scenario::{ABSENT, FOREIGN, KEYS_MAX, Key, Operation, Scenario, Value};
use crate::server::{Order, Server};
use crate::state::{
    Durability, Fault, Header, Item, Lease, Memory, PaperSlot, Part, Record, Slot, SlotState, State, ValueRecord,
    Version, Word,
};
use crate::variant::{Protocol, Variant};
use stateright::{Model, Property};

/// A variant in a scenario.
#[derive(Clone, Debug)]
pub struct CacheModel {
    /// The scenario.
    pub variant: Variant,
    /// What it has to get through.
    pub scenario: Scenario,
}

/// Something that happens at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A client's next remote operation, in one of its ways.
    Client { client: usize, choice: usize },
    /// The server takes these clients' requests as a batch and appends its record.
    Take { order: Order },
    /// A batch continues.
    Advance { lane: usize },
    /// The server answers a read.
    ServeGet { client: usize },
    /// The server's recovery continues.
    Recover { step: usize },
    /// A lease runs out.
    Lapse { slot: usize },
    /// A client dies.
    Death { client: usize },
    /// The server restarts.
    Crash { loses_cached: bool },
    /// Another block's record is written where nothing points to.
    Overwrite { place: u8 },
    /// Another block's value is written where nothing points to.
    OverwriteValue { place: u8 },
    /// The current record moves, with its values.
    Move,
}

impl CacheModel {
    /// What the client does now.
    pub fn operation(&self, state: &State, client: usize) -> Operation {
        self.scenario.programs[client][usize::from(state.clients[client].done)]
    }

    /// Returns whether it sends no more requests.
    pub fn is_finished(&self, state: &State, client: usize) -> bool {
        let it = &state.clients[client];
        it.is_dead || it.phase == Phase::Unanswered || usize::from(it.done) == self.scenario.programs[client].len()
    }

    /// In how many ways a client can begin its next operation.
    pub fn first_choices(&self, state: &State, client: usize) -> usize {
        if self.is_finished(state, client) {
            return 0;
        }
        match self.operation(state, client) {
            Operation::Get(_) => self.choices_in(state, self.first_phase()),
            _ => 1,
        }
    }

    fn first_phase(&self) -> Phase {
        match self.variant.protocol {
            Protocol::Ours => Phase::Look(View::default()),
            Protocol::Paper { .. } => Phase::Paper(PaperPhase::Look(PaperView::default())),
        }
    }

    /// Invokes an operation, and takes its first step.
    pub fn begin(&self, state: &mut State, client: usize, choice: usize) {
        let operation = self.operation(state, client);
        state.judges[usize::from(operation.key())].invoke(client, operation);
        match operation {
            Operation::Get(_) => {
                state.clients[client].phase = self.first_phase();
                self.step(state, client, choice);
            }
            _ => state.clients[client].phase = Phase::Sent,
        }
    }

    /// The client has its answer, and its operation is over.
    pub fn finish(&self, state: &mut State, client: usize, answer: Answer) {
        if !state.clients[client].is_answered {
            self.respond(state, client, answer);
        }
        let it = &mut state.clients[client];
        it.is_answered = false;
        it.phase = Phase::Idle;
        it.done += 1;
        if it.is_dead {
            it.phase = Phase::Unanswered;
        }
    }

    /// The client has its answer, and continues in the background.
    pub fn answer_early(&self, state: &mut State, client: usize, answer: Answer) {
        self.respond(state, client, answer);
        state.clients[client].is_answered = true;
    }

    fn respond(&self, state: &mut State, client: usize, answer: Answer) {
        state.given_way = 0;
        if state.clients[client].is_dead {
            return;
        }
        state.clients[client].told = Told(Some(answer));
        let key = self.operation(state, client).key();
        let judge = &mut state.judges[usize::from(key)];
        let was_deleted = judge.is_deleted();
        if !judge.respond(client, answer) {
            state.fault.get_or_insert(self.name_fault(key, answer, was_deleted));
        }
    }

    fn name_fault(&self, key: Key, answer: Answer, was_deleted: bool) -> Fault {
        match answer {
            Answer::Value(value) if !self.is_value_of(key, value) => Fault::ForeignBytes,
            Answer::Value(_) if was_deleted => Fault::DeletedKeyBack,
            _ => Fault::NotLinearizable,
        }
    }

    fn is_value_of(&self, key: Key, value: Value) -> bool {
        let writes = |operation: &Operation| match *operation {
            Operation::Put(of, new) | Operation::CompareAndSwap { key: of, new, .. } => of == key && new == value,
            _ => false,
        };
        let is_first = self.scenario.initial[usize::from(key)] == value;
        value == 0 || is_first || self.scenario.programs.iter().flatten().any(writes)
    }

    /// Steps of programs, and of leases that nobody lives to keep.
    fn own_steps(&self, state: &State, steps: &mut Vec<Step>) {
        for client in (0..state.clients.len()).filter(|client| !state.clients[*client].is_dead) {
            steps.extend((0..self.choices(state, client)).map(|choice| Step::Client { client, choice }));
        }
        steps.extend(self.next_batches(state).into_iter().map(|order| Step::Take { order }));
        let lanes = state.server.lanes.iter().enumerate().filter(|(_, lane)| lane.is_some());
        steps.extend(lanes.map(|(lane, _)| Step::Advance { lane }));
        steps.extend(self.next_server_gets(state).into_iter().map(|client| Step::ServeGet { client }));
        steps.extend(state.server.recovering.map(|step| Step::Recover { step }));
        let slots = 0..self.scenario.slots;
        steps.extend(
            slots
                .filter(|slot| self.can_lapse(state, *slot) && !self.is_kept(state, *slot))
                .map(|slot| Step::Lapse { slot }),
        );
    }

    fn mishaps(&self, state: &State, steps: &mut Vec<Step>) {
        let budget = state.budget;
        let slots = 0..self.scenario.slots;
        if budget.lapses > 0 {
            steps.extend(
                slots
                    .filter(|slot| self.can_lapse(state, *slot) && self.is_kept(state, *slot))
                    .map(|slot| Step::Lapse { slot }),
            );
        }
        if budget.deaths > 0 {
            let living = (0..state.clients.len()).filter(|client| !self.is_finished(state, *client));
            steps.extend(
                living
                    .filter(|client| state.clients[*client].phase != Phase::Idle)
                    .map(|client| Step::Death { client }),
            );
        }
        if budget.crashes > 0 && state.server.recovering.is_none() {
            steps.extend([true, false].map(|loses_cached| Step::Crash { loses_cached }));
        }
        if budget.overwrites > 0 {
            let is_own = |place: &u8| state.flash[usize::from(*place)].sequence != 0;
            steps.extend(self.garbage(state).into_iter().filter(is_own).map(|place| Step::Overwrite { place }));
            let is_own = |place: &u8| state.values[usize::from(*place)].sequence != 0;
            steps.extend(
                self.garbage_values(state).into_iter().filter(is_own).map(|place| Step::OverwriteValue { place }),
            );
        }
        let is_idle = state.server.lanes.iter().all(Option::is_none) && state.server.recovering.is_none();
        if budget.moves > 0 && is_idle {
            steps.push(Step::Move);
        }
    }

    fn can_lapse(&self, state: &State, slot: usize) -> bool {
        match self.variant.protocol {
            Protocol::Ours => {
                let slot = state.memory.slots[slot];
                slot.word.state == SlotState::Fill && slot.word.is_leased && !slot.is_lapsed
            }
            Protocol::Paper { .. } => state.memory.paper[slot].lease == Lease::Runs,
        }
    }

    /// Returns whether a living client works on the slot.
    fn is_kept(&self, state: &State, slot: usize) -> bool {
        state.clients.iter().filter(|client| !client.is_dead).any(|client| match client.phase {
            Phase::Paper(phase) => phase.holds() == Some(slot),
            phase => phase.hold().is_some_and(|hold| hold.slot == slot && hold.word == state.memory.slots[slot].word),
        })
    }

    fn lapse(&self, state: &mut State, slot: usize) {
        if self.is_kept(state, slot) {
            state.budget.lapses -= 1;
        }
        match self.variant.protocol {
            Protocol::Ours => state.memory.slots[slot].is_lapsed = true,
            Protocol::Paper { .. } => state.memory.paper[slot].lease = Lease::Over,
        }
    }

    fn die(&self, state: &mut State, client: usize) {
        state.budget.deaths -= 1;
        let it = &mut state.clients[client];
        it.is_dead = true;
        // What lies in the server's ring is done all the same.
        if !matches!(it.phase, Phase::Sent | Phase::Taken) {
            it.phase = Phase::Unanswered;
        }
    }

    fn move_record(&self, state: &mut State) {
        state.budget.moves -= 1;
        let mut record = state.flash[usize::from(state.memory.header.place)];
        let values = record
            .items
            .iter_mut()
            .zip(record.values)
            .filter(|(_, value)| self.scenario.values_apart && *value != ABSENT);
        for (item, _) in values {
            state.values.push(state.values[usize::from(item.place)]);
            item.place = (state.values.len() - 1) as u8;
        }
        state.server.items = record.items;
        state.flash.push(record);
        state.memory.header.place = (state.flash.len() - 1) as u8;
    }

    fn take_step(&self, state: &mut State, step: Step) {
        match step {
            Step::Client { client, choice } => self.step(state, client, choice),
            Step::Take { order } => self.take(state, order),
            Step::Advance { lane } => self.advance(state, lane),
            Step::ServeGet { client } => self.serve_get(state, client),
            Step::Recover { step } => self.recover(state, step),
            Step::Lapse { slot } => self.lapse(state, slot),
            Step::Death { client } => self.die(state, client),
            Step::Crash { loses_cached } => {
                state.budget.crashes -= 1;
                self.crash(state, loses_cached);
            }
            Step::Overwrite { place } => {
                state.budget.overwrites -= 1;
                state.flash[usize::from(place)] = Record {
                    sequence: 0,
                    values: [FOREIGN; KEYS_MAX],
                    items: Default::default(),
                    durability: Durability::Durable,
                };
            }
            Step::OverwriteValue { place } => {
                state.budget.overwrites -= 1;
                state.values[usize::from(place)] = ValueRecord { sequence: 0, value: FOREIGN, is_durable: true };
            }
            Step::Move => self.move_record(state),
        }
    }

    /// Number of times that clients may give way without progress: twice for each of two clients
    /// that meet in one of two slots, and as often for any more that can meet anywhere. An endless
    /// sequence exceeds every bound; a bound that is too low would report a crowd as a livelock.
    fn given_way_max(&self) -> u8 {
        let meetings = (self.scenario.programs.len() - 1).max(1) * (self.scenario.slots - 1).max(1);
        4 * meetings as u8
    }

    /// What is wrong with a state in which programs have nothing left to do, or clients only give
    /// way.
    fn audit(&self, state: &State) -> Option<Fault> {
        if state.given_way >= self.given_way_max() {
            return Some(Fault::Livelock);
        }
        let mut steps = Vec::new();
        self.own_steps(state, &mut steps);
        if !steps.is_empty() {
            return None;
        }
        if (0..state.clients.len()).any(|client| !self.is_finished(state, client)) {
            return Some(Fault::WaitsForEver);
        }
        (0..KEYS_MAX as Key).find_map(|key| self.audit_key(state, key))
    }

    fn audit_key(&self, state: &State, key: Key) -> Option<Fault> {
        let judge = &state.judges[usize::from(key)];
        let indexed = state.flash[usize::from(state.memory.header.place)].values[usize::from(key)];
        if !judge.allows(indexed) {
            return Some(if judge.is_deleted() { Fault::DeletedKeyBack } else { Fault::LostWrite });
        }
        let shown = |slot| match self.variant.protocol {
            Protocol::Ours => self.shown(state, slot, key),
            Protocol::Paper { .. } => self.paper_shown(state, slot, key),
        };
        (0..self.scenario.slots).filter_map(shown).any(|value| value != indexed).then_some(Fault::StaleForEver)
    }

    fn first_memory(&self) -> Memory {
        let cached = |slot: usize| self.scenario.cached[slot];
        let value = |key: Key| self.scenario.initial[usize::from(key)];
        let ours = |slot| {
            let Some(key) = cached(slot) else { return Slot::default() };
            let version = Version { epoch: 0, count: 1 };
            let word = Word { state: SlotState::Valid, version, fingerprint: self.fingerprint(key), ..Word::default() };
            Slot { word, is_lapsed: false, payload: [Part { version, key, value: value(key) }; 2] }
        };
        let papers = |slot| PaperSlot {
            occupied: cached(slot).is_some(),
            complete: true,
            key: cached(slot),
            value: cached(slot).map_or(0, value),
            lease: Lease::None,
        };
        let slots = 0..self.scenario.slots;
        let header = Header { epoch: 0, place: 0, sequence: 1 };
        match self.variant.protocol {
            Protocol::Ours => Memory { header, slots: slots.map(ours).collect(), paper: Vec::new() },
            Protocol::Paper { .. } => Memory { header, slots: Vec::new(), paper: slots.map(papers).collect() },
        }
    }
}

impl Model for CacheModel {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let values = self.scenario.initial;
        let items = std::array::from_fn(|key| Item {
            place: if self.scenario.values_apart { key as u8 } else { 0 },
            sequence: 1,
        });
        let apart = |value| ValueRecord { sequence: 1, value, is_durable: true };
        let client = Client { done: 0, phase: Phase::Idle, is_answered: false, is_dead: false, told: Told(None) };
        vec![State {
            memory: self.first_memory(),
            flash: vec![Record { sequence: 1, values, items, durability: Durability::Durable }],
            values: if self.scenario.values_apart { values.map(apart).to_vec() } else { Vec::new() },
            server: Server { lanes: vec![None; self.scenario.batches], sequence: 1, values, items, recovering: None },
            clients: vec![client; self.scenario.programs.len()],
            judges: values.map(Judge::new).to_vec(),
            budget: self.scenario.budget,
            given_way: 0,
            fault: None,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.fault.is_none() {
            self.own_steps(state, steps);
            self.mishaps(state, steps);
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        self.take_step(&mut next, step);
        if next.fault.is_none() {
            next.fault = self.audit(&next);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("linearizable", |_, state: &State| state.fault != Some(Fault::NotLinearizable)),
            Property::always("no foreign bytes", |_, state: &State| state.fault != Some(Fault::ForeignBytes)),
            Property::always("no deleted key back", |_, state: &State| state.fault != Some(Fault::DeletedKeyBack)),
            Property::always("no acknowledged write lost", |_, state: &State| state.fault != Some(Fault::LostWrite)),
            Property::always("nothing stale for ever", |_, state: &State| state.fault != Some(Fault::StaleForEver)),
            Property::always("nobody waits for ever", |_, state: &State| state.fault != Some(Fault::WaitsForEver)),
            Property::always("no livelock", |_, state: &State| state.fault != Some(Fault::Livelock)),
        ]
    }
}
