//! Drives without a store, behind an NVMe over Fabrics target.

use super::asks::Owner;
use super::programs::Programs;
use super::{InFlight, Now, ScalioRig, sizes};
use crate::drive::{Ended, Ticket};
use base::{Request, Span, Time};
use hardware::ssd::{CommandKind, Done};
use record::{Outcome, Place, SpanKind};
use scalio::baseline::nvme_of::{TargetIn, TargetOut, Unit};
use scalio::{Extent, RequestId, SECTOR_BYTES};

/// A step of a read on its way.
#[derive(Clone, Copy, Debug)]
pub struct BareRead {
    owner: Owner,
    /// End of the previous step.
    since: Time,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The command arrives at the box's adapter.
    Arrived { device: u32, extent: Extent },
    /// The drive is done.
    Read { slot: u32, device: u32, done: Done },
    /// The answer leaves.
    Completed { bytes: u32 },
    /// The client sees the answer.
    Seen,
}

impl BareRead {
    /// The drive that has its command at `now`, if one has.
    pub fn at_drive(&self, now: Time) -> Option<u32> {
        match self.step {
            Step::Read { device, done, .. } if now <= done.end => Some(device),
            _ => None,
        }
    }
}

impl ScalioRig {
    pub(super) fn bare_issue(&mut self, owner: Owner, client: u32, request: &Request, context: Now<'_, '_>) {
        let sectors = (request.bytes.count() / u64::from(SECTOR_BYTES)) as u32;
        let extent = Extent { sector: request.address / u64::from(SECTOR_BYTES), sectors };
        let device = request.target.0 - self.plan.store.clients;
        let at = self.hardware.post(context.now, client, sizes::COMMAND);
        self.bare_next(owner, context.now, (at, Step::Arrived { device, extent }), context);
    }

    pub(super) fn bare_step(&mut self, read: BareRead, context: Now<'_, '_>) {
        let BareRead { owner, since, step } = read;
        let now = context.now;
        match step {
            Step::Arrived { device, extent } => {
                self.asks.claim_way(owner, since, now);
                let request = RequestId(u64::from(owner.ticket));
                self.tell_bare_target(owner, TargetIn::Command { request, device, extent }, context);
            }
            Step::Read { slot, device, done } => {
                self.asks.claim_flash(owner, since, &done, device);
                self.tell_bare_target(owner, TargetIn::Read { slot }, context);
            }
            Step::Completed { bytes } => {
                let at = self.hardware.forward(now, bytes);
                self.bare_next(owner, now, (at, Step::Seen), context);
            }
            Step::Seen => {
                self.asks.claim(owner, SpanKind::Return, since, now, Place::Link(0));
                self.bare_end(owner.ticket, context);
            }
        }
    }

    fn tell_bare_target(&mut self, owner: Owner, input: TargetIn, context: Now<'_, '_>) {
        let Programs::Bare(target) = &mut self.programs else { return };
        let mut out = target.tell(context.now, input);
        out.drain(..).for_each(|action| self.obey_bare_target(owner, action, context));
        if let Programs::Bare(target) = &mut self.programs {
            target.recycle(out);
        }
    }

    fn obey_bare_target(&mut self, owner: Owner, action: TargetOut, context: Now<'_, '_>) {
        match action {
            TargetOut::Submit { slot, unit, device, extent } => {
                let ready = self.bare_submit(owner, unit, context.now);
                let done = self.store.devices[device as usize].submit(ready, CommandKind::Read, Some(extent));
                self.bare_next(owner, ready, (done.end, Step::Read { slot, device, done }), context);
            }
            TargetOut::Answer { unit, bytes, .. } => {
                let ready = self.bare_complete(owner, unit, context.now);
                self.bare_next(owner, ready, (ready, Step::Completed { bytes }), context);
            }
        }
    }

    fn bare_next(&mut self, owner: Owner, since: Time, (at, step): (Time, Step), context: Now<'_, '_>) {
        self.post(at, InFlight::Bare(BareRead { owner, since, step }), context);
    }

    /// Returns when the drive has the command. Nothing ends a read before, so that its time is
    /// claimed ahead.
    fn bare_submit(&mut self, owner: Owner, unit: Unit, now: Time) -> Time {
        match unit {
            Unit::Adapter => {
                let at = self.hardware.offload.submit(now);
                self.asks.claim(owner, SpanKind::Stack, now, at, Place::Nic(0));
                at
            }
            Unit::Core(core) => {
                let seen = self.hardware.adapter.take(now);
                self.asks.claim_way(owner, now, seen);
                self.bare_work(owner, core, seen)
            }
        }
    }

    /// Returns when the answer may leave.
    fn bare_complete(&mut self, owner: Owner, unit: Unit, now: Time) -> Time {
        match unit {
            Unit::Adapter => {
                let at = self.hardware.offload.complete(now);
                self.asks.claim(owner, SpanKind::Stack, now, at, Place::Nic(0));
                at
            }
            Unit::Core(core) => self.bare_work(owner, core, now),
        }
    }

    fn bare_work(&mut self, owner: Owner, core: u32, now: Time) -> Time {
        let worked = self.hardware.target_half(now, core);
        self.asks.claim_work(owner, now, worked);
        worked.1
    }

    fn bare_end(&mut self, ticket: u32, context: Now<'_, '_>) {
        let Some(ask) = self.asks.end(context.now, ticket) else { return };
        self.counts.gets += 1;
        context.end(Ended {
            ticket: Ticket(ticket),
            outcome: Outcome::Finished,
            start: ask.start,
            end: context.now,
            label: Span::ZERO,
            ledger: ask.ledger,
        });
    }
}
