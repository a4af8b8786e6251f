//! A storage server: [`blox::StorageNode`] over its flash.

use crate::configs;
use crate::flash::Flash;
use crate::journal::State;
use crate::kept::Place;
use crate::kept_pages::Content;
use crate::pages::Pages;
use crate::role::{self, Carrier, Role, Running, Setup, Start};
use crate::rows::Rows;
use base::{NodeId, Program, Time};
use blox::{
    DeviceJob, NodeIn, NodeOut, PAGE_BYTES, Packet, Page, REPLICAS_MAX, StorageNode, Tag, Value, VssdConfig, VssdId,
};
use bytes::Bytes;
use plan::rack::Rack;
use runtime::error::{RunError, StartError};
use runtime::metrics::{Number, counter, gauge};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;

/// What a server must know again after its process was killed.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    /// How often it was started; its file has this start too once it runs.
    starts: u32,
    /// vSSDs that it has taken in from others, with their pages.
    adopted: Vec<(VssdId, u64)>,
}

impl Kept {
    /// All vSSDs of a server, with their pages: those of the rack's file first.
    fn vssds(&self, rack: &Rack, server: usize) -> Vec<(VssdId, u64)> {
        configs::vssds_of(rack, server).into_iter().chain(self.adopted.iter().copied()).collect()
    }
}

/// What the drive is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    /// `is_first`: the page's bytes were not in memory before.
    Read {
        job: DeviceJob,
        vssd: VssdId,
        page: Page,
        content: Content,
        is_first: bool,
    },
    Write {
        job: DeviceJob,
    },
    Collect {
        vssd: VssdId,
        stream: u32,
        freed: bool,
    },
}

pub(crate) struct StorageRole {
    rack: Rack,
    server: usize,
    program: StorageNode,
    flash: Flash,
    pages: Pages,
    kept: Kept,
    /// Where it keeps what it must know again; nowhere in a twin.
    place: Option<Place>,
    switch: NodeId,
    inputs: VecDeque<NodeIn>,
    out: Vec<NodeOut>,
    doing: BinaryHeap<Reverse<(Time, u64, Doing)>>,
    begun: u64,
    room: Box<[u8]>,
    collected: u64,
    fault: Option<io::Error>,
    lost: u64,
}

/// Starts a storage server of a rack, by its place in [`Rack::storage`].
///
/// # Errors
/// When an address is wrong or taken, or its files are not those of this rack.
pub fn start(rack: &Rack, server: usize, start: Start) -> Result<Running, StartError> {
    let plan = &rack.storage[server];
    let folder = plan.flash.path.clone().unwrap_or_else(|| rack.folder.join(format!("{}.flash", plan.name)));
    let place = Place::take(folder.join("server.json"))?;
    let kept: Kept = place.read()?.unwrap_or_default();
    let (starts, adopted) = (kept.starts, kept.adopted.clone());
    let flash = Flash::open(configs::flash(rack, server), &folder, &plan.flash)?;
    let role = StorageRole::new(rack, server, kept, flash, Some(place))?;
    // Nobody reads it without a journal.
    let values = if rack.journal.is_some() { role.flash.values() } else { Vec::new() };
    let state = State::Storage { server, starts, adopted, values };
    let (node, metrics) = (NodeId(server as u32), plan.metrics);
    let rows = Rows::begin(rack, node, &plan.name)?;
    role::start(Setup { name: "storage", rack, node, metrics, start, state, rows }, |_| role)
}

/// The program of a server that was started so often before.
fn program_of(rack: &Rack, server: usize, vssds: &[(VssdId, u64)], starts: u32) -> Result<StorageNode, StartError> {
    let vssds = vssds.iter().map(|(vssd, pages)| configs::vssd(rack, server, *vssd, *pages)).collect();
    let mut program = StorageNode::new(configs::node(rack, server, vssds)).map_err(StartError::plan)?;
    if starts > 0 {
        program.resume(starts);
    }
    Ok(program)
}

