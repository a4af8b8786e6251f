//! The machine's software: a stack on its cores, and a target in front of it for clients elsewhere.

use super::machine::OUT_OF_MEMORY;
use super::{ANSWER, Delivery, DmaTransfer, Giver, Now, Owner, SDirectEvent, SDirectRig, Server, Then, Who};
use crate::rigs::seat::Seat;
use hardware::Cpu;
use record::{Place, SpanKind};
use sdirect::baseline::stack::{Stack, StackConfig, StackIn, StackOut, Work};
use sdirect::baseline::target::{Target, TargetIn, TargetOut};
use sdirect::{ClientIn, CommandId};
use std::collections::BTreeMap;

/// Stack, cores and target.
pub struct Software {
    /// The stack.
    pub stack: Seat<Stack>,
    /// The machine's cores.
    pub cpu: Cpu,
    target: Seat<Target>,
    /// The requests of the target's tickets.
    served: BTreeMap<u32, Owner>,
}

impl Software {
    /// Software with nothing to do.
    pub fn new(config: StackConfig) -> Software {
        Software {
            stack: Seat::new(Stack::new(config)),
            cpu: Cpu::new(config.cores),
            target: Seat::new(Target::new()),
            served: BTreeMap::new(),
        }
    }
}

impl SDirectRig {
    pub(super) fn run_stack(&mut self, input: Option<StackIn>, context: Now<'_, '_>) {
        let Server::Software(software) = &mut self.server else { return };
        let mut out = match input {
            Some(input) => software.stack.tell(context.now, input),
            None => match software.stack.wake(context.now) {
                Some(out) => out,
                None => return,
            },
        };
        if let Some(at) = software.stack.arm(context.now) {
            context.at(at, SDirectEvent::Wake(Who::Stack));
        }
        out.drain(..).for_each(|action| self.obey_stack(action, context));
        if let Server::Software(software) = &mut self.server {
            software.stack.recycle(out);
        }
    }

    fn obey_stack(&mut self, action: StackOut, context: Now<'_, '_>) {
        let Server::Software(software) = &mut self.server else { return };
        match action {
            StackOut::Run { core, work, span } => {
                let (start, end) = software.cpu.run(context.now, core as usize, work.name(), span);
                self.post(end, Delivery::Ran { core, work, start }, context);
            }
            StackOut::Submit { core, slot, command } => {
                let owner = self.request_of(command.ticket);
                self.requests.tracks.claim_wait(owner, SpanKind::StorageQueue, context.now, Place::Core(core));
                self.requests.tracks.pass(owner, context.now);
                self.give(Giver::Core(core), slot, command, owner, context);
            }
            StackOut::Finish { ticket } if self.plan.clients.remote => {
                self.run_target(None, TargetIn::Finished { ticket }, context);
            }
            StackOut::Finish { ticket } => self.end(ticket, Some(sdirect::Outcome::Done), context),
        }
    }

    /// The request that a ticket of the stack stands for.
    pub(super) fn request_of(&self, ticket: u32) -> Option<Owner> {
        match &self.server {
            Server::Software(software) if self.plan.clients.remote => software.served.get(&ticket).copied(),
            _ => self.requests.tracks.owner(ticket),
        }
    }

    pub(super) fn run_target(&mut self, asked: Option<Owner>, input: TargetIn, context: Now<'_, '_>) {
        let Server::Software(software) = &mut self.server else { return };
        let mut out = software.target.tell(context.now, input);
        out.drain(..).for_each(|action| self.obey_target(asked, action, context));
        if let Server::Software(software) = &mut self.server {
            software.target.recycle(out);
        }
    }

    fn obey_target(&mut self, asked: Option<Owner>, action: TargetOut, context: Now<'_, '_>) {
        let Server::Software(software) = &mut self.server else { return };
        match action {
            TargetOut::Issue(command) => {
                software.served.extend(asked.map(|owner| (command.ticket, owner)));
                self.run_stack(Some(StackIn::Issue(command)), context);
            }
            TargetOut::Grant { id, bytes } => self.fetch(id, ANSWER, ClientIn::Grant { id, offset: 0, bytes }, context),
            TargetOut::Send { id, bytes } => {
                let mut offset = 0;
                for packet in self.network.packets(bytes) {
                    self.fetch(id, packet, ClientIn::Data { id, offset, bytes: packet }, context);
                    offset += u64::from(packet);
                }
            }
            TargetOut::Answer { id, outcome } => self.fetch(id, ANSWER, ClientIn::Answer { id, outcome }, context),
        }
    }

    /// The NIC fetches a packet from memory and sends it.
    fn fetch(&mut self, id: CommandId, bytes: u32, input: ClientIn, context: Now<'_, '_>) {
        let (begun, then) = (context.now, Then::Send(id, input));
        self.transfer(begun, DmaTransfer { legs: OUT_OF_MEMORY, device: 0, bytes, begun, then }, context);
    }
}

/// The request of a piece of work, if it is one's.
pub(super) fn work_of(work: &Work) -> Option<u32> {
    match work {
        Work::Submission(command) => Some(command.ticket),
        Work::Completion { ticket } | Work::ContextSwitch { ticket } => Some(*ticket),
        Work::Doorbell | Work::Interrupt | Work::Poll => None,
    }
}
