//! An NVMe-oF target in software: data pass through the host's memory, which takes all that clients
//! send, and the host's stack does the rest.

use super::stack::StackCommand;
use crate::{Command, CommandId, DeviceOperation, Outcome, Refusal};
use base::{Program, Time};
use std::collections::BTreeMap;

/// Inputs of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetIn {
    /// A client's command is in memory.
    Command {
        /// The identifier.
        id: CommandId,
        /// The command.
        command: Command,
    },
    /// Data of a write are in memory.
    Data {
        /// The command.
        id: CommandId,
        /// Length in bytes.
        bytes: u32,
    },
    /// The stack has finished with a command.
    Finished {
        /// The ticket that it was issued with.
        ticket: u32,
    },
}

/// Decisions of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetOut {
    /// A client may send its data.
    Grant {
        /// The command.
        id: CommandId,
        /// Length in bytes.
        bytes: u32,
    },
    /// The stack shall do this.
    Issue(StackCommand),
    /// Data in memory go to the client.
    Send {
        /// The command.
        id: CommandId,
        /// Length in bytes.
        bytes: u32,
    },
    /// A command has ended.
    Answer {
        /// The identifier.
        id: CommandId,
        /// The result.
        outcome: Outcome,
    },
}

/// A command in memory.
#[derive(Clone, Copy, Debug)]
struct Held {
    id: CommandId,
    command: StackCommand,
    /// Data of a write that have not come.
    missing: u32,
}

/// A target.
#[derive(Clone, Debug, Default)]
pub struct Target {
    held: slab::Slab<Held>,
    /// Writes with data in flight.
    writes: BTreeMap<CommandId, u32>,
}

impl Target {
    /// A target without commands.
    pub fn new() -> Target {
        Target::default()
    }

    fn command(&mut self, id: CommandId, command: &Command, out: &mut Vec<TargetOut>) {
        let (place, bytes, operation) = match command {
            Command::Read { from, bytes } => (*from, *bytes, DeviceOperation::Read),
            Command::Write { to, bytes } => (*to, *bytes, DeviceOperation::Write),
            // It has no commands between devices.
            Command::Copy { .. } | Command::MultiCast { .. } | Command::AddWrite { .. } => {
                let outcome = Outcome::Refused(Refusal::Targets { got: 0, max: 0 });
                return out.push(TargetOut::Answer { id, outcome });
            }
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let entry = self.held.vacant_entry();
        let command =
            StackCommand { ticket: entry.key() as u32, device: place.device, operation, address: place.address, bytes };
        let is_read = operation == DeviceOperation::Read;
        entry.insert(Held { id, command, missing: if is_read { 0 } else { bytes } });
        if is_read {
            return out.push(TargetOut::Issue(command));
        }
        self.writes.insert(id, command.ticket);
        out.push(TargetOut::Grant { id, bytes });
    }

    fn data(&mut self, id: CommandId, bytes: u32, out: &mut Vec<TargetOut>) {
        let Some(held) = self.writes.get(&id).and_then(|ticket| self.held.get_mut(*ticket as usize)) else { return };
        held.missing = held.missing.saturating_sub(bytes);
        if held.missing == 0 {
            out.push(TargetOut::Issue(held.command));
            self.writes.remove(&id);
        }
    }

    fn finished(&mut self, ticket: u32, out: &mut Vec<TargetOut>) {
        let Some(Held { id, command, .. }) = self.held.try_remove(ticket as usize) else { return };
        if command.operation == DeviceOperation::Read {
            out.push(TargetOut::Send { id, bytes: command.bytes });
        }
        out.push(TargetOut::Answer { id, outcome: Outcome::Done });
    }
}

impl Program for Target {
    type In = TargetIn;
    type Out = TargetOut;

    fn on(&mut self, _: Time, input: TargetIn, out: &mut Vec<TargetOut>) {
        match input {
            TargetIn::Command { id, command } => self.command(id, &command, out),
            TargetIn::Data { id, bytes } => self.data(id, bytes, out),
            TargetIn::Finished { ticket } => self.finished(ticket, out),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    fn on_wakeup(&mut self, _: Time, _: &mut Vec<TargetOut>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClientId, DeviceId, Extent};

    const PLACE: Extent = Extent { device: DeviceId(2), address: 8192 };

    fn id(number: u32) -> CommandId {
        CommandId { client: ClientId(0), number }
    }

    fn tell(target: &mut Target, input: TargetIn) -> Vec<TargetOut> {
        let mut out = Vec::new();
        target.on(Time::ZERO, input, &mut out);
        out
    }

    #[test]
    fn a_write_waits_for_its_data_and_a_read_sends_its() {
        let mut target = Target::new();
        let write = Command::Write { to: PLACE, bytes: 8192 };
        let granted = tell(&mut target, TargetIn::Command { id: id(0), command: write });
        assert_eq!(granted, [TargetOut::Grant { id: id(0), bytes: 8192 }]);
        assert_eq!(tell(&mut target, TargetIn::Data { id: id(0), bytes: 4096 }), []);
        let issued = tell(&mut target, TargetIn::Data { id: id(0), bytes: 4096 });
        let [TargetOut::Issue(command)] = issued[..] else { panic!("{issued:?}") };
        assert_eq!((command.device, command.address, command.bytes), (DeviceId(2), 8192, 8192));
        let ended = tell(&mut target, TargetIn::Finished { ticket: command.ticket });
        assert_eq!(ended, [TargetOut::Answer { id: id(0), outcome: Outcome::Done }]);
        let read =
            tell(&mut target, TargetIn::Command { id: id(1), command: Command::Read { from: PLACE, bytes: 4096 } });
        let [TargetOut::Issue(command)] = read[..] else { panic!("{read:?}") };
        let ended = tell(&mut target, TargetIn::Finished { ticket: command.ticket });
        let outcome = Outcome::Done;
        assert_eq!(ended, [TargetOut::Send { id: id(1), bytes: 4096 }, TargetOut::Answer { id: id(1), outcome }]);
    }
}
