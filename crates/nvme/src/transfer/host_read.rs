//! The host's side of a read.

use crate::Status;
use crate::pdu::{ControllerData, PduError, PduKind};
use crate::transfer::{next_piece, same_command};

/// Data of one command to the host. Feed every C2HData of the command and its response; the command is over when either says so, once.
#[derive(Clone, Debug)]
pub struct HostRead {
    command: u16,
    length: u32,
    received: u32,
    /// Whether success may come as a flag: flow control of the submission queue is off.
    may_flag: bool,
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
    /// `length` bytes of command `command`, 0 for a command without data. `no_flow_control` as asked in Connect.
    pub fn new(command: u16, length: u32, no_flow_control: bool) -> Self {
        HostRead { command, length, received: 0, may_flag: no_flow_control, state: State::Receiving }
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

    /// SUCCESS only without flow control and on the last; the last may come early (the command failed), but not with success, and has to come
    /// with the last byte.
    fn check_flags(&self, data: &ControllerData) -> Result<(), PduError> {
        let is_whole = self.received == self.length;
        let success_is_right = !data.is_success || (self.may_flag && data.is_last && is_whole);
        if success_is_right && (data.is_last || !is_whole) {
            return Ok(());
        }
        let got = u64::from(data.is_last) << 2 | u64::from(data.is_success) << 3;
        let allowed = "LAST with the last byte, SUCCESS only with it and without flow control";
        Err(PduError::Field { field: "FLAGS", at: 1, got, allowed })
    }

    /// The response comes. Fails when the command is over, or when it succeeded and bytes are missing.
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

    /// Bytes that came.
    pub fn received(&self) -> u32 {
        self.received
    }
}
