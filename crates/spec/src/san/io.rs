//! Who asks drives for what: from keys to a load, and back.

use super::{Drives, SanIo};
use crate::blox::file::{AssignmentName, IoFile};
use crate::blox::print::{write_io, write_replay};
use crate::blox::resolve::addresses_of;
use crate::error::Problem;
use crate::file::RunFile;
use crate::quantity::{Plain, Quantity};
use crate::resolve::Resolver;
use base::{Bytes, Span};
use topology::{Graph, VertexKind};
use workload::storage::{Arrivals, Assignment, Config, Mix};

/// What an I/O's size is a whole number of: NVMe's smallest logical block.
const SECTOR: Bytes = Bytes::new(512);
/// Ours: far above what NVMe drives take in one command.
const SIZE_MAX: Bytes = Bytes::kib(8 << 10);

impl Resolver<'_> {
    pub(crate) fn san_io(&mut self, file: &IoFile, run: &RunFile, graph: &Graph, drives: &Drives) -> SanIo {
        let count = |kind| graph.of_kind(kind).count() as u32;
        let (clients, volumes) = (count(VertexKind::Host), count(VertexKind::Target) * drives.per_target);
        self.refuse_key("io.check_history", "`check_history` does not go with a SAN: `check.write_order` does");
        let block = self.io_size(file);
        let (mix, by_profile) = self.io_mix(file);
        let footprint = self.footprint(file, drives);
        let mut config = Config {
            clients,
            volumes,
            assignment: self.san_assignment(file, clients, volumes),
            block,
            working_set_blocks: (footprint.count() / block.count()).max(1),
            mix,
            addresses: addresses_of(file, by_profile),
            arrivals: self.io_arrivals(file, clients),
            requests: run.requests,
            duration: run.duration.map(Plain::plain),
        };
        if self.problems.is_empty() && file.trace.is_none() {
            config.problems().into_iter().for_each(|problem| self.conflict("io", problem.to_string()));
        }
        let replay = self.replay(file, &config, None);
        if replay.is_some() {
            (config.mix, config.arrivals) =
                (Mix::with_write_share(0.0), Arrivals::Closed { depth: 1, think: Span::ZERO });
        }
        SanIo { config, replay, requests_per_second: file.requests_per_second }
    }

    fn io_size(&mut self, file: &IoFile) -> Bytes {
        let size = file.size.map_or(Bytes::kib(4), Plain::plain);
        if !(SECTOR..=SIZE_MAX).contains(&size) || !size.count().is_multiple_of(SECTOR.count()) {
            let allowed = format!("{SECTOR}..={SIZE_MAX} in whole sectors of {SECTOR}");
            self.report("io.size", Problem::out_of_range(size, allowed));
            return Bytes::kib(4);
        }
        size
    }

    fn footprint(&mut self, file: &IoFile, drives: &Drives) -> Bytes {
        let footprint = file.footprint.map_or(drives.capacity, Plain::plain);
        if footprint > drives.capacity || footprint < SIZE_MAX {
            let allowed = format!("{SIZE_MAX}..={}, what a drive has", drives.capacity);
            self.report("io.footprint", Problem::out_of_range(footprint, allowed));
        }
        footprint
    }

    fn san_assignment(&mut self, file: &IoFile, clients: u32, volumes: u32) -> Assignment {
        if let Some(drive) = file.drive {
            self.range("io.drive", u64::from(drive), 0..=u64::from(volumes.saturating_sub(1)));
            self.refuse_key("io.assignment", "`assignment` does not go with `drive`, which all ask");
            return Assignment::Fixed { lists: vec![vec![drive]; clients as usize] };
        }
        match file.assignment.unwrap_or(AssignmentName::All) {
            AssignmentName::All => Assignment::All,
            AssignmentName::RoundRobin => Assignment::RoundRobin,
        }
    }
}

/// The table that says all of a load.
pub(super) fn io_of(io: &SanIo, drives: &Drives) -> IoFile {
    let config = &io.config;
    let mut file = IoFile { requests_per_second: io.requests_per_second, ..IoFile::default() };
    let footprint = config.working_set().min(drives.capacity);
    file.footprint = Some(Quantity(footprint));
    if let Some(replay) = &io.replay {
        write_replay(replay, &mut file);
        return file;
    }
    write_io(config, &mut file);
    file.size = Some(Quantity(config.block));
    match &config.assignment {
        Assignment::All => file.assignment = Some(AssignmentName::All),
        Assignment::RoundRobin => file.assignment = Some(AssignmentName::RoundRobin),
        Assignment::Fixed { lists } => file.drive = lists.first().and_then(|list| list.first()).copied(),
    }
    file
}
