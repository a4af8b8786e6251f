//! Both ends of a queue pair over fabrics: submission and completion queue are of the same size and
//! share a connection (NVM Express Base 2.0, 3.3.2 and 2.2.2).
//!
//! Command ids are any 16 bits: the host makes them so that a late or repeated completion is
//! recognised, the target only compares them.

mod host;
mod target;

pub use host::HostQueue;
pub use target::TargetQueue;

/// The parameters of a queue, from Connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueShape {
    /// Queue, 0 the admin queue.
    pub id: u16,
    /// Entries: 2 to 65,536.
    size: u32,
    /// Completions carry SQHD, and success is never a flag alone.
    pub flow_control: bool,
}

impl QueueShape {
    /// `size_minus_one` as in Connect (SQSIZE); fails on 0, since a queue of one entry is always
    /// full.
    pub fn new(id: u16, size_minus_one: u16, flow_control: bool) -> Result<Self, QueueError> {
        if size_minus_one == 0 {
            return Err(QueueError::Size { got: 1 });
        }
        Ok(QueueShape { id, size: u32::from(size_minus_one) + 1, flow_control })
    }

    /// Entries.
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// `index` + 1 around the queue.
    const fn after(&self, index: u32) -> u32 {
        if index + 1 == self.size { 0 } else { index + 1 }
    }

    /// Steps from `from` to `to` around the queue.
    const fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { to + self.size - from }
    }
}

/// A violation at an end of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// No queue has that size.
    #[error("a queue of {got} entries, allowed are 2 to 65536")]
    Size {
        /// Entries.
        got: u32,
    },
    /// As many commands are outstanding as may be.
    #[error("{outstanding} commands are outstanding, allowed are {most}")]
    Full {
        /// Their number.
        outstanding: u32,
        /// The limit.
        most: u32,
    },
    /// A completion for a command that is not outstanding: never sent, or completed before.
    #[error("command {id:#06x} is not outstanding")]
    Unknown {
        /// The command.
        id: u16,
    },
    /// A command with the id of another that is outstanding: answered with
    /// [`Status::COMMAND_ID_CONFLICT`](crate::Status::COMMAND_ID_CONFLICT).
    #[error("command id {id:#06x} is in use")]
    InUse {
        /// The id.
        id: u16,
    },
    /// Success as a flag alone on a queue with flow control, where the host needs SQHD.
    #[error("success without a completion on queue {id}, which has flow control")]
    FlowControl {
        /// The queue.
        id: u16,
    },
}

#[cfg(test)]
mod tests;
