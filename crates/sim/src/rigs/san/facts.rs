//! What only this rig can tell of a run.

use super::aftermath::Aftermath;
use super::sizes::Sizes;
use super::{SanRig, SanRigConfig};
use crate::rigs::wear_facts::facts_of_drives;
use base::{Bytes, Time};
use plan::san::San;
use record::metric::{self, Highest, Meter, Metric, Sample};
use san::cost::{StoragePorts, SwitchRule};
use san::hop::{Hop, HopCounts};
use san::host::HostCounters;
use san::target::TargetCounters;
use san::{Packet, PacketKind, Port};
use std::sync::Arc;
use topology::{Distances, Graph, Medium, VertexId};

/// Preamble, gap and check sequence, which the counters of a network card leave out.
const NOT_COUNTED: u64 = 8 + 12 + 4;

/// What is measured of a run beside what programs count.
pub(super) struct Observed {
    pub counts: Counts,
    /// Counts of hops that were started anew.
    pub of_stopped: HopCounts,
    pub ways: Ways,
    pub shortest: Shortest,
    pub sizes: Sizes,
    pub aftermath: Aftermath,
    /// The time of the last event.
    pub latest: Time,
}

impl Observed {
    /// Of a network in which nothing has happened.
    pub fn new(config: &SanRigConfig) -> Observed {
        Observed {
            counts: Counts::default(),
            of_stopped: HopCounts::default(),
            ways: Ways::default(),
            shortest: Shortest::new(config.graph.clone()),
            sizes: Sizes::default(),
            aftermath: Aftermath::new(config.faults.iter().map(|fault| fault.at).min()),
            latest: Time::ZERO,
        }
    }
}

/// Ways that commands took, by how many hops more than the shortest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ways {
    pub shortest: u64,
    pub longer: u64,
    pub hops: u64,
}

impl Ways {
    /// A command has come to its target: how long its way was.
    pub fn count(&mut self, packet: &Packet, shortest: &mut Shortest) {
        let hops = packet.trail.hops().len() as u64;
        if packet.kind != PacketKind::Command || hops == 0 {
            return;
        }
        let shortest = shortest.between(packet.source, packet.target);
        self.hops += hops;
        if shortest.is_some_and(|links| hops < u64::from(links)) {
            self.shortest += 1;
        } else {
            self.longer += 1;
        }
    }
}

/// What the rig counts beside its programs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub dropped: u64,
    /// Bytes on the wire into and out of targets.
    target_in: u64,
    target_out: u64,
}

impl Counts {
    /// A packet comes to a target or leaves it: as its card counts.
    pub fn at_target(&mut self, packet: &Packet, is_inward: bool) {
        let bytes = u64::from(packet.frame).saturating_sub(NOT_COUNTED);
        if is_inward {
            self.target_in += bytes;
        } else {
            self.target_out += bytes;
        }
    }
}

/// Links of the shortest ways, from a target to everywhere when the first asks.
pub(super) struct Shortest {
    graph: Arc<Graph>,
    from: Vec<Option<Box<Distances>>>,
}

impl Shortest {
    pub fn new(graph: Arc<Graph>) -> Shortest {
        let from = graph.vertices().iter().map(|_| None).collect();
        Shortest { graph, from }
    }

    fn between(&mut self, source: VertexId, target: VertexId) -> Option<u32> {
        let from = &mut self.from[target.index()];
        from.get_or_insert_with(|| Box::new(self.graph.distances_from(target))).to(source)
    }
}

/// Reads what the network costs by the ports of its storage nodes: the paper's example (Table 1),
/// which leaves clients' ports out, and its formula, which counts as many again on a switch.
pub(super) fn price(plan: &San, meter: &mut Meter) {
    let ports = StoragePorts::of(&plan.fabric.graph, plan.fabric.trunk);
    for (metric, rule) in [
        (metric::fabric_cost_usd, SwitchRule::StoragePorts),
        (metric::fabric_cost_by_formula_usd, SwitchRule::StorageAndClientPorts),
    ] {
        meter.put(metric, plan.prices.of_storage(&ports, rule).total_usd());
    }
    meter.put(metric::fabric_storage_ports, ports.total() as f64);
}

