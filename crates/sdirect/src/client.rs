//! A client across the fabric: sends commands, sends data when granted, retransmits after losses,
//! and executes by itself what only S-Direct's NIC could do for it.
//!
//! Data have no contents here: a client's program selects the bytes, and its host stores them.
//! Received data count by offset. Out-of-order data follow a loss, and are requested again.

use crate::{ClientId, Command, CommandId, Extent, Outcome};
use base::{Program, Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Configuration of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The client.
    pub client: ClientId,
    /// Without a sign of life for so long, a command is repeated.
    pub timeout: Span,
    /// Times that a command is sent at most.
    pub attempts_max: u32,
}

/// Request of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// One command of the NIC.
    Command(Command),
    /// A copy without Copy or MultiCast: the data come to the client, which then writes all targets
    /// at the same time.
    CopyByClient {
        /// The source.
        from: Extent,
        /// The destination.
        to: Vec<Extent>,
        /// Length in bytes.
        bytes: u64,
    },
}

/// Inputs of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientIn {
    /// Its application wants something.
    Issue {
        /// The host's name for it.
        ticket: u32,
        /// The task.
        task: Task,
    },
    /// Data of a read.
    Data {
        /// The command.
        id: CommandId,
        /// Their place in the command.
        offset: u64,
        /// Length in bytes.
        bytes: u32,
    },
    /// It may send data of a write.
    Grant {
        /// The command.
        id: CommandId,
        /// From here.
        offset: u64,
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

/// Decisions of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientOut {
    /// Sends a command to the NIC.
    Command {
        /// The task.
        ticket: u32,
        /// Its number.
        id: CommandId,
        /// The command.
        command: Command,
    },
    /// Data of a write go to the NIC.
    Data {
        /// The command.
        id: CommandId,
        /// From here.
        offset: u64,
        /// Length in bytes.
        bytes: u32,
    },
    /// A task has ended.
    Finish {
        /// The caller's identifier of the task.
        ticket: u32,
        /// How. `None`: nobody answered.
        outcome: Option<Outcome>,
    },
}

/// A command that has not ended.
#[derive(Clone, Debug)]
struct Open {
    ticket: u32,
    command: Command,
    /// Bytes of a read that are here, from its begin on.
    received: u64,
    attempts: u32,
    deadline: Time,
}

/// A task that has not ended.
#[derive(Clone, Debug)]
struct Running {
    /// Commands that have not ended.
    open: u32,
    outcome: Option<Outcome>,
    /// The writes of a copy whose read is outstanding.
    then: Vec<Command>,
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    config: ClientConfig,
    next: u32,
    open: BTreeMap<u32, Open>,
    deadlines: BTreeSet<(Time, u32)>,
    tasks: BTreeMap<u32, Running>,
    repeated: u64,
}

impl Client {
    /// A client with nothing to do.
    pub fn new(config: ClientConfig) -> Client {
        Client {
            config,
            next: 0,
            open: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            tasks: BTreeMap::new(),
            repeated: 0,
        }
    }

