//! Swaps in a run (RackBlox, 3.6): what a server's [`SwapCarrier`] asks for is done by its drives,
//! and its requests are let through by the carrier.

use super::devices::Doing;
use super::drives::Written;
use super::{BloxEvent, BloxRig, BuildError, Now};
use blox::{
    CarrierConfig, CarrierCounters, CarrierIn, CarrierOut, DeviceJob, NodeIn, Page, Seat, SwapCarrier, SwapCopy, Tag,
    Value, VssdId,
};
use plan::blox::{Blox, SWAP_ATTEMPTS};
use plan::wear::{ENDURANCE, SWAPS_IN_FIVE_YEARS};
use record::metric::{self, Meter};
use record::{Place, SpanKind};
use std::collections::{BTreeMap, VecDeque};

/// The program of a server that carries its swaps out.
type Carrier = crate::rigs::seat::Seat<SwapCarrier>;

/// A copy of a page of a swap: read, with its contents, or written.
#[derive(Clone, Copy, Debug)]
pub struct Swapped {
    copy: SwapCopy,
    value: Option<Value>,
}

/// The carriers of all servers, and the requests that they know of.
pub struct Swaps {
    carriers: Vec<Carrier>,
    held: BTreeMap<u64, (usize, Request)>,
    tickets: u64,
    /// Requests at a device, by the number of what the device does.
    underway: BTreeMap<u32, (usize, VssdId, Page)>,
}

/// A request of a server to its drive.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The server's name for it.
    pub job: DeviceJob,
    /// Which vSSD.
    pub vssd: VssdId,
    /// Which page.
    pub page: Page,
    /// What to write, or for whom to read.
    pub what: RequestKind,
}

/// What a request is.
#[derive(Clone, Copy, Debug)]
pub enum RequestKind {
    /// A read, of a client if it has a tag.
    Read(Option<Tag>),
    /// A write.
    Write(Value),
}

impl Swaps {
    /// Carriers for so many servers, if the plan has any swaps.
    pub fn new(plan: &Blox, servers: usize) -> Result<Option<Swaps>, BuildError> {
        if plan.swaps.is_empty() {
            return Ok(None);
        }
        let dies = plan.vssd.channels * plan.flash.geometry().dies_per_channel;
        let config = CarrierConfig {
            pages: plan.io.working_set_blocks,
            batch: plan.vssd.swap_batch,
            attempts_max: SWAP_ATTEMPTS,
            depth: dies,
            wait_max: plan.vssd.swap_wait_max,
        };
        let carrier = SwapCarrier::new(config).map_err(BuildError::of)?;
        let (held, underway) = (BTreeMap::new(), BTreeMap::new());
        let carriers = vec![Carrier::new(carrier); servers];
        Ok(Some(Swaps { carriers, held, tickets: 0, underway }))
    }
}

impl BloxRig {
    /// Two drives of a server begin to exchange what they hold, one pair of vSSDs after the other.
    pub(super) fn begin_swap(&mut self, index: u32, context: Now<'_, '_>) {
        let swap = self.plan.swaps[index as usize];
        let server = swap.server as usize;
        let of_drive = |drive: u32| self.devices[server].of_drive(drive as usize);
        let (one, other) = (of_drive(swap.ssds.0), of_drive(swap.ssds.1));
        for (one, other) in one.into_iter().zip(other) {
            self.tell_carrier(server, CarrierIn::Swap { one, other }, context);
        }
        self.settle(context);
    }

    /// A request wants the device: it is served now, or by the carrier when its page has moved.
    pub(super) fn request_amid_swaps(&mut self, server: usize, request: Request, context: Now<'_, '_>) {
        let Some(swaps) = &mut self.swaps else { return };
        let ticket = swaps.tickets;
        swaps.tickets += 1;
        match swaps.carriers[server].admit(request.vssd, request.page, ticket) {
            Some(seat) => self.serve_at(server, request, seat, context),
            None => drop(swaps.held.insert(ticket, (server, request))),
        }
    }

