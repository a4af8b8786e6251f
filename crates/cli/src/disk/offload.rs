//! Commands of S-Direct, which the target carries out by itself.

use super::{failed, open, part, pieces};
use crate::arguments::DiskArguments;
use crate::failure::{Failure, bad_input, print};
use base::Bytes;

/// Places that one command can name.
const PLACES_MAX: usize = 32;

/// Has a part of the disk written to other places.
pub fn cast(arguments: &DiskArguments, at: Bytes, bytes: Option<Bytes>, to: &[(u32, Bytes)]) -> Result<(), Failure> {
    if to.len() > PLACES_MAX {
        return Err(bad_input(format!("{} places; a command names at most {PLACES_MAX}", to.len())));
    }
    let mut disk = open(arguments)?;
    let (start, blocks) = part(&disk, at, bytes)?;
    let block = disk.block_bytes();
    if let Some((namespace, place)) = to.iter().find(|(_, place)| !place.count().is_multiple_of(block)) {
        return Err(bad_input(format!(
            "--to {namespace}:{place}: not a multiple of the disk's block, {}",
            Bytes::new(block)
        )));
    }
    for extent in pieces(&disk, start, blocks) {
        let passed = extent.start - start;
        let places: Vec<_> = to.iter().map(|(namespace, at)| (*namespace, at.count() / block + passed)).collect();
        let missing = disk.multi_cast(extent, &places).map_err(failed)?;
        if let Some(first) = missing.first() {
            let (namespace, at) = to[*first];
            let others = to.len() - missing.len();
            return Err(Failure::Failed(format!(
                "{namespace}:{at} does not hold all of it; {others} others do up to there"
            )));
        }
    }
    disk.flush_all().map_err(failed)?;
    disk.disconnect().map_err(failed)?;
    print(&format!("{} at {} places, flushed\n", Bytes::new(blocks * block), to.len()))
}

/// Has two words added.
pub fn add(arguments: &DiskArguments, first: Bytes, second: Bytes) -> Result<(), Failure> {
    let mut disk = open(arguments)?;
    let sum = disk.add_write(first.count(), second.count()).map_err(failed)?;
    disk.flush().map_err(failed)?;
    disk.disconnect().map_err(failed)?;
    print(&format!("{sum}\n"))
}
