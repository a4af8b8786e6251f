//! Memory of the storage node: the table, the objects, and the chunks that are not given out yet.
//! Everything but giving out is done by its NIC.

use super::slot::{METADATA_BYTES, Metadata, ObjectWord, SLOT_BYTES, SLOTS, Slot, SlotId};
use crate::{Key, Value};

/// Bytes that lead an object: the lengths of its key and value.
pub const OBJECT_HEADER_BYTES: u32 = 8;

/// How the pool is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolGeometry {
    /// Buckets of the table, at least one.
    pub buckets: u32,
    /// Bytes of a block, which holds one object; 256 in Ditto's shipped configuration.
    pub block_bytes: u32,
    /// Blocks of a chunk, at least one; 4,096 (1 MiB) there.
    pub chunk_blocks: u32,
    /// Chunks of the pool.
    pub chunks: u32,
}

impl PoolGeometry {
    /// Objects that the pool has room for.
    pub fn blocks(&self) -> u64 {
        u64::from(self.chunk_blocks) * u64::from(self.chunks)
    }
}

/// A key and its value, in a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Object<V> {
    /// The key: a fingerprint does not identify a key.
    pub key: Key,
    /// The value.
    pub value: V,
}

impl<V: Value> Object<V> {
    /// Its bytes in a block.
    pub fn bytes(&self) -> u32 {
        OBJECT_HEADER_BYTES + self.key.as_bytes().len() as u32 + self.value.bytes()
    }
}

/// A one-sided operation of a client on the pool.
#[derive(Clone, Debug, PartialEq)]
pub enum PoolRequest<V> {
    /// Reads `count` buckets from `first` on, as one.
    ReadBuckets {
        /// The first.
        first: u32,
        /// Number of buckets.
        count: u32,
    },
    /// Reads the block at an address.
    ReadObject {
        /// The address.
        address: u64,
    },
    /// Writes an object into the block at an address.
    WriteObject {
        /// The address.
        address: u64,
        /// The object.
        object: Object<V>,
    },
    /// Puts `new` in place of `expected`, if that is what the slot's word is.
    Swap {
        /// The slot.
        slot: SlotId,
        /// What must be found.
        expected: ObjectWord,
        /// What takes its place.
        new: ObjectWord,
    },
    /// Writes when a slot's object was last read.
    Touch {
        /// The slot.
        slot: SlotId,
        /// Now.
        accessed: base::Time,
    },
    /// Writes all replacement data of a slot.
    Describe {
        /// The slot.
        slot: SlotId,
        /// The written data.
        metadata: Metadata,
    },
}

/// What the pool answers.
#[derive(Clone, Debug, PartialEq)]
pub enum PoolAnswer<V> {
    /// The slots that were read.
    Slots(Vec<Slot>),
    /// What the block holds; nothing, when it was never written.
    Object(Option<Object<V>>),
    /// The word that was found, whether or not it was replaced.
    Found(ObjectWord),
    /// A write is done.
    Written,
}

impl<V: Value> PoolRequest<V> {
    /// Bytes of data that it carries to the pool.
    pub fn carried_bytes(&self) -> u32 {
        match self {
            PoolRequest::ReadBuckets { .. } | PoolRequest::ReadObject { .. } => 0,
            PoolRequest::WriteObject { object, .. } => object.bytes(),
            PoolRequest::Swap { .. } => 16,
            PoolRequest::Touch { .. } => 8,
            PoolRequest::Describe { .. } => METADATA_BYTES,
        }
    }
    /// Bytes of data that its answer carries back. A block is read whole, for its object's length
    /// is in it.
    pub fn answer_bytes(&self, geometry: &PoolGeometry) -> u32 {
        match self {
            PoolRequest::ReadBuckets { count, .. } => count * SLOTS as u32 * SLOT_BYTES,
            PoolRequest::ReadObject { .. } => geometry.block_bytes,
            PoolRequest::Swap { .. } => 8,
            PoolRequest::WriteObject { .. } | PoolRequest::Touch { .. } | PoolRequest::Describe { .. } => 0,
        }
    }
    /// Returns whether nobody waits for its answer: the client takes one, and does nothing with it.
    pub fn is_asynchronous(&self) -> bool {
        matches!(self, PoolRequest::Touch { .. } | PoolRequest::Describe { .. })
    }
}

