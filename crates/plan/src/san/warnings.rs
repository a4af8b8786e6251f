//! What a reader must know about a SAN before believing its numbers.

use super::{DriveModelName, San, SanLoad};
use crate::warnings::{measured, of_trace};
use base::{Bytes, Operation, Span};
use san::deadlock::circle_of_ways;
use san::oracle::{Demand, each_to_each};
use san::route::Policy;
use topology::{Graph, VertexId, VertexKind};
use workload::storage::Arrivals;

/// From here on transit traffic is the larger part of what links carry.
const TRANSIT_SHARE: f64 = 0.5;
/// What a request is taken for where only its player knows.
const USUAL_BYTES: f64 = 16_384.0;

impl San {
    /// Values that are legal but probably unintended.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        measured(self.run.warm_up, self.io.ends().0, &mut out);
        self.overload(&mut out);
        self.buffered(&mut out);
        self.transit(&mut out);
        self.skipped(&mut out);
        self.unsafe_retry(&mut out);
        self.timeouts(&mut out);
        self.deadlock(&mut out);
        out
    }

    /// Payload alone, spread evenly: a load that is too much already so is too much in any case.
    fn overload(&self, out: &mut Vec<String>) {
        let Some(offered) = self.io.offered() else { return };
        let graph = &*self.fabric.graph;
        for (kind, what) in [(VertexKind::Host, "hosts"), (VertexKind::Target, "targets")] {
            let can: f64 = graph.of_kind(kind).map(|vertex| rate_of(graph, vertex)).sum();
            let asked = offered.read_bps.max(offered.write_bps);
            if asked > can {
                out.push(format!(
                    "{} of data one way are offered, and the links of all {what} carry {}: queues grow for as long as requests arrive",
                    gbps(asked),
                    gbps(can)
                ));
            }
        }
        self.drives_overload(&offered, out);
        let bisection = graph.bisection().capacity.as_bps() as f64;
        // Half of a uniform load crosses any bisection, in either direction.
        let crossing = offered.read_bps.max(offered.write_bps) / 2.0;
        if self.io.is_uniform() && crossing > bisection && bisection > 0.0 {
            out.push(format!(
                "{} of data have to cross the middle of the network one way, and its bisection carries {}",
                gbps(crossing),
                gbps(bisection)
            ));
        }
    }

    fn drives_overload(&self, offered: &Offered, out: &mut Vec<String>) {
        let link = self.drives.link_bps();
        let can = link * f64::from(self.io.asked_drives());
        let asked = offered.read_bps.max(offered.write_bps);
        if asked > can {
            out.push(format!(
                "{} of data one way are offered, and the links of the requested drives carry {}",
                gbps(asked),
                gbps(can)
            ));
        }
    }

    /// Writes that all fit into the drives' buffers.
    fn buffered(&self, out: &mut Vec<String>) {
        let is_preset = self.drives.model == DriveModelName::Quick && self.flash.is_none();
        let Some(written) = self.io.written().filter(|written| is_preset && *written > 0.0) else { return };
        let (each, buffer) = (written / f64::from(self.io.asked_drives().max(1)), self.drives.buffer);
        if each <= buffer.count() as f64 {
            let mib = each / 1_048_576.0;
            out.push(format!(
                "a run writes {mib:.1} MiB to a drive, which its buffer of {buffer} holds: no write waits for flash"
            ));
        }
    }

    /// How much of what cables between adapters carry is on its way to somebody else's node, when
    /// the load of all pairs is equal.
    fn transit(&self, out: &mut Vec<String>) {
        let graph = &*self.fabric.graph;
        let adapters: Vec<VertexId> = graph.of_kind(VertexKind::Adapter).collect();
        if adapters.len() < 2 {
            return;
        }
        // A pair is carried once by each link of its way.
        let distances = graph.distance_summary(&adapters);
        let transit = 1.0 - distances.pairs as f64 / distances.sum as f64;
        if transit >= TRANSIT_SHARE {
            let share = transit * 100.0;
            out.push(format!(
                "{share:.0} % of what the cables between adapters carry under uniform traffic is transit: report link load beside latency"
            ));
        }
    }

    fn skipped(&self, out: &mut Vec<String>) {
        let SanLoad::Trace(replay) = &self.io.load else { return };
        of_trace(&replay.trace, out);
    }

    fn unsafe_retry(&self, out: &mut Vec<String>) {
        if self.host.retry == san::retry::RetryPolicy::Naive && !self.faults.is_empty() {
            out.push(
                "retry = naive loses acknowledged writes when a path fails: a late first copy undoes what came after"
                    .into(),
            );
        }
    }

    fn timeouts(&self, out: &mut Vec<String>) {
        let lost_after = self.host.stream.map_or(self.host.timeout, |stream| stream.timeout_min);
        let (limit, timeout) = (self.run.drain_limit, lost_after);
        if limit < timeout {
            out.push(format!(
                "drain_limit = {limit} is shorter than the {timeout} after which what was lost is sent again"
            ));
        }
    }

    /// Links that pause each other in a circle (san::deadlock). Ways that are learnt may lead
    /// around.
    fn deadlock(&self, out: &mut Vec<String>) {
        if self.host.stream.is_none_or(|stream| stream.dcqcn().is_none()) {
            return;
        }
        let graph = &*self.fabric.graph;
        let detours = matches!(self.routing.policy, Policy::Isr | Policy::IsrAsPrinted) && self.routing.stretch_max > 0;
        let Some(circle) = circle_of_ways(graph, detours) else { return };
        let sources = circle.iter().chain(circle.first()).map(|link| graph.source(*link));
        let names: Vec<&str> = sources.map(|vertex| graph.vertex(vertex).name.as_str()).collect();
        out.push(format!(
            "priority flow control may deadlock here: packets take links that make a circle ({}). A run warns if it has",
            names.join(" -> ")
        ));
    }

    /// What every host wants of every target, for the oracle: reads, at the rate that all drives of
    /// a target can give one host's share of.
    pub fn demands(&self) -> Vec<Demand> {
        let graph = &*self.fabric.graph;
        let ends = |kind| graph.of_kind(kind).collect::<Vec<_>>();
        let (targets, hosts) = (ends(VertexKind::Target), ends(VertexKind::Host));
        let each = self.drives.link_bps() * f64::from(self.drives.per_target) / hosts.len().max(1) as f64;
        each_to_each(&targets, &hosts, base::Rate::bps((each as u64).max(1)))
    }
}

