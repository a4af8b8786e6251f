//! The load of a SAN: from keys to a plan, and back.

use super::lsm::LsmFile;
use super::{Drives, MixedSizes, SanIo, SanLoad};
use crate::blox::file::{AddressesName, AssignmentName, IoArrivalsName, IoFile};
use crate::blox::print::{write_io, write_replay};
use crate::blox::resolve::addresses_of;
use crate::error::Problem;
use crate::file::ExperimentFile;
use crate::plan::{Run, WarmUp};
use crate::quantity::{Plain, Quantity};
use crate::resolve::Resolver;
use base::{Bytes, NodeId, Span};
use topology::{Graph, VertexKind};
use workload::fio::{
    Amount, BlockSizes, Distribution, FileOrder, Job, JobFile, Mixture, Order, PlayConfig, RateLimit, RateProcess,
    Split, Volume,
};
use workload::imitation::{IMITATIONS, ImitationConfig, imitation};
use workload::storage::{Assignment, Config};

/// What an I/O's size is a whole number of: NVMe's smallest logical block.
const SECTOR: Bytes = Bytes::new(512);
/// Ours: far above what NVMe drives take in one command.
const SIZE_MAX: Bytes = Bytes::kib(8 << 10);

/// What a load is played on, and when it ends.
#[derive(Clone, Copy)]
pub(crate) struct Ground {
    pub(super) hosts: u32,
    pub(super) drives: u32,
    footprint: Bytes,
    pub(super) requests: Option<u64>,
    pub(super) duration: Option<Span>,
    pub(super) warm_up: WarmUp,
}

