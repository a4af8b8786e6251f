//! Our client: GET through the cache, step by step.

use crate::client::{After, Hold, Phase, Piece, View};
use crate::judge::Answer;
use crate::model::CacheModel;
use crate::scenario::{ABSENT, Key, SLOTS_MAX, Tearing, Value};
use crate::state::{Header, Item, Part, Record, SlotState, State, Version, Word};
use crate::variant::Flaw;

/// Changes of a slot after which its versions come back, where they do (H19).
const WRAPS_AFTER: u8 = 4;

/// What a slot is to a reader of a key.
enum Match {
    /// Nothing.
    Other,
    /// The value.
    Hit(Value),
    /// Someone fetches it.
    Filling(Word),
    /// Someone fetched it, and the lease is over.
    Lapsed(Word),
    /// Valid by its word, and the payload is of another version or broken.
    Damaged(Word),
}

impl CacheModel {
    /// The fingerprint of a key; never 0.
    pub fn fingerprint(&self, key: Key) -> u8 {
        if self.scenario.fingerprints_collide { 1 } else { key + 1 }
    }

    /// Puts a word into a slot. A new word has a new lease.
    pub fn set_word(&self, state: &mut State, slot: usize, word: Word) {
        state.memory.slots[slot].word = word;
        state.memory.slots[slot].is_lapsed = false;
    }

    /// The word that frees a slot.
    pub fn freed(&self, word: Word) -> Word {
        Word { version: self.next_version(word.version), ..Word::default() }
    }

    fn next_version(&self, version: Version) -> Version {
        let count = match self.variant.flaw {
            Some(Flaw::PlainWord) => version.count,
            Some(Flaw::VersionsWrap) => (version.count + 1) % WRAPS_AFTER,
            _ => version.count + 1,
        };
        Version { count, ..version }
    }

    /// Returns whether a compare-and-swap that expects the one word finds it in the other.
    fn is_same(&self, one: Word, other: Word) -> bool {
        let is_plain = self.variant.has(Flaw::PlainWord);
        one == other || is_plain && (one.state, one.fingerprint) == (other.state, other.fingerprint)
    }

    fn swap_word(&self, state: &mut State, slot: usize, expected: Word, new: Word) -> bool {
        let is_same = self.is_same(state.memory.slots[slot].word, expected);
        if is_same {
            self.set_word(state, slot, new);
        }
        is_same
    }

    /// What is still to be read of the slots; in any order.
    fn slot_pieces(&self, slots: impl Iterator<Item = usize>) -> Vec<Piece> {
        let parts = self.scenario.payload_parts;
        let words =
            |slot| std::iter::once(Piece::Word(slot)).chain((0..parts).map(move |part| Piece::Part(slot, part)));
        match self.scenario.tearing {
            Tearing::Words => slots.flat_map(words).collect(),
            _ => slots.map(Piece::Slot).collect(),
        }
    }

    /// What the first read of a block may read next.
    fn look_pieces(&self, view: &View) -> Vec<Piece> {
        if self.scenario.tearing == Tearing::None {
            return vec![Piece::Block; usize::from(view.lacks(Piece::Block))];
        }
        let mut pieces = self.slot_pieces(0..self.scenario.slots);
        if self.variant.has(Flaw::OffsetOfFirstRead) {
            pieces.push(Piece::Header);
        }
        pieces.retain(|piece| view.lacks(*piece));
        pieces
    }

    /// What the double-read may read next: the other slots in any order, then the header, then the
    /// own word.
    fn check_pieces(&self, hold: Hold, view: &View) -> Vec<Piece> {
        if self.scenario.tearing == Tearing::None {
            return vec![Piece::Block; usize::from(view.lacks(Piece::Block))];
        }
        let mut pieces = self.slot_pieces((0..self.scenario.slots).filter(|slot| *slot != hold.slot));
        pieces.retain(|piece| view.lacks(*piece));
        let is_next = |pieces: &[Piece], piece, may_overtake| view.lacks(piece) && (pieces.is_empty() || may_overtake);
        if is_next(&pieces, Piece::Header, self.variant.has(Flaw::OffsetInAnyOrder)) {
            pieces.push(Piece::Header);
        }
        let overtakes_header = pieces == [Piece::Header] && self.variant.has(Flaw::OwnWordInAnyOrder);
        if is_next(&pieces, Piece::Word(hold.slot), overtakes_header) {
            pieces.push(Piece::Word(hold.slot));
        }
        pieces
    }

