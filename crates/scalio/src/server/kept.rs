//! What a server knows after a restart, before it takes requests: another one begins with it.

use super::{Server, ServerConfig};
use crate::{SegmentPointer, Sequence, Value};

/// A zone of the log, as a restart has found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptZone {
    /// Whether it can be filled anew; only then nothing in it is of use.
    pub is_free: bool,
    /// Whether it stays as it is, since something in it could not be forgotten.
    pub is_kept: bool,
    /// Bytes of segments and records that are of use.
    pub live: u64,
    /// Records among them.
    pub records: u32,
}

/// What a server knows that has done nothing since its restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// One more after each restart.
    pub epoch: u32,
    /// The last sequence that may have been used.
    pub sequence: Sequence,
    /// Where the keys of each of its blocks are listed, by `block / devices`.
    pub pointers: Vec<Option<SegmentPointer>>,
    /// The zones.
    pub zones: Vec<KeptZone>,
    /// The open zone of segments and that of records, each with its first unused sector.
    pub open: [Option<(u32, u32)>; 2],
}

impl<V: Value> Server<V> {
    /// What it knows. It has to have recovered, and not to have taken a request.
    pub fn kept(&self) -> Kept {
        let (zones, open) = self.log.kept();
        Kept { epoch: self.epoch, sequence: self.sequence, pointers: self.pointers.clone(), zones, open }
    }

    /// A server that begins with what an earlier one knew; its blocks are as that one left them.
    /// `None` where that is of a server of another size, or of none.
    pub fn resume(config: ServerConfig, kept: Kept) -> Option<Server<V>> {
        let mut server = Server::new(config);
        let Kept { epoch, sequence, pointers, zones, open } = kept;
        let device = u64::from(config.zones) * u64::from(config.zone_sectors);
        let is_inside = |pointer: &SegmentPointer| {
            let end = pointer.extent.sector.checked_add(pointer.extent.sectors.into());
            end.is_some_and(|end| end <= device)
        };
        if pointers.len() != server.pointers.len() || !pointers.iter().flatten().all(is_inside) {
            return None;
        }
        server.log.resume(&zones, open, pointers.iter().flatten().map(|pointer| pointer.extent))?;
        (server.epoch, server.sequence, server.pointers) = (epoch, sequence, pointers);
        Some(server)
    }
}
