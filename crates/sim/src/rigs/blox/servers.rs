//! Storage servers and their drives: inputs in their order, and operations of drives from their
//! begin to their end.

use super::devices::Doing;
use super::drives::Written;
use super::swaps::{Request as DeviceRequest, RequestKind};
use super::{BloxEvent, BloxRig, Now, Who, tag_of};
use base::{NodeId, Time};
use blox::{DeviceJob, NodeIn, NodeOut, Packet, Page, Stage, Tag, Value, VssdId};
use record::{Place, SpanKind};

impl BloxRig {
    pub(super) fn feed(&mut self, index: usize, input: NodeIn, context: Now<'_, '_>) {
        if self.programs.inputs.is_empty() {
            self.tell_server(index, input, context);
        } else {
            self.programs.inputs.push_back((index, input));
        }
        self.settle(context);
    }

    /// Until nothing happens at this moment any more: some answers of drives take no time.
    pub(super) fn settle(&mut self, context: Now<'_, '_>) {
        while let Some((index, input)) = self.programs.inputs.pop_front() {
            self.tell_server(index, input, context);
        }
    }

    fn tell_server(&mut self, index: usize, input: NodeIn, context: Now<'_, '_>) {
        let out = self.programs.servers[index].tell(context.now, input);
        self.server_did(index, out, context);
        self.arm(Who::Server(index as u32), context);
    }

    pub(super) fn wake_server(&mut self, index: usize, context: Now<'_, '_>) {
        let Some(out) = self.programs.servers[index].wake(context.now) else { return };
        self.server_did(index, out, context);
        self.settle(context);
        self.arm(Who::Server(index as u32), context);
    }

    fn server_did(&mut self, index: usize, mut out: Vec<NodeOut>, context: Now<'_, '_>) {
        out.drain(..).for_each(|action| self.server_acts(index, action, context));
        self.programs.servers[index].recycle(out);
    }

    fn server_acts(&mut self, index: usize, action: NodeOut, context: Now<'_, '_>) {
        let drives = &mut self.devices[index];
        match action {
            NodeOut::Send(packet) => self.server_sends(index, packet, context),
            NodeOut::Read { job, vssd, page, request } => self.read(index, job, vssd, page, request, context),
            NodeOut::Write { job, vssd, page, value } => self.write(index, job, vssd, (page, value), context),
            NodeOut::Collect { vssd, stream } => self.collect(index, vssd, stream, context),
            NodeOut::Lend(moved) => {
                let lent = drives.lend(moved);
                self.counts.lent += u64::from(lent.blocks);
                self.programs.inputs.push_back((index, NodeIn::Lent(lent)));
                self.report_blocks(index, moved.from);
                self.report_blocks(index, moved.to);
            }
            NodeOut::Return(moved) => {
                let returned = drives.give_back(moved);
                self.counts.given_back += u64::from(returned.blocks);
                self.programs.inputs.push_back((index, NodeIn::Returned(returned)));
                self.report_blocks(index, moved.from);
                self.report_blocks(index, moved.to);
            }
            NodeOut::Wanted { vssd } => self.adopt(index, vssd),
            NodeOut::Mark { source: _, tag, stage } => {
                let server = self.places.storage(index);
                if let Some(track) = self.tracks.get(tag) {
                    track.waited(context.now, waited_before(stage), Place::Target(server.0));
                    track.pass(context.now);
                }
            }
        }
    }

    /// What a server still had to do before its answer, and the prediction that came with it.
    fn server_sends(&mut self, index: usize, packet: Packet, context: Now<'_, '_>) {
        let server = self.places.storage(index);
        if let Some(track) = tag_of(&packet.body).and_then(|tag| self.tracks.get(tag)) {
            track.waited(context.now, SpanKind::StorageQueue, Place::Target(server.0));
        }
        self.send(server, packet, context);
    }

    fn read(
        &mut self,
        index: usize,
        job: DeviceJob,
        vssd: VssdId,
        page: Page,
        request: Option<(NodeId, Tag)>,
        context: Now<'_, '_>,
    ) {
        let tag = request.map(|(_, tag)| tag);
        let server = self.places.storage(index);
        if let Some(track) = tag.and_then(|tag| self.tracks.get(tag)) {
            track.waited(context.now, SpanKind::StorageQueue, Place::Target(server.0));
            track.pass(context.now);
        }
        if self.swaps.is_some() {
            let request = DeviceRequest { job, vssd, page, what: RequestKind::Read(tag) };
            return self.request_amid_swaps(index, request, context);
        }
        let (value, booked) = self.devices[index]
            .read(context.now, vssd, page)
            .expect("a node reads only pages of the vSSDs that it was made with");
        self.book(Doing::Read { job, value, booked, tag }, index, booked.end, context);
    }