/// What is offered, in bits a second of payload.
pub(super) struct Offered {
    pub read_bps: f64,
    pub write_bps: f64,
}

impl super::SanIo {
    /// When the load ends.
    pub(crate) fn ends(&self) -> (Option<u64>, Option<Span>) {
        match &self.load {
            SanLoad::Requests { config, .. } => (config.requests, config.duration),
            SanLoad::Mixed { play, .. } | SanLoad::Jobs { play, .. } => (play.requests, play.duration),
            SanLoad::Trace(replay) => (replay.config.requests, replay.config.duration),
            SanLoad::Imitation { config, .. } => (config.requests, config.duration),
            SanLoad::Stores(config) => (config.operations, config.duration),
        }
    }

    /// Requests and time after which it ends, as `[run]` says them.
    pub(crate) fn limits(&self) -> (Option<u64>, Option<Span>) {
        self.ends()
    }

    /// Mean size of a request in bytes, as far as the plan says it: one that shapes no result, only
    /// how long a run may take.
    pub fn mean_bytes(&self) -> f64 {
        match &self.load {
            SanLoad::Requests { config, .. } => config.block.count() as f64,
            SanLoad::Mixed { mixed, .. } => mixed.mean_bytes(),
            SanLoad::Stores(config) => config.tree.block.count() as f64,
            SanLoad::Trace(replay) => {
                let bytes: u64 = replay.trace.requests.iter().map(|request| request.bytes.count()).sum();
                bytes as f64 / replay.trace.requests.len().max(1) as f64
            }
            SanLoad::Jobs { .. } | SanLoad::Imitation { .. } => USUAL_BYTES,
        }
    }

