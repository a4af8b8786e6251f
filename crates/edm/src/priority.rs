//! A priority of one's own, in place of the policy of the configuration.

use base::{Decision, NodeId};

/// A demand that competes for its ports: the decision is its priority. The least value goes first;
/// of equal ones, the demand that has come first. It is asked for when a demand begins to compete,
/// and after each of its grants.
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

impl Decision for Competitor {
    type Answer = u32;
    const NAME: &'static str = "priority";
    const NEUTRAL: u32 = 0;
}
