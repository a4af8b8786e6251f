//! The target's side of a read.

use crate::pdu::ControllerData;

/// Data of one command to the host: give out with [`TargetRead::next_data`], then send a response
/// unless the last said success.
#[derive(Clone, Debug)]
pub struct TargetRead {
    command: u16,
    length: u32,
    given: u32,
    piece_max: u32,
    may_flag: bool,
    is_stopped: bool,
}

impl TargetRead {
    /// `length` bytes of command `command`, at most `piece_max` a PDU (at least 1 is taken).
    /// `may_flag`: flow control is off, and the command has succeeded with a result of zero, so
    /// that the last PDU may say so.
    pub fn new(command: u16, length: u32, piece_max: u32, may_flag: bool) -> Self {
        TargetRead { command, length, given: 0, piece_max: piece_max.max(1), may_flag, is_stopped: false }
    }

    /// The next data to send; `None` when all were given out or the read was stopped.
    pub fn next_data(&mut self) -> Option<ControllerData> {
        if self.is_stopped || self.given == self.length {
            return None;
        }
        let (offset, length) = (self.given, (self.length - self.given).min(self.piece_max));
        self.given += length;
        let is_last = self.given == self.length;
        Some(ControllerData { command: self.command, offset, length, is_last, is_success: is_last && self.may_flag })
    }

    /// The medium failed behind what was given out: no more data, a response with the failure has
    /// to follow. Too late, and false, when success was already said.
    pub fn stop(&mut self) -> bool {
        self.is_stopped = self.needs_response();
        self.is_stopped
    }

    /// Whether a response has to follow the data: unless the last of them reported success.
    pub fn needs_response(&self) -> bool {
        self.is_stopped || !self.may_flag || self.length == 0 || self.given < self.length
    }
}