    fn serve_at(&mut self, server: usize, request: Request, seat: Seat, context: Now<'_, '_>) {
        let Request { job, what, .. } = request;
        let (region, unit) = (seat.region, Page(seat.unit));
        let drives = &mut self.devices[server];
        let place = match what {
            RequestKind::Read(tag) => {
                // It was held, if at all, while its page moved.
                if let Some(track) = tag.and_then(|tag| self.tracks.get(tag)) {
                    track.waited(context.now, SpanKind::CollectionWait, Place::Nowhere);
                    track.pass(context.now);
                }
                let read = drives.read(context.now, region, unit);
                let (value, booked) = read.expect("a carrier names units of the regions that it was made with");
                Some(self.book(Doing::Read { job, value, booked, tag }, server, booked.end, context))
            }
            RequestKind::Write(value) => match drives.write(context.now, region, unit, value) {
                Written::At(end) => Some(self.book(Doing::Write { job }, server, end, context)),
                refused => {
                    self.write_refused(server, job, region, refused);
                    None
                }
            },
        };
        if let RequestKind::Write(_) = what {
            self.report_blocks(server, region);
        }
        match (place, &mut self.swaps) {
            (Some(place), Some(swaps)) => {
                swaps.underway.insert(place, (server, request.vssd, request.page));
            }
            _ => self.request_over(server, request.vssd, request.page, context),
        }
    }

    /// What a device did is done: if it was a request, its carrier hears of it.
    pub(super) fn request_ended(&mut self, place: u32, context: Now<'_, '_>) {
        let ended = self.swaps.as_mut().and_then(|swaps| swaps.underway.remove(&place));
        if let Some((server, vssd, page)) = ended {
            self.request_over(server, vssd, page, context);
        }
    }

    fn request_over(&mut self, server: usize, vssd: VssdId, page: Page, context: Now<'_, '_>) {
        let Some(swaps) = &mut self.swaps else { return };
        let mut out = Vec::new();
        swaps.carriers[server].end(context.now, vssd, page, &mut out);
        self.carrier_acts(server, out, context);
    }

    /// A page has been read into memory, or is written.
    pub(super) fn copied(&mut self, server: usize, swapped: Swapped, context: Now<'_, '_>) {
        let Swapped { copy, value } = swapped;
        let input = match value {
            Some(value) => CarrierIn::Read { copy, value },
            None => CarrierIn::Written(copy),
        };
        self.tell_carrier(server, input, context);
    }

    /// A server has died or is back. What its drives did for requests is nobody's any more.
    pub(super) fn carrier_fault(&mut self, server: usize, input: CarrierIn, context: Now<'_, '_>) {
        let Some(swaps) = &mut self.swaps else { return };
        if input == CarrierIn::Fail {
            swaps.held.retain(|_, (of, _)| *of != server);
            swaps.underway.retain(|_, (of, ..)| *of != server);
        }
        self.tell_carrier(server, input, context);
        self.settle(context);
    }

    /// A carrier may have waited long enough.
    pub(super) fn wake_carrier(&mut self, server: usize, context: Now<'_, '_>) {
        let Some(swaps) = &mut self.swaps else { return };
        let Some(out) = swaps.carriers[server].wake(context.now) else { return };
        self.carrier_acts(server, out, context);
        self.settle(context);
    }

    fn tell_carrier(&mut self, server: usize, input: CarrierIn, context: Now<'_, '_>) {
        let Some(swaps) = &mut self.swaps else { return };
        let out = swaps.carriers[server].tell(context.now, input);
        self.carrier_acts(server, out, context);
    }

    fn carrier_acts(&mut self, server: usize, out: Vec<CarrierOut>, context: Now<'_, '_>) {
        let mut out = VecDeque::from(out);
        while let Some(action) = out.pop_front() {
            let Some(answer) = self.carrier_act(server, action, context) else { continue };
            let Some(swaps) = &mut self.swaps else { return };
            out.extend(swaps.carriers[server].tell(context.now, answer));
        }
        self.arm_carrier(server, context);
    }

