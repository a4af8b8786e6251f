//! A priority of one's own, in place of the policy of the configuration.

use base::NodeId;
use std::fmt::Debug;

/// A demand that competes for its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Competitor {
    /// The sender of the data.
    pub source: NodeId,
    /// The receiver of the data.
    pub target: NodeId,
    /// Its length in bytes.
    pub bytes: u32,
    /// Bytes that are not granted yet.
    pub remaining: u32,
    /// Whether it is the answer to a read; a write otherwise.
    pub is_answer: bool,
    /// Its place in the order of arrival at the switch, from 1.
    pub order: u64,
}

/// Decides which demand wins. It is asked when a demand begins to compete and after each of its
/// grants. Equal input must give equal output, or runs do not repeat.
pub trait Priority: Debug + Send + Sync {
    /// The least value goes first; of equal ones, the demand that has come first.
    fn of(&self, competitor: &Competitor) -> u32;
}
