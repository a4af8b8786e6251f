//! Devices and what they do for whom, from the fetching of a command to its completion.

use super::machine::{CHUNK, Home, read_way, write_way};
use super::track::Owner;
use super::{DmaTransfer, Giver, Job, Now, Phase, SDirectEvent, SDirectRig, Then};
use base::Time;
use record::{Place, SpanKind};
use sdirect::baseline::stack::{StackCommand, StackIn};
use sdirect::{DeviceOperation, EngineIn, Size};

impl SDirectRig {
    pub(super) fn give(
        &mut self,
        giver: Giver,
        slot: u16,
        command: StackCommand,
        owner: Option<Owner>,
        context: Now<'_, '_>,
    ) {
        let job = Job {
            slot,
            giver,
            command,
            moved: 0,
            posted: None,
            is_aborted: false,
            events: 0,
            since: context.now,
            done: None,
            owner,
        };
        let place = self.jobs.insert(job);
        let at = self.machine.fetch_command(context.now, command.device.0, self.queues());
        self.expect(at, place, Phase::Fetched, context);
    }

    pub(super) fn device(&mut self, place: u32, phase: Phase, context: Now<'_, '_>) {
        self.jobs[place].events -= 1;
        let job = self.jobs[place];
        if job.is_aborted && phase != Phase::Posted {
            return self.end_aborted(place, context);
        }
        self.jobs[place].since = context.now;
        match phase {
            Phase::Fetched => {
                self.claim(&job, SpanKind::Serialization, Place::Bus(job.command.device.0.into()), context);
                let at = self.machine.begin(context.now, job.command.device.0);
                self.expect(at, place, Phase::Begun, context);
            }
            Phase::Begun => self.begun(place, &job, context),
            Phase::Accessed => self.accessed(place, &job, context),
            Phase::Chunk(bytes) => self.chunk(place, &job, bytes, context),
            Phase::Asked(bytes) => self.asked(place, &job, bytes, context),
            Phase::Landed(bytes) => self.landed(place, &job, bytes, context),
            Phase::Posted => self.posted(place, &job, context),
        }
    }

    /// A job will be so far at `at`.
    pub(super) fn expect(&mut self, at: Time, place: u32, phase: Phase, context: Now<'_, '_>) {
        self.jobs[place].events += 1;
        context.at(at, SDirectEvent::Device(place, phase));
    }

    /// A device completes an aborted write when nothing of it is on its way any more.
    pub(super) fn end_aborted(&mut self, place: u32, context: Now<'_, '_>) {
        if self.jobs[place].events == 0 {
            let posted = self.machine.complete(context.now, self.jobs[place].command.device.0, self.queues());
            self.expect(posted, place, Phase::Posted, context);
        }
    }

    /// What a job has done since its last phase.
    fn claim(&mut self, job: &Job, kind: SpanKind, at: Place, context: Now<'_, '_>) {
        self.requests.tracks.claim(job.owner, kind, job.since, context.now, at);
    }

    /// A read goes to the flash; a write first gets its data.
    pub(super) fn begun(&mut self, place: u32, job: &Job, context: Now<'_, '_>) {
        self.claim(job, SpanKind::FlashWait, Place::Drive(job.command.device.0.into()), context);
        match job.command.operation {
            DeviceOperation::Read => self.access(place, context),
            DeviceOperation::Write => {
                for bytes in chunks(job.command.bytes) {
                    let at = self.machine.ask(context.now, job.command.device.0, self.buffers(), bytes);
                    self.expect(at, place, Phase::Asked(bytes), context);
                }
            }
        }
    }

    pub(super) fn access(&mut self, place: u32, context: Now<'_, '_>) {
        let StackCommand { device, operation, address, bytes, .. } = self.jobs[place].command;
        let done = self.machine.access(context.now, device.0, operation, address, bytes);
        self.jobs[place].done = Some(done);
        self.expect(done.end, place, Phase::Accessed, context);
    }

