//! Drives without a store, behind an NVMe-oF target: on the box's cores, or in its adapter.

use super::asks::Owner;
use super::{Now, Parcel, ScalioRig, sizes};
use base::{Request, Time};
use hardware::ssd::{CommandKind, Done};
use record::{Place, SpanKind};
use scalio::{Extent, SECTOR_BYTES};
use spec::DesignName;

/// A read on its way.
#[derive(Clone, Copy, Debug)]
pub struct BareRead {
    owner: Owner,
    client: u32,
    device: u32,
    extent: Extent,
    /// When its last step ended.
    since: Time,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// At the box's adapter.
    Arrived,
    /// Its drive is done.
    Read(Done),
    /// Its answer may leave.
    Completed,
    /// Its client sees it.
    Seen,
}

impl ScalioRig {
    pub(super) fn bare_issue(&mut self, owner: Owner, client: u32, request: &Request, context: Now<'_, '_>) {
        let sectors = (request.bytes.count() / u64::from(SECTOR_BYTES)) as u32;
        let extent = Extent { sector: request.address / u64::from(SECTOR_BYTES), sectors };
        let device = request.target.0 - self.plan.store.clients;
        let at = self.plant.post(context.now, client, sizes::COMMAND);
        let (since, step) = (context.now, Step::Arrived);
        self.post(at, Parcel::Bare(BareRead { owner, client, device, extent, since, step }), context);
    }

    pub(super) fn bare_step(&mut self, read: BareRead, context: Now<'_, '_>) {
        let BareRead { owner, client, device, extent, since, step } = read;
        let now = context.now;
        let (since, at, step) = match step {
            Step::Arrived => {
                self.asks.claim_way(owner, since, now);
                let ready = self.bare_submit(owner, now);
                let done = self.devices[device as usize].submit(ready, CommandKind::Read, Some(extent));
                (ready, done.end, Step::Read(done))
            }
            Step::Read(done) => {
                self.asks.claim_flash(owner, since, &done, device);
                let ready = self.bare_complete(owner, now);
                (ready, ready, Step::Completed)
            }
            Step::Completed => (now, self.plant.forward(now, extent.sectors * SECTOR_BYTES), Step::Seen),
            Step::Seen => {
                self.asks.claim(owner, SpanKind::Return, since, now, Place::Link(0));
                return self.bare_end(owner.ticket, context);
            }
        };
        self.post(at, Parcel::Bare(BareRead { owner, client, device, extent, since, step }), context);
    }

    /// When the drive has the command. Nothing ends a read before, so that its time is claimed
    /// ahead.
    fn bare_submit(&mut self, owner: Owner, now: Time) -> Time {
        if self.plan.design == DesignName::NvmeOfOffload {
            let at = self.plant.offload.submit(now);
            self.asks.claim(owner, SpanKind::Stack, now, at, Place::Nic(0));
            return at;
        }
        let seen = self.plant.adapter.take(now);
        self.asks.claim_way(owner, now, seen);
        let worked = self.plant.target_half(seen);
        self.asks.claim_work(owner, seen, worked);
        worked.1
    }

    /// When the answer may leave.
    fn bare_complete(&mut self, owner: Owner, now: Time) -> Time {
        if self.plan.design == DesignName::NvmeOfOffload {
            let at = self.plant.offload.complete(now);
            self.asks.claim(owner, SpanKind::Stack, now, at, Place::Nic(0));
            return at;
        }
        let worked = self.plant.target_half(now);
        self.asks.claim_work(owner, now, worked);
        worked.1
    }
}
