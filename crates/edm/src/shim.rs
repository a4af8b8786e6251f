//! The load/store shim: an application's virtual range, backed page by page by local or remote
//! memory (paper 3.3, "Application integration").
//!
//! [`AddressMap`] knows what backs which page. [`Shim`] turns loads, stores and atomic operations
//! into [`Access`]es, cut at page boundaries: the local ones go to the node's own memory
//! controller, the remote ones have an EDM message ([`Access::body`]). It moves no data and keeps
//! no state of an access.

use crate::message::{Body, Modify};
use base::NodeId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of the word that an atomic operation works on.
pub const WORD_BYTES: u64 = 8;
/// The largest page, so that a piece of an access always fits the size of a message.
pub const PAGE_BYTES_MAX: u64 = 1 << 30;

/// Request of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Works on one word atomically, wherever it is.
    Modify(Modify),
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Operation::Load => "load",
            Operation::Store => "store",
            Operation::Modify(_) => "atomic operation",
        }
    }
}

/// What backs a page, with the address in that memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// This node's own memory.
    Local {
        /// The physical address.
        physical: u64,
    },
    /// Another node's.
    Remote {
        /// The node.
        node: NodeId,
        /// The address there.
        address: u64,
    },
}

impl Place {
    fn address(self) -> u64 {
        match self {
            Place::Local { physical } => physical,
            Place::Remote { address, .. } => address,
        }
    }

    /// The place `offset` bytes on; [`AddressMap`] has checked that it exists.
    fn plus(self, offset: u64) -> Place {
        match self {
            Place::Local { physical } => Place::Local { physical: physical + offset },
            Place::Remote { node, address } => Place::Remote { node, address: address + offset },
        }
    }
}

/// A part of an access that lies in one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first virtual address.
    pub virtual_address: u64,
    /// Where it starts in the application's buffer, in bytes.
    pub offset: u64,
    /// Its bytes, at most a page.
    pub bytes: u32,
}

impl Piece {
    /// Its place in the application's buffer, in bytes.
    pub fn buffer_range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.bytes)
    }
}

/// One request to one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which part of the application's access it is.
    pub piece: Piece,
    /// The destination.
    pub place: Place,
    /// What it does there.
    pub operation: Operation,
}

impl Access {
    /// The node and the message of a remote access; `None` for a local one.
    pub fn body(&self) -> Option<(NodeId, Body)> {
        let Place::Remote { node, address } = self.place else { return None };
        let bytes = self.piece.bytes;
        let body = match self.operation {
            Operation::Load => Body::ReadRequest { address, bytes },
            Operation::Store => Body::WriteRequest { address, bytes, last: true },
            Operation::Modify(modify) => Body::ReadModifyWrite { address, modify },
        };
        Some((node, body))
    }
}

/// Reason why a range cannot be mapped, or an address not accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MapError {
    /// A page size that is none.
    #[error("a page of {got} bytes: allowed are powers of two from {WORD_BYTES} to {PAGE_BYTES_MAX}")]
    PageSize {
        /// Its bytes.
        got: u64,
    },
    /// A range of no bytes.
    #[error("an empty range at {address:#x}: allowed is at least one byte")]
    Empty {
        /// The address.
        address: u64,
    },
    /// Not at a page boundary.
    #[error("{field} {got:#x} is not a multiple of the page of {page_bytes} bytes")]
    Misaligned {
        /// The of the numbers.
        field: &'static str,
        /// The number.
        got: u64,
        /// Bytes of a page.
        page_bytes: u64,
    },
    /// Beyond the last address.
    #[error("{bytes} bytes from {address:#x} reach beyond the last 64-bit address")]
    Overflow {
        /// The first address.
        address: u64,
        /// Bytes of the range.
        bytes: u64,
    },
    /// Part of it is mapped already.
    #[error("{bytes} bytes from {address:#x} overlap the {mapped_bytes} bytes that are mapped from {mapped:#x}")]
    Overlap {
        /// The first address of the new range.
        address: u64,
        /// Its bytes.
        bytes: u64,
        /// The first address of the mapped range.
        mapped: u64,
        /// Its bytes.
        mapped_bytes: u64,
    },
    /// Nothing is mapped there.
    #[error("{access} at {address:#x}: no memory is mapped there")]
    Unmapped {
        /// The access.
        access: &'static str,
        /// The first address that is not mapped.
        address: u64,
    },
    /// An atomic operation on less or more than a word.
    #[error("atomic operation on {bytes} bytes at {address:#x}: allowed is one word, {WORD_BYTES} aligned bytes")]
    Word {
        /// The address.
        address: u64,
        /// Length in bytes.
        bytes: u64,
    },
}

/// A range of pages with one backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapping {
    bytes: u64,
    place: Place,
}