    /// Commands that were sent again.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    fn issue(&mut self, now: Time, ticket: u32, task: Task, out: &mut Vec<ClientOut>) {
        let (first, then) = match task {
            Task::Command(command) => (command, Vec::new()),
            Task::CopyByClient { from, to, bytes } => {
                (Command::Read { from, bytes }, to.into_iter().map(|to| Command::Write { to, bytes }).collect())
            }
        };
        self.tasks.insert(ticket, Running { open: 1, outcome: Some(Outcome::Done), then });
        self.send(now, ticket, first, out);
    }

    fn send(&mut self, now: Time, ticket: u32, command: Command, out: &mut Vec<ClientOut>) {
        let number = self.next;
        self.next += 1;
        let deadline = now + self.config.timeout;
        let id = CommandId { client: self.config.client, number };
        out.push(ClientOut::Command { ticket, id, command: command.clone() });
        self.deadlines.insert((deadline, number));
        self.open.insert(number, Open { ticket, command, received: 0, attempts: 1, deadline });
    }

    /// A sign of life: the command has time again.
    fn alive(&mut self, now: Time, number: u32) -> Option<&mut Open> {
        let open = self.open.get_mut(&number)?;
        self.deadlines.remove(&(open.deadline, number));
        open.deadline = now + self.config.timeout;
        self.deadlines.insert((open.deadline, number));
        Some(open)
    }

    fn data(&mut self, now: Time, number: u32, offset: u64, bytes: u32) {
        let Some(open) = self.alive(now, number) else { return };
        if offset == open.received {
            open.received += u64::from(bytes);
        }
    }

    fn answer(&mut self, now: Time, number: u32, outcome: Outcome, out: &mut Vec<ClientOut>) {
        let Some(open) = self.open.remove(&number) else { return };
        self.deadlines.remove(&(open.deadline, number));
        match open.missing().filter(|_| outcome == Outcome::Done) {
            // Some packets were lost: the rest is read under a new number.
            Some(rest) => {
                self.repeated += 1;
                self.send(now, open.ticket, rest, out);
            }
            None => self.ended(now, open.ticket, Some(outcome), out),
        }
    }

    /// A command of a task has ended; the task has when none is left.
    fn ended(&mut self, now: Time, ticket: u32, outcome: Option<Outcome>, out: &mut Vec<ClientOut>) {
        let Some(task) = self.tasks.get_mut(&ticket) else { return };
        task.open -= 1;
        // The first failure is the task's.
        if task.outcome == Some(Outcome::Done) {
            task.outcome = outcome;
        }
        let next = std::mem::take(&mut task.then);
        if !next.is_empty() && task.outcome == Some(Outcome::Done) {
            task.open = next.len() as u32;
            return next.into_iter().for_each(|command| self.send(now, ticket, command, out));
        }
        if task.open == 0 {
            let outcome = self.tasks.remove(&ticket).and_then(|task| task.outcome);
            out.push(ClientOut::Finish { ticket, outcome });
        }
    }

    fn overdue(&mut self, now: Time, number: u32, out: &mut Vec<ClientOut>) {
        let max = self.config.attempts_max;
        let Some(open) = self.open.get(&number) else { return };
        if open.attempts >= max {
            let ticket = open.ticket;
            self.open.remove(&number);
            return self.ended(now, ticket, None, out);
        }
        self.repeated += 1;
        let Some(open) = self.alive(now, number) else { return };
        open.attempts += 1;
        let (ticket, command) = (open.ticket, open.command.clone());
        out.push(ClientOut::Command { ticket, id: CommandId { client: self.config.client, number }, command });
    }
}

impl Open {
    /// What of a read has not come.
    fn missing(&self) -> Option<Command> {
        let Command::Read { from, bytes } = &self.command else { return None };
        let rest = bytes - self.received.min(*bytes);
        let from = Extent { address: from.address + self.received, ..*from };
        (rest > 0).then_some(Command::Read { from, bytes: rest })
    }
}

impl Program for Client {
    type In = ClientIn;
    type Out = ClientOut;

