//! Operations on the index as one-sided verbs: reads, writes and compare-and-swaps of registered
//! memory, which know nothing of a store.

use crate::layout::{HeaderBytes, block_bytes, decode_header, encode_header, encode_payload, encode_slot, offset};
use crate::{BlockHeader, MemoryAnswer, MemoryOperation, Protocol, Slot, SlotWord, Value};
use base::Time;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// Accesses registered memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads.
    Read {
        /// The first byte.
        at: u64,
        /// Length of the answer in bytes.
        bytes: usize,
    },
    /// Writes.
    Write {
        /// The first byte.
        at: u64,
        /// The new bytes.
        data: Vec<u8>,
    },
    /// Compares an aligned word of 8 B (little endian) and swaps it, atomically.
    Swap {
        /// Its first byte.
        at: u64,
        /// What should be there.
        expected: u64,
        /// The value to store instead.
        new: u64,
    },
    /// Stores some bits of an aligned word of 8 B (little endian), atomically, and leaves the
    /// others.
    Bits {
        /// Its first byte.
        at: u64,
        /// Which bits.
        mask: u64,
        /// Their values; 0 elsewhere.
        bits: u64,
    },
}

/// Result of a verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// What was read.
    Read(Vec<u8>),
    /// It is written.
    Written,
    /// What a compare-and-swap found.
    Found(u64),
    /// It is outside of the memory, or no whole words.
    Refused,
}

/// The verbs of an operation, to be executed in their order.
pub fn verbs<V: Value>(block: u32, slots: u8, operation: &MemoryOperation<V>) -> Vec<Verb> {
    let base = offset::block(block, slots);
    let at = |within: usize| base + within as u64;
    let read_block = || Verb::Read { at: base, bytes: block_bytes(slots) };
    match operation {
        MemoryOperation::ReadBlock => vec![read_block()],
        MemoryOperation::Check { slot } => vec![
            read_block(),
            Verb::Read { at: base, bytes: size_of::<HeaderBytes>() },
            Verb::Read { at: at(offset::word(*slot)), bytes: size_of::<u64>() },
        ],
        MemoryOperation::Swap { slot, expected, new } => {
            vec![Verb::Swap { at: at(offset::word(*slot)), expected: expected.0, new: new.0 }]
        }
        MemoryOperation::WritePayload { slot, payload } => {
            let from = offset::payload(*slot) - offset::word(*slot);
            let data = encode_payload(payload).as_bytes()[from..].to_vec();
            vec![Verb::Write { at: at(offset::payload(*slot)), data }]
        }
        MemoryOperation::Touch { slot, at: time } => {
            vec![Verb::Write { at: at(offset::last_use(*slot)), data: time.as_ps().to_le_bytes().to_vec() }]
        }
        MemoryOperation::Publish { segment } => {
            let header = encode_header(&BlockHeader { epoch: 0, segment: Some(*segment) });
            vec![Verb::Write { at: base, data: header.segment.get().to_le_bytes().to_vec() }]
        }
        MemoryOperation::Close => vec![Verb::Write { at: base, data: vec![0; size_of::<u64>()] }],
        MemoryOperation::Reset { header } => {
            let slot = encode_slot(&Slot::<V>::fresh(header.epoch));
            let all = slot.as_bytes().repeat(slots.into());
            let header = encode_header(header).as_bytes().to_vec();
            vec![Verb::Write { at: base, data: header }, Verb::Write { at: at(offset::word(0)), data: all }]
        }
        MemoryOperation::StoreFlags { slot, occupied, complete, lease } => {
            vec![store_flags(at(offset::word(*slot)), [*occupied, *complete], *lease)]
        }
    }
}