    /// In how many ways a client can go on; 0 if it waits.
    pub fn choices(&self, state: &State, client: usize) -> usize {
        match state.clients[client].phase {
            Phase::Idle => self.first_choices(state, client),
            phase => self.choices_in(state, phase),
        }
    }

    /// In how many ways a client in that phase can go on.
    pub fn choices_in(&self, state: &State, phase: Phase) -> usize {
        match phase {
            Phase::Idle => 0,
            Phase::Look(view) | Phase::BypassLook { view, .. } => self.look_pieces(&view).len(),
            Phase::Wait { slot, word } | Phase::CheckWait { slot, word, .. } => {
                let seen = state.memory.slots[slot];
                usize::from(seen.word != word || seen.is_lapsed)
            }
            Phase::Lock { candidates, .. } => candidates.iter().flatten().count(),
            Phase::Check { hold, view } => self.check_pieces(hold, &view).len(),
            Phase::Sent | Phase::Taken | Phase::Unanswered => 0,
            Phase::Paper(phase) => self.paper_choices(state, phase),
            _ => 1,
        }
    }

    /// A client's next step, in one of its ways.
    pub fn step(&self, state: &mut State, client: usize, choice: usize) {
        match state.clients[client].phase {
            Phase::Idle => self.begin(state, client, choice),
            Phase::Paper(phase) => self.paper_step(state, client, phase, choice),
            Phase::Invalidate { slot, answer } => self.invalidate_as_writer(state, client, slot, answer),
            _ => self.get_step(state, client, choice),
        }
    }

    fn get_step(&self, state: &mut State, client: usize, choice: usize) {
        let next = match state.clients[client].phase {
            Phase::Look(view) => self.look(state, client, view, choice),
            Phase::Wait { .. } => Phase::Look(View::default()),
            Phase::Lock { candidates, first } => self.lock(state, client, candidates, first, choice),
            Phase::Install { hold } => self.install(state, client, hold),
            Phase::Check { hold, view } => self.check(state, client, hold, view, choice),
            Phase::CheckWait { hold, .. } => Phase::Check { hold, view: View::default() },
            Phase::Kill { hold, slot, word } => {
                self.swap_word(state, slot, word, self.freed(word));
                Phase::Check { hold, view: View::default() }
            }
            Phase::Release { hold, after } => return self.release(state, client, hold, after),
            Phase::Flash { hold, header } => self.read_record(state, client, hold, header),
            Phase::Value { hold, item } => self.read_value(state, client, hold, item),
            Phase::Fill { hold, value, part } => self.fill(state, client, hold, value, part),
            Phase::Publish { hold, value } => return self.publish(state, client, hold, value),
            Phase::PublishWrite { hold, value } => return self.publish_write(state, client, hold, value),
            Phase::BypassHeader => self.bypass_header(state),
            Phase::BypassLook { header, view } => self.bypass_look(state, client, header, view, choice),
            Phase::BypassFlash { header } => self.bypass_flash(state, client, header),
            Phase::BypassValue { item } => self.bypass_value(state, client, item),
            other => other,
        };
        self.go_on(state, client, next);
    }

    /// A phase that has decided on an answer has given it already, and its client is idle.
    fn go_on(&self, state: &mut State, client: usize, next: Phase) {
        if next != Phase::Idle {
            state.clients[client].phase = next;
        }
    }