    /// Does it; what the carrier has to know at once.
    fn carrier_act(&mut self, server: usize, action: CarrierOut, context: Now<'_, '_>) -> Option<CarrierIn> {
        match action {
            CarrierOut::Read { copy, seat } => {
                let read = self.devices[server].read_to_move(context.now, seat);
                let (value, booked) = read.expect("a carrier names units of the regions that it was made with");
                self.book(Doing::Copy(Swapped { copy, value: Some(value) }), server, booked.end, context);
            }
            CarrierOut::Write { copy, seat, value } => return self.write_copy(server, copy, seat, value, context),
            CarrierOut::Trim(seat) => self.devices[server].trim(seat),
            CarrierOut::Serve { ticket, seat } => {
                let held = self.swaps.as_mut().and_then(|swaps| swaps.held.remove(&ticket));
                let (_, request) = held.expect("a carrier serves what it holds");
                self.serve_at(server, request, seat, context);
            }
            CarrierOut::Exchange { one, other } => {
                self.devices[server].exchange(one, other);
                [one, other].into_iter().for_each(|vssd| self.report_blocks(server, vssd));
            }
        }
        None
    }

    fn write_copy(
        &mut self,
        server: usize,
        copy: SwapCopy,
        seat: Seat,
        value: Value,
        context: Now<'_, '_>,
    ) -> Option<CarrierIn> {
        let written = self.devices[server].write_moved(context.now, seat, value);
        self.report_blocks(server, seat.region);
        match written {
            Written::At(end) => {
                self.book(Doing::Copy(Swapped { copy, value: None }), server, end, context);
                None
            }
            Written::Refused => Some(CarrierIn::Refused(copy)),
            Written::WornOut => Some(CarrierIn::Failed(copy)),
        }
    }

    fn arm_carrier(&mut self, server: usize, context: Now<'_, '_>) {
        let Some(swaps) = &mut self.swaps else { return };
        if let Some(at) = swaps.carriers[server].arm(context.now) {
            context.at(at, BloxEvent::Carrier(server as u32));
        }
    }

    /// Pages that swaps have written into the drives of the rack: they are no writes of requests.
    pub(super) fn swapped_pages(&self) -> u64 {
        self.swaps
            .as_ref()
            .map_or(0, |swaps| swaps.carriers.iter().map(|carrier| carrier.counters().pages_written).sum())
    }

    /// What swaps have done and cost, if the plan has any.
    pub(super) fn facts_of_swaps(&self, meter: &mut Meter) {
        let Some(swaps) = &self.swaps else { return };
        let sum = |field: fn(&CarrierCounters) -> u64| -> f64 {
            swaps.carriers.iter().map(|carrier| field(carrier.counters())).sum::<u64>() as f64
        };
        let (done, written) = (sum(|counters| counters.done), sum(|counters| counters.pages_written));
        let planned = self.plan.swaps.len() as u32 * self.plan.vssd.per_ssd;
        let flash_pages = self.plan.vssd.capacity.count() as f64 / plan::blox::PAGE.count() as f64;
        meter.count(metric::swaps_of_vssds_done, done);
        meter.put(metric::swaps_of_vssds_unfinished, f64::from(planned) - done);
        meter.count(metric::swap_pages_read, sum(|counters| counters.pages_read));
        meter.count(metric::swap_pages_written, written);
        meter.count(metric::swap_requests_held, sum(|counters| counters.held));
        meter.ratio(metric::swap_time_mean_ms, sum(|counters| counters.time.as_ps()) / 1e9, done);
        // Both vSSDs of a pair are written; so are, pair by pair, both drives.
        let erases = meter.ratio(metric::swap_erases_of_every_block, written, 2.0 * done * flash_pages);
        meter.put(metric::swap_every_12_days_lifetime_fraction, erases * SWAPS_IN_FIVE_YEARS / f64::from(ENDURANCE));
    }

    fn write_refused(&mut self, server: usize, job: DeviceJob, vssd: VssdId, why: Written) {
        if why == Written::WornOut {
            self.counts.worn_out += 1;
            self.programs.inputs.push_back((server, NodeIn::WornOut { vssd }));
        }
        self.programs.inputs.push_back((server, NodeIn::WriteRefused { job }));
    }
}