/// What backs which virtual page.
#[derive(Clone, Debug)]
pub struct AddressMap {
    page_bytes: u64,
    /// By first virtual address; ranges never overlap.
    mappings: BTreeMap<u64, Mapping>,
}

impl AddressMap {
    /// Nothing is mapped.
    ///
    /// # Errors
    /// [`MapError::PageSize`] unless `page_bytes` is a power of two from [`WORD_BYTES`] to
    /// [`PAGE_BYTES_MAX`].
    pub fn new(page_bytes: u64) -> Result<AddressMap, MapError> {
        if !page_bytes.is_power_of_two() || !(WORD_BYTES..=PAGE_BYTES_MAX).contains(&page_bytes) {
            return Err(MapError::PageSize { got: page_bytes });
        }
        Ok(AddressMap { page_bytes, mappings: BTreeMap::new() })
    }

    /// Backs `length` bytes from `virtual_base` by this node's memory from `physical` on.
    ///
    /// # Errors
    /// A number that is not a multiple of the page, an empty range, one beyond the last address,
    /// one that is mapped already.
    pub fn map_local(&mut self, virtual_base: u64, length: u64, physical: u64) -> Result<(), MapError> {
        self.map(virtual_base, length, Place::Local { physical })
    }

    /// Backs `length` bytes from `virtual_base` by `node`'s memory from `remote_base` on.
    ///
    /// # Errors
    /// As [`AddressMap::map_local`].
    pub fn map_remote(
        &mut self,
        virtual_base: u64,
        length: u64,
        node: NodeId,
        remote_base: u64,
    ) -> Result<(), MapError> {
        self.map(virtual_base, length, Place::Remote { node, address: remote_base })
    }

    /// Takes back the whole range that was mapped at `virtual_base`.
    ///
    /// # Errors
    /// [`MapError::Unmapped`] when no range starts there.
    pub fn unmap(&mut self, virtual_base: u64) -> Result<(), MapError> {
        let unmapped = MapError::Unmapped { access: "unmap", address: virtual_base };
        self.mappings.remove(&virtual_base).map(|_| ()).ok_or(unmapped)
    }

    /// Cuts an access of `length` bytes from `address` at page boundaries and says where each piece
    /// is, in order.
    ///
    /// # Errors
    /// An address that is not mapped (then nothing may be accessed), an empty range or one beyond
    /// the last address, an atomic operation on anything but one aligned word.
    pub fn translate(&self, address: u64, length: u64, access: Operation) -> Result<Vec<Access>, MapError> {
        check_range(address, length)?;
        if matches!(access, Operation::Modify(_)) && (length != WORD_BYTES || !address.is_multiple_of(WORD_BYTES)) {
            return Err(MapError::Word { address, bytes: length });
        }
        let mut pieces = Vec::new();
        let mut offset = 0;
        while offset < length {
            let piece = self.piece(address, offset, length);
            let place = self.place(piece.virtual_address, access)?;
            pieces.push(Access { piece, place, operation: access });
            offset += u64::from(piece.bytes);
        }
        Ok(pieces)
    }

    /// The piece from `offset` on, to the end of its page or of the access.
    fn piece(&self, address: u64, offset: u64, length: u64) -> Piece {
        let virtual_address = address + offset;
        let to_page_end = self.page_bytes - virtual_address % self.page_bytes;
        Piece { virtual_address, offset, bytes: to_page_end.min(length - offset) as u32 }
    }

    fn place(&self, address: u64, access: Operation) -> Result<Place, MapError> {
        match self.mappings.range(..=address).next_back() {
            Some((base, mapping)) if address - base < mapping.bytes => Ok(mapping.place.plus(address - base)),
            _ => Err(MapError::Unmapped { access: access.name(), address }),
        }
    }

    fn map(&mut self, virtual_base: u64, length: u64, place: Place) -> Result<(), MapError> {
        check_range(virtual_base, length)?;
        check_range(place.address(), length)?;
        let backing = if matches!(place, Place::Local { .. }) { "physical address" } else { "remote address" };
        let numbers = [("virtual address", virtual_base), ("length", length), (backing, place.address())];
        for (field, got) in numbers {
            if !got.is_multiple_of(self.page_bytes) {
                return Err(MapError::Misaligned { field, got, page_bytes: self.page_bytes });
            }
        }
        self.check_free(virtual_base, length)?;
        self.mappings.insert(virtual_base, Mapping { bytes: length, place });
        Ok(())
    }

    /// Ranges do not overlap, so only the last one that starts before the new one's end can be in
    /// its way.
    fn check_free(&self, address: u64, bytes: u64) -> Result<(), MapError> {
        match self.mappings.range(..=address + (bytes - 1)).next_back() {
            Some((base, mapping)) if base + (mapping.bytes - 1) >= address => {
                Err(MapError::Overlap { address, bytes, mapped: *base, mapped_bytes: mapping.bytes })
            }
            _ => Ok(()),
        }
    }
}

