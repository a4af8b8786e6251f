//! Requests to memory and flash, and their answers.

use super::get::Wanted;
use super::tasks::Work;
use super::{Client, ClientIn, ClientOut, Operation, Outcome, Protocol, Source};
use crate::{FlashOperation, MemoryOperation, Value};
use base::{Program, Time};

impl<V: Value> Program for Client<V> {
    type In = ClientIn<V>;
    type Out = ClientOut<V>;

    fn on(&mut self, now: Time, input: ClientIn<V>, out: &mut Vec<ClientOut<V>>) {
        match input {
            ClientIn::Issue { ticket, operation: Operation::Update(body) } => self.begin_update(now, ticket, body, out),
            ClientIn::Issue { ticket, operation: Operation::Get { key } } => match self.config.protocol {
                Protocol::Linearizable => self.begin_get(ticket, key, Wanted::Value, out),
                Protocol::Paper { .. } => self.begin_paper_get(ticket, key, out),
            },
            ClientIn::Names { ticket, block } => self.begin_names(ticket, block, out),
            ClientIn::Describe { ticket, key } => self.begin_get(ticket, key, Wanted::Life, out),
            ClientIn::Memory { request, answer } => {
                let Some(index) = self.tasks.answered(request) else { return };
                match self.tasks.get(index).work.clone() {
                    Work::Get(get) => self.get_memory(now, index, get, answer, out),
                    Work::Names(names) => self.names_memory(now, index, names, answer, out),
                    Work::PaperGet(get) => self.paper_memory(now, index, get, answer, out),
                    Work::Invalidate(work) => self.invalidate(index, &work, answer, out),
                    Work::Update(_) => {}
                }
            }
            ClientIn::Flash { request, answer } => {
                let Some(index) = self.tasks.answered(request) else { return };
                match self.tasks.get(index).work.clone() {
                    Work::Get(get) => self.get_flash(now, index, get, answer, out),
                    Work::Names(names) => self.names_flash(now, index, names, answer, out),
                    Work::PaperGet(get) => self.paper_flash(now, index, get, answer, out),
                    Work::Update(_) | Work::Invalidate(_) => {}
                }
            }
            ClientIn::Reply(reply) => self.replied(reply, out),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.tasks.next_wake()
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<ClientOut<V>>) {
        while let Some(index) = self.tasks.due(now) {
            match self.tasks.get(index).work.clone() {
                Work::Get(get) => self.get_woken(index, get, out),
                Work::Names(names) => self.names_woken(index, names, out),
                Work::PaperGet(get) => self.paper_woken(index, get, out),
                Work::Update(_) => self.send(now, index, out),
                Work::Invalidate(_) => {}
            }
        }
    }
}

impl<V: Value> Client<V> {
    pub(super) fn device_of(&self, block: u32) -> u32 {
        block % self.config.devices
    }

    /// The latest epoch of a block's server that this client has seen.
    pub(super) fn note_epoch(&mut self, block: u32, epoch: u32) {
        let device = self.device_of(block) as usize;
        self.epochs[device] = self.epochs[device].max(epoch);
    }

    pub(super) fn ask_block(&mut self, index: usize, block: u32, out: &mut Vec<ClientOut<V>>) {
        self.ask_memory(index, block, MemoryOperation::ReadBlock, out);
    }

    pub(super) fn ask_memory(
        &mut self,
        index: usize,
        block: u32,
        operation: MemoryOperation<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let request = self.tasks.await_answer(index);
        out.push(ClientOut::Memory { request: Some(request), block, operation });
    }

    /// Operations whose end nobody waits for.
    pub(super) fn tell_memory(
        &self,
        block: u32,
        operations: impl IntoIterator<Item = MemoryOperation<V>>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        out.extend(operations.into_iter().map(|operation| ClientOut::Memory { request: None, block, operation }));
    }

    pub(super) fn ask_flash(
        &mut self,
        index: usize,
        block: u32,
        operation: FlashOperation<V>,
        out: &mut Vec<ClientOut<V>>,
    ) {
        let request = self.tasks.await_answer(index);
        out.push(ClientOut::Flash { request, device: self.device_of(block), operation });
    }

    pub(super) fn finish(&mut self, index: usize, outcome: Outcome<V>, source: Source, out: &mut Vec<ClientOut<V>>) {
        let task = self.tasks.end(index);
        self.share(index, &task, &outcome, source, out);
        out.push(ClientOut::Done { ticket: task.ticket, outcome, source });
    }
}
