//! Resolves the tables of a rack of volumes to a plan: defaults that depend on other values,
//! ranges, and combinations.

mod flash;
mod swap;

use super::file::{
    AssignmentName, CollectionFile, CoordinationName, IoArrivalsName, IoFile, NetworkName, RackFile, VssdFile,
};
use super::{BlockReplay, Blox, Collection, Flash, Rack, RecordedNetwork, Vssd};
use crate::design_file::DesignName;
use crate::error::Problem;
use crate::file::{ExperimentFile, FaultFile, FaultName, RunFile};
use crate::plan::{Fault, Run};
use crate::quantity::{Plain, Quantity};
use crate::resolve::Resolver;
use base::{Bytes, Span};
use swap::swaps_of;
use workload::block_trace::{Devices, ReplayConfig};
use workload::storage::{Addresses, Arrivals, Assignment, Config, Mix};

/// What one request is about, and Hermes's key (RackBlox, 3.5.1; 4 KiB throughout the paper).
pub const PAGE: Bytes = Bytes::kib(4);
/// Replicas of a volume in its rack (RackBlox, 3.5.1).
pub const REPLICAS_IN_RACK: u32 = 2;
impl Resolver<'_> {
    /// Reads all parts even if one is wrong, so that every error is reported at once.
    pub(crate) fn blox(&mut self, file: &ExperimentFile, design: DesignName) -> Option<Blox> {
        let rack = file.rack.clone().unwrap_or_default().resolve();
        let emulate = file.emulate.clone().unwrap_or_default().resolve();
        let flash = self.flash(&file.flash.clone().unwrap_or_default());
        let vssd = self.vssd(&file.vssd.clone().unwrap_or_default(), &rack, &flash);
        let coordinated = design != DesignName::Vdc;
        let scheduler = file.scheduler.clone().unwrap_or_default().resolve(coordinated);
        let collection = self.collection(&file.collection.clone().unwrap_or_default(), design, &vssd, &flash);
        let controller = file.controller.clone().unwrap_or_default().resolve();
        let membership = file.membership.clone().unwrap_or_default().resolve();
        self.check_membership(&membership);
        let io_file = file.io.clone().unwrap_or_default();
        let (io, replay) = self.load_of(&io_file, file.run.as_ref(), &rack, &vssd);
        let run = self.volume_run(file, &membership);
        let faults = self.volume_faults(file.fault.as_deref().unwrap_or_default(), &rack);
        let recorded_network = self.recorded_network(&file.rack.clone().unwrap_or_default());
        let blox = Blox {
            design,
            recorded_network,
            rack,
            emulate,
            flash,
            vssd,
            scheduler,
            collection,
            controller,
            membership,
            io,
            replay,
            requests_per_second: io_file.requests_per_second,
            run,
            faults,
            swaps: swaps_of(file),
            check_history: io_file.check_history(),
        };
        self.check_swaps(&blox);
        if self.sound(&["flash", "rack", "vssd", "swap"]) {
            self.check_snapshot(&blox);
        }
        self.problems.is_empty().then_some(blox)
    }

    /// Who asks for what; with a trace that says when and what.
    fn load_of(
        &mut self,
        file: &IoFile,
        run: Option<&RunFile>,
        rack: &Rack,
        vssd: &Vssd,
    ) -> (Config, Option<BlockReplay>) {
        let (requests, duration) = run.map_or((None, None), |run| (run.requests, run.duration.map(Plain::plain)));
        let mut io = self.io(file, rack, vssd, requests, duration);
        let replay = self.replay(file, &io);
        if replay.is_some() {
            (io.mix, io.arrivals) = (Mix::with_write_share(0.0), Arrivals::Closed { depth: 1, think: Span::ZERO });
        }
        (io, replay)
    }

    fn volume_run(&mut self, file: &ExperimentFile, membership: &super::Membership) -> Run {
        let run_file = file.run.clone().unwrap_or_default();
        let mut run = self.run(&run_file, file.io.as_ref().is_some_and(|io| io.trace.is_some()));
        if run_file.drain_limit.is_none() && self.sound(&["membership"]) {
            // A closed loop whose requests all wait for an answer has no arrivals meanwhile, and is
            // not at its end.
            run.drain_limit = run.drain_limit.max(membership.client_wait_max());
        }
        run
    }

    fn recorded_network(&mut self, file: &RackFile) -> Option<RecordedNetwork> {
        let name = file.network_file.as_ref()?;
        if file.network.is_some_and(|network| network != NetworkName::None) {
            self.conflict("rack.network", "`network` is not valid with `network_file`");
        }
        let unit = file.network_unit.map(Plain::plain);
        let read = self.sources.delays(self.files, name, unit);
        let shared = read.map_err(|problem| self.report("rack.network_file", problem)).ok()?;
        if file.network_digest.as_ref().is_some_and(|digest| *digest != shared.digest) {
            let reason = format!("`{name}` has the digest {}: its delays are others", shared.digest);
            self.conflict("rack.network_digest", reason);
        }
        Some(RecordedNetwork { file: name.clone(), unit, digest: shared.digest, delays: shared.delays })
    }

    fn vssd(&mut self, file: &VssdFile, rack: &Rack, flash: &Flash) -> Vssd {
        let vssd = file.resolve(flash.geometry().dies_per_channel);
        self.check_vssd(&vssd, rack, flash);
        vssd
    }

    fn check_vssd(&mut self, vssd: &Vssd, rack: &Rack, flash: &Flash) {
        let geometry = flash.geometry();
        let owners = vssd.per_ssd / vssd.group;
        if !vssd.per_ssd.is_multiple_of(vssd.group) {
            let reason = format!("{} virtual drives on a drive do not make groups of {}", vssd.per_ssd, vssd.group);
            self.conflict("vssd.group", reason);
        }
        self.check_replicas(vssd, rack);
        let has_room = self.check_capacity(vssd, flash);
        if vssd.write_cache < PAGE && (has_room || self.document.at("vssd.write_cache").is_some()) {
            self.report("vssd.write_cache", Problem::out_of_range(vssd.write_cache, format!("at least {PAGE}")));
        }
        if !self.sound(&["flash"]) {
            return;
        }
        let (wanted, has) = (u64::from(owners) * u64::from(vssd.channels), u64::from(geometry.channels));
        if wanted > has {
            let each = if vssd.group > 1 { "groups" } else { "virtual drives" };
            let reason = format!(
                "{owners} {each} of {} channels want {wanted} channels, and another owns each of the drive's {has}",
                vssd.channels
            );
            self.conflict("vssd.channels", reason);
        }
    }

    fn check_replicas(&mut self, vssd: &Vssd, rack: &Rack) {
        let vssds = u64::from(rack.servers) * u64::from(rack.ssds) * u64::from(vssd.per_ssd);
        if !vssds.is_multiple_of(u64::from(REPLICAS_IN_RACK)) && self.sound(&["rack"]) {
            self.conflict("vssd.per_ssd", format!("{vssds} virtual drives in the rack do not make pairs of replicas"));
        }
    }

    /// Every die needs spare blocks beside its data, or garbage collection has nowhere to move
    /// them. Returns whether it has them.
    fn check_capacity(&mut self, vssd: &Vssd, flash: &Flash) -> bool {
        const BLOCKS_MIN: u64 = 8;
        if !self.sound(&["flash"]) {
            return false;
        }
        let (block, dies) = (flash.block_bytes(), u64::from(vssd.channels * flash.geometry().dies_per_channel));
        let blocks = vssd.capacity.count() / (block.count() * dies);
        if blocks < BLOCKS_MIN {
            let least = block * dies * BLOCKS_MIN;
            let allowed = format!("at least {least}: {BLOCKS_MIN} blocks of {block} on each of {dies} dies");
            self.report("vssd.capacity", Problem::out_of_range(vssd.capacity, allowed));
        }
        let data = vssd.capacity.count() as f64 * vssd.data;
        // One that the host fills, one that moved data fill, and one in reserve; hot data fill two
        // of their own.
        let spare = if flash.hot_cold { 5 } else { 3 };
        let has_blocks = blocks >= BLOCKS_MIN;
        if has_blocks && data as u64 > block.count() * dies * (blocks - spare) {
            let reason = format!(
                "{:.1} % of {} leave less than the {spare} spare blocks that each die needs beside its data, of {blocks}",
                vssd.data * 100.0,
                vssd.capacity
            );
            self.conflict("vssd.data", reason);
        }
        has_blocks
    }

    fn collection(&mut self, file: &CollectionFile, design: DesignName, vssd: &Vssd, flash: &Flash) -> Collection {
        let by_design = match design {
            DesignName::Rackblox => CoordinationName::Switch,
            DesignName::RackbloxSoftware => CoordinationName::Controller,
            _ => CoordinationName::Uncoordinated,
        };
        let dies = vssd.channels * flash.geometry().dies_per_channel;
        let collection = file.resolve((by_design, dies));
        self.check_collection(&collection, design, vssd, dies);
        collection
    }

    fn check_collection(&mut self, collection: &Collection, design: DesignName, vssd: &Vssd, dies: u32) {
        let Collection { soft, regular, stop, .. } = *collection;
        if soft < regular {
            self.conflict(
                "collection.soft",
                format!("soft = {soft} lies below regular = {regular}: it has to come first"),
            );
        }
        if stop <= soft {
            self.conflict(
                "collection.stop",
                format!("stop = {stop} is not above soft = {soft}: collection would not end"),
            );
        }
        let most = 1.0 - vssd.data;
        if stop >= most && self.sound(&["vssd"]) {
            let reason = format!(
                "stop = {stop} is never reached: with data = {} at most {most:.3} of the blocks are free",
                vssd.data
            );
            self.conflict("collection.stop", reason);
        }
        if collection.coordination == CoordinationName::Switch && design != DesignName::Rackblox {
            let reason = format!("the design {} has no switch that coordinates", design.word());
            self.conflict("collection.coordination", reason);
        }
        if self.sound(&["vssd", "flash"]) {
            self.range("collection.streams", u64::from(collection.streams), 1..=u64::from(dies));
        }
    }

    fn check_membership(&mut self, membership: &super::Membership) {
        let super::Membership { heartbeat, lease, .. } = *membership;
        let suspicion = heartbeat * u64::from(membership.misses);
        if lease >= suspicion {
            let reason = format!(
                "a lease of {lease} is not shorter than the {suspicion} after which a server counts as dead: two sets of replicas could serve"
            );
            self.conflict("membership.lease", reason);
        } else if lease <= heartbeat {
            let reason =
                format!("a lease of {lease} is not longer than the {heartbeat} between two heartbeats: it would lapse");
            self.conflict("membership.lease", reason);
        }
    }

    fn io(&mut self, file: &IoFile, rack: &Rack, vssd: &Vssd, requests: Option<u64>, duration: Option<Span>) -> Config {
        let (mix, by_profile) = self.io_mix(file);
        let addresses = addresses_of(file, by_profile);
        let io = Config {
            clients: rack.clients,
            volumes: rack.servers * rack.ssds * vssd.per_ssd / REPLICAS_IN_RACK,
            assignment: match file.assignment() {
                AssignmentName::All => Assignment::All,
                AssignmentName::RoundRobin => Assignment::RoundRobin,
            },
            block: PAGE,
            working_set_blocks: ((vssd.capacity.count() as f64 * vssd.data) as u64 / PAGE.count()).max(1),
            mix,
            addresses,
            arrivals: self.io_arrivals(file, rack.clients),
            requests,
            duration,
        };
        if self.sound(&["io", "run", "rack", "vssd", "flash"]) && file.trace.is_none() {
            self.impossible("io", io.problems());
        }
        io
    }

    /// The trace to be played in place of `io`; its lines tell the format where the file does not.
    pub(crate) fn replay(&mut self, file: &IoFile, io: &Config) -> Option<BlockReplay> {
        let name = file.trace.as_ref()?;
        let is_on_known = self.sound(&["rack", "vssd", "flash", "fabric", "drives"]);
        let tolerance = file.tolerance(is_on_known.then(|| io.working_set()))?;
        let format = file.format.map(Plain::plain);
        let read = self.sources.block_trace(self.files, name, format, tolerance);
        let shared = read.map_err(|problem| self.report("io.trace", problem)).ok()?;
        if file.trace_digest.as_ref().is_some_and(|digest| *digest != shared.digest) {
            let reason = format!("`{name}` has the digest {}: it is another trace", shared.digest);
            self.conflict("io.trace_digest", reason);
        }
        let config = ReplayConfig {
            clients: io.clients,
            volumes: io.volumes,
            devices: file.stripe.map_or(Devices::Modulo, |Quantity(stripe)| Devices::Striped { stripe }),
            time_scale: file.time_scale(),
            requests: io.requests,
            duration: io.duration,
        };
        if is_on_known && self.sound(&["run"]) {
            self.impossible("io.trace", config.problems(&shared.trace));
        }
        Some(BlockReplay {
            file: name.clone(),
            digest: shared.digest,
            format: shared.format,
            tolerance,
            config,
            trace: shared.trace,
        })
    }

    pub(crate) fn refuse_key(&mut self, path: &str, reason: &str) {
        if self.document.at(path).is_some() {
            self.conflict(path, reason);
        }
    }

    pub(crate) fn io_mix(&mut self, file: &IoFile) -> (Mix, Addresses) {
        let scrambled = Addresses::ScrambledZipfian { theta: file.theta() };
        let Some(name) = &file.profile else {
            let share = file.write_share.unwrap_or(0.5);
            let mix = match file.write_run {
                Some(write_run) => Mix::Runs { write_share: share, write_run },
                None => Mix::with_write_share(share),
            };
            return (mix, scrambled);
        };
        match workload::storage::profile(name) {
            Some(profile) => (profile.mix(), profile.addresses),
            None => {
                let allowed = workload::storage::PROFILES.iter().map(|profile| profile.name.to_string()).collect();
                self.report("io.profile", Problem::not_allowed(name, allowed));
                (Mix::with_write_share(0.5), scrambled)
            }
        }
    }

    pub(crate) fn io_arrivals(&mut self, file: &IoFile, clients: u32) -> Arrivals {
        let name = file.arrivals();
        if name != IoArrivalsName::Closed {
            self.refuse_key("io.depth", &format!("`depth` is not valid with arrivals = {}", name.word()));
        }
        let gap_ps = f64::from(clients) * 1e12 / file.requests_per_second.unwrap_or(1.0);
        file.arrivals_of(name, gap_ps).expect("each of its keys has a default")
    }

    fn volume_faults(&mut self, files: &[FaultFile], rack: &Rack) -> Vec<Fault> {
        self.rack_faults(files, ("rack", rack.servers), |resolver, key, file| {
            if let Some(other) = file.switch.filter(|switch| *switch != 0) {
                let reason = format!("there is no switch {other}: a rack of volumes has one, 0");
                resolver.conflict(&format!("{key}.switch"), reason);
            }
            (file.kind? == FaultName::LinkCorrupt).then_some("corruption is modelled for design edm only")
        })
    }
}

/// Which blocks: as the file says, else as the profile has it.
pub(crate) fn addresses_of(file: &IoFile, by_profile: Addresses) -> Addresses {
    match file.addresses {
        Some(name) => file.address_law(name).unwrap_or(by_profile),
        None if file.theta.is_none() => by_profile,
        None => Addresses::ScrambledZipfian { theta: file.theta() },
    }
}