/// Stores what is then the same in a word whatever was there.
fn store_flags(at: u64, [occupied, complete]: [Option<bool>; 2], lease: Option<Time>) -> Verb {
    let [zeros, ones] = [0, u64::MAX].map(|word| {
        let word = SlotWord(word).with_flags(occupied, complete);
        lease.map_or(word, |deadline| word.with_lease(deadline)).0
    });
    Verb::Bits { at, mask: !(zeros ^ ones), bits: zeros }
}

/// The answer of an operation whose verbs came to `results`, in their order.
pub fn answer<V: Value>(protocol: Protocol, results: &[Done]) -> MemoryAnswer<V> {
    let decode = |block: &[u8]| protocol.decode(block, &V::default());
    match results {
        [Done::Read(block)] => MemoryAnswer::of_read(decode(block), None, None),
        [Done::Read(block), Done::Read(header), Done::Read(word)] => {
            let header = HeaderBytes::read_from_bytes(header).ok().and_then(|header| decode_header(&header));
            let word = word.first_chunk().map(|word| SlotWord(u64::from_le_bytes(*word)));
            match (header, word) {
                (Some(header), Some(word)) => MemoryAnswer::of_read(decode(block), Some(header), Some(word)),
                _ => MemoryAnswer::Unreachable,
            }
        }
        [Done::Found(word)] => MemoryAnswer::Found(SlotWord(*word)),
        [Done::Written] | [Done::Written, Done::Written] => MemoryAnswer::Done,
        _ => MemoryAnswer::Unreachable,
    }
}

/// Memory that verbs access: words of 8 B (little endian), each of which is read, written and
/// swapped whole. Several clients may do so at a time, also from processes of their own: `W` is
/// where the words are.
#[derive(Debug)]
pub struct RegisteredMemory<W = Vec<AtomicU64>> {
    words: W,
}

/// Words of the memory for so many blocks.
pub fn memory_words(blocks: u32, slots: u8) -> usize {
    blocks as usize * block_bytes(slots) / WORD
}

impl RegisteredMemory {
    /// Memory for so many blocks, all zeros: no server has made them its own.
    pub fn new(blocks: u32, slots: u8) -> RegisteredMemory {
        let zeros = std::iter::repeat_with(AtomicU64::default);
        RegisteredMemory { words: zeros.take(memory_words(blocks, slots)).collect() }
    }
}

impl<W: Deref<Target = [AtomicU64]>> RegisteredMemory<W> {
    /// The memory that `words` are.
    pub fn of(words: W) -> RegisteredMemory<W> {
        RegisteredMemory { words }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        (self.words.len() * WORD) as u64
    }

    /// Executes a verb. Other clients may see and change single words meanwhile.
    pub fn execute(&self, verb: &Verb) -> Done {
        let done = match verb {
            Verb::Read { at, bytes } => self
                .place(*at, *bytes)
                .map(|words| Done::Read(words.iter().flat_map(|word| word.load(Acquire).to_le_bytes()).collect())),
            Verb::Write { at, data } => self.place(*at, data.len()).map(|words| {
                for (word, bytes) in words.iter().zip(data.as_chunks().0) {
                    word.store(u64::from_le_bytes(*bytes), Release);
                }
                Done::Written
            }),
            Verb::Swap { at, expected, new } => self.place(*at, WORD).map(|words| {
                let swapped = words[0].compare_exchange(*expected, *new, AcqRel, Acquire);
                Done::Found(swapped.unwrap_or_else(|found| found))
            }),
            Verb::Bits { at, mask, bits } => self.place(*at, WORD).map(|words| {
                words[0].update(AcqRel, Acquire, |word| word & !mask | bits & mask);
                Done::Written
            }),
        };
        done.unwrap_or(Done::Refused)
    }