impl StorageRole {
    /// A server with what it kept and the flash that it has; `place` is where it keeps more.
    fn new(
        rack: &Rack,
        server: usize,
        mut kept: Kept,
        mut flash: Flash,
        place: Option<Place>,
    ) -> Result<StorageRole, StartError> {
        let vssds = kept.vssds(rack, server);
        for (vssd, pages) in &vssds {
            flash.add(*vssd, *pages).map_err(|error| StartError::file(flash.folder(), error))?;
        }
        let program = program_of(rack, server, &vssds, kept.starts)?;
        kept.starts += 1;
        let mut role = StorageRole {
            rack: rack.clone(),
            server,
            program,
            flash,
            pages: Pages::new(),
            kept,
            place,
            switch: configs::switch_node(rack),
            inputs: VecDeque::new(),
            out: Vec::new(),
            doing: BinaryHeap::new(),
            begun: 0,
            room: vec![0; PAGE_BYTES as usize].into(),
            collected: 0,
            fault: None,
            lost: 0,
        };
        role.keep().map_err(|error| StartError::file(role.flash.folder(), error))?;
        vssds.iter().for_each(|(vssd, _)| role.report_blocks(*vssd));
        if role.kept.starts > 1 {
            role.inputs.push_back(NodeIn::Recover);
        }
        Ok(role)
    }

    /// A server without files, as it was when a journal began.
    pub fn twin(
        rack: &Rack,
        server: usize,
        (starts, adopted): (u32, Vec<(VssdId, u64)>),
        values: Vec<(VssdId, Vec<(u64, u64)>)>,
    ) -> Result<StorageRole, StartError> {
        let flash = Flash::without_data(configs::flash(rack, server), values, &rack.storage[server].flash)?;
        StorageRole::new(rack, server, Kept { starts, adopted }, flash, None)
    }

    fn keep(&self) -> io::Result<()> {
        self.place.as_ref().map_or(Ok(()), |place| place.write(&self.kept))
    }

    fn report_blocks(&mut self, vssd: VssdId) {
        if let Some((free, owned)) = self.flash.changed_blocks(vssd) {
            self.inputs.push_back(NodeIn::Blocks { vssd, free, owned });
        }
    }

    /// Until nothing happens at this moment any more: some answers of the drive take no time.
    fn settle(&mut self, now: Time, wire: &mut dyn Carrier) {
        loop {
            for action in std::mem::take(&mut self.out) {
                self.act(now, action, wire);
            }
            match self.inputs.pop_front() {
                Some(input) => self.program.on(now, input, &mut self.out),
                None if self.out.is_empty() => break,
                None => {}
            }
        }
        if self.pages.is_long() {
            let reads = self.doing.iter().filter_map(|Reverse((_, _, doing))| match doing {
                Doing::Read { content: Content::Sound(value), .. } => Some(*value),
                _ => None,
            });
            self.pages.sweep(self.program.held_values().chain(reads));
        }
    }

    fn act(&mut self, now: Time, action: NodeOut, wire: &mut dyn Carrier) {
        match action {
            NodeOut::Send(packet) => self.send(&packet, wire),
            NodeOut::Read { job, vssd, page, request } => self.read(now, (job, request), vssd, page, wire),
            NodeOut::Write { job, vssd, page, value } => self.write(now, job, vssd, page, value),
            NodeOut::Collect { vssd, stream } => self.collect(now, vssd, stream),
            NodeOut::Wanted { vssd } => self.adopt(vssd),
            // Nobody lends blocks here, and nobody counts stages.
            NodeOut::Lend(_) | NodeOut::Return(_) | NodeOut::Mark { .. } => {}
        }
    }

    fn send(&mut self, packet: &Packet, wire: &mut dyn Carrier) {
        match packet.body.value().map(|value| self.pages.get(value)) {
            None => wire.send(self.switch, packet, None),
            Some(Some(data)) => wire.send(self.switch, packet, Some(&data)),
            Some(None) => {
                self.lost += 1;
                tracing::error!(?packet, "the data of a packet are not there: it is not sent");
            }
        }
    }

    fn read(
        &mut self,
        now: Time,
        (job, request): (DeviceJob, Option<(NodeId, Tag)>),
        vssd: VssdId,
        page: Page,
        wire: &mut dyn Carrier,
    ) {
        match self.flash.read(now, vssd, page, request.is_none(), &mut self.room) {
            Ok((content, end)) => {
                request.iter().for_each(|request| wire.read_from_flash(*request, end.saturating_since(now)));
                let is_first = match content {
                    Content::Sound(value) => self.pages.put(value, &self.room),
                    Content::Rotten(named) => {
                        tracing::warn!(vssd = vssd.0, page = page.0, "a page on flash is not as it was written");
                        wire.rotted(vssd, page, named);
                        false
                    }
                };
                self.begin(end, Doing::Read { job, vssd, page, content, is_first });
            }
            Err(error) => self.fail(error, "a page cannot be read", vssd),
        }
    }

