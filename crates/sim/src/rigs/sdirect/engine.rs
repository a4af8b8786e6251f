//! The engine on the NIC.

use super::machine::write_way;
use super::{
    ANSWER, Delivery, DmaTransfer, Giver, Job, Now, Owner, Phase, SDirectEvent, SDirectRig, Server, Then, Who,
};
use base::Time;
use record::{Place, SpanKind};
use sdirect::baseline::stack::StackCommand;
use sdirect::{ClientIn, CommandId, DeviceId, EngineIn, EngineOut, Size};

impl SDirectRig {
    /// The engine is told something: before that it was in the NIC's logic, and before that in the
    /// network.
    pub(super) fn engine_is_told(
        &mut self,
        owner: Option<Owner>,
        sent: Option<Time>,
        input: &EngineIn<Size>,
        now: Time,
    ) {
        let came = Time::ps(now.as_ps() - self.step().as_ps());
        if let Some(sent) = sent {
            self.requests.tracks.claim(owner, SpanKind::Serialization, sent, came, Place::Nic(0));
        }
        self.requests.tracks.claim(owner, SpanKind::Stack, came, now, Place::Nic(0));
        self.requests.tracks.pass(owner, now);
        if let EngineIn::Fetch { device, slot, .. } = input
            && let Some(job) = self.job_of(*device, *slot)
        {
            self.jobs[job].since = now;
        }
    }

    pub(super) fn run_engine(&mut self, input: Option<EngineIn<Size>>, context: Now<'_, '_>) {
        let Server::Engine(engine) = &mut self.server else { return };
        let mut out = match input {
            Some(input) => engine.tell(context.now, input),
            None => match engine.wake(context.now) {
                Some(out) => out,
                None => return,
            },
        };
        if let Some(at) = engine.arm(context.now) {
            context.at(at, SDirectEvent::Wake(Who::Engine));
        }
        out.drain(..).for_each(|action| self.obey_engine(action, context));
        if let Server::Engine(engine) = &mut self.server {
            engine.recycle(out);
        }
    }

    fn obey_engine(&mut self, action: EngineOut<Size>, context: Now<'_, '_>) {
        match action {
            EngineOut::Submit { id, device, slot, operation, address, bytes } => {
                let owner = self.requests.owner_of(id);
                self.requests.tracks.claim_wait(owner, SpanKind::StorageQueue, context.now, Place::Nic(0));
                self.requests.tracks.pass(owner, context.now);
                let command = StackCommand { ticket: 0, device, operation, address, bytes };
                self.give(Giver::Engine, slot, command, owner, context);
            }
            EngineOut::Supply { device, slot, data } => self.supply(device, slot, data.0, context),
            EngineOut::Abort { device, slot } => self.abort(device, slot, context),
            EngineOut::Send { id, offset, data } => self.send_from_engine(id, offset, data.0, context),
            EngineOut::Grant { id, offset, bytes } => self.grant(id, offset, bytes, context),
            EngineOut::Answer { id, outcome } => self.answer(id, outcome, context),
        }
    }

    fn grant(&mut self, id: CommandId, offset: u64, bytes: u32, context: Now<'_, '_>) {
        let owner = self.requests.owner_of(id);
        self.requests.tracks.claim_wait(owner, SpanKind::StorageQueue, context.now, Place::Nic(0));
        if self.plan.clients.remote {
            self.send(id, ANSWER, ClientIn::Grant { id, offset, bytes }, context);
        } else {
            // The data of an asker on the NIC itself are there.
            let input = EngineIn::Data { id, offset, data: Size(bytes) };
            self.tell_engine(context.now, owner, input, context);
        }
    }

    fn send_from_engine(&mut self, id: CommandId, offset: u64, bytes: u32, context: Now<'_, '_>) {
        let owner = self.requests.owner_of(id);
        self.requests.tracks.claim_wait(owner, SpanKind::NicQueue, context.now, Place::Nic(0));
        let free = match self.plan.clients.remote {
            true => self.send(id, bytes, ClientIn::Data { id, offset, bytes }, context),
            false => context.now,
        };
        self.post(free, Delivery::PortFree { owner, sent: context.now }, context);
    }

    fn answer(&mut self, id: CommandId, outcome: sdirect::Outcome, context: Now<'_, '_>) {
        let owner = self.requests.owner_of(id);
        self.requests.tracks.claim_wait(owner, SpanKind::StorageQueue, context.now, Place::Nic(0));
        if self.plan.clients.remote {
            self.send(id, ANSWER, ClientIn::Answer { id, outcome }, context);
        } else if let Some(owner) = self.requests.forget(id) {
            self.end(owner.ticket, Some(outcome), context);
        }
    }

    /// Data of the NIC go to a device that has asked for them, through memory where its buffers are
    /// there.
    fn supply(&mut self, device: DeviceId, slot: u16, bytes: u32, context: Now<'_, '_>) {
        let Some(job) = self.job_of(device, slot) else { return };
        let Job { owner, since, .. } = self.jobs[job];
        self.requests.tracks.claim(owner, SpanKind::StorageQueue, since, context.now, Place::Nic(0));
        self.jobs[job].since = context.now;
        let legs = write_way(self.buffers(), true);
        let (begun, then) = (context.now, Then::Device(job, Phase::Landed(bytes)));
        self.transfer(begun, DmaTransfer { legs, device: device.0, bytes, begun, then }, context);
    }

    fn abort(&mut self, device: DeviceId, slot: u16, context: Now<'_, '_>) {
        let Some(job) = self.job_of(device, slot) else { return };
        if !std::mem::replace(&mut self.jobs[job].is_aborted, true) {
            self.end_aborted(job, context);
        }
    }

    /// The engine's job in a slot of a device.
    pub(super) fn job_of(&self, device: DeviceId, slot: u16) -> Option<u32> {
        let is_it = |job: &Job| job.command.device == device && job.slot == slot && matches!(job.giver, Giver::Engine);
        self.jobs.iter().find(|(_, job)| is_it(job)).map(|(place, _)| place)
    }
}