/// A range of at least one byte whose last byte has an address.
fn check_range(address: u64, bytes: u64) -> Result<(), MapError> {
    if bytes == 0 {
        return Err(MapError::Empty { address });
    }
    match address.checked_add(bytes - 1) {
        Some(_) => Ok(()),
        None => Err(MapError::Overflow { address, bytes }),
    }
}

/// Loads and stores over an [`AddressMap`].
#[derive(Clone, Debug)]
pub struct Shim {
    /// What backs which page.
    pub map: AddressMap,
}

impl Shim {
    /// A shim over `map`.
    pub fn new(map: AddressMap) -> Shim {
        Shim { map }
    }

    /// Reads `length` bytes from `address`. For errors see [`AddressMap::translate`].
    pub fn load(&self, address: u64, length: u64) -> Result<Vec<Access>, MapError> {
        self.map.translate(address, length, Operation::Load)
    }

    /// Writes `length` bytes to `address`; [`Piece::buffer_range`] says which bytes go where.
    pub fn store(&self, address: u64, length: u64) -> Result<Vec<Access>, MapError> {
        self.map.translate(address, length, Operation::Store)
    }

    /// Stores `new` in the word at `address` if it holds `expected`.
    pub fn compare_and_swap(&self, address: u64, expected: u64, new: u64) -> Result<Access, MapError> {
        self.modify(address, Modify::CompareAndSwap { expected, new })
    }

    /// Adds `addend` to the word at `address`.
    pub fn fetch_and_add(&self, address: u64, addend: u64) -> Result<Access, MapError> {
        self.modify(address, Modify::FetchAndAdd { addend })
    }

    /// Stores `new` in the word at `address` and returns the old one.
    pub fn swap(&self, address: u64, new: u64) -> Result<Access, MapError> {
        self.modify(address, Modify::Swap { new })
    }