    fn write(&mut self, now: Time, job: DeviceJob, vssd: VssdId, page: Page, value: Value) {
        let Some(data) = self.pages.get(value) else {
            self.lost += 1;
            return tracing::error!(?vssd, ?page, ?value, "the data of a page are not there: it stays as it was");
        };
        match self.flash.write(now, vssd, page, value, &data) {
            Ok(Some(end)) => self.begin(end, Doing::Write { job }),
            Ok(None) => self.inputs.push_back(NodeIn::WriteRefused { job }),
            Err(error) => self.fail(error, "a page cannot be written", vssd),
        }
        self.report_blocks(vssd);
    }

    fn collect(&mut self, now: Time, vssd: VssdId, stream: u32) {
        match self.flash.collect(now, vssd, stream) {
            Ok(done) if !done.nothing => {
                self.collected += 1;
                self.begin(done.end, Doing::Collect { vssd, stream, freed: done.freed });
            }
            Ok(_) => self.inputs.push_back(NodeIn::Collected { vssd, stream, freed: false, nothing: true }),
            Err(error) => self.fail(error, "a step of collection failed", vssd),
        }
    }

    /// A server fails whole (RackBlox, 3.7): with a disk that fails it ends, and its peers go on.
    fn fail(&mut self, error: io::Error, what: &str, vssd: VssdId) {
        tracing::error!(%error, vssd = vssd.0, "{what}: the server ends");
        self.fault.get_or_insert(io::Error::new(error.kind(), format!("vSSD {}: {what}: {error}", vssd.0)));
    }

    fn begin(&mut self, end: Time, doing: Doing) {
        self.begun += 1;
        self.doing.push(Reverse((end, self.begun, doing)));
    }

    /// A replica that was lost elsewhere is made here.
    fn adopt(&mut self, vssd: VssdId) {
        let members = self.program.wanted(vssd).into_iter().flat_map(|order| order.replicas).flatten();
        let volume = members.filter_map(|(_, member)| configs::volume_of(&self.rack, member)).next();
        let Some(pages) = volume.map(|volume| configs::pages(&self.rack, volume)) else {
            return tracing::error!(vssd = vssd.0, "no member of its group is known: its size is not");
        };
        match self.flash.add(vssd, pages) {
            Ok(()) => {}
            // The control plane counts room; it is not worth the replicas that are here.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                return tracing::error!(%error, "there is no room for a replica that was lost elsewhere");
            }
            Err(error) => return self.fail(error, "a replica that was lost elsewhere cannot be made", vssd),
        }
        // Kept only once it fits: a server whose file says more than its flash holds cannot start.
        self.kept.adopted.push((vssd, pages));
        if let Err(error) = self.keep() {
            return self.fail(error, "a replica that was lost elsewhere cannot be noted", vssd);
        }
        tracing::info!(vssd = vssd.0, pages, "a replica that was lost elsewhere is made here");
        let replicas = [None; REPLICAS_MAX];
        let config = VssdConfig { replicas, ..configs::vssd(&self.rack, self.server, vssd, pages) };
        self.inputs.push_back(NodeIn::Adopt(config));
        self.report_blocks(vssd);
    }
}

impl Role for StorageRole {
    fn on_packet(&mut self, now: Time, packet: Packet, data: &Bytes, wire: &mut dyn Carrier) {
        if let Some(value) = packet.body.value() {
            self.pages.put(value, data);
        }
        self.inputs.push_back(NodeIn::Packet(packet));
        self.settle(now, wire);
    }

    fn next_wakeup(&self) -> Option<Time> {
        let drive = self.doing.peek().map(|Reverse((end, ..))| *end);
        let due = [self.program.next_wakeup(), drive].into_iter().flatten().min();
        if self.inputs.is_empty() { due } else { Some(Time::ZERO) }
    }

