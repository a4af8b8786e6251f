//! Drives without a store, behind an NVMe-oF target: on the box's cores, or in its adapter.

use super::asks::Owner;
use super::{Now, Parcel, ScalioRig, sizes};
use base::Request;
use hardware::ssd::{CommandKind, Done};
use record::SpanKind;
use scalio::{Extent, SECTOR_BYTES};
use spec::DesignName;

/// A read on its way.
#[derive(Clone, Copy, Debug)]
pub struct BareRead {
    owner: Owner,
    client: u32,
    device: u32,
    extent: Extent,
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
        self.post(at, Parcel::Bare(BareRead { owner, client, device, extent, step: Step::Arrived }), context);
    }

    pub(super) fn bare_step(&mut self, read: BareRead, context: Now<'_, '_>) {
        let BareRead { owner, client, device, extent, step } = read;
        let (at, step) = match step {
            Step::Arrived => {
                self.asks.reach(context.now, owner, SpanKind::Network);
                let ready = self.bare_submit(owner, context);
                let done = self.devices[device as usize].submit(ready, CommandKind::Read, Some(extent));
                (done.end, Step::Read(done))
            }
            Step::Read(done) => {
                self.asks.reach_flash(context.now, owner, &done);
                (self.bare_complete(owner, context), Step::Completed)
            }
            Step::Completed => (self.plant.forward(context.now, extent.sectors * SECTOR_BYTES), Step::Seen),
            Step::Seen => {
                self.asks.reach(context.now, owner, SpanKind::Return);
                return self.bare_end(owner.ticket, context);
            }
        };
        self.post(at, Parcel::Bare(BareRead { owner, client, device, extent, step }), context);
    }

    /// When the drive has the command.
    fn bare_submit(&mut self, owner: Owner, context: Now<'_, '_>) -> base::Time {
        if self.plan.design == DesignName::NvmeOfOffload {
            let at = self.plant.offload.submit(context.now);
            self.asks.reach(at, owner, SpanKind::Stack);
            return at;
        }
        let seen = self.plant.adapter.take(context.now);
        self.asks.reach(seen, owner, SpanKind::Network);
        let (start, end) = self.plant.target_half(seen);
        self.asks.reach(start, owner, SpanKind::StorageQueue);
        self.asks.reach(end, owner, SpanKind::Stack);
        end
    }

    /// When the answer may leave.
    fn bare_complete(&mut self, owner: Owner, context: Now<'_, '_>) -> base::Time {
        if self.plan.design == DesignName::NvmeOfOffload {
            let at = self.plant.offload.complete(context.now);
            self.asks.reach(at, owner, SpanKind::Stack);
            return at;
        }
        let (start, end) = self.plant.target_half(context.now);
        self.asks.reach(start, owner, SpanKind::StorageQueue);
        self.asks.reach(end, owner, SpanKind::Stack);
        end
    }
}