    /// Whole words; `None` where they are not, or outside.
    fn place(&self, at: u64, bytes: usize) -> Option<&[AtomicU64]> {
        let at = usize::try_from(at).ok()?;
        let is_whole = at.is_multiple_of(WORD) && bytes.is_multiple_of(WORD);
        self.words.get(at / WORD..(at / WORD).checked_add(bytes / WORD)?).filter(|_| is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expiry, Extent, Index, Key, Payload, SegmentPointer, Sequence};

    const SLOTS: u8 = 4;

    fn execute(memory: &RegisteredMemory, operation: &MemoryOperation<Vec<u8>>) -> MemoryAnswer<Vec<u8>> {
        let done: Vec<Done> = verbs(1, SLOTS, operation).iter().map(|verb| memory.execute(verb)).collect();
        answer(Protocol::Linearizable, &done)
    }

    fn flags(
        slot: u8,
        occupied: Option<bool>,
        complete: Option<bool>,
        lease: Option<Time>,
    ) -> MemoryOperation<Vec<u8>> {
        MemoryOperation::StoreFlags { slot, occupied, complete, lease }
    }

    #[test]
    fn bytes_answer_every_operation_as_the_index_without_bytes_does() {
        let (memory, mut index) = (RegisteredMemory::new(3, SLOTS), Index::new(3, SLOTS));
        let fresh = SlotWord::fresh(7);
        let filling = fresh.fill(0x123, Time::ms(3));
        let payload = Payload {
            version: filling.version(),
            key: Key::new(b"key").expect("short"),
            value: vec![1, 2, 3],
            expiry: Expiry(9),
        };
        let segment = SegmentPointer::new(Extent { sector: 77, sectors: 2 }, Sequence(5));
        let operations = [
            MemoryOperation::Close,
            MemoryOperation::ReadBlock,
            MemoryOperation::Reset { header: BlockHeader { epoch: 7, segment: None } },
            MemoryOperation::ReadBlock,
            MemoryOperation::Swap { slot: 2, expected: fresh, new: filling },
            MemoryOperation::Swap { slot: 2, expected: fresh, new: SlotWord(0) },
            MemoryOperation::WritePayload { slot: 2, payload },
            MemoryOperation::Touch { slot: 2, at: Time::us(5) },
            MemoryOperation::Publish { segment },
            MemoryOperation::Check { slot: 2 },
            MemoryOperation::Swap { slot: 2, expected: filling, new: filling.validate() },
            MemoryOperation::ReadBlock,
            flags(2, Some(false), None, None),
            flags(3, Some(true), Some(false), Some(Time::ms(40))),
            MemoryOperation::ReadBlock,
            flags(2, Some(true), Some(true), None),
            flags(3, None, Some(true), None),
            MemoryOperation::ReadBlock,
            MemoryOperation::Close,
            MemoryOperation::Check { slot: 0 },
        ];
        for operation in operations {
            let found = execute(&memory, &operation);
            assert_eq!(found, index.carry_out(1, operation.clone()), "{operation:?}");
        }
        let first = memory.execute(&Verb::Read { at: 0, bytes: block_bytes(SLOTS) });
        assert_eq!(first, Done::Read(vec![0; block_bytes(SLOTS)]), "block 0 is untouched");
    }

    #[test]
    fn what_is_outside_or_not_aligned_is_refused() {
        let memory = RegisteredMemory::new(1, 1);
        let end = memory.bytes();
        let word = |at| Verb::Swap { at, expected: 0, new: 1 };
        let bits = |at| Verb::Bits { at, mask: 1, bits: 1 };
        let outside = [
            Verb::Read { at: end, bytes: 1 },
            Verb::Read { at: u64::MAX, bytes: 2 },
            Verb::Read { at: 0, bytes: usize::MAX },
            Verb::Write { at: end - 8, data: vec![1; 16] },
            Verb::Write { at: 0, data: vec![1; 7] },
            Verb::Read { at: 4, bytes: 8 },
            word(end),
            word(4),
            bits(end),
            bits(4),
        ];
        for verb in outside {
            assert_eq!(memory.execute(&verb), Done::Refused, "{verb:?}");
        }
        assert_eq!(memory.execute(&word(8)), Done::Found(0));
    }
}