    fn on_wakeup(&mut self, now: Time, wire: &mut dyn Carrier) {
        while let Some(Reverse((_, _, doing))) = self.doing.peek().filter(|Reverse((end, ..))| *end <= now).copied() {
            self.doing.pop();
            let input = match doing {
                Doing::Read { job, content: Content::Sound(value), .. } => NodeIn::ReadDone { job, value },
                Doing::Read { job, content: Content::Rotten(named), .. } => NodeIn::ReadRotten { job, named },
                Doing::Write { job } => NodeIn::WriteDone { job },
                Doing::Collect { vssd, stream, freed } => {
                    self.report_blocks(vssd);
                    NodeIn::Collected { vssd, stream, freed, nothing: false }
                }
            };
            self.inputs.push_back(input);
        }
        self.program.on_wakeup(now, &mut self.out);
        self.settle(now, wire);
    }

    fn numbers(&self) -> Vec<Number> {
        let counts = self.program.counters();
        let vssds = self.kept.vssds(&self.rack, self.server);
        let collecting = vssds.iter().filter(|(vssd, _)| self.program.is_collecting(*vssd)).count();
        vec![
            gauge("collecting", "vSSDs that collect garbage now.", collecting as u64),
            counter("reads", "Reads answered.", counts.reads_cached + counts.reads_device + counts.reads_awaited),
            counter("writes", "Writes answered as done.", counts.writes),
            counter("flushes", "Pages that the flash has taken.", counts.flushes),
            counter("collections", "Steps of collection.", self.collected),
            counter("waits_for_room", "Writes that waited for room in memory.", counts.waits_for_room),
            counter("writes_refused", "Writes that found no free block.", counts.writes_refused),
            counter("refusals", "Requests turned away with a reason.", counts.refusals),
            counter("unanswered", "Requests not answered, since the lease did not hold.", counts.unanswered),
            counter("writes_known", "Writes that came again when they had been done.", counts.writes_known),
            counter("writes_over", "Copies of writes that no door waited for any longer.", counts.writes_over),
            gauge(
                "writes_remembered",
                "Writes known, lest they be done twice.",
                self.program.writes_remembered() as u64,
            ),
            counter("ignored", "Packets that mean nothing here.", counts.ignored),
            counter("lost", "Pages whose data were not there.", self.lost),
            counter("pages_scrubbed", "Pages read to see whether they are sound.", counts.pages_scrubbed),
            counter("pages_rotten", "Pages found rotten.", counts.pages_rotten),
            counter("pages_repaired", "Rotten pages written anew from another replica.", self.program.pages_repaired()),
            gauge("pages_lost", "Pages without a sound copy anywhere.", self.program.pages_lost() as u64),
            gauge("open", "Requests accepted and not answered.", self.program.open_requests() as u64),
            gauge("pages_held", "Pages in memory that the flash does not have.", self.program.pages_held() as u64),
            gauge("pages", "Pages in memory.", self.pages.len() as u64),
            counter("starts", "Starts of this server.", u64::from(self.kept.starts)),
        ]
    }

    /// The live server's last read of the page has found it rotten.
    fn rot(&mut self, vssd: VssdId, page: Page, named: Option<Value>) {
        let mut all = std::mem::take(&mut self.doing).into_vec();
        let sound = all.iter_mut().filter_map(|Reverse((_, number, doing))| match doing {
            Doing::Read { vssd: other, page: read, content: content @ Content::Sound(_), is_first, .. } => {
                (*other == vssd && *read == page).then_some((*number, content, *is_first))
            }
            _ => None,
        });
        if let Some((_, content, is_first)) = sound.max_by_key(|(number, ..)| *number) {
            if let (Content::Sound(value), true) = (*content, is_first) {
                self.pages.take_back(value);
            }
            *content = Content::Rotten(named);
        }
        self.doing = all.into();
    }

    fn fault(&mut self) -> Option<RunError> {
        self.fault.take().map(RunError::in_("reading and writing files"))
    }

    /// What the flash does not have yet is written: after an orderly end of the whole rack, all
    /// data are there.
    fn end(&mut self) -> io::Result<()> {
        let held: Vec<(VssdId, Page, Value)> = self.program.pages_in_memory().collect();
        for (vssd, page, value) in held {
            let data = self.pages.get(value).ok_or_else(|| io::Error::other("the data of a page are not there"))?;
            self.flash.save(vssd, page, value, &data)?;
        }
        self.flash.sync()
    }
}