    fn classify(&self, view: &View, slot: usize, key: Key) -> Match {
        let (word, is_lapsed) = view.word(slot);
        if word.fingerprint != self.fingerprint(key) {
            return Match::Other;
        }
        match word.state {
            SlotState::Free => Match::Other,
            SlotState::Fill if is_lapsed => Match::Lapsed(word),
            SlotState::Fill => Match::Filling(word),
            SlotState::Valid => self.judge_payload(word, view.payload(slot), key),
        }
    }

    fn judge_payload(&self, word: Word, [first, last]: [Part; 2], key: Key) -> Match {
        let is_whole = first == last && first.version == word.version;
        if !is_whole && !self.variant.has(Flaw::PlainPayload) {
            return Match::Damaged(word);
        }
        if first.key == key { Match::Hit(last.value) } else { Match::Other }
    }

    fn look(&self, state: &mut State, client: usize, mut view: View, choice: usize) -> Phase {
        view.read(self.look_pieces(&view)[choice], &state.memory);
        match self.look_pieces(&view).is_empty() {
            false => Phase::Look(view),
            true => self.decide_after_look(state, client, &view),
        }
    }

    fn decide_after_look(&self, state: &mut State, client: usize, view: &View) -> Phase {
        let key = self.operation(state, client).key();
        let mut candidates = [None; SLOTS_MAX];
        let mut filling = None;
        for (slot, candidate) in candidates.iter_mut().enumerate().take(self.scenario.slots) {
            match self.classify(view, slot, key) {
                Match::Hit(value) => return self.answer(state, client, value),
                Match::Filling(word) => filling = Some((slot, word)),
                Match::Lapsed(word) | Match::Damaged(word) => *candidate = Some(word),
                Match::Other => {}
            }
        }
        if let Some((slot, word)) = filling {
            let reads_past = self.variant.has(Flaw::ReadsPastFiller);
            return if reads_past { Phase::BypassHeader } else { Phase::Wait { slot, word } };
        }
        if candidates.iter().all(Option::is_none) {
            candidates = self.victims(view);
        }
        match candidates.iter().any(Option::is_some) {
            true => Phase::Lock { candidates, first: self.first_header(view) },
            false => Phase::BypassHeader,
        }
    }

    /// The offset of the first read is kept for H1 alone.
    fn first_header(&self, view: &View) -> Header {
        view.header.filter(|_| self.variant.has(Flaw::OffsetOfFirstRead)).unwrap_or_default()
    }

    fn victims(&self, view: &View) -> [Option<Word>; SLOTS_MAX] {
        std::array::from_fn(|slot| {
            let (word, is_lapsed) = view.words[slot]?;
            (word.state != SlotState::Fill || is_lapsed).then_some(word)
        })
    }

    fn lock(
        &self,
        state: &mut State,
        client: usize,
        candidates: [Option<Word>; SLOTS_MAX],
        first: Header,
        choice: usize,
    ) -> Phase {
        let mut seen = candidates.iter().enumerate().filter_map(|(slot, word)| Some((slot, (*word)?)));
        let (slot, seen) = seen.nth(choice).expect("as many choices as candidates");
        let fingerprint = self.fingerprint(self.operation(state, client).key());
        let version = self.next_version(seen.version);
        let installed = Word { state: SlotState::Fill, version, fingerprint, owner: client as u8 + 1, is_leased: true };
        let is_half = self.variant.has(Flaw::LockThenInstall);
        let word =
            if is_half { Word { fingerprint: seen.fingerprint, is_leased: false, ..installed } } else { installed };
        if !self.swap_word(state, slot, seen, word) {
            return Phase::Look(View::default());
        }
        let hold = Hold { slot, word, first };
        if is_half { Phase::Install { hold } } else { Phase::Check { hold, view: View::default() } }
    }

    fn install(&self, state: &mut State, client: usize, hold: Hold) -> Phase {
        let fingerprint = self.fingerprint(self.operation(state, client).key());
        let word = Word { fingerprint, is_leased: true, ..hold.word };
        self.swap_word(state, hold.slot, hold.word, word);
        Phase::Check { hold: Hold { word, ..hold }, view: View::default() }
    }

