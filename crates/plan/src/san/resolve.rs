//! Resolves the tables of a SAN to a plan: defaults that depend on other values, ranges, and
//! combinations.

use super::ends::Ways;
use super::fabric_file::{DriveModelName, DriveStateName, DrivesFile};
use super::file::{
    GimbalFile, HostEnd, OnWire, ReservationFile, Reserved, RoutePolicyName, RoutingFile, SchedulingFile, Serving,
    learns,
};
use super::limits::ways;
use super::{Drives, San, SanFabric};
use crate::blox::file::FlashFile;
use crate::blox::{Flash, PresetName};
use crate::design_file::DesignName;
use crate::error::Problem;
use crate::file::{ExperimentFile, FabricFile};
use crate::quantity::{Of1024, Plain};
use crate::resolve::Resolver;
use base::Bytes;
use hardware::ssd::presets::DriveConfig;
use san::egress::SchedulingConfig;
use san::gimbal::GimbalConfig;
use san::host::HostConfig;
use san::reserve::{Estimate, ReservationConfig};
use san::route::{DistanceConfig, RouteConfig};
use san::target::TargetConfig;
use topology::VertexKind;

/// A drive's whole blocks of 4 KiB, and no more than what its translation layer has memory for.
const CAPACITIES: std::ops::RangeInclusive<Bytes> = Bytes::kib(64 << 10)..=Bytes::kib(1 << 30);
const BLOCK: Bytes = Bytes::kib(4);

