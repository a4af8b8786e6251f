//! The target's side of a write.

use crate::Status;
use crate::pdu::{HostData, PduError, PduKind, ReadyToTransfer};
use crate::transfer::{next_piece, same_command};

/// Parameters of a target's R2Ts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyPlan {
    /// Bytes of one R2T, at least 1.
    pub ready_bytes_max: u32,
    /// R2Ts that are open at a time, at least 1 and at most the host's MAXR2T + 1.
    pub open_max: u32,
}

/// Data of one command from the host, that did not come in the capsule. Send what
/// [`TargetWrite::next_ready`] gives, feed every H2CData that names one of its tags. When
/// [`TargetWrite::outcome`] says so the command may be carried out, or answered with its failure.
#[derive(Clone, Debug)]
pub struct TargetWrite {
    command: u16,
    length: u32,
    /// Bytes requested by R2Ts so far.
    asked: u32,
    received: u32,
    plan: ReadyPlan,
    /// R2Ts whose data have not all come, oldest first; at most `plan.open_max`.
    open: Vec<Open>,
    failure: Option<Status>,
}

/// An R2T whose data have not all come.
#[derive(Clone, Copy, Debug)]
struct Open {
    tag: u16,
    next: u32,
    end: u32,
}

impl TargetWrite {
    /// `length` bytes of command `command`.
    pub fn new(command: u16, length: u32, plan: ReadyPlan) -> Self {
        let plan = ReadyPlan { ready_bytes_max: plan.ready_bytes_max.max(1), open_max: plan.open_max.max(1) };
        TargetWrite { command, length, asked: 0, received: 0, plan, open: Vec::new(), failure: None }
    }

    /// As [`TargetWrite::new`] with the same plan, and keeps the memory of the last command.
    pub fn restart(&mut self, command: u16, length: u32) {
        self.restart_with(command, length, self.plan);
    }

    /// As [`TargetWrite::new`], and keeps the memory of the last command.
    pub fn restart_with(&mut self, command: u16, length: u32, plan: ReadyPlan) {
        let mut open = std::mem::take(&mut self.open);
        open.clear();
        *self = TargetWrite { open, ..TargetWrite::new(command, length, plan) };
    }

    /// Whether [`Self::next_ready`] would return an R2T: worth a tag.
    pub fn wants_ready(&self) -> bool {
        self.failure.is_none() && self.asked < self.length && self.open.len() < self.plan.open_max as usize
    }

    /// Asks for the next bytes under `tag`; `None` while as many R2Ts are open as may be, after the
    /// last, and after a failure.
    pub fn next_ready(&mut self, tag: u16) -> Option<ReadyToTransfer> {
        if !self.wants_ready() {
            return None;
        }
        let (offset, length) = (self.asked, (self.length - self.asked).min(self.plan.ready_bytes_max));
        self.asked += length;
        self.open.push(Open { tag, next: offset, end: self.asked });
        Some(ReadyToTransfer { command: self.command, tag, offset, length })
    }

    /// Data come: of an open R2T, going on where its last ended, LAST with its last byte and no
    /// other. Returns whether the R2T is done and its tag free. Of several open R2Ts the host may
    /// answer any first.
    pub fn on_data(&mut self, data: &HostData) -> Result<bool, PduError> {
        same_command("CCCID", data.command, self.command)?;
        let index = self.open.iter().position(|open| open.tag == data.tag);
        let index = index.ok_or(unknown_tag(data.tag))?;
        let open = self.open[index];
        next_piece(PduKind::HostData, data.offset, data.length, open.next, open.end)?;
        let is_done = data.offset + data.length == open.end;
        if is_done != data.is_last {
            let got = u64::from(data.is_last) << 2;
            let allowed = "LAST with the last byte of its R2T and no other";
            return Err(PduError::Field { field: "FLAGS", at: 1, got, allowed });
        }
        self.received += data.length;
        if is_done {
            self.open.remove(index);
        } else {
            self.open[index].next += data.length;
        }
        Ok(is_done)
    }

    /// The command fails (a data digest was wrong, its namespace went): nothing more is asked for,
    /// what was asked for is still taken. The first failure counts.
    pub fn fail(&mut self, status: Status) {
        self.failure.get_or_insert(status);
    }

    /// The outcome of the transfer; `None` while data are to come.
    pub fn outcome(&self) -> Option<Status> {
        match self.failure {
            _ if !self.open.is_empty() => None,
            Some(status) => Some(status),
            None => (self.received == self.length).then_some(Status::SUCCESS),
        }
    }

    /// Tags in use, for a caller that drops the command with its connection.
    pub fn tags(&self) -> impl Iterator<Item = u16> + '_ {
        self.open.iter().map(|open| open.tag)
    }
}

/// The error of data with an unknown tag.
pub(super) fn unknown_tag(tag: u16) -> PduError {
    PduError::Field { field: "TTAG", at: 10, got: tag.into(), allowed: "the tag of an open R2T" }
}