impl SanRig {
    pub(super) fn facts(&self, meter: &mut Meter) {
        self.facts_of_links(meter);
        self.facts_of_hops(meter);
        self.facts_of_drives(meter);
        self.facts_of_ends(meter);
        self.observed.sizes.facts(meter);
        self.observed.aftermath.facts(meter);
    }

    fn facts_of_links(&self, meter: &mut Meter) {
        let mut busy = Vec::new();
        self.carrier.wires.busy(&mut busy);
        let busy: Vec<f64> = busy.into_iter().map(|span| span.as_ps() as f64).collect();
        let is_cable = |index: &usize| self.config.graph.links()[index / 2].medium == Medium::Cable;
        let is_between_hops = |index: &usize| {
            let ends = self.config.graph.links()[index / 2].ends;
            ends.iter().all(|end| self.config.graph.vertex(end.vertex).kind.forwards())
        };
        let loads = |wanted: &dyn Fn(&usize) -> bool| -> Vec<f64> {
            (0..busy.len()).filter(wanted).map(|index| busy[index]).collect()
        };
        let of_cables = (metric::link_load_mean_fraction, metric::link_load_max_fraction);
        let of_fabric = (metric::fabric_link_load_mean_fraction, metric::fabric_link_load_max_fraction);
        self.put_shares(of_cables, &loads(&is_cable), meter);
        self.put_shares(of_fabric, &loads(&is_between_hops), meter);
        let ways = (self.observed.ways.shortest + self.observed.ways.longer) as f64;
        meter.ratio(metric::ways_shortest_fraction, self.observed.ways.shortest as f64, ways);
        meter.ratio(metric::way_mean_hops, self.observed.ways.hops as f64, ways);
        meter.count(metric::packets_lost_on_wires, self.carrier.lost as f64);
        meter.count(metric::link_crossings, self.carrier.crossings as f64);
        meter.put(metric::in_flight_packets_max, self.carrier.flights.highest() as f64);
        meter.count(metric::target_in_bytes, self.observed.counts.target_in as f64);
        meter.count(metric::target_out_bytes, self.observed.counts.target_out as f64);
    }

    /// The mean and the largest of some shares of the time, of which `used` has the times so far.
    fn put_shares(&self, (mean, max): (Metric<Sample>, Metric<Highest>), used: &[f64], meter: &mut Meter) {
        if used.is_empty() {
            return;
        }
        let span = meter.grown(mean, 0, self.observed.latest.as_ps() as f64).max(1.0);
        let shares: Vec<f64> = used.iter().zip(1..).map(|(used, part)| meter.grown(mean, part, *used) / span).collect();
        meter.put(mean, shares.iter().sum::<f64>() / shares.len() as f64);
        meter.put(max, shares.iter().copied().fold(0.0, f64::max));
    }

    fn facts_of_hops(&self, meter: &mut Meter) {
        let mut all = self.observed.of_stopped;
        self.programs.hops.iter().for_each(|hop| add(&mut all, hop.counts()));
        for (metric, total) in [
            (metric::hop_dropped_full, all.dropped_full),
            (metric::hop_dropped_no_route, all.dropped_no_route),
            (metric::hop_dropped_trail_full, all.dropped_trail_full),
            (metric::reservations_rejected, all.rejected),
            (metric::commands_unreachable, all.unreachable),
            (metric::answers_detoured, all.detoured),
            (metric::packets_marked, all.marked),
            (metric::answers_held_by_policer, all.held),
            (metric::distances_told, all.advertised),
        ] {
            meter.count(metric, total as f64);
        }
        meter.put(metric::hop_queue_max_bytes, self.highest(Hop::waiting_max) as f64);
        meter.put(metric::hop_held_max_bytes, self.highest(Hop::held_max) as f64);
        if self.is_lossless() {
            meter.count(metric::pause_frames, all.pauses as f64);
            meter.put(metric::hop_ingress_max_bytes, self.highest(Hop::ingress_max) as f64);
        }
    }