impl Resolver<'_> {
    /// On an unknown network, one host and one target represent all.
    pub(super) fn san_io(
        &mut self,
        file: &ExperimentFile,
        run: &Run,
        graph: Option<&Graph>,
        drives: &Drives,
    ) -> Option<SanIo> {
        let count = |kind| graph.map_or(1, |graph| graph.of_kind(kind).count() as u32);
        let io = file.io.clone().unwrap_or_default();
        let ends = file.run.clone().unwrap_or_default();
        let ground = Ground {
            hosts: count(VertexKind::Host),
            drives: count(VertexKind::Target) * drives.per_target,
            footprint: self.footprint(&io, drives),
            requests: ends.requests,
            duration: ends.duration.map(Plain::plain),
            warm_up: run.warm_up,
        };
        let load = match (&file.lsm, &io) {
            (Some(lsm), _) => self.stores(lsm, &ground),
            (_, IoFile { job: Some(name), .. }) => self.jobs(name, &io, &ground),
            (_, IoFile { imitation: Some(name), .. }) => self.imitated(name, &io, &ground),
            (_, IoFile { trace: Some(_), .. }) => self.traced(&io, &ground),
            (_, IoFile { sizes: Some(sizes), .. }) => self.mixed(sizes, &io, &ground),
            _ => Some(self.single(&io, &ground)),
        };
        Some(SanIo { load: load?, footprint: ground.footprint })
    }

    /// Reports what `workload` finds impossible, where the load and all that it is played on is
    /// sound.
    fn impossible_here(&mut self, key: &str, problems: impl FnOnce() -> Vec<workload::Problem>) {
        if self.sound(&["fabric", "drives", "flash", "run", "io", "lsm"]) {
            self.impossible(key, problems());
        }
    }

    fn single(&mut self, file: &IoFile, ground: &Ground) -> SanLoad {
        let block = self.io_size("io.size", file.size());
        let (mix, by_profile) = self.io_mix(file);
        let config = Config {
            clients: ground.hosts,
            volumes: ground.drives,
            assignment: self.san_assignment(file, ground),
            block,
            working_set_blocks: (ground.footprint.count() / block.count().max(1)).max(1),
            mix,
            addresses: addresses_of(file, by_profile),
            arrivals: self.io_arrivals(file, ground.hosts),
            requests: ground.requests,
            duration: ground.duration,
        };
        self.impossible_here("io", || config.problems());
        SanLoad::Requests { config, requests_per_second: file.requests_per_second }
    }

    fn traced(&mut self, file: &IoFile, ground: &Ground) -> Option<SanLoad> {
        let ends = Config {
            clients: ground.hosts,
            volumes: ground.drives,
            assignment: Assignment::All,
            block: SECTOR,
            working_set_blocks: ground.footprint.count() / SECTOR.count(),
            mix: workload::storage::Mix::with_write_share(0.0),
            addresses: workload::storage::Addresses::Uniform,
            arrivals: workload::storage::Arrivals::Closed { depth: 1, think: Span::ZERO },
            requests: ground.requests,
            duration: ground.duration,
        };
        self.replay(file, &ends).map(SanLoad::Trace)
    }

    fn jobs(&mut self, name: &str, file: &IoFile, ground: &Ground) -> Option<SanLoad> {
        let read = self.sources.jobs(self.files, name);
        let shared = read.map_err(|problem| self.report("io.job", problem)).ok()?;
        if file.job_digest.as_ref().is_some_and(|digest| *digest != shared.digest) {
            let reason = format!("`{name}` has the digest {}: these are other jobs", shared.digest);
            self.conflict("io.job_digest", reason);
        }
        let files = shared.jobs.files().len() as u32;
        let volume = |index: u32| ground.volume(index % ground.drives.max(1));
        let play = PlayConfig {
            file: shared.jobs,
            hosts: ground.hosts,
            volumes: (0..files).map(volume).collect(),
            requests: ground.requests,
            duration: ground.duration,
        };
        self.impossible_here("io.job", || play.problems());
        Some(SanLoad::Jobs { file: name.into(), digest: shared.digest, play })
    }

    fn imitated(&mut self, name: &str, file: &IoFile, ground: &Ground) -> Option<SanLoad> {
        let Some(imitation) = imitation(name) else {
            let allowed = IMITATIONS.iter().map(|imitation| imitation.name.to_string()).collect();
            self.report("io.imitation", Problem::not_allowed(name, allowed));
            return None;
        };
        let config = ImitationConfig {
            shape: imitation.shape(),
            clients: ground.hosts,
            volumes: ground.drives,
            capacity: ground.footprint,
            time_scale: file.time_scale(),
            requests: ground.requests,
            duration: ground.duration,
        };
        self.impossible_here("io.imitation", || config.problems());
        Some(SanLoad::Imitation { name: imitation.name.into(), config })
    }

    fn stores(&mut self, file: &LsmFile, ground: &Ground) -> Option<SanLoad> {
        let config = file.resolve(ground);
        self.impossible_here("lsm", || config.problems());
        if self.sound(&["lsm", "drives", "fabric", "run"]) {
            let needed = config.volume_bytes();
            if needed > ground.footprint {
                let reason =
                    format!("{} stores take {needed} of a drive, which has {}", config.stores, ground.footprint);
                self.conflict("lsm.stores", reason);
            }
        }
        Some(SanLoad::Stores(Box::new(config)))
    }

    fn mixed(&mut self, sizes: &[(Quantity<Bytes>, u32)], file: &IoFile, ground: &Ground) -> Option<SanLoad> {
        let sizes: Vec<(Bytes, u32)> = sizes.iter().map(|(size, percent)| (size.0, *percent)).collect();
        for (index, (size, _)) in sizes.iter().enumerate() {
            self.io_size(&format!("io.sizes.{index}"), *size);
        }
        let total: u64 = sizes.iter().map(|(_, percent)| u64::from(*percent)).sum();
        if total != 100 {
            self.conflict("io.sizes", format!("percentages add up to {total}, and must to 100"));
        }
        self.asked_drive(file, ground);
        self.check_mixed(file);
        let mixed = MixedSizes {
            sizes,
            write_share: file.write_share.unwrap_or(0.5),
            addresses: file.addresses.unwrap_or(AddressesName::ScrambledZipfian),
            theta: file.theta(),
            arrivals: file.arrivals(),
            depth: file.depth(),
            requests_per_second: file.requests_per_second,
            drive: file.drive,
        };
        let play = mixed.play(ground);
        self.impossible_here("io", || play.problems());
        Some(SanLoad::Mixed { mixed, play })
    }

    /// Refuses what a fio job cannot do.
    fn check_mixed(&mut self, file: &IoFile) {
        let addresses = file.addresses.unwrap_or(AddressesName::ScrambledZipfian);
        if matches!(addresses, AddressesName::Latest | AddressesName::Zipfian) {
            let allowed = [AddressesName::Uniform, AddressesName::ScrambledZipfian, AddressesName::Sequential];
            let allowed = allowed.map(AddressesName::word).join(", ");
            self.conflict(
                "io.addresses",
                format!("{} is not valid with `sizes`; allowed are {allowed}", addresses.word()),
            );
        }
    }

    fn io_size(&mut self, key: &str, size: Bytes) -> Bytes {
        if !(SECTOR..=SIZE_MAX).contains(&size) || !size.count().is_multiple_of(SECTOR.count()) {
            let allowed = format!("{SECTOR}..={SIZE_MAX} in whole sectors of {SECTOR}");
            self.report(key, Problem::out_of_range(size, allowed));
        }
        size
    }

    fn footprint(&mut self, file: &IoFile, drives: &Drives) -> Bytes {
        let footprint = file.footprint.map_or(drives.capacity, Plain::plain);
        if !self.sound(&["drives"]) {
            return footprint;
        }
        if footprint > drives.capacity || footprint < SIZE_MAX || !footprint.count().is_multiple_of(SECTOR.count()) {
            let allowed = format!("{SIZE_MAX}..={}, what a drive has, in whole sectors", drives.capacity);
            self.report("io.footprint", Problem::out_of_range(footprint, allowed));
        }
        footprint
    }

    fn asked_drive(&mut self, file: &IoFile, ground: &Ground) {
        if let Some(drive) = file.drive.filter(|_| self.sound(&["fabric", "drives"])) {
            self.range("io.drive", u64::from(drive), 0..=u64::from(ground.drives.saturating_sub(1)));
        }
    }

    fn san_assignment(&mut self, file: &IoFile, ground: &Ground) -> Assignment {
        self.asked_drive(file, ground);
        if let Some(drive) = file.drive {
            return Assignment::Fixed { lists: vec![vec![drive]; ground.hosts as usize] };
        }
        match file.assignment.unwrap_or(AssignmentName::All) {
            AssignmentName::All => Assignment::All,
            AssignmentName::RoundRobin => Assignment::RoundRobin,
        }
    }
}

