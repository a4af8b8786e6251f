//! The host's side of a write.

use crate::pdu::{HostData, PduError, PduKind, ReadyToTransfer};
use crate::transfer::{next_piece, same_command};
use std::collections::VecDeque;

/// Data of one command to the controller, that do not go in the capsule. Feed every R2T of the
/// command, send what [`HostWrite::next_data`] gives until it gives `None`.
#[derive(Clone, Debug)]
pub struct HostWrite {
    command: u16,
    length: u32,
    /// Bytes requested by R2Ts so far.
    asked: u32,
    /// R2Ts whose data have not all been given out, oldest first; at most `open_max`.
    open: VecDeque<Open>,
    open_max: u32,
    piece_max: u32,
}

/// An R2T whose data have not all been given out.
#[derive(Clone, Copy, Debug)]
struct Open {
    tag: u16,
    next: u32,
    end: u32,
}

impl HostWrite {
    /// `length` bytes of command `command`. `ready_max_minus_one` is the host's own MAXR2T,
    /// `host_data_max` the controller's MAXH2CDATA.
    pub fn new(command: u16, length: u32, ready_max_minus_one: u32, host_data_max: u32) -> Self {
        let open_max = ready_max_minus_one.saturating_add(1);
        HostWrite { command, length, asked: 0, open: VecDeque::new(), open_max, piece_max: host_data_max.max(1) }
    }

    /// As [`HostWrite::new`] with the same limits, and keeps the memory of the last command.
    pub fn restart(&mut self, command: u16, length: u32) {
        self.open.clear();
        (self.command, self.length, self.asked) = (command, length, 0);
    }

    /// The controller asks. A second request while the first is open is allowed up to MAXR2T; each
    /// has to go on where the last one ended.
    pub fn on_ready(&mut self, ready: &ReadyToTransfer) -> Result<(), PduError> {
        same_command("CCCID", ready.command, self.command)?;
        if self.open.len() >= self.open_max as usize {
            let got = self.open.len() as u64 + 1;
            return Err(PduError::LimitExceeded { what: "open R2Ts", got, most: self.open_max.into() });
        }
        next_piece(PduKind::ReadyToTransfer, ready.offset, ready.length, self.asked, self.length)?;
        self.asked += ready.length;
        self.open.push_back(Open { tag: ready.tag, next: ready.offset, end: self.asked });
        Ok(())
    }

    /// The next data to send, at most MAXH2CDATA of them; `None` until the controller asks again.
    pub fn next_data(&mut self) -> Option<HostData> {
        let open = self.open.front_mut()?;
        let length = (open.end - open.next).min(self.piece_max);
        let (tag, offset) = (open.tag, open.next);
        open.next += length;
        let is_last = open.next == open.end;
        if is_last {
            self.open.pop_front();
        }
        Some(HostData { command: self.command, tag, offset, length, is_last })
    }

    /// Whether every byte was given out.
    pub fn is_sent(&self) -> bool {
        self.asked == self.length && self.open.is_empty()
    }
}
