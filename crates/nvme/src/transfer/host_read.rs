//! The host's side of a read.

use crate::Status;
use crate::pdu::{ControllerData, PduError, PduKind};
use crate::transfer::{next_piece, same_command};

/// Data of one command to the host. Feed every C2HData of the command and its response; the command
/// is over when either says so, once.
#[derive(Clone, Debug)]
pub struct HostRead {
    command: u16,
    length: u32,
    received: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Data may come.
    Receiving,
    /// The last data came; a response has to.
    Last,
    /// Nothing may come.
    Over,
}

impl HostRead {
    /// `length` bytes of command `command`, 0 for a command without data.
    pub fn new(command: u16, length: u32) -> Self {
        HostRead { command, length, received: 0, state: State::Receiving }
    }

    /// Data come, in order. Returns whether the command is over by them, with success.
    pub fn on_data(&mut self, data: &ControllerData) -> Result<bool, PduError> {
        same_command("CCCID", data.command, self.command)?;
        if self.state != State::Receiving {
            return Err(PduError::Sequence {
                kind: PduKind::ControllerData,
                allowed: "a response behind the last data",
            });
        }
        next_piece(PduKind::ControllerData, data.offset, data.length, self.received, self.length)?;
        self.received += data.length;
        self.check_flags(data)?;
        self.state = match (data.is_success, data.is_last) {
            (true, _) => State::Over,
            (false, true) => State::Last,
            (false, false) => State::Receiving,
        };
        Ok(data.is_success)
    }

    /// SUCCESS only with the last byte; the last may come early (the command failed), but not with
    /// success. With flow control SUCCESS should not come, and the last byte should have LAST:
    /// neither is a danger to data, and targets in use do so.
    fn check_flags(&self, data: &ControllerData) -> Result<(), PduError> {
        let is_whole = self.received == self.length;
        if !data.is_success || (data.is_last && is_whole) {
            return Ok(());
        }
        let got = u64::from(data.is_last) << 2 | u64::from(data.is_success) << 3;
        let allowed = "SUCCESS only with LAST and the last byte";
        Err(PduError::Field { field: "FLAGS", at: 1, got, allowed })
    }

    /// The response comes. Fails when the command is over, or when it succeeded and bytes are
    /// missing.
    pub fn on_response(&mut self, status: Status) -> Result<(), PduError> {
        let kind = PduKind::Response;
        if self.state == State::Over {
            return Err(PduError::Sequence { kind, allowed: "nothing of a command that is over" });
        }
        if status.is_success() && self.received < self.length {
            return Err(PduError::Sequence { kind, allowed: "the rest of the data, or a failure" });
        }
        self.state = State::Over;
        Ok(())
    }

    /// Whether every byte came, and none of them was the last.
    pub fn lacks_last(&self) -> bool {
        self.state == State::Receiving && self.length > 0 && self.received == self.length
    }

    /// Bytes that came.
    pub fn received(&self) -> u32 {
        self.received
    }
}
