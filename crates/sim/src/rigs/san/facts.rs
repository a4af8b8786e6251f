//! What only this rig can tell of a run.

use super::{Counts, SanRig};
use crate::rigs::wear_facts::facts_of_drives;
use base::Bytes;
use record::Summary;
use san::cost::{StoragePorts, SwitchRule};
use san::hop::{Hop, HopCounts};
use san::host::HostCounters;
use san::target::TargetCounters;
use san::{Packet, PacketKind, Port};
use spec::san::San;
use std::collections::BTreeMap;
use std::sync::Arc;
use topology::{Distances, Graph, Medium, VertexId};

/// Preamble, gap and check sequence, which the counters of a network card leave out.
const NOT_COUNTED: u64 = 8 + 12 + 4;

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

impl Counts {
    /// A packet comes to a target or leaves it: as its card counts.
    pub(super) fn at_target(&mut self, packet: &Packet, is_inward: bool) {
        let bytes = u64::from(packet.frame).saturating_sub(NOT_COUNTED);
        if is_inward {
            self.target_in += bytes;
        } else {
            self.target_out += bytes;
        }
    }
}

/// Says in the summary what the network costs by the ports of its storage nodes: the paper's example (Table 1), which leaves clients' ports out, and
/// its formula, which counts as many again on a switch.
pub(crate) fn price(plan: &San, summary: &mut Summary) {
    let ports = StoragePorts::of(&plan.fabric.graph, plan.fabric.trunk);
    for (name, rule) in [
        ("fabric_cost_usd", SwitchRule::StoragePorts),
        ("fabric_cost_by_formula_usd", SwitchRule::StorageAndClientPorts),
    ] {
        summary.extra.insert(name.into(), plan.prices.of_storage(&ports, rule).total_usd());
    }
    summary.extra.insert("fabric_storage_ports".into(), ports.total() as f64);
}

impl SanRig {
    pub(super) fn facts(&self, out: &mut BTreeMap<String, f64>) {
        self.facts_of_links(out);
        self.facts_of_hops(out);
        self.facts_of_drives(out);
        self.facts_of_ends(out);
        self.sizes.facts(out);
        self.aftermath.facts(out);
    }

    fn facts_of_links(&self, out: &mut BTreeMap<String, f64>) {
        let mut busy = Vec::new();
        self.carrier.wires.busy(&mut busy);
        let span = self.latest.as_ps().max(1) as f64;
        let is_cable = |index: &usize| self.config.graph.links()[index / 2].medium == Medium::Cable;
        let is_between_hops = |index: &usize| {
            let ends = self.config.graph.links()[index / 2].ends;
            ends.iter().all(|end| self.config.graph.vertex(end.vertex).kind.forwards())
        };
        let loads = |wanted: &dyn Fn(&usize) -> bool| -> Vec<f64> {
            (0..busy.len()).filter(wanted).map(|index| busy[index].as_ps() as f64 / span).collect()
        };
        for (name, loads) in [("link_load", loads(&is_cable)), ("fabric_link_load", loads(&is_between_hops))] {
            if !loads.is_empty() {
                out.insert(format!("{name}_mean_fraction"), loads.iter().sum::<f64>() / loads.len() as f64);
                out.insert(format!("{name}_max_fraction"), loads.iter().copied().fold(0.0, f64::max));
            }
        }
        let ways = self.ways.shortest + self.ways.longer;
        out.insert("ways_shortest_fraction".into(), share(self.ways.shortest, ways));
        out.insert("way_mean_hops".into(), share(self.ways.hops, ways));
        out.insert("packets_lost_on_wires".into(), self.carrier.lost as f64);
        out.insert("link_crossings".into(), self.carrier.crossings as f64);
        out.insert("in_flight_packets_max".into(), self.carrier.flights.highest() as f64);
        out.insert("target_in_bytes".into(), self.counts.target_in as f64);
        out.insert("target_out_bytes".into(), self.counts.target_out as f64);
    }

