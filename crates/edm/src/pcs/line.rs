//! Whose a data block is: what both ends of a line know from the blocks that have been on it.

use super::block::Content;
use super::multiplex::Policy;

/// The two kinds of traffic on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Memory messages, notifications and grants.
    Memory,
    /// Ordinary frames.
    Frame,
}

impl Class {
    /// The other one.
    pub const fn other(self) -> Class {
        match self {
            Class::Memory => Class::Frame,
            Class::Frame => Class::Memory,
        }
    }
}

/// The state of a line, a function of the blocks sent so far and of nothing else: transmitter and
/// receiver each keep one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    policy: Policy,
    pub(super) message_open: bool,
    pub(super) frame_open: bool,
    /// The class with the last turn. After an idle line it is the frames', so that memory is first.
    last: Class,
}

impl Line {
    pub(super) fn new(policy: Policy) -> Line {
        Line { policy, message_open: false, frame_open: false, last: Class::Frame }
    }

    /// Whose turn it is when both classes wait.
    #[inline]
    pub(super) fn turn(&self) -> Class {
        self.last.other()
    }

    /// Whose the next block is, should it be a data block; `None` when nothing is open.
    #[inline]
    pub(super) fn owner_of_data(&self) -> Option<Class> {
        match (self.message_open, self.frame_open) {
            (false, false) => None,
            (true, false) => Some(Class::Memory),
            (false, true) => Some(Class::Frame),
            (true, true) if self.policy == Policy::Strict => Some(Class::Memory),
            (true, true) => Some(self.turn()),
        }
    }

    /// Moves on by one block.
    #[inline]
    pub(super) fn observe(&mut self, content: &Content) {
        self.last = match content {
            Content::Data(_) => self.owner_of_data().unwrap_or(self.last),
            // A pass: the class with the turn has nothing to send.
            Content::Idle if self.message_open && self.frame_open => self.turn(),
            Content::Idle => Class::Frame,
            Content::Start(_) | Content::Terminate(_) | Content::OrderedSet { .. } => Class::Frame,
            _ => Class::Memory,
        };
        match content {
            Content::Start(_) => self.frame_open = true,
            Content::Terminate(_) => self.frame_open = false,
            Content::MemoryStart(_) => self.message_open = true,
            Content::MemoryEnd(_) | Content::MemorySingle(_) => self.message_open = false,
            _ => {}
        }
    }
}