    /// The flash is done: data of a read leave the device, then the completion does.
    pub(super) fn accessed(&mut self, place: u32, job: &Job, context: Now<'_, '_>) {
        if let Some(done) = &job.done {
            self.requests.tracks.claim_device(job.owner, job.since, done, Place::Drive(job.command.device.0.into()));
        }
        if job.command.operation == DeviceOperation::Read {
            let legs = read_way(self.buffers(), matches!(job.giver, Giver::Engine));
            for bytes in chunks(job.command.bytes) {
                let (begun, then) = (context.now, Then::Device(place, Phase::Chunk(bytes)));
                self.transfer(begun, DmaTransfer { legs, device: job.command.device.0, bytes, begun, then }, context);
            }
        }
        let posted = self.machine.complete(context.now, job.command.device.0, self.queues());
        match job.command.operation {
            DeviceOperation::Read => self.jobs[place].posted = Some(posted),
            DeviceOperation::Write => self.expect(posted, place, Phase::Posted, context),
        }
    }

    /// Data of a read are with their giver; after the last comes the completion.
    pub(super) fn chunk(&mut self, place: u32, before: &Job, bytes: u32, context: Now<'_, '_>) {
        self.claim(before, SpanKind::Serialization, Place::Bus(before.command.device.0.into()), context);
        let job = &mut self.jobs[place];
        job.moved += bytes;
        let job = *job;
        if matches!(job.giver, Giver::Engine) {
            let (device, slot) = (job.command.device, job.slot);
            let input = EngineIn::Arrived { device, slot, data: Size(bytes) };
            self.tell_engine(context.now, job.owner, input, context);
        }
        if let Some(posted) = job.posted.filter(|_| job.moved == job.command.bytes) {
            self.expect(posted.max(context.now), place, Phase::Posted, context);
        }
    }

    pub(super) fn asked(&mut self, place: u32, job: &Job, bytes: u32, context: Now<'_, '_>) {
        self.claim(job, SpanKind::Serialization, Place::Bus(job.command.device.0.into()), context);
        match job.giver {
            Giver::Engine => {
                let (device, slot) = (job.command.device, job.slot);
                self.tell_engine(context.now, job.owner, EngineIn::Fetch { device, slot, bytes }, context);
            }
            Giver::Core(_) => {
                let legs = write_way(Home::Memory, false);
                let (begun, then) = (context.now, Then::Device(place, Phase::Landed(bytes)));
                self.transfer(begun, DmaTransfer { legs, device: job.command.device.0, bytes, begun, then }, context);
            }
        }
    }

    pub(super) fn landed(&mut self, place: u32, before: &Job, bytes: u32, context: Now<'_, '_>) {
        self.claim(before, SpanKind::Serialization, Place::Bus(before.command.device.0.into()), context);
        let job = &mut self.jobs[place];
        job.moved += bytes;
        if job.moved == job.command.bytes {
            self.access(place, context);
        }
    }

    pub(super) fn posted(&mut self, place: u32, job: &Job, context: Now<'_, '_>) {
        self.claim(job, SpanKind::Serialization, Place::Bus(job.command.device.0.into()), context);
        self.requests.tracks.pass(job.owner, context.now);
        self.jobs.remove(place);
        let (device, slot) = (job.command.device, job.slot);
        match job.giver {
            Giver::Engine => {
                let is_success = !job.is_aborted;
                let input = EngineIn::Completed { device, slot, is_success };
                self.tell_engine(context.now, job.owner, input, context);
            }
            Giver::Core(core) => self.run_stack(Some(StackIn::Completed { core, device, slot }), context),
        }
    }
}

fn chunks(bytes: u32) -> impl Iterator<Item = u32> {
    (0..bytes.div_ceil(CHUNK)).map(move |index| CHUNK.min(bytes - index * CHUNK))
}
