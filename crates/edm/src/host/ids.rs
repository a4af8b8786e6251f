//! Message ids towards a node, and what is known of those from it.

use super::WRITE_ID;
use crate::message::MessageId;

/// The next message ids towards one node: kept for ever, so that a late answer does not meet a new
/// request with its id.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextIds {
    pub read: u8,
    pub write: u8,
    /// The id of the last answer to it that is over; `WRITE_ID` before the first.
    pub answered: u8,
}

pub(super) const FIRST_IDS: NextIds = NextIds { read: 0, write: 0, answered: WRITE_ID };

impl NextIds {
    pub fn read(&self) -> MessageId {
        MessageId(self.read)
    }
    pub fn write(&self) -> MessageId {
        MessageId(WRITE_ID | self.write)
    }
}
