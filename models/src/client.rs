//! A client's program counter, and what it has seen of the block.

use crate::judge::Answer;
use crate::scenario::{Key, SLOTS_MAX, Value};
use crate::state::{Header, Item, Memory, PaperSlot, Part, Word};

/// A client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// Operations begun and answered.
    pub done: u8,
    /// What it does next.
    pub phase: Phase,
    /// It was answered, and fills its slot in the background.
    pub is_answered: bool,
    /// It will never do anything again.
    pub is_dead: bool,
    /// Its last answer, for traces.
    pub told: Told,
}

/// An answer that belongs to the telling, not to the state: it takes no part in comparisons.
#[derive(Clone, Copy, Debug, Default)]
pub struct Told(pub Option<Answer>);

impl PartialEq for Told {
    fn eq(&self, _: &Told) -> bool {
        true
    }
}

impl Eq for Told {}

impl std::hash::Hash for Told {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// A slot that a client has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hold {
    /// The slot.
    pub slot: usize,
    /// The word that it has put there.
    pub word: Word,
    /// The header as the first read saw it.
    pub first: Header,
}

/// What follows the release of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum After {
    /// Start again.
    Restart,
    /// Answer.
    Answer(Value),
}

/// The next remote operation of a client. Each is one step; what is decided from it is decided in
/// that step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Begins its next operation.
    Idle,
    /// Reads the block.
    Look(View),
    /// Polls a slot until it changes or its lease runs out.
    Wait { slot: usize, word: Word },
    /// Locks one of these slots, if it still is as it was seen.
    Lock { candidates: [Option<Word>; SLOTS_MAX], first: Header },
    /// Writes fingerprint and lease into the slot that it has locked (H12 alone).
    Install { hold: Hold },
    /// Reads the block again.
    Check { hold: Hold, view: View },
    /// Polls another slot of its key, its own still locked.
    CheckWait { hold: Hold, slot: usize, word: Word },
    /// Frees another slot of its key whose lease is over or whose payload is damaged.
    Kill { hold: Hold, slot: usize, word: Word },
    /// Frees its slot.
    Release { hold: Hold, after: After },
    /// Reads the record.
    Flash { hold: Hold, header: Header },
    /// Reads the value that the record leads to.
    Value { hold: Hold, item: Item },
    /// Writes the payload.
    Fill { hold: Hold, value: Value, part: usize },
    /// Makes its slot valid.
    Publish { hold: Hold, value: Value },
    /// The second half of a compare-and-swap that the processor can come between (H17 alone).
    PublishWrite { hold: Hold, value: Value },
    /// Reads the header, for there was no slot to lock.
    BypassHeader,
    /// Reads the slots after it.
    BypassLook { header: Header, view: View },
    /// Reads the record, without a slot.
    BypassFlash { header: Header },
    /// Reads the value that the record leads to, without a slot.
    BypassValue { item: Item },
    /// Its request lies in the server's ring.
    Sent,
    /// The server works on it.
    Taken,
    /// Invalidates slot by slot after the server's answer (H10 alone).
    Invalidate { slot: usize, answer: Answer },
    /// The paper's client.
    Paper(PaperPhase),
    /// The server lost its request; it sends no more.
    Unanswered,
}

/// The next remote operation of the paper's client (section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PaperPhase {
    /// Step 1: reads the block.
    Look(PaperView),
    /// Polls a slot until it changes or its lease runs out.
    Wait { slot: usize, seen: PaperSlot },
    /// Polls the block until a slot can be locked.
    WaitForVictim,
    /// Step 2: sets `complete` to 0 in one of these slots.
    Lock { candidates: [bool; SLOTS_MAX], first: Header },
    /// Writes key, `occupied` and the timeout.
    Mark { slot: usize, first: Header },
    /// Step 3: reads the block again.
    Check { slot: usize, first: Header, view: PaperView },
    /// Frees its slot after a collision, and starts again.
    Reset { slot: usize },
    /// Step 4: reads the record.
    Flash { slot: usize, header: Header },
    /// Step 5: writes the value.
    Fill { slot: usize, value: Value },
    /// Sets `complete` to 1.
    Complete { slot: usize, value: Value },
    /// After the server's answer: reads the block.
    InvalidateLook { view: PaperView, answer: Answer },
    /// Sets `occupied` to 0 in these slots.
    Invalidate { slots: [bool; SLOTS_MAX], answer: Answer },
}

impl Phase {
    /// The slot that the client has locked.
    pub fn hold(&self) -> Option<Hold> {
        match *self {
            Phase::Install { hold }
            | Phase::Check { hold, .. }
            | Phase::CheckWait { hold, .. }
            | Phase::Kill { hold, .. }
            | Phase::Release { hold, .. }
            | Phase::Flash { hold, .. }
            | Phase::Value { hold, .. }
            | Phase::Fill { hold, .. }
            | Phase::Publish { hold, .. }
            | Phase::PublishWrite { hold, .. } => Some(hold),
            _ => None,
        }
    }
}

