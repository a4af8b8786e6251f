//! Requests, and what clients make of them.

use super::machine::{CHUNK, INTO_MEMORY};
use super::{Delivery, DmaTransfer, Now, SDirectEvent, SDirectRig, Server, Then, Who};
use crate::drive::Ticket;
use base::{Operation, Request, Time};
use plan::sdirect::{ByName, TaskName};
use record::{Place, SpanKind};
use sdirect::baseline::stack::{StackCommand, StackIn};
use sdirect::baseline::target::TargetIn;
use sdirect::{
    ClientIn, ClientOut, Command, CommandId, DeviceId, DeviceOperation, EngineIn, Extent, Message, Size, Task,
};

/// Requests and what clients make of them.
impl SDirectRig {
    pub(super) fn issue_request(&mut self, ticket: Ticket, request: &Request, context: Now<'_, '_>) {
        let owner = self.requests.tracks.begin(ticket, self.forks(), context);
        let task = self.task_of(request);
        if self.plan.clients.remote {
            let client = request.source.0;
            let input = ClientIn::Issue { ticket: ticket.0, task };
            return self.run_client(client, Some(input), context);
        }
        let Task::Command(command) = task else { unreachable!("the plan lets only clients elsewhere move data") };
        if let Server::Software(_) = &self.server {
            let command = stack_command(ticket.0, &command);
            return self.run_stack(Some(StackIn::Issue(command)), context);
        }
        let id = self.requests.name(request.source.0 as u16, owner);
        self.tell_engine(context.now, Some(owner), EngineIn::Command { id, command }, context);
    }

    /// Whether parts of a request move at the same time: data and completion on their way to the
    /// engine, commands of several pieces, packets and the answer behind them.
    fn forks(&self) -> bool {
        let task = self.plan.task;
        let is_one = task.kind == TaskName::ReadWrite && task.bytes.count() <= u64::from(CHUNK);
        self.plan.software.is_none() || self.plan.clients.remote || !is_one
    }

    /// What the plan makes of a request.
    fn task_of(&self, request: &Request) -> Task {
        let task = self.plan.task;
        let (devices, bytes) = (self.plan.machine.devices, task.bytes.count());
        let device = request.target.0 - self.plan.clients.count;
        let at =
            |ahead: u32| Extent { device: DeviceId(((device + ahead) % devices) as u16), address: request.address };
        let from = at(0);
        let to: Vec<_> = (1..=task.targets).map(at).collect();
        match (task.kind, task.moved_by) {
            (TaskName::ReadWrite, _) if request.operation == Operation::Read => {
                Task::Command(Command::Read { from, bytes })
            }
            (TaskName::ReadWrite, _) => Task::Command(Command::Write { to: from, bytes }),
            (TaskName::AddWrite, _) => {
                let (device, first) = (from.device, from.address);
                Task::Command(Command::AddWrite { device, first, second: first + bytes })
            }
            (TaskName::Copy | TaskName::Replicate, ByName::Client) => Task::CopyByClient { from, to, bytes },
            (TaskName::Copy, ByName::Nic) => Task::Command(Command::Copy { from, to: to[0], bytes }),
            (TaskName::Replicate, ByName::Nic) => Task::Command(Command::MultiCast { from, to, bytes }),
        }
    }

    pub(super) fn run_client(&mut self, client: u32, input: Option<ClientIn>, context: Now<'_, '_>) {
        let seat = &mut self.clients[client as usize];
        let out = match input {
            Some(input) => seat.tell(context.now, input),
            None => match seat.wake(context.now) {
                Some(out) => out,
                None => return,
            },
        };
        self.client_did(client, out, context);
    }

    fn client_did(&mut self, client: u32, mut out: Vec<ClientOut>, context: Now<'_, '_>) {
        if let Some(at) = self.clients[client as usize].arm(context.now) {
            context.at(at, SDirectEvent::Wake(Who::Client(client)));
        }
        out.drain(..).for_each(|action| self.obey_client(client, action, context));
        self.clients[client as usize].recycle(out);
    }