impl Ground {
    fn volume(&self, drive: u32) -> Volume {
        Volume { node: NodeId(self.hosts + drive), capacity: self.footprint }
    }
}

impl MixedSizes {
    /// As one fio job with a thread at each host, whose files are the drives, drawn at random.
    fn play(&self, ground: &Ground) -> PlayConfig {
        let drives: Vec<u32> = self.drive.map_or_else(|| (0..ground.drives).collect(), |drive| vec![drive]);
        let names = drives.iter().map(|drive| format!("drive{drive}")).collect();
        PlayConfig {
            file: JobFile { jobs: vec![self.job(ground.hosts, names)], notes: Vec::new() },
            hosts: ground.hosts,
            volumes: drives.iter().map(|drive| ground.volume(*drive)).collect(),
            requests: ground.requests,
            duration: ground.duration,
        }
    }

    fn job(&self, hosts: u32, files: Vec<String>) -> Job {
        let parts =
            self.sizes.iter().map(|(bytes, percent)| Split { bytes: bytes.count(), percent: *percent }).collect();
        let sizes = BlockSizes::Split { parts };
        let distribution = if self.is_skewed() {
            Distribution::Zipf { theta: self.theta, center: None }
        } else {
            Distribution::Uniform
        };
        Job {
            name: "mixed".into(),
            mixture: self.mixture(),
            order: self.order(),
            sizes: [sizes.clone(), sizes],
            depth: self.depth,
            threads: hosts,
            size: None,
            io_size: None,
            offset: Amount::Bytes(0),
            offset_increment: Amount::Bytes(0),
            runtime: Some(Span::secs(86_400)),
            ramp: Span::ZERO,
            is_time_based: true,
            start_delay: (Span::ZERO, Span::ZERO),
            number_ios: None,
            loops: 1,
            rates: self.rates(hosts),
            rate_process: match self.arrivals {
                IoArrivalsName::Deterministic => RateProcess::Linear,
                _ => RateProcess::Poisson,
            },
            distributions: [distribution.clone(), distribution],
            has_random_map: false,
            random_seed: None,
            files,
            file_order: FileOrder::Random,
            is_walled: false,
        }
    }