    /// Bytes that a run writes, as far as the plan says it.
    fn written(&self) -> Option<f64> {
        let (write_share, rate) = match &self.load {
            SanLoad::Requests { config, requests_per_second } => (config.mix.write_share(), *requests_per_second),
            SanLoad::Mixed { mixed, .. } => (mixed.write_share, mixed.requests_per_second),
            _ => return None,
        };
        let (requests, duration) = self.ends();
        let in_time = rate.zip(duration).map(|(rate, span)| rate * span.as_ps() as f64 / 1e12);
        let requests = requests.map(|count| count as f64).or(in_time)?;
        Some(requests * write_share * self.mean_bytes())
    }

    /// What an open loop offers; `None` of a closed one.
    fn offered(&self) -> Option<Offered> {
        let (rate, write_share, bytes) = match &self.load {
            SanLoad::Requests { config, requests_per_second }
                if !matches!(config.arrivals, Arrivals::Closed { .. }) =>
            {
                ((*requests_per_second)?, config.mix.write_share(), config.block.count() as f64)
            }
            SanLoad::Mixed { mixed, .. } => (mixed.requests_per_second?, mixed.write_share, mixed.mean_bytes()),
            SanLoad::Trace(replay) => return offered_by(replay),
            _ => return None,
        };
        let bps = rate * bytes * 8.0;
        Some(Offered { read_bps: bps * (1.0 - write_share), write_bps: bps * write_share })
    }

    /// Whether the load of all hosts on all drives is equal.
    fn is_uniform(&self) -> bool {
        match &self.load {
            SanLoad::Requests { config, .. } => config.assignment == workload::storage::Assignment::All,
            SanLoad::Mixed { mixed, .. } => mixed.drive.is_none(),
            _ => false,
        }
    }

    fn asked_drives(&self) -> u32 {
        match &self.load {
            SanLoad::Requests { config, .. } => match &config.assignment {
                workload::storage::Assignment::Fixed { .. } => 1,
                _ => config.volumes,
            },
            SanLoad::Mixed { play, .. } | SanLoad::Jobs { play, .. } => play.volumes.len() as u32,
            SanLoad::Trace(replay) => replay.config.volumes,
            SanLoad::Imitation { config, .. } => config.volumes,
            SanLoad::Stores(config) => config.volumes,
        }
    }
}

/// The mean over a whole trace, as it is played.
fn offered_by(replay: &crate::blox::BlockReplay) -> Option<Offered> {
    let last = replay.trace.requests.last()?.at;
    let seconds = last.saturating_since(base::Time::ZERO).as_ps() as f64 * replay.config.time_scale / 1e12;
    let bits = |wanted: Operation| -> f64 {
        let of_kind = replay.trace.requests.iter().filter(|request| request.operation == wanted);
        of_kind.map(|request| request.bytes.count() as f64 * 8.0).sum()
    };
    (seconds > 0.0)
        .then(|| Offered { read_bps: bits(Operation::Read) / seconds, write_bps: bits(Operation::Write) / seconds })
}

impl super::MixedSizes {
    /// Mean size of an I/O in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.sizes.iter().map(|(size, percent)| size.count() as f64 * f64::from(*percent) / 100.0).sum()
    }
}

impl super::Drives {
    /// What the link of a drive to its node carries, in bits a second.
    fn link_bps(&self) -> f64 {
        use hardware::ssd::presets::DriveConfig;
        let link = match self.preset.drive() {
            DriveConfig::SolidState(config) => config.link,
            DriveConfig::Direct(config) => config.link,
        };
        link.rate.as_bps() as f64
    }

    /// All of a target's drives together.
    pub fn target_capacity(&self) -> Bytes {
        Bytes::new(self.capacity.count() * u64::from(self.per_target))
    }
}

fn rate_of(graph: &Graph, vertex: VertexId) -> f64 {
    graph.hops(vertex).iter().map(|hop| graph.link(hop.channel.link()).rate.as_bps() as f64).sum()
}

fn gbps(bps: f64) -> String {
    format!("{:.1} Gb/s", bps / 1e9)
}
