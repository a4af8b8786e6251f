//! Asymmetric namespace access (5.16.1.13): which groups of namespaces are reached how by this
//! controller.

use crate::CodecError;
use crate::layout::{codes, layout};
use crate::range::list;
use zerocopy::little_endian::U32;

codes! {
    /// State of a path to a group.
    pub enum AnaState: u8 {
        /// As well as by any controller.
        Optimized = 0x1,
        /// Less well.
        NonOptimized = 0x2,
        /// Not now.
        Inaccessible = 0x3,
        /// Never again.
        PersistentLoss = 0x4,
        /// Between two of the others.
        Change = 0xf,
    }
}

layout! {
    /// Figure 219.
    pub struct LogHead [16] {
        /// Counts changes of the log.
        changes: u64 = 0,
        /// Groups that follow.
        groups: u16 = 8,
    }
}

layout! {
    /// Figure 220.
    pub struct GroupHead [32] {
        /// Which group.
        group: u32 = 0,
        /// Namespaces that follow.
        namespaces: u32 = 4,
        /// The log's count when the group last changed.
        changes: u64 = 8,
        /// The state.
        state: AnaState = 16,
    }
}

/// A group of namespaces that change their state together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnaGroup {
    /// Which group, from 1 on.
    pub group: u32,
    /// The log's count when the group last changed.
    pub changes: u64,
    /// The state.
    pub state: AnaState,
    /// Its namespaces, rising; empty when the host requested groups only.
    pub namespaces: Vec<u32>,
}

/// The log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnaLog {
    /// Counts changes.
    pub changes: u64,
    /// The groups, rising; at most 65,535.
    pub groups: Vec<AnaGroup>,
}

impl AnaLog {
    /// As bytes, as long as it takes.
    pub fn encode(&self) -> Vec<u8> {
        let count = self.groups.len().min(usize::from(u16::MAX));
        let mut bytes = LogHead { changes: self.changes, groups: count as u16 }.encode().to_vec();
        for group in &self.groups[..count] {
            let namespaces = group.namespaces.len() as u32;
            let AnaGroup { group: id, changes, state, .. } = *group;
            bytes.extend_from_slice(&GroupHead { group: id, namespaces, changes, state }.encode());
            group.namespaces.iter().for_each(|id| bytes.extend_from_slice(&id.to_le_bytes()));
        }
        bytes
    }

    /// Reads a whole log; fails when a count says more than there is, before memory is taken for
    /// it.
    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let head = LogHead::decode(bytes)?;
        let mut rest = &bytes[LogHead::BYTES..];
        let groups = (0..head.groups).map(|_| read_group(&mut rest)).collect::<Result<_, _>>()?;
        Ok(AnaLog { changes: head.changes, groups })
    }
}

fn read_group(rest: &mut &[u8]) -> Result<AnaGroup, CodecError> {
    let head = GroupHead::decode(rest)?;
    let behind = &rest[GroupHead::BYTES..];
    let ids: &[U32] = list("ANA group", behind, head.namespaces as usize)?;
    *rest = &behind[ids.len() * 4..];
    let namespaces = ids.iter().map(|id| id.get()).collect();
    Ok(AnaGroup { group: head.group, changes: head.changes, state: head.state, namespaces })
}