    fn check(&self, state: &mut State, client: usize, hold: Hold, mut view: View, choice: usize) -> Phase {
        view.read(self.check_pieces(hold, &view)[choice], &state.memory);
        match self.check_pieces(hold, &view).is_empty() {
            false => Phase::Check { hold, view },
            true => self.decide_after_check(state, client, hold, &view),
        }
    }

    fn decide_after_check(&self, state: &mut State, client: usize, hold: Hold, view: &View) -> Phase {
        let is_own = self.is_same(view.word(hold.slot).0, hold.word);
        if !is_own && !self.variant.has(Flaw::OwnWordUnchecked) {
            return Phase::Look(View::default());
        }
        let key = self.operation(state, client).key();
        for slot in (0..self.scenario.slots).filter(|slot| *slot != hold.slot) {
            match self.classify(view, slot, key) {
                Match::Other => {}
                Match::Damaged(_) if self.variant.has(Flaw::DamagedIgnored) => {}
                Match::Lapsed(_) if self.variant.has(Flaw::LapsedIgnored) => {}
                Match::Hit(value) => return Phase::Release { hold, after: After::Answer(value) },
                Match::Lapsed(word) | Match::Damaged(word) => return Phase::Kill { hold, slot, word },
                Match::Filling(word) => return self.break_tie(hold, slot, word),
            }
        }
        let last = view.header.expect("a view is judged when it is whole");
        let header = if self.variant.has(Flaw::OffsetOfFirstRead) { hold.first } else { last };
        Phase::Flash { hold, header }
    }

    /// Two fill one key: the higher slot gives way, the lower waits for it.
    fn break_tie(&self, hold: Hold, slot: usize, word: Word) -> Phase {
        if hold.slot > slot || self.variant.has(Flaw::BothGiveWay) {
            return Phase::Release { hold, after: After::Restart };
        }
        Phase::CheckWait { hold, slot, word }
    }

    fn release(&self, state: &mut State, client: usize, hold: Hold, after: After) {
        self.swap_word(state, hold.slot, hold.word, self.freed(hold.word));
        match after {
            After::Answer(value) => self.finish(state, client, Answer::Value(value)),
            After::Restart => {
                state.given_way += 1;
                state.clients[client].phase = Phase::Look(View::default());
            }
        }
    }

    /// Returns the record, if it is the expected one.
    fn record(&self, state: &State, header: Header) -> Option<Record> {
        let record = state.flash[usize::from(header.place)];
        let is_it = record.sequence == header.sequence || self.variant.has(Flaw::RecordUnchecked);
        is_it.then_some(record)
    }

    /// The value that a record led to, if it is still there.
    fn value_apart(&self, state: &State, item: Item) -> Option<Value> {
        let record = state.values[usize::from(item.place)];
        let is_it = record.sequence == item.sequence || self.variant.has(Flaw::RecordUnchecked);
        is_it.then_some(record.value)
    }

    fn read_record(&self, state: &mut State, client: usize, hold: Hold, header: Header) -> Phase {
        let key = usize::from(self.operation(state, client).key());
        match self.record(state, header) {
            None => Phase::Check { hold, view: View::default() },
            Some(record) if self.scenario.values_apart && record.values[key] != ABSENT => {
                Phase::Value { hold, item: record.items[key] }
            }
            Some(record) => self.has_value(state, client, hold, record.values[key]),
        }
    }

    fn read_value(&self, state: &mut State, client: usize, hold: Hold, item: Item) -> Phase {
        match self.value_apart(state, item) {
            None => Phase::Check { hold, view: View::default() },
            Some(value) => self.has_value(state, client, hold, value),
        }
    }

