//! Names of things that every floor talks about.

/// A place in the rack: a compute, memory or storage node, numbered from zero. Designs that serve
/// storage volumes number the volumes after the client nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As an index into a table of nodes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One request of a run, numbered from zero in the order in which the workload made them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct RequestId(pub u64);

/// Kind of access to remote memory or storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Bytes come from the target to the source.
    Read,
    /// Bytes go from the source to the target.
    Write,
    /// An atomic read-modify-write of one 8-byte word at the target; `bytes` is the size of the
    /// answer.
    ReadModifyWrite,
}

impl Operation {
    /// The name used in files and records.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::ReadModifyWrite => "read-modify-write",
        }
    }
}

/// One request as the workload makes it and every design receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number in this run.
    pub id: RequestId,
    /// Kind of access.
    pub operation: Operation,
    /// The requesting node.
    pub source: NodeId,
    /// The node whose memory or storage is accessed. Equal to `source` for local memory, which no
    /// design serves.
    pub target: NodeId,
    /// The first byte at the target that it is about; 0 where the workload makes no addresses.
    pub address: u64,
    /// The payload that is read or written; at least one byte.
    pub bytes: crate::Bytes,
}