    fn facts_of_hops(&self, out: &mut BTreeMap<String, f64>) {
        let mut all = self.counts_of_stopped;
        self.hops.iter().for_each(|hop| add(&mut all, hop.counts()));
        for (name, value) in [
            ("hop_dropped_full", all.dropped_full),
            ("hop_dropped_no_route", all.dropped_no_route),
            ("hop_dropped_trail_full", all.dropped_trail_full),
            ("reservations_rejected", all.rejected),
            ("commands_unreachable", all.unreachable),
            ("answers_detoured", all.detoured),
            ("packets_marked", all.marked),
            ("answers_held_by_policer", all.held),
            ("distances_told", all.advertised),
        ] {
            out.insert(name.into(), value as f64);
        }
        out.insert("hop_queue_max_bytes".into(), self.highest(Hop::waiting_max) as f64);
        out.insert("hop_held_max_bytes".into(), self.highest(Hop::held_max) as f64);
        if self.is_lossless() {
            out.insert("pause_frames".into(), all.pauses as f64);
            out.insert("hop_ingress_max_bytes".into(), self.highest(Hop::ingress_max) as f64);
        }
    }

    /// The most of something that any port has had.
    fn highest(&self, of_port: fn(&Hop, Port) -> Bytes) -> u64 {
        let of = |(vertex, hop): (&VertexId, &Hop)| {
            (0..self.carrier.wires.ports(*vertex)).map(|port| of_port(hop, Port(port)).count()).max()
        };
        self.hop_vertices.iter().zip(&self.hops).filter_map(of).max().unwrap_or(0)
    }

    fn facts_of_drives(&self, out: &mut BTreeMap<String, f64>) {
        facts_of_drives(self.drives.whole(), out);
        let depths: Vec<f64> = self.drives.depths(self.latest).collect();
        let (commands, mean_us) = self.drives.served();
        let [read, written] = self.drives.moved();
        for (name, value) in [
            ("drive_depth_mean", depths.iter().sum::<f64>() / depths.len().max(1) as f64),
            ("drive_depth_max", depths.iter().copied().fold(0.0, f64::max)),
            ("drive_commands", commands as f64),
            ("drive_time_mean_us", mean_us),
            ("drive_read_bytes", read as f64),
            ("drive_written_bytes", written as f64),
            ("drive_commands_refused", self.drives.refused() as f64),
            ("drives", self.drives.count() as f64),
        ] {
            out.insert(name.into(), value);
        }
    }

    fn facts_of_ends(&self, out: &mut BTreeMap<String, f64>) {
        let hosts = |of: fn(&HostCounters) -> u64| self.hosts.iter().map(|host| of(&host.counters())).sum::<u64>();
        let targets = |of: fn(&TargetCounters) -> u64| self.targets.iter().map(|one| of(&one.counters())).sum::<u64>();
        for (name, value) in [
            ("host_commands_rejected", hosts(|host| host.rejected)),
            ("host_commands_unreachable", hosts(|host| host.unreachable)),
            ("host_commands_aborted", hosts(|host| host.aborted)),
            ("host_timeouts", hosts(|host| host.timeouts)),
            ("host_gaps", hosts(|host| host.gaps)),
            ("host_path_failures", hosts(|host| host.path_failures)),
            ("host_retries", hosts(|host| host.retries)),
            ("host_packets_stale", hosts(|host| host.stale)),
            ("target_commands", targets(|target| target.commands)),
            ("target_duplicates", targets(|target| target.duplicates)),
            ("target_packets_late", targets(|target| target.late)),
            ("target_packets_unknown", targets(|target| target.unknown)),
            ("target_commands_aborted", targets(|target| target.aborted)),
            ("target_commands_failed", targets(|target| target.failed)),
        ] {
            out.insert(name.into(), value as f64);
        }
        let drives = self.drives.count() as u32;
        let credits = || self.hosts.iter().flat_map(|host| (0..drives).map(|session| host.credit(session)));
        // Whole numbers: their sum is exact in any order.
        let sum: u64 = credits().map(u64::from).sum();
        let count = self.hosts.len() * drives as usize;
        out.insert("credit_mean".into(), sum as f64 / count.max(1) as f64);
        out.insert("credit_min".into(), credits().min().map_or(0.0, f64::from));
    }

    /// Says in the summary what the order of writes was like, and warns of the first read that found what it must not.
    pub fn judge_write_order(&self, summary: &mut Summary) {
        let Some(order) = &self.write_order else { return };
        summary.extra.insert("write_order_violations".into(), self.violations.count as f64);
        summary.extra.insert("write_order_reads_judged".into(), order.reads() as f64);
        if let Some(first) = &self.violations.first {
            summary.warnings.push(format!("an acknowledged write was undone: {first}"));
        }
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
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