    fn has_value(&self, state: &mut State, client: usize, hold: Hold, value: Value) -> Phase {
        if self.scenario.answers_early {
            self.answer_early(state, client, Answer::Value(value));
        }
        match value {
            ABSENT => Phase::Release { hold, after: After::Answer(ABSENT) },
            value => Phase::Fill { hold, value, part: 0 },
        }
    }

    fn fill(&self, state: &mut State, client: usize, hold: Hold, value: Value, part: usize) -> Phase {
        let key = self.operation(state, client).key();
        let written = Part { version: hold.word.version, key, value };
        let payload = &mut state.memory.slots[hold.slot].payload;
        if self.scenario.payload_parts == 1 {
            *payload = [written; 2];
            return Phase::Publish { hold, value };
        }
        payload[part] = written;
        if part == 0 { Phase::Fill { hold, value, part: 1 } } else { Phase::Publish { hold, value } }
    }

    fn publish(&self, state: &mut State, client: usize, hold: Hold, value: Value) {
        let is_same = self.is_same(state.memory.slots[hold.slot].word, hold.word);
        if is_same && self.variant.has(Flaw::PlainStores) {
            state.clients[client].phase = Phase::PublishWrite { hold, value };
            return;
        }
        if is_same {
            self.publish_write(state, client, hold, value);
        } else {
            self.finish(state, client, Answer::Value(value));
        }
    }

    fn publish_write(&self, state: &mut State, client: usize, hold: Hold, value: Value) {
        let word = Word { state: SlotState::Valid, owner: 0, is_leased: false, ..hold.word };
        self.set_word(state, hold.slot, word);
        self.finish(state, client, Answer::Value(value));
    }

    fn bypass_header(&self, state: &State) -> Phase {
        let header = state.memory.header;
        match self.variant.has(Flaw::ReadsPastFiller) {
            true => Phase::BypassFlash { header },
            false => Phase::BypassLook { header, view: View::default() },
        }
    }

    fn bypass_look(&self, state: &mut State, client: usize, header: Header, mut view: View, choice: usize) -> Phase {
        view.read(self.look_pieces(&view)[choice], &state.memory);
        if !self.look_pieces(&view).is_empty() {
            return Phase::BypassLook { header, view };
        }
        let key = self.operation(state, client).key();
        let is_other = |slot| matches!(self.classify(&view, slot, key), Match::Other);
        match (0..self.scenario.slots).all(is_other) {
            true => Phase::BypassFlash { header },
            false => self.decide_after_look(state, client, &view),
        }
    }

    fn bypass_flash(&self, state: &mut State, client: usize, header: Header) -> Phase {
        let key = usize::from(self.operation(state, client).key());
        match self.record(state, header) {
            None => Phase::Look(View::default()),
            Some(record) if self.scenario.values_apart && record.values[key] != ABSENT => {
                Phase::BypassValue { item: record.items[key] }
            }
            Some(record) => self.answer(state, client, record.values[key]),
        }
    }

    fn bypass_value(&self, state: &mut State, client: usize, item: Item) -> Phase {
        match self.value_apart(state, item) {
            None => Phase::Look(View::default()),
            Some(value) => self.answer(state, client, value),
        }
    }

    fn invalidate_as_writer(&self, state: &mut State, client: usize, slot: usize, answer: Answer) {
        let key = self.operation(state, client).key();
        self.invalidate(state, slot, key);
        match slot + 1 < self.scenario.slots {
            true => state.clients[client].phase = Phase::Invalidate { slot: slot + 1, answer },
            false => self.finish(state, client, answer),
        }
    }

    fn answer(&self, state: &mut State, client: usize, value: Value) -> Phase {
        self.finish(state, client, Answer::Value(value));
        Phase::Idle
    }

    /// The answer of a slot to a reader of the key at this moment.
    pub fn shown(&self, state: &State, slot: usize, key: Key) -> Option<Value> {
        let mut view = View::default();
        view.read(Piece::Block, &state.memory);
        match self.classify(&view, slot, key) {
            Match::Hit(value) => Some(value),
            _ => None,
        }
    }
}
