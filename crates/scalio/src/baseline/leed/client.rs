//! A client of LEED: it knows which device has a key, and calls its server.

use super::{Answer, Call, CallResult};
use crate::{ClientId, Key, LimitError, Operation, Outcome, Source, VALUE_BYTES_MAX, Value, check_value};
use base::{Program, Time};
use std::collections::BTreeMap;
use std::marker::PhantomData;

/// Inputs of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientIn<V> {
    /// Its application wants something.
    Issue {
        /// The application's name for it.
        ticket: u64,
        /// The operation.
        operation: Operation<V>,
    },
    /// A server answers.
    Answer(Answer<V>),
}

/// Decisions of a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientOut<V> {
    /// To the server of a device.
    Send {
        /// The device.
        device: u32,
        /// The call.
        call: Call<V>,
    },
    /// An operation has ended.
    Done {
        /// The ticket.
        ticket: u64,
        /// The result.
        outcome: Outcome<V>,
        /// The source.
        source: Source,
    },
}

/// A client. Calls go over reliable connections: they are neither repeated nor lost.
#[derive(Clone, Debug)]
pub struct Client<V> {
    client: ClientId,
    blocks: u32,
    devices: u32,
    called: u64,
    /// The tickets of calls, by their numbers.
    waiting: BTreeMap<u64, u64>,
    unknown_answers: u64,
    values: PhantomData<fn(V) -> V>,
}

impl<V: Value> Client<V> {
    /// A client of a store of `blocks` blocks on `devices` devices, each at least one.
    pub fn new(client: ClientId, blocks: u32, devices: u32) -> Client<V> {
        let waiting = BTreeMap::new();
        Client { client, blocks, devices, called: 0, waiting, unknown_answers: 0, values: PhantomData }
    }

    /// Answers to calls that were not made, or were answered before.
    pub fn unknown_answers(&self) -> u64 {
        self.unknown_answers
    }

    fn device(&self, key: &Key) -> u32 {
        key.place(self.blocks).block % self.devices
    }

    fn issue(&mut self, ticket: u64, operation: Operation<V>, out: &mut Vec<ClientOut<V>>) {
        if let Err(limit) = check_operation(&operation) {
            let outcome = Outcome::Refused(limit.into());
            return out.push(ClientOut::Done { ticket, outcome, source: Source::Server });
        }
        let number = self.called;
        self.called += 1;
        self.waiting.insert(number, ticket);
        let device = self.device(key_of(&operation));
        out.push(ClientOut::Send { device, call: Call { client: self.client, number, operation } });
    }

    fn on_answer(&mut self, answer: Answer<V>, out: &mut Vec<ClientOut<V>>) {
        let is_mine = answer.client == self.client;
        let Some(ticket) = is_mine.then(|| self.waiting.remove(&answer.number)).flatten() else {
            self.unknown_answers += 1;
            return;
        };
        out.push(ClientOut::Done { ticket, outcome: outcome_of(answer.result), source: Source::Server });
    }
}

/// The key that an operation is about.
pub(in crate::baseline) fn key_of<V>(operation: &Operation<V>) -> &Key {
    match operation {
        Operation::Get { key } => key,
        Operation::Update(body) => body.key(),
    }
}

fn check_operation<V: Value>(operation: &Operation<V>) -> Result<(), LimitError> {
    match operation {
        Operation::Update(body) => body.value().map_or(Ok(()), |value| check_value(value, VALUE_BYTES_MAX)),
        Operation::Get { .. } => Ok(()),
    }
}

fn outcome_of<V>(result: CallResult<V>) -> Outcome<V> {
    match result {
        CallResult::Value(value) => Outcome::Value(value),
        CallResult::Update(result) => result.into(),
    }
}

impl<V: Value> Program for Client<V> {
    type In = ClientIn<V>;
    type Out = ClientOut<V>;

    fn on(&mut self, _now: Time, input: ClientIn<V>, out: &mut Vec<ClientOut<V>>) {
        match input {
            ClientIn::Issue { ticket, operation } => self.issue(ticket, operation, out),
            ClientIn::Answer(answer) => self.on_answer(answer, out),
        }
    }

    /// Only an answer can change anything.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    fn on_wakeup(&mut self, _now: Time, _out: &mut Vec<ClientOut<V>>) {}
}