impl Resolver<'_> {
    /// Reads all parts even if one is wrong, so that every error is reported at once.
    pub(crate) fn san(&mut self, file: &ExperimentFile, design: DesignName) -> Option<San> {
        let fabric = file.fabric.as_ref().and_then(|file| self.san_fabric(file));
        let (drives, flash) = self.drives(&file.drives.clone().unwrap_or_default(), file.flash.as_ref());
        let mut routing = self.routing(&file.routing.clone().unwrap_or_default(), design);
        let is_switched = fabric.as_ref().is_some_and(has_switches);
        let reserved = file.reservation.clone().unwrap_or_default();
        let reserves = Reserved { is_on: design == DesignName::San, is_switched };
        let mut reservation = self.reservation(&reserved, &routing, reserves);
        let scheduling = self.scheduling(&file.scheduling.clone().unwrap_or_default(), design);
        let gimbal = self.gimbal(&file.gimbal.clone().unwrap_or_default(), &drives);
        let prices = file.prices.clone().unwrap_or_default().resolve();
        let is_trace = file.io.as_ref().is_some_and(|io| io.trace.is_some() || io.job.is_some());
        let run = self.run(&file.run.clone().unwrap_or_default(), is_trace);
        let graph = fabric.as_ref().map(|fabric| &*fabric.graph);
        let (longest, hops) = graph.map_or((None, None), |graph| ways(graph, &mut routing));
        let passing = fabric.as_ref().map_or_else(|| self.passing(&FabricFile::default()), |fabric| fabric.passing);
        let (HostEnd { times: ends, host }, target) =
            self.sessions(file, gimbal, &Ways { graph, passing, routing: &routing, hops }, design);
        if let Some(fabric) = fabric.as_ref().filter(|_| self.sound(&["fabric"])) {
            self.within_names(fabric, &host.wire, &routing, longest);
        }
        self.agree(&host, &mut routing, reservation.as_mut());
        let io = self.san_io(file, &run, graph, &drives);
        let faults = self.san_faults(file.fault.as_deref().unwrap_or_default(), graph, &drives);
        let check_write_order = file.check.as_ref().and_then(|check| check.write_order).unwrap_or(!faults.is_empty());
        let (fabric, io) = (fabric?, io?);
        self.problems.is_empty().then_some(San {
            design,
            fabric,
            drives,
            flash,
            routing,
            reservation,
            scheduling,
            host,
            target,
            ends,
            io,
            prices,
            run,
            faults,
            check_write_order,
        })
    }

    /// Both ends of sessions, and the wire between them.
    fn sessions(
        &mut self,
        file: &ExperimentFile,
        gimbal: GimbalConfig,
        ways: &Ways<'_>,
        design: DesignName,
    ) -> (HostEnd, TargetConfig) {
        let wire_file = file.wire.clone().unwrap_or_default();
        let wire = wire_file.resolve(OnWire { mtu: ways.passing.mtu.count() as u32, has_header: ways.hops.is_some() });
        let is_reserved = file.reservation.as_ref().and_then(|it| it.on).unwrap_or(design == DesignName::San);
        let is_paced = design != DesignName::San && !is_reserved;
        let stream = self.stream(&wire_file, &wire, (is_paced, design), ways);
        let host_file = file.host.clone().unwrap_or_default();
        let entries = host_file.queue_entries();
        let given = Serving { design, wire, stream, queue_entries: entries, gimbal };
        let target = file.target.clone().unwrap_or_default().resolve(given);
        (self.host(&host_file, &target, design), target)
    }

    /// What hops have to know of the wire. A stream would wait for what a hop has answered in the
    /// target's place, if that did not go on without effect.
    fn agree(&self, host: &HostConfig, routing: &mut RouteConfig, reservation: Option<&mut ReservationConfig>) {
        routing.marks_answers |= host.stream.is_some_and(|stream| stream.obeys_marks());
        let Some(reservation) = reservation else { return };
        reservation.data_end_reads = host.wire.success_flag;
        reservation.passes_rejected = host.stream.is_some();
    }

    fn drives(&mut self, file: &DrivesFile, flash: Option<&FlashFile>) -> (Drives, Option<Flash>) {
        let mut drives = file.resolve();
        let capacity = drives.capacity;
        if !CAPACITIES.contains(&capacity) || !capacity.count().is_multiple_of(BLOCK.count()) {
            let allowed = format!("{}..={} in whole blocks of {BLOCK}", CAPACITIES.start(), CAPACITIES.end());
            self.report("drives.capacity", Problem::out_of_range(capacity, allowed));
        }
        let flash = self.whole_flash(flash, "drives", (file.preset, drives.preset));
        drives.preset = flash.as_ref().map_or(drives.preset, |flash| flash.preset);
        if flash.is_some() && file.buffer.is_some() {
            self.conflict("drives.buffer", "drives of a [flash] table have the buffer of that table");
        }
        self.check_model(&drives, flash.is_some());
        (drives, flash)
    }

    fn check_model(&mut self, drives: &Drives, is_own: bool) {
        if is_own && drives.model == DriveModelName::Quick && drives.state == DriveStateName::Fragmented {
            let reason = "model = quick knows of drives with numbers of their own only what they do clean";
            self.conflict("drives.state", reason);
        }
        let is_other = drives.preset != PresetName::Pm9a3 && self.sound(&["flash"]);
        if !is_own && drives.model == DriveModelName::Quick && is_other {
            let reason = format!("model = quick knows the numbers of pm9a3 alone, and not of {}", drives.preset.word());
            self.conflict("drives.model", reason);
        }
        if matches!(drives.preset.drive(), DriveConfig::Direct(_)) {
            let reason = format!("{} is written in place: targets here have drives of flash", drives.preset.word());
            self.conflict("drives.preset", reason);
        }
    }

    fn routing(&mut self, file: &RoutingFile, design: DesignName) -> RouteConfig {
        let config = file.resolve(design);
        if learns(config.policy) && !config.is_symmetric {
            let name = RoutePolicyName::written(config.policy).word();
            let reason = format!("policy = {name} learns from answers that come back the same way");
            self.conflict("routing.symmetric", reason);
        }
        if config.is_symmetric && !config.has_header {
            let reason = "answers cannot go back the way of their request without the header that records it";
            self.conflict("routing.header", reason);
        }
        self.check_distance(&config);
        config
    }

    fn check_distance(&mut self, config: &RouteConfig) {
        let DistanceConfig { period, hold, .. } = config.distance;
        if hold <= period {
            let reason = format!("a neighbour that is gone after {hold} is heard only every {period}");
            self.conflict("routing.hold", reason);
        }
    }

    fn reservation(
        &mut self,
        file: &ReservationFile,
        routing: &RouteConfig,
        given: Reserved,
    ) -> Option<ReservationConfig> {
        let is_on = file.on.unwrap_or(given.is_on);
        let config = file.resolve(given);
        self.check_estimates(&config.estimates);
        self.check_over_commitment(file.over_commitment.as_deref().unwrap_or_default());
        if is_on && !routing.is_symmetric && self.sound(&["routing"]) {
            let reason = "a booking is of the port by which the answer leaves: reservation.on needs routing.symmetric";
            self.conflict("reservation", reason);
        }
        is_on.then_some(config)
    }

    fn check_estimates(&mut self, list: &[Estimate]) {
        for (index, pair) in list.windows(2).enumerate().filter(|(_, pair)| pair[0].bytes_max >= pair[1].bytes_max) {
            let reason = format!("{} does not come after {}: sizes must rise", pair[1].bytes_max, pair[0].bytes_max);
            self.conflict(&format!("reservation.estimates.{}", index + 1), reason);
        }
        for (index, estimate) in list.iter().enumerate() {
            self.rate(&format!("reservation.estimates.{index}"), estimate.rate);
        }
    }

    /// As it is written: a plan has it in 1,024ths.
    fn check_over_commitment(&mut self, list: &[(Of1024, Of1024)]) {
        for (index, (Of1024(free), Of1024(factor))) in list.iter().enumerate() {
            let key = format!("reservation.over_commitment.{index}");
            if !(0.0..=1.0).contains(free) {
                self.report(&key, Problem::out_of_range(free, "a free share of 0..=1"));
            }
            if !(1.0 / 1_024.0..=1.0).contains(factor) {
                self.report(&key, Problem::out_of_range(factor, "a factor of 1/1024..=1 (paper, 4.4)"));
            }
        }
        for (index, pair) in list.windows(2).enumerate() {
            let [(Of1024(before), _), (Of1024(free), _)] = pair else { continue };
            if before <= free {
                let reason = format!("{free} is not below {before}: the first step that fits counts");
                self.conflict(&format!("reservation.over_commitment.{}", index + 1), reason);
            }
        }
    }

    fn scheduling(&mut self, file: &SchedulingFile, design: DesignName) -> SchedulingConfig {
        let ranked = usize::from(file.queues()) - 1;
        let weights = file.weights.as_deref().unwrap_or_default();
        if file.weights.is_some() && weights.len() != ranked {
            let queues = ranked + 1;
            let reason = format!("{} weights for {ranked} queues: the first of {queues} has none", weights.len());
            self.conflict("scheduling.weights", reason);
        }
        for (index, weight) in weights.iter().enumerate() {
            self.range(&format!("scheduling.weights.{index}"), u64::from(*weight), 1..=1_000_000);
        }
        file.resolve(design)
    }

    fn gimbal(&mut self, file: &GimbalFile, drives: &Drives) -> GimbalConfig {
        let config = match drives.preset.drive() {
            DriveConfig::SolidState(drive) => file.for_drive(drive.link.rate).resolve(),
            // Was refused.
            DriveConfig::Direct(_) => file.resolve(),
        };
        if config.latency_min >= config.latency_max {
            let reason = format!("{} is not below latency_max = {}", config.latency_min, config.latency_max);
            self.conflict("gimbal.latency_min", reason);
        }
        if config.rate_min > config.rate_max && self.sound(&["drives", "flash"]) {
            let reason = format!("{} is above rate_max = {}", config.rate_min, config.rate_max);
            self.conflict("gimbal.rate_min", reason);
        }
        config
    }
}

fn has_switches(fabric: &SanFabric) -> bool {
    fabric.graph.of_kind(VertexKind::Switch).next().is_some()
}
