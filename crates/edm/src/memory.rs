//! A memory node's words and the atomic operations on them (paper 3.2.1, "Implementing RMWREQ").
//!
//! The contents are kept in 8-byte words at 8-byte addresses, zero until written. Messages of up to
//! eight bytes carry their word through the simulator; larger payloads are sizes only there, and
//! bytes in the codec and live.

use crate::message::Modify;
use std::collections::BTreeMap;

/// The contents of one node's memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    words: BTreeMap<u64, u64>,
}

impl Memory {
    /// The word that holds `address`.
    pub fn read(&self, address: u64) -> u64 {
        self.words.get(&(address & !7)).copied().unwrap_or(0)
    }
    /// Stores the word that holds `address`.
    pub fn write(&mut self, address: u64, word: u64) {
        self.words.insert(address & !7, word);
    }
    /// Executes `modify` on the word that holds `address`, not preempted by any other access, and
    /// returns the answer: 1 or 0 for a compare-and-swap, the old word otherwise.
    pub fn modify(&mut self, address: u64, modify: Modify) -> u64 {
        let old = self.read(address);
        let (new, answer) = match modify {
            Modify::CompareAndSwap { expected, new } if old == expected => (new, 1),
            Modify::CompareAndSwap { .. } => (old, 0),
            Modify::FetchAndAdd { addend } => (old.wrapping_add(addend), old),
            Modify::Swap { new } => (new, old),
        };
        self.write(address, new);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_does_what_its_name_says() {
        let mut memory = Memory::default();
        memory.write(16, 5);
        assert_eq!(memory.modify(16, Modify::CompareAndSwap { expected: 4, new: 9 }), 0);
        assert_eq!(memory.read(16), 5);
        assert_eq!(memory.modify(16, Modify::CompareAndSwap { expected: 5, new: 9 }), 1);
        assert_eq!(memory.modify(16, Modify::FetchAndAdd { addend: u64::MAX }), 9);
        assert_eq!(memory.modify(23, Modify::Swap { new: 1 }), 8);
        assert_eq!(memory.read(16), 1);
        assert_eq!(memory.read(24), 0);
    }
}
