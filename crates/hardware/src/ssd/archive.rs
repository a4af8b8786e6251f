//! The saved states of many regions in one file, with the shape of what they were saved from.
//!
//! Little-endian throughout: eight bytes that name the format and its version; how many numbers the
//! shape has (4 bytes), and for each the length of its name (1), the name, the number (8); how many
//! regions there are (4), and for each its name (4), its length (8) and its bytes, which are those
//! of [`SoftwareDefinedFlash::save`](super::SoftwareDefinedFlash::save); CRC-32 of all that (4).
//! Nothing may follow.

use super::ftl::SnapshotError;
use crc32fast::Hasher;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};

const MAGIC: [u8; 8] = *b"RWFLASH\x01";
/// No shape has more numbers. Ours.
const SHAPE_MAX: u32 = 256;

/// The saved states of regions, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionArchive {
    shape: Vec<(String, u64)>,
    regions: BTreeMap<u32, Vec<u8>>,
}

impl RegionArchive {
    /// An empty archive of a given shape: named numbers that the loading side must share. Names are
    /// cut at 255 bytes.
    pub fn new(shape: Vec<(String, u64)>) -> RegionArchive {
        RegionArchive { shape, regions: BTreeMap::new() }
    }
    /// Keeps the state of a region.
    pub fn put(&mut self, region: u32, state: Vec<u8>) {
        self.regions.insert(region, state);
    }
    /// The state of a region.
    pub fn get(&self, region: u32) -> Option<&[u8]> {
        self.regions.get(&region).map(Vec::as_slice)
    }
    /// The regions, in order.
    pub fn regions(&self) -> impl Iterator<Item = u32> + '_ {
        self.regions.keys().copied()
    }
    /// What it was saved from.
    pub fn shape(&self) -> &[(String, u64)] {
        &self.shape
    }
    /// Each number of `expected` that this shape has otherwise, with what it has; `None` where it
    /// lacks the name.
    pub fn differences<'a>(
        &'a self,
        expected: &'a [(String, u64)],
    ) -> impl Iterator<Item = (&'a str, u64, Option<u64>)> {
        expected.iter().filter_map(|(name, wanted)| {
            let own = self.shape.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
            (own != Some(*wanted)).then_some((name.as_str(), *wanted, own))
        })
    }
    /// Writes all of it.
    pub fn save(&self, target: impl Write) -> std::io::Result<()> {
        let mut sink = Sink { target, hasher: Hasher::new() };
        sink.bytes(&MAGIC)?;
        sink.bytes(&(self.shape.len() as u32).to_le_bytes())?;
        for (name, value) in &self.shape {
            let name = &name.as_bytes()[..name.len().min(usize::from(u8::MAX))];
            sink.bytes(&[name.len() as u8])?;
            sink.bytes(name)?;
            sink.bytes(&value.to_le_bytes())?;
        }
        sink.bytes(&(self.regions.len() as u32).to_le_bytes())?;
        for (region, state) in &self.regions {
            sink.bytes(&region.to_le_bytes())?;
            sink.bytes(&(state.len() as u64).to_le_bytes())?;
            sink.bytes(state)?;
        }
        let checksum = sink.hasher.clone().finalize();
        sink.target.write_all(&checksum.to_le_bytes())?;
        sink.target.flush()
    }
    /// Reads what [`save`](Self::save) wrote. Fails when it is something else, ends too early or
    /// too late, or has been changed on the way.
    pub fn read(source: impl Read) -> Result<RegionArchive, SnapshotError> {
        let mut source = Source { source, hasher: Hasher::new() };
        let magic: [u8; 8] = source.array()?;
        require(magic == MAGIC, || "it is no snapshot of flash, or one of another version".into())?;
        let count = u32::from_le_bytes(source.array()?);
        require(count <= SHAPE_MAX, || format!("a shape of {count} numbers, and at most {SHAPE_MAX} are possible"))?;
        let shape = (0..count).map(|_| source.number()).collect::<Result<_, _>>()?;
        let mut archive = RegionArchive::new(shape);
        for _ in 0..u32::from_le_bytes(source.array()?) {
            let region = u32::from_le_bytes(source.array()?);
            let length = u64::from_le_bytes(source.array()?);
            let state = source.bytes(length)?;
            require(archive.regions.insert(region, state).is_none(), || format!("region {region} comes twice"))?;
        }
        source.finish()?;
        Ok(archive)
    }
}