    fn write(&mut self, index: usize, job: DeviceJob, vssd: VssdId, data: (Page, Value), context: Now<'_, '_>) {
        if self.swaps.is_some() {
            let request = DeviceRequest { job, vssd, page: data.0, what: RequestKind::Write(data.1) };
            return self.request_amid_swaps(index, request, context);
        }
        match self.devices[index].write(context.now, vssd, data.0, data.1) {
            Written::At(end) => drop(self.book(Doing::Write { job }, index, end, context)),
            Written::Refused => self.programs.inputs.push_back((index, NodeIn::WriteRefused { job })),
            Written::WornOut => {
                self.counts.worn_out += 1;
                self.programs.inputs.push_back((index, NodeIn::WornOut { vssd }));
                self.programs.inputs.push_back((index, NodeIn::WriteRefused { job }));
            }
        }
        self.report_blocks(index, vssd);
    }

    fn collect(&mut self, index: usize, vssd: VssdId, stream: u32, context: Now<'_, '_>) {
        let collected = self.devices[index]
            .collect(context.now, vssd, stream)
            .expect("a node collects only in vSSDs that it was made with");
        if collected.nothing {
            self.programs.inputs.push_back((index, NodeIn::Collected { vssd, stream, freed: false, nothing: true }));
        } else {
            let freed = collected.freed;
            self.book(Doing::Collect { vssd, stream, freed }, index, collected.end, context);
        }
    }

    /// Something that a drive does until then; its number.
    pub(super) fn book(&mut self, doing: Doing, index: usize, at: Time, context: Now<'_, '_>) -> u32 {
        let place = self.devices.begin(index, doing);
        context.at(at, BloxEvent::Done(place));
        place
    }

    pub(super) fn done(&mut self, place: u32, context: Now<'_, '_>) {
        let (index, doing) = self.devices.end(place);
        let server = self.places.storage(index);
        self.request_ended(place, context);
        match doing {
            Doing::Copy(swapped) => self.copied(index, swapped, context),
            Doing::Read { job, value, booked, tag } => {
                if let Some(track) = tag.and_then(|tag| self.tracks.get(tag)) {
                    let parts = [
                        (SpanKind::FlashWait, booked.wait),
                        (SpanKind::CollectionWait, booked.collection_wait),
                        (SpanKind::Flash, booked.service),
                    ];
                    track.claim_parts(context.now, parts, Place::Target(server.0));
                    track.pass(context.now);
                }
                return self.feed(index, NodeIn::ReadDone { job, value }, context);
            }
            Doing::Write { job } => return self.feed(index, NodeIn::WriteDone { job }, context),
            Doing::Collect { vssd, stream, freed } => {
                self.report_blocks(index, vssd);
                self.programs.inputs.push_back((index, NodeIn::Collected { vssd, stream, freed, nothing: false }));
            }
        }
        self.settle(context);
    }

    pub(super) fn report_blocks(&mut self, index: usize, vssd: VssdId) {
        if let Some((free, owned)) = self.devices[index].changed_blocks(vssd) {
            self.programs.inputs.push_back((index, NodeIn::Blocks { vssd, free, owned }));
        }
    }

    pub(super) fn all_blocks(&mut self, index: usize) -> Vec<NodeIn> {
        let vssds: Vec<VssdId> = self.devices[index].vssds().collect();
        let drives = &mut self.devices[index];
        vssds
            .into_iter()
            .filter_map(|vssd| {
                let (free, owned) = drives.changed_blocks(vssd)?;
                Some(NodeIn::Blocks { vssd, free, owned })
            })
            .collect()
    }
}

/// What a request was doing until it reached a stage.
fn waited_before(stage: Stage) -> SpanKind {
    match stage {
        Stage::Valid | Stage::Replicated => SpanKind::Replication,
        Stage::Queued | Stage::Dispatched | Stage::Fetched | Stage::Cached | Stage::Admitted | Stage::Redirected => {
            SpanKind::StorageQueue
        }
    }
}
