//! Everything that changes: the block in the server's memory, the flash, the server's and the
//! clients' programs, and what was answered so far.

use crate::client::Client;
use crate::judge::Judge;
use crate::scenario::{Budget, KEYS_MAX, Key, Value};
use crate::server::Server;

/// Grows with every change of a slot's word; with the epoch of the server's life in its upper part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// The server's life.
    pub epoch: u8,
    /// Changes of the slot in it.
    pub count: u8,
}

/// What a slot is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotState {
    /// Holds nothing.
    #[default]
    Free,
    /// A client fetches the value.
    Fill,
    /// Holds a value.
    Valid,
}

/// The 64 bits that are changed by compare-and-swap alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Word {
    /// What the slot is at.
    pub state: SlotState,
    /// Of this change.
    pub version: Version,
    /// Of the key that is held or fetched; 0 if none.
    pub fingerprint: u8,
    /// The fetching client, counted from 1; 0 if none.
    pub owner: u8,
    /// Whether the word says until when the owner may hold it.
    pub is_leased: bool,
}

/// A part of a payload. The parts agree exactly if the checksum does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// The slot's version under which it was written.
    pub version: Version,
    /// The key it belongs to.
    pub key: Key,
    /// The value.
    pub value: Value,
}

/// A slot of our layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Its word.
    pub word: Word,
    /// Whether the lease in the word has run out by everybody's clock.
    pub is_lapsed: bool,
    /// Written by plain remote writes. With one part, the second repeats the first.
    pub payload: [Part; 2],
}

/// A slot of the paper's layout (section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PaperSlot {
    /// Holds a key.
    pub occupied: bool,
    /// Its value is all there; also false while someone fills it.
    pub complete: bool,
    /// The key, also what is left of an old one.
    pub key: Option<Key>,
    /// The value.
    pub value: Value,
    /// Whether a timeout was written for this filling, and has passed.
    pub lease: Lease,
}

/// The paper's timeout of a filling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lease {
    /// None was written.
    #[default]
    None,
    /// Not yet passed.
    Runs,
    /// Passed.
    Over,
}

/// Where the block's record is: one aligned word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Header {
    /// The server's life.
    pub epoch: u8,
    /// The place on flash.
    pub place: u8,
    /// The record is expected there.
    pub sequence: u8,
}

/// A record on flash: what all keys of the block hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Grows with every record of the block; 0 in a record of another block.
    pub sequence: u8,
    /// By key.
    pub values: [Value; KEYS_MAX],
    /// By key: where its value is, if values are apart.
    pub items: [Item; KEYS_MAX],
    /// Whether it survives a loss of power.
    pub durability: Durability,
}

/// Where a value is, and which record is expected there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// Where among the values.
    pub place: u8,
    /// Of the record.
    pub sequence: u8,
}

/// A value that lies apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueRecord {
    /// Of the record with which it was written; 0 in one of another block.
    pub sequence: u8,
    /// The value.
    pub value: Value,
    /// Whether it survives a loss of power.
    pub is_durable: bool,
}

/// Where a record is in the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Durability {
    /// In the index in memory alone: surely lost.
    MemoryOnly,
    /// In the drive's volatile cache: lost or not.
    Cached,
    /// On flash.
    Durable,
}

/// The block in the server's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Its header.
    pub header: Header,
    /// Our slots.
    pub slots: Vec<Slot>,
    /// The paper's slots.
    pub paper: Vec<PaperSlot>,
}

/// What was found wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// No order of the operations explains the answers.
    NotLinearizable,
    /// A read returned what was never written to its key.
    ForeignBytes,
    /// A read or the index shows a value of a key that was deleted.
    DeletedKeyBack,
    /// At rest the index has lost a write that was acknowledged.
    LostWrite,
    /// At rest the cache holds another value than the index.
    StaleForEver,
    /// Nothing can happen any more, and a living client waits.
    WaitsForEver,
    /// Clients give way to each other again and again, and nothing is done.
    Livelock,
}

/// A state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The block.
    pub memory: Memory,
    /// Records by place.
    pub flash: Vec<Record>,
    /// Values that lie apart, by place.
    pub values: Vec<ValueRecord>,
    /// The server.
    pub server: Server,
    /// The clients.
    pub clients: Vec<Client>,
    /// By key.
    pub judges: Vec<Judge>,
    /// What may still go wrong.
    pub budget: Budget,
    /// How often a client has given way since an operation was last done.
    pub given_way: u8,
    /// The first thing that was wrong; nothing happens after it.
    pub fault: Option<Fault>,
}