    fn on(&mut self, now: Time, input: ClientIn, out: &mut Vec<ClientOut>) {
        match input {
            ClientIn::Issue { ticket, task } => self.issue(now, ticket, task, out),
            ClientIn::Data { id, offset, bytes } => self.data(now, id.number, offset, bytes),
            ClientIn::Grant { id, offset, bytes } => {
                if self.alive(now, id.number).is_some() {
                    out.push(ClientOut::Data { id, offset, bytes });
                }
            }
            ClientIn::Answer { id, outcome } => self.answer(now, id.number, outcome, out),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<ClientOut>) {
        while let Some((at, number)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, number));
            self.overdue(now, number, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceId;

    const PLACE: Extent = Extent { device: DeviceId(0), address: 4096 };

    fn client() -> Client {
        Client::new(ClientConfig { client: ClientId(0), timeout: Span::ms(1), attempts_max: 2 })
    }

    fn id(number: u32) -> CommandId {
        CommandId { client: ClientId(0), number }
    }

    fn tell(client: &mut Client, input: ClientIn) -> Vec<ClientOut> {
        let mut out = Vec::new();
        client.on(Time::us(5), input, &mut out);
        out
    }

    #[test]
    fn a_copy_by_the_client_reads_and_then_writes() {
        let mut client = client();
        let to = Extent { device: DeviceId(1), address: 0 };
        let task = Task::CopyByClient { from: PLACE, to: vec![to], bytes: 8192 };
        let read = tell(&mut client, ClientIn::Issue { ticket: 9, task });
        assert_eq!(
            read,
            [ClientOut::Command { ticket: 9, id: id(0), command: Command::Read { from: PLACE, bytes: 8192 } }]
        );
        tell(&mut client, ClientIn::Data { id: id(0), offset: 0, bytes: 8192 });
        let write = tell(&mut client, ClientIn::Answer { id: id(0), outcome: Outcome::Done });
        assert_eq!(write, [ClientOut::Command { ticket: 9, id: id(1), command: Command::Write { to, bytes: 8192 } }]);
        let data = tell(&mut client, ClientIn::Grant { id: id(1), offset: 0, bytes: 8192 });
        assert_eq!(data, [ClientOut::Data { id: id(1), offset: 0, bytes: 8192 }]);
        let end = tell(&mut client, ClientIn::Answer { id: id(1), outcome: Outcome::Done });
        assert_eq!(end, [ClientOut::Finish { ticket: 9, outcome: Some(Outcome::Done) }]);
        assert_eq!(client.next_wakeup(), None);
    }

    #[test]
    fn what_is_missing_of_a_read_is_read_again() {
        let mut client = client();
        let task = Task::Command(Command::Read { from: PLACE, bytes: 4096 });
        tell(&mut client, ClientIn::Issue { ticket: 1, task });
        tell(&mut client, ClientIn::Data { id: id(0), offset: 0, bytes: 1024 });
        tell(&mut client, ClientIn::Data { id: id(0), offset: 2048, bytes: 2048 });
        let again = tell(&mut client, ClientIn::Answer { id: id(0), outcome: Outcome::Done });
        let from = Extent { address: 4096 + 1024, ..PLACE };
        assert_eq!(again, [ClientOut::Command { ticket: 1, id: id(1), command: Command::Read { from, bytes: 3072 } }]);
        tell(&mut client, ClientIn::Data { id: id(1), offset: 0, bytes: 3072 });
        let end = tell(&mut client, ClientIn::Answer { id: id(1), outcome: Outcome::Done });
        assert_eq!(end, [ClientOut::Finish { ticket: 1, outcome: Some(Outcome::Done) }]);
    }

    #[test]
    fn a_command_without_a_sign_of_life_is_repeated_and_then_given_up() {
        let mut client = client();
        let command = Command::Read { from: PLACE, bytes: 4096 };
        tell(&mut client, ClientIn::Issue { ticket: 1, task: Task::Command(command.clone()) });
        let mut out = Vec::new();
        client.on_wakeup(Time::us(1_004), &mut out);
        assert_eq!(out, [], "there is a microsecond left");
        client.on_wakeup(Time::us(1_005), &mut out);
        assert_eq!(out, [ClientOut::Command { ticket: 1, id: id(0), command }]);
        out.clear();
        client.on_wakeup(Time::us(2_005), &mut out);
        assert_eq!(out, [ClientOut::Finish { ticket: 1, outcome: None }]);
        assert_eq!(tell(&mut client, ClientIn::Answer { id: id(0), outcome: Outcome::Done }), [], "too late");
    }

    #[test]
    fn the_first_failure_of_replicas_is_the_tasks() {
        let mut client = client();
        let to = [1, 2, 3].map(|device| Extent { device: DeviceId(device), address: 0 }).to_vec();
        tell(&mut client, ClientIn::Issue { ticket: 4, task: Task::CopyByClient { from: PLACE, to, bytes: 512 } });
        tell(&mut client, ClientIn::Data { id: id(0), offset: 0, bytes: 512 });
        let sent = tell(&mut client, ClientIn::Answer { id: id(0), outcome: Outcome::Done });
        assert_eq!(sent.len(), 3);
        let failed = Outcome::TargetsFailed(vec![DeviceId(1)]);
        let answers = [Outcome::Done, failed.clone(), Outcome::Done];
        let last =
            (1..).zip(answers).map(|(number, outcome)| tell(&mut client, ClientIn::Answer { id: id(number), outcome }));
        let all: Vec<_> = last.flatten().collect();
        assert_eq!(all, [ClientOut::Finish { ticket: 4, outcome: Some(failed) }]);
    }
}