    fn obey_client(&mut self, client: u32, action: ClientOut, context: Now<'_, '_>) {
        match action {
            ClientOut::Command { ticket, id, command } => {
                // Of a command that is sent again: no answer has come.
                let owner = self.requests.tracks.owner(ticket);
                self.requests.tracks.claim_wait(owner, SpanKind::Schedule, context.now, Place::Host(client));
                self.requests.tracks.pass(owner, context.now);
                self.requests.insert(id, owner);
                let bytes = self.on_the_wire(&Message::Command { id, command: command.clone() });
                let Some(at) = self.network.send_to_nic(context.now, client, bytes) else { return };
                self.command_is_at_nic(at, id, command, bytes, context);
            }
            ClientOut::Data { id, offset, bytes } => {
                let mut from = offset;
                for packet in self.network.packets(bytes) {
                    self.on_the_wire(&Message::Data { id, offset: from, bytes: packet });
                    if let Some(at) = self.network.send_to_nic(context.now, client, packet) {
                        self.data_are_at_nic(at, id, from, packet, context);
                    }
                    from += u64::from(packet);
                }
            }
            ClientOut::Finish { ticket, outcome } => {
                // Of a command that is given up: no answer has come.
                let owner = self.requests.tracks.owner(ticket);
                self.requests.tracks.claim_wait(owner, SpanKind::Schedule, context.now, Place::Host(client));
                self.end(ticket, outcome, context);
            }
        }
    }

    /// A command goes from the NIC's port to whoever serves.
    fn command_is_at_nic(&mut self, at: Time, id: CommandId, command: Command, bytes: u32, context: Now<'_, '_>) {
        match &self.server {
            Server::Engine(_) => self.send_to_engine(at, id, EngineIn::Command { id, command }, context),
            Server::Software(_) => self.send_to_target(at, TargetIn::Command { id, command }, bytes, context),
        }
    }

    fn data_are_at_nic(&mut self, at: Time, id: CommandId, offset: u64, bytes: u32, context: Now<'_, '_>) {
        match &self.server {
            Server::Engine(_) => {
                self.send_to_engine(at, id, EngineIn::Data { id, offset, data: Size(bytes) }, context);
            }
            Server::Software(_) => self.send_to_target(at, TargetIn::Data { id, bytes }, bytes, context),
        }
    }

    /// What a client sends now and is at the NIC's port at `at` goes into memory.
    fn send_to_target(&mut self, at: Time, input: TargetIn, bytes: u32, context: Now<'_, '_>) {
        let then = Then::Deliver(Delivery::Target { sent: context.now, came: at, input });
        self.transfer(at, DmaTransfer { legs: INTO_MEMORY, device: 0, bytes, begun: at, then }, context);
    }

    /// Bytes of a message's body without data; in a checked run it has to come out of its bytes as
    /// it went in.
    fn on_the_wire(&self, message: &Message) -> u32 {
        if self.wire_check {
            let mut bytes = Vec::new();
            message.encode(&mut bytes);
            assert_eq!(Message::decode(&bytes).as_ref(), Ok(message), "a message is read as it was written");
        }
        message.body_bytes() as u32
    }

    /// A packet of the NIC for a client; when the port is free again.
    pub(super) fn send(&mut self, id: CommandId, bytes: u32, input: ClientIn, context: Now<'_, '_>) -> Time {
        let client = u32::from(id.client.0);
        let bytes = match message_of(&input) {
            Some(message @ Message::Data { .. }) => {
                self.on_the_wire(&message);
                bytes
            }
            Some(message) => self.on_the_wire(&message),
            None => bytes,
        };
        let (free, at) = self.network.send_to_client(context.now, client, bytes);
        if let Some(at) = at {
            self.post(at, Delivery::Client { client, sent: context.now, input }, context);
        }
        free
    }
}

/// What the NIC says to a client.
fn message_of(input: &ClientIn) -> Option<Message> {
    Some(match input.clone() {
        ClientIn::Data { id, offset, bytes } => Message::Data { id, offset, bytes },
        ClientIn::Grant { id, offset, bytes } => Message::Grant { id, offset, bytes },
        ClientIn::Answer { id, outcome } => Message::Answer { id, outcome },
        ClientIn::Issue { .. } => return None,
    })
}

fn stack_command(ticket: u32, command: &Command) -> StackCommand {
    let (place, bytes, operation) = match command {
        Command::Read { from, bytes } => (*from, *bytes, DeviceOperation::Read),
        Command::Write { to, bytes } => (*to, *bytes, DeviceOperation::Write),
        _ => unreachable!("the plan gives a stack reads and writes alone"),
    };
    StackCommand { ticket, device: place.device, operation, address: place.address, bytes: bytes as u32 }
}