    /// The most of something that any port has had.
    fn highest(&self, of_port: fn(&Hop, Port) -> Bytes) -> u64 {
        let of = |(vertex, hop): (&VertexId, &Hop)| {
            (0..self.carrier.wires.ports(*vertex)).map(|port| of_port(hop, Port(port)).count()).max()
        };
        self.vertices.hops.iter().zip(&self.programs.hops).filter_map(of).max().unwrap_or(0)
    }

    fn facts_of_drives(&self, meter: &mut Meter) {
        facts_of_drives(self.drives.whole(), meter);
        let inside: Vec<f64> = self.drives.inside().iter().map(|(time, _)| time.as_ps() as f64).collect();
        self.put_shares((metric::drive_depth_mean, metric::drive_depth_max), &inside, meter);
        let commands = self.drives.inside().iter().map(|(_, count)| count).sum::<u64>() as f64;
        meter.count(metric::drive_commands, commands);
        meter.ratio(metric::drive_time_mean_us, inside.iter().sum::<f64>() / 1e6, commands);
        let [read, written] = self.drives.moved();
        meter.count(metric::drive_read_bytes, read as f64);
        meter.count(metric::drive_written_bytes, written as f64);
        meter.count(metric::drive_commands_refused, self.drives.refused() as f64);
        meter.put(metric::drives, self.drives.count() as f64);
    }

    fn facts_of_ends(&self, meter: &mut Meter) {
        let hosts =
            |of: fn(&HostCounters) -> u64| self.programs.hosts.iter().map(|host| of(&host.counters())).sum::<u64>();
        let targets =
            |of: fn(&TargetCounters) -> u64| self.programs.targets.iter().map(|one| of(&one.counters())).sum::<u64>();
        for (metric, total) in [
            (metric::host_commands_rejected, hosts(|host| host.rejected)),
            (metric::host_commands_unreachable, hosts(|host| host.unreachable)),
            (metric::host_commands_aborted, hosts(|host| host.aborted)),
            (metric::host_timeouts, hosts(|host| host.timeouts)),
            (metric::host_gaps, hosts(|host| host.gaps)),
            (metric::host_path_failures, hosts(|host| host.path_failures)),
            (metric::host_retries, hosts(|host| host.retries)),
            (metric::host_packets_stale, hosts(|host| host.stale)),
            (metric::target_commands, targets(|target| target.commands)),
            (metric::target_duplicates, targets(|target| target.duplicates)),
            (metric::target_packets_late, targets(|target| target.late)),
            (metric::target_packets_unknown, targets(|target| target.unknown)),
            (metric::target_commands_aborted, targets(|target| target.aborted)),
            (metric::target_commands_failed, targets(|target| target.failed)),
        ] {
            meter.count(metric, total as f64);
        }
        let drives = self.drives.count() as u32;
        let credits = || self.programs.hosts.iter().flat_map(|host| (0..drives).map(|session| host.credit(session)));
        // Whole numbers: their sum is exact in any order.
        let sum: u64 = credits().map(u64::from).sum();
        let count = self.programs.hosts.len() * drives as usize;
        meter.put(metric::credit_mean, sum as f64 / count.max(1) as f64);
        meter.put(metric::credit_min, credits().min().map_or(0.0, f64::from));
    }
}

/// Adds what another hop, or the same one before it was started anew, has counted.
pub(super) fn add(all: &mut HopCounts, one: &HopCounts) {
    all.sent += one.sent;
    all.dropped_full += one.dropped_full;
    all.dropped_no_route += one.dropped_no_route;
    all.dropped_trail_full += one.dropped_trail_full;
    all.rejected += one.rejected;
    all.unreachable += one.unreachable;
    all.detoured += one.detoured;
    all.marked += one.marked;
    all.pauses += one.pauses;
    all.held += one.held;
    all.advertised += one.advertised;
}