fn require(condition: bool, reason: impl FnOnce() -> String) -> Result<(), SnapshotError> {
    if condition { Ok(()) } else { Err(SnapshotError::Unusable(reason())) }
}

struct Sink<W> {
    target: W,
    hasher: Hasher,
}

impl<W: Write> Sink<W> {
    fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hasher.update(bytes);
        self.target.write_all(bytes)
    }
}

struct Source<R> {
    source: R,
    hasher: Hasher,
}

impl<R: Read> Source<R> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes).map_err(early)?;
        self.hasher.update(&bytes);
        Ok(bytes)
    }
    /// Memory is taken for what is there, not for what a length promises.
    fn bytes(&mut self, length: u64) -> Result<Vec<u8>, SnapshotError> {
        let mut bytes = Vec::new();
        let read = self.source.by_ref().take(length).read_to_end(&mut bytes)? as u64;
        require(read == length, || format!("it ends {} bytes too early", length - read))?;
        self.hasher.update(&bytes);
        Ok(bytes)
    }
    fn number(&mut self) -> Result<(String, u64), SnapshotError> {
        let [length] = self.array()?;
        let name = String::from_utf8(self.bytes(u64::from(length))?);
        let name = name.map_err(|_| SnapshotError::Unusable("a name in it is no text".into()))?;
        Ok((name, u64::from_le_bytes(self.array()?)))
    }
    fn finish(mut self) -> Result<(), SnapshotError> {
        let computed = self.hasher.clone().finalize();
        let stored = u32::from_le_bytes(self.array()?);
        require(computed == stored, || {
            format!("its checksum is {computed:#x}, and {stored:#x} was written: it is damaged")
        })?;
        let rest = self.source.by_ref().take(1).read_to_end(&mut Vec::new())?;
        require(rest == 0, || "something follows its end".into())
    }
}

fn early(error: std::io::Error) -> SnapshotError {
    match error.kind() {
        ErrorKind::UnexpectedEof => SnapshotError::Unusable("it ends too early".into()),
        _ => SnapshotError::Read(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> RegionArchive {
        let mut archive = RegionArchive::new(vec![("channels".into(), 16), ("pages".into(), 64)]);
        archive.put(3, vec![1, 2, 3]);
        archive.put(0, Vec::new());
        archive
    }

    fn bytes() -> Vec<u8> {
        let mut bytes = Vec::new();
        archive().save(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_saved_is_read_again() {
        let read = RegionArchive::read(bytes().as_slice()).unwrap();
        assert_eq!(read, archive());
        assert_eq!((read.get(3), read.get(1)), (Some([1, 2, 3].as_slice()), None));
        assert_eq!(read.regions().collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn any_byte_that_is_changed_lacking_or_too_many_is_an_error() {
        let whole = bytes();
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x40;
            assert!(RegionArchive::read(changed.as_slice()).is_err(), "byte {place} changed");
            assert!(RegionArchive::read(&whole[..place]).is_err(), "cut at {place}");
        }
        let longer = [whole.as_slice(), &[0]].concat();
        assert!(RegionArchive::read(longer.as_slice()).unwrap_err().to_string().contains("follows its end"));
    }

    #[test]
    fn differences_of_shape_are_named() {
        let expected = [("channels".to_owned(), 16), ("pages".to_owned(), 8), ("servers".to_owned(), 4)];
        let archive = archive();
        let differences: Vec<_> = archive.differences(&expected).collect();
        assert_eq!(differences, [("pages", 8, Some(64)), ("servers", 4, None)]);
    }
}
