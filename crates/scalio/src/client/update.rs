//! What the server does for a client: sent, repeated while no answer comes, given up as unknown.

use super::tasks::Work;
use super::{Client, ClientOut, Outcome, Protocol, Source};
use crate::{Refusal, Reply, Request, RequestBody, RequestResult, Value};
use base::Time;

/// An open update.
#[derive(Clone, Debug)]
pub(super) struct Update<V> {
    pub number: u64,
    pub body: RequestBody<V>,
    epoch: u32,
    sends: u32,
}

impl<V: Value> Client<V> {
    pub(super) fn begin_update(&mut self, now: Time, ticket: u64, body: RequestBody<V>, out: &mut Vec<ClientOut<V>>) {
        let number = self.next_number;
        self.next_number += 1;
        let epoch = self.epochs[self.device_of(body.key().place(self.config.blocks).block) as usize];
        let index = self.tasks.add(ticket, Work::Update(Update { number, body, epoch, sends: 0 }));
        self.open.insert(number, index as u32);
        self.send(now, index, out);
    }

    /// Sends it, or gives up: whether it was or will be carried out is then unknown.
    pub(super) fn send(&mut self, now: Time, index: usize, out: &mut Vec<ClientOut<V>>) {
        let Work::Update(mut update) = self.tasks.get(index).work.clone() else { return };
        if update.sends == self.config.sends_max {
            self.open.remove(&update.number);
            return self.finish(index, Outcome::Unknown, Source::Server, out);
        }
        self.counters.repeats += u64::from(update.sends > 0);
        update.sends += 1;
        let settled = *self.open.first_key_value().expect("this one is open").0;
        let device = self.device_of(update.body.key().place(self.config.blocks).block);
        let (client, number, epoch, body) = (self.config.client, update.number, update.epoch, update.body.clone());
        out.push(ClientOut::Send { device, request: Request { client, number, settled, epoch, body } });
        self.tasks.resume(index, Work::Update(update));
        self.tasks.sleep_until(index, Some(now + self.config.reply_timeout));
    }

    pub(super) fn replied(&mut self, reply: Reply<V>, out: &mut Vec<ClientOut<V>>) {
        let Some(index) = self.open.remove(&reply.number).map(|index| index as usize) else { return };
        let Work::Update(update) = &self.tasks.get(index).work else { return };
        let key = *update.body.key();
        let block = key.place(self.config.blocks).block;
        self.note_epoch(block, reply.epoch);
        let changed = matches!(
            reply.result,
            RequestResult::Stored | RequestResult::Deleted { found: true } | RequestResult::Taken { found: Some(_) }
        );
        let outcome = outcome(reply.result);
        match self.config.protocol {
            Protocol::Paper { .. } if changed => self.begin_invalidation(index, key, outcome, out),
            _ => self.finish(index, outcome, Source::Server, out),
        }
    }
}

/// A request that a server of a later epoch refuses may have been carried out before the restart,
/// and repeating it could do it twice. What a device failed to write may be on it all the same, and
/// come to light at the next restart.
fn outcome<V>(result: RequestResult<V>) -> Outcome<V> {
    match result {
        RequestResult::Refused(Refusal::WrongEpoch { .. } | Refusal::Recovering | Refusal::Device) => Outcome::Unknown,
        told => told.into(),
    }
}
