//! What clients do in a model, with what at hand, and what may go wrong meanwhile.

/// A key of the block.
pub type Key = u8;
/// A value; each write of a scenario has its own.
pub type Value = u8;

/// The key holds nothing.
pub const ABSENT: Value = 0;
/// Content of another block's record.
pub const FOREIGN: Value = 99;
/// Clients of a scenario, at most.
pub const CLIENTS_MAX: usize = 4;
/// Slots of the block, at most.
pub const SLOTS_MAX: usize = 3;
/// Keys of the block, at most.
pub const KEYS_MAX: usize = 2;

/// An operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Through the cache, one-sided.
    Get(Key),
    /// Answered by the server from its index, as a scan, a backup or an increment would see the
    /// key.
    ServerGet(Key),
    /// By the server, in a batch.
    Put(Key, Value),
    /// By the server, in a batch.
    Delete(Key),
    /// By the server, in a batch.
    CompareAndSwap {
        /// The key.
        key: Key,
        /// Swaps if the key holds this.
        expected: Value,
        /// What it holds then.
        new: Value,
    },
}

impl Operation {
    /// Its key.
    pub fn key(self) -> Key {
        match self {
            Operation::Get(key) | Operation::ServerGet(key) | Operation::Put(key, _) | Operation::Delete(key) => key,
            Operation::CompareAndSwap { key, .. } => key,
        }
    }
}

/// What one remote read sees at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tearing {
    /// The whole block.
    None,
    /// A slot, or the header; in any order.
    Slots,
    /// A slot's word, a part of its payload, or the header; in any order.
    Words,
}

/// How often something may happen in one execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// A lease runs out under a client that lives and still works on its slot. (Under any other it
    /// always may.)
    pub lapses: u8,
    /// A client dies.
    pub deaths: u8,
    /// The server restarts: its memory survives, what it was at and the drive's volatile cache need
    /// not.
    pub crashes: u8,
    /// Flash that the index no longer points to is used again for another block's record.
    pub overwrites: u8,
    /// The current record moves to another place.
    pub moves: u8,
}

/// What the protocol has to get through.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// One to three.
    pub slots: usize,
    /// What each key holds at first.
    pub initial: [Value; KEYS_MAX],
    /// Slots that hold a key at first.
    pub cached: [Option<Key>; SLOTS_MAX],
    /// By client, in order.
    pub programs: Vec<Vec<Operation>>,
    /// What a remote read of the block sees at one instant.
    pub tearing: Tearing,
    /// In how many remote writes a payload arrives: one or two.
    pub payload_parts: usize,
    /// A record lists where the values are, and each is a record of its own: a miss reads flash
    /// twice.
    pub values_apart: bool,
    /// Batches that the server has in flight at once, at most.
    pub batches: usize,
    /// Both keys have one fingerprint.
    pub fingerprints_collide: bool,
    /// Reads of a miss are answered when the record has come, before the slot is filled.
    pub answers_early: bool,
    /// What may go wrong.
    pub budget: Budget,
}

impl Scenario {
    /// One slot for `x`, which holds 1 on flash, and no mishaps.
    pub fn new(programs: &[&[Operation]]) -> Scenario {
        Scenario {
            slots: 1,
            initial: [1, ABSENT],
            cached: [None; SLOTS_MAX],
            programs: programs.iter().map(|program| program.to_vec()).collect(),
            tearing: Tearing::None,
            payload_parts: 1,
            values_apart: false,
            batches: 1,
            fingerprints_collide: false,
            answers_early: false,
            budget: Budget::default(),
        }
    }
}