    /// Any atomic operation on the word at `address`.
    pub fn modify(&self, address: u64, modify: Modify) -> Result<Access, MapError> {
        let pieces = self.map.translate(address, WORD_BYTES, Operation::Modify(modify))?;
        // An aligned word never crosses a page: a page is at least a word.
        pieces.first().copied().ok_or(MapError::Word { address, bytes: WORD_BYTES })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;
    const NODE: NodeId = NodeId(7);

    /// Two local pages at 0x10000, then three remote ones right behind them.
    fn shim() -> Shim {
        let mut map = AddressMap::new(PAGE).unwrap();
        map.map_local(0x10000, 2 * PAGE, 0x8000_0000).unwrap();
        map.map_remote(0x12000, 3 * PAGE, NODE, 0x4_0000).unwrap();
        Shim::new(map)
    }

    #[test]
    fn a_load_across_the_border_is_cut_into_local_and_remote_pieces() {
        let pieces = shim().load(0x11ff8, 24).unwrap();
        let expected = [
            Access {
                piece: Piece { virtual_address: 0x11ff8, offset: 0, bytes: 8 },
                place: Place::Local { physical: 0x8000_1ff8 },
                operation: Operation::Load,
            },
            Access {
                piece: Piece { virtual_address: 0x12000, offset: 8, bytes: 16 },
                place: Place::Remote { node: NODE, address: 0x4_0000 },
                operation: Operation::Load,
            },
        ];
        assert_eq!(pieces, expected);
        assert_eq!(pieces[1].piece.buffer_range(), 8..24);
        assert_eq!(pieces[0].body(), None);
        assert_eq!(pieces[1].body(), Some((NODE, Body::ReadRequest { address: 0x4_0000, bytes: 16 })));
    }

    #[test]
    fn stores_and_atomic_operations_become_edm_messages() {
        let store = shim().store(0x13000, 8).unwrap();
        assert_eq!(store[0].body(), Some((NODE, Body::WriteRequest { address: 0x4_1000, bytes: 8, last: true })));
        let locked = shim().compare_and_swap(0x13008, 0, 1).unwrap();
        let modify = Modify::CompareAndSwap { expected: 0, new: 1 };
        assert_eq!(locked.body(), Some((NODE, Body::ReadModifyWrite { address: 0x4_1008, modify })));
        assert_eq!(shim().fetch_and_add(0x10000, 3).unwrap().place, Place::Local { physical: 0x8000_0000 });
        assert_eq!(shim().swap(0x10000, 3).unwrap().operation, Operation::Modify(Modify::Swap { new: 3 }));
    }

    #[test]
    fn the_first_address_without_memory_is_named() {
        let unmapped = |access, address| Err(MapError::Unmapped { access, address });
        assert_eq!(shim().load(0xffff, 1), unmapped("load", 0xffff));
        assert!(shim().load(0x14fff, 1).is_ok());
        assert_eq!(shim().store(0x14fff, 2), unmapped("store", 0x15000));
        assert_eq!(shim().load(0x15000, 1).unwrap_err().to_string(), "load at 0x15000: no memory is mapped there");
    }

    #[test]
    fn an_atomic_operation_takes_one_aligned_word() {
        let map = shim().map;
        let modify = Operation::Modify(Modify::Swap { new: 1 });
        assert_eq!(map.translate(0x10004, 8, modify), Err(MapError::Word { address: 0x10004, bytes: 8 }));
        assert_eq!(map.translate(0x10000, 16, modify), Err(MapError::Word { address: 0x10000, bytes: 16 }));
        assert_eq!(map.translate(0x11ff8, 8, modify).map(|pieces| pieces.len()), Ok(1));
    }

    #[test]
    fn bad_ranges_are_refused() {
        for got in [0, 3, 4, 4097, PAGE_BYTES_MAX * 2] {
            assert!(matches!(AddressMap::new(got), Err(MapError::PageSize { .. })), "{got}");
        }
        let mut map = AddressMap::new(PAGE).unwrap();
        let misaligned = |field, got| Err(MapError::Misaligned { field, got, page_bytes: PAGE });
        assert_eq!(map.map_local(1, PAGE, 0), misaligned("virtual address", 1));
        assert_eq!(map.map_local(0, PAGE + 8, 0), misaligned("length", PAGE + 8));
        assert_eq!(map.map_remote(0, PAGE, NODE, 8), misaligned("remote address", 8));
        assert_eq!(map.map_local(0, 0, 0), Err(MapError::Empty { address: 0 }));
        assert_eq!(map.translate(5, 0, Operation::Load), Err(MapError::Empty { address: 5 }));
        let last_page = u64::MAX - PAGE + 1;
        assert!(matches!(map.map_local(last_page, 2 * PAGE, 0), Err(MapError::Overflow { .. })));
        assert!(matches!(map.map_local(0, 2 * PAGE, last_page), Err(MapError::Overflow { .. })));
        assert_eq!(map.map_local(last_page, PAGE, last_page), Ok(()));
        let last_byte = map.translate(u64::MAX, 1, Operation::Load).unwrap();
        assert_eq!(last_byte[0].place, Place::Local { physical: u64::MAX });
        assert!(matches!(map.translate(u64::MAX, 2, Operation::Load), Err(MapError::Overflow { .. })));
    }

    #[test]
    fn ranges_may_touch_but_not_overlap() {
        let mut map = shim().map;
        for (base, pages, free) in [(0xf000, 1, true), (0xe000, 3, false), (0x14000, 2, false), (0x10000, 1, false)] {
            assert_eq!(map.clone().map_local(base, pages * PAGE, 0).is_ok(), free, "{base:#x}");
        }
        let overlap = MapError::Overlap { address: 0x11000, bytes: PAGE, mapped: 0x10000, mapped_bytes: 2 * PAGE };
        assert_eq!(map.map_local(0x11000, PAGE, 0), Err(overlap));
        map.unmap(0x10000).unwrap();
        assert_eq!(map.map_local(0x11000, PAGE, 0), Ok(()));
        assert_eq!(map.unmap(0x10000), Err(MapError::Unmapped { access: "unmap", address: 0x10000 }));
    }

    proptest! {
        #[test]
        fn the_pieces_cover_the_access_and_each_byte_is_where_the_map_says(
            page_bits in 3u32..13, start in 0u64..5_000, length in 1u64..9_000,
        ) {
            let page = 1u64 << page_bits;
            let pages = 16_384 / page;
            let mut map = AddressMap::new(page).unwrap();
            for index in 0..pages {
                // Backing in reverse order, local and remote in turn: no two neighbours lie side by
                // side.
                let backing = (pages - index) * page;
                match index % 2 {
                    0 => map.map_local(index * page, page, backing).unwrap(),
                    _ => map.map_remote(index * page, page, NODE, backing).unwrap(),
                }
            }
            let mut next = 0;
            for access in map.translate(start, length, Operation::Load).unwrap() {
                let Piece { virtual_address, offset, bytes } = access.piece;
                prop_assert_eq!((offset, virtual_address), (next, start + next));
                let (index, within) = (virtual_address / page, virtual_address % page);
                prop_assert!(within + u64::from(bytes) <= page);
                prop_assert_eq!(access.place.address(), (pages - index) * page + within);
                prop_assert_eq!(access.body().is_some(), index % 2 == 1);
                next += u64::from(bytes);
            }
            prop_assert_eq!(next, length);
        }
    }
}