    /// Whether `theta` says anything.
    fn is_skewed(&self) -> bool {
        !matches!(self.addresses, AddressesName::Uniform | AddressesName::Sequential)
    }

    fn order(&self) -> Order {
        match self.addresses {
            AddressesName::Sequential => Order::Sequential { hole: 0 },
            _ => Order::Random { run: 1 },
        }
    }

    /// Whole percents, as fio counts them.
    fn mixture(&self) -> Mixture {
        match ((1.0 - self.write_share) * 100.0).round() as u8 {
            0 => Mixture::Write,
            100 => Mixture::Read,
            read_percent => Mixture::Mixed { read_percent },
        }
    }

    fn rates(&self, hosts: u32) -> [RateLimit; 2] {
        let Some(all) = self.requests_per_second else { return [RateLimit::default(); 2] };
        [1.0 - self.write_share, self.write_share].map(|share| RateLimit {
            ios_per_second: (share > 0.0).then_some(((all * share / f64::from(hosts)).round() as u64).max(1)),
            bytes_per_second: None,
        })
    }
}

/// The tables that say all of a load: `[io]` and, of stores, `[lsm]`.
pub(super) fn io_of(io: &SanIo) -> (Option<IoFile>, Option<LsmFile>) {
    let mut file = IoFile { footprint: Some(Quantity(io.footprint)), ..IoFile::default() };
    match &io.load {
        SanLoad::Stores(config) => return (None, Some(LsmFile::of(config))),
        SanLoad::Requests { config, requests_per_second } => {
            file.requests_per_second = *requests_per_second;
            write_single(config, &mut file);
        }
        SanLoad::Mixed { mixed, .. } => write_mixed(mixed, &mut file),
        SanLoad::Trace(replay) => write_replay(replay, &mut file),
        SanLoad::Jobs { file: name, digest, .. } => {
            (file.job, file.job_digest) = (Some(name.clone()), Some(digest.clone()));
        }
        SanLoad::Imitation { name, config } => {
            (file.imitation, file.time_scale) = (Some(name.clone()), Some(config.time_scale));
        }
    }
    (Some(file), None)
}

fn write_single(config: &Config, file: &mut IoFile) {
    write_io(config, file);
    file.size = Some(Quantity(config.block));
    match &config.assignment {
        Assignment::All => file.assignment = Some(AssignmentName::All),
        Assignment::RoundRobin => file.assignment = Some(AssignmentName::RoundRobin),
        Assignment::Fixed { lists } => file.drive = lists.first().and_then(|list| list.first()).copied(),
    }
}

fn write_mixed(mixed: &MixedSizes, file: &mut IoFile) {
    file.sizes = Some(mixed.sizes.iter().map(|(size, percent)| (Quantity(*size), *percent)).collect());
    file.write_share = Some(mixed.write_share);
    (file.addresses, file.theta) = (Some(mixed.addresses), mixed.is_skewed().then_some(mixed.theta));
    (file.arrivals, file.depth) = (Some(mixed.arrivals), Some(mixed.depth));
    (file.requests_per_second, file.drive) = (mixed.requests_per_second, mixed.drive);
}