impl PaperPhase {
    /// The slot that the client takes for its own.
    pub fn holds(&self) -> Option<usize> {
        match *self {
            PaperPhase::Mark { slot, .. }
            | PaperPhase::Check { slot, .. }
            | PaperPhase::Reset { slot }
            | PaperPhase::Flash { slot, .. }
            | PaperPhase::Fill { slot, .. }
            | PaperPhase::Complete { slot, .. } => Some(slot),
            _ => None,
        }
    }
}

/// What is read of the block at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// All slots, and the header.
    Block,
    /// The header.
    Header,
    /// A slot with its payload.
    Slot(usize),
    /// A slot's word.
    Word(usize),
    /// A part of a slot's payload.
    Part(usize, usize),
}

/// What a client has read of the block, piece by piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct View {
    /// The header.
    pub header: Option<Header>,
    /// Words, and whether their leases were over.
    pub words: [Option<(Word, bool)>; SLOTS_MAX],
    /// Payloads.
    pub parts: [[Option<Part>; 2]; SLOTS_MAX],
}

impl View {
    /// Reads one piece.
    pub fn read(&mut self, piece: Piece, memory: &Memory) {
        match piece {
            Piece::Block => {
                self.read(Piece::Header, memory);
                (0..memory.slots.len()).for_each(|slot| self.read(Piece::Slot(slot), memory));
            }
            Piece::Header => self.header = Some(memory.header),
            Piece::Slot(slot) => {
                self.read(Piece::Word(slot), memory);
                (0..2).for_each(|part| self.read(Piece::Part(slot, part), memory));
            }
            Piece::Word(slot) => self.words[slot] = Some((memory.slots[slot].word, memory.slots[slot].is_lapsed)),
            Piece::Part(slot, part) => self.parts[slot][part] = Some(memory.slots[slot].payload[part]),
        }
    }

    /// Returns whether the piece is still to be read.
    pub fn lacks(&self, piece: Piece) -> bool {
        match piece {
            Piece::Block => self.words[0].is_none(),
            Piece::Header => self.header.is_none(),
            Piece::Slot(slot) | Piece::Word(slot) => self.words[slot].is_none(),
            Piece::Part(slot, part) => self.parts[slot][part].is_none(),
        }
    }

    /// A slot's word, and whether its lease is over.
    pub fn word(&self, slot: usize) -> (Word, bool) {
        self.words[slot].expect("a view is judged when it is whole")
    }

    /// A slot's payload; one that is written in one part has it twice.
    pub fn payload(&self, slot: usize) -> [Part; 2] {
        let first = self.parts[slot][0].expect("a view is judged when it is whole");
        [first, self.parts[slot][1].unwrap_or(first)]
    }
}

/// What the paper's client has read of the block. A slot has two pieces: all but the value, and the
/// value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PaperView {
    /// The header.
    pub header: Option<Header>,
    /// Slots; their values do not count.
    pub slots: [Option<PaperSlot>; SLOTS_MAX],
    /// Values.
    pub values: [Option<Value>; SLOTS_MAX],
}

impl PaperView {
    /// Reads one piece. A slot's part 0 is its value.
    pub fn read(&mut self, piece: Piece, memory: &Memory) {
        match piece {
            Piece::Block => {
                self.read(Piece::Header, memory);
                (0..memory.paper.len()).for_each(|slot| self.read(Piece::Slot(slot), memory));
            }
            Piece::Header => self.header = Some(memory.header),
            Piece::Slot(slot) => {
                self.read(Piece::Word(slot), memory);
                self.read(Piece::Part(slot, 0), memory);
            }
            Piece::Word(slot) => self.slots[slot] = Some(memory.paper[slot]),
            Piece::Part(slot, _) => self.values[slot] = Some(memory.paper[slot].value),
        }
    }

    /// Returns whether the piece is still to be read.
    pub fn lacks(&self, piece: Piece) -> bool {
        match piece {
            Piece::Block => self.slots[0].is_none(),
            Piece::Header => self.header.is_none(),
            Piece::Slot(slot) | Piece::Word(slot) => self.slots[slot].is_none(),
            Piece::Part(slot, _) => self.values[slot].is_none(),
        }
    }

    /// A slot as it was seen.
    pub fn slot(&self, slot: usize) -> PaperSlot {
        self.slots[slot].expect("a view is judged when it is whole")
    }

    /// Returns whether a slot was seen to hold the key.
    pub fn holds(&self, slot: usize, key: Key) -> bool {
        let seen = self.slot(slot);
        seen.occupied && seen.key == Some(key)
    }
}