/// The pool. Each request is done at once; a host decides when.
#[derive(Clone, Debug)]
pub struct Pool<V> {
    geometry: PoolGeometry,
    slots: Vec<Slot>,
    objects: Vec<Option<Object<V>>>,
    chunks_given: u32,
}

impl<V: Value> Pool<V> {
    /// An empty pool.
    pub fn new(geometry: PoolGeometry) -> Pool<V> {
        Pool {
            geometry,
            slots: vec![Slot::default(); geometry.buckets as usize * SLOTS],
            objects: Vec::new(),
            chunks_given: 0,
        }
    }

    /// How it is cut.
    pub fn geometry(&self) -> &PoolGeometry {
        &self.geometry
    }

    /// All slots, in the order of [`SlotId`].
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Chunks that clients have.
    pub fn chunks_given(&self) -> u32 {
        self.chunks_given
    }

    /// Allocates a chunk, if one is left: the work of the storage node's control core.
    pub fn give_chunk(&mut self) -> Option<u64> {
        if self.chunks_given == self.geometry.chunks {
            return None;
        }
        let blocks = self.geometry.chunk_blocks as usize;
        let start = u64::from(self.chunks_given) * blocks as u64 * u64::from(self.geometry.block_bytes);
        self.objects.resize_with(self.objects.len() + blocks, || None);
        self.chunks_given += 1;
        Some(start)
    }

    /// Executes an operation. If there is no such slot or block, it has no effect and returns the
    /// answer of an empty place.
    pub fn execute(&mut self, request: PoolRequest<V>) -> PoolAnswer<V> {
        match request {
            PoolRequest::ReadBuckets { first, count } => self.read_buckets(first, count),
            PoolRequest::ReadObject { address } => {
                PoolAnswer::Object(self.block(address).and_then(|block| block.clone()))
            }
            PoolRequest::WriteObject { address, object } => self.change(address, |block| *block = Some(object)),
            PoolRequest::Swap { slot, expected, new } => self.swap(slot, expected, new),
            PoolRequest::Touch { slot, accessed } => self.describe(slot, |metadata| metadata.accessed = accessed),
            PoolRequest::Describe { slot, metadata } => self.describe(slot, |place| *place = metadata),
        }
    }

    fn read_buckets(&self, first: u32, count: u32) -> PoolAnswer<V> {
        let slots = self.slots.iter().skip(first as usize * SLOTS).take(count as usize * SLOTS);
        PoolAnswer::Slots(slots.copied().collect())
    }

    fn swap(&mut self, slot: SlotId, expected: ObjectWord, new: ObjectWord) -> PoolAnswer<V> {
        let Some(slot) = self.slots.get_mut(slot.0 as usize) else {
            return PoolAnswer::Found(ObjectWord::EMPTY);
        };
        let found = slot.word;
        if found == expected {
            slot.word = new;
        }
        PoolAnswer::Found(found)
    }

    fn describe(&mut self, slot: SlotId, change: impl FnOnce(&mut Metadata)) -> PoolAnswer<V> {
        if let Some(slot) = self.slots.get_mut(slot.0 as usize) {
            change(&mut slot.metadata);
        }
        PoolAnswer::Written
    }

    fn change(&mut self, address: u64, change: impl FnOnce(&mut Option<Object<V>>)) -> PoolAnswer<V> {
        let index = (address / u64::from(self.geometry.block_bytes)) as usize;
        if let Some(block) = self.objects.get_mut(index) {
            change(block);
        }
        PoolAnswer::Written
    }

    fn block(&self, address: u64) -> Option<&Option<Object<V>>> {
        self.objects.get((address / u64::from(self.geometry.block_bytes)) as usize)
    }
}
