//! How much memory and time a SAN's run takes, before it begins. An estimate, for warnings only.

use super::{San, SanLoad};
use san::target::Admission;
use topology::{Graph, VertexId, VertexKind};
use workload::storage::Arrivals;

/// What a run may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The most memory at a time, bytes.
    pub bytes: f64,
    /// Time of one core, seconds.
    pub seconds: f64,
}

/// The program itself, its threads and what it keeps for records.
const BASE_BYTES: f64 = 40e6;
/// A session that is used, at both ends together, and what its windows or Gimbal keep for it beside
/// that.
const SESSION_BYTES: f64 = 500.0;
const WINDOW_BYTES: f64 = 1_000.0;
const TENANT_BYTES: f64 = 150.0;
/// A session at a host and at a target before it is used.
const SEAT_BYTES: f64 = 16.0;
/// A destination that a hop has chosen a way to, beside 8 a port of what was learnt.
const WAY_BYTES: f64 = 50.0;
/// A class of sessions that has booked at a port.
const CLASS_BYTES: f64 = 16.0;
/// A request under way, with its packets.
const REQUEST_BYTES: f64 = 2_500.0;
/// What a packet's link takes of a core, and what a request takes beside its links, in seconds; and
/// a look at one vertex for one neighbour, when distances are told.
const LINK_SECONDS: f64 = 200e-9;
const REQUEST_SECONDS: f64 = 3e-6;
const TOLD_SECONDS: f64 = 20e-9;
/// Hosts whose distances are computed.
const SAMPLE: usize = 64;
/// What a host keeps outstanding where only its player knows.
const USUAL_DEPTH: f64 = 16.0;

impl San {
    /// What a run of it takes, as far as its number of requests is known. The formula is in
    /// docs/reference/san-plans.md.
    pub fn estimate(&self) -> Option<Estimate> {
        let requests = self.requests()? as f64;
        let size = Size::of(self);
        let under_way = (size.hosts * self.depth()).min(requests);
        let used = occupied(requests, size.sessions);
        Some(Estimate {
            bytes: BASE_BYTES
                + size.tables()
                + size.sessions * SEAT_BYTES
                + used * self.session_bytes()
                + self.way_bytes(&size, requests)
                + under_way * REQUEST_BYTES,
            seconds: size.told() * TOLD_SECONDS
                + requests * (REQUEST_SECONDS + self.packets() * size.links * LINK_SECONDS),
        })
    }

    fn session_bytes(&self) -> f64 {
        let tenant = if matches!(self.target.admission, Admission::Gimbal(_)) { TENANT_BYTES } else { 0.0 };
        SESSION_BYTES + tenant + if self.host.stream.is_some() { WINDOW_BYTES } else { 0.0 }
    }

    /// What hops keep of the ways that requests took.
    fn way_bytes(&self, size: &Size, requests: f64) -> f64 {
        let passes = requests * size.links;
        let ends = if self.routing.is_symmetric { size.targets } else { size.hosts + size.targets };
        let learnt = if self.routing.is_symmetric { 8.0 * size.ports } else { 0.0 };
        let ways = occupied(passes, size.hops * ends) * (WAY_BYTES + learnt);
        let classes = self.reservation.as_ref().map_or(0.0, |config| {
            let most = size.hops * size.ports * f64::from(config.classes).min(size.sessions);
            occupied(passes, most) * CLASS_BYTES
        });
        ways + classes
    }

    /// Requests that a host has under way at most.
    fn depth(&self) -> f64 {
        match &self.io.load {
            SanLoad::Requests { config, .. } => match config.arrivals {
                Arrivals::Closed { depth, .. } => f64::from(depth),
                _ => USUAL_DEPTH,
            },
            SanLoad::Mixed { mixed, .. } => f64::from(mixed.depth),
            _ => USUAL_DEPTH,
        }
    }

    /// Packets of a request: a command, a response, and data in segments.
    fn packets(&self) -> f64 {
        let data = (self.io.mean_bytes() / f64::from(self.target.wire.segment_max)).ceil();
        let both = if self.host.stream.is_some() { 2.0 } else { 1.0 };
        (2.0 + data) * both
    }
}

/// Expected number of `places` that are drawn at least once in uniform draws.
fn occupied(draws: f64, places: f64) -> f64 {
    if places == 0.0 { 0.0 } else { places * -(-draws / places).exp_m1() }
}

/// A network in numbers.
struct Size {
    vertices: f64,
    hosts: f64,
    targets: f64,
    hops: f64,
    /// Mean of a hop.
    ports: f64,
    sessions: f64,
    /// Mean of a way.
    links: f64,
}

impl Size {
    fn of(san: &San) -> Size {
        let graph = &*san.fabric.graph;
        let count = |kind| graph.of_kind(kind).count() as f64;
        let (hosts, targets) = (count(VertexKind::Host), count(VertexKind::Target));
        let hops = count(VertexKind::Adapter) + count(VertexKind::Switch);
        let forwards = |vertex: &VertexId| graph.vertex(*vertex).kind.forwards();
        let ports = graph.vertex_ids().filter(forwards).map(|vertex| graph.degree(vertex)).sum::<usize>() as f64;
        Size {
            vertices: graph.vertices().len() as f64,
            sessions: hosts * targets * f64::from(san.drives.per_target),
            ports: ports / hops.max(1.0),
            links: mean_links(graph),
            hosts,
            targets,
            hops,
        }
    }

    /// Distances at every hop: a byte a port, the best port and two places of rows. What is told of
    /// them at a time finds room that sessions take later.
    fn tables(&self) -> f64 {
        self.hops * self.vertices * (self.ports + 6.0)
    }

    /// Vertices times channels of which neighbours tell each other: when a run is prepared, and in
    /// it.
    fn told(&self) -> f64 {
        self.hops * self.vertices * self.ports
    }
}

/// From hosts to targets, of some hosts.
fn mean_links(graph: &Graph) -> f64 {
    let targets: Vec<VertexId> = graph.of_kind(VertexKind::Target).collect();
    let hosts: Vec<VertexId> = graph.of_kind(VertexKind::Host).collect();
    let some = hosts.iter().step_by(hosts.len().div_ceil(SAMPLE).max(1));
    let (mut sum, mut count) = (0.0, 0.0);
    for host in some {
        let distances = graph.distances_from(*host);
        for links in targets.iter().filter_map(|target| distances.to(*target)) {
            (sum, count) = (sum + f64::from(links), count + 1.0);
        }
    }
    if count == 0.0 { 0.0 } else { sum / count }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parse;
    use crate::sources::NoFiles;

    fn estimate(side: u32, requests: u64) -> Estimate {
        let text = format!(
            "title = \"t\"\ndesign.name = \"san\"\nrun.requests = {requests}\nio.depth = 16\n[fabric]\nkind = \"torus\"\n\
             dimensions = [{side}, {side}, {side}]\nhosts = {0}\n[drives]\nper_target = 1\nmodel = \"quick\"\n",
            side.pow(3)
        );
        let experiment = parse("t.toml", &text, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        experiment.points(None).remove(0).plan.san().unwrap().estimate().unwrap()
    }

    /// Balls in bins: of as many draws as places 1 - 1/e.
    #[test]
    fn places_are_occupied_as_by_balls_in_bins() {
        assert!((occupied(1e6, 1e6) - 1e6 * (1.0 - (-1.0_f64).exp())).abs() < 1e-3);
        assert!((occupied(10.0, 1e12) - 10.0).abs() < 1e-6 && occupied(5.0, 0.0) == 0.0);
    }

    #[test]
    fn a_larger_network_and_more_requests_take_more_of_both() {
        let [small, large, long] =
            [(3, 1_000), (8, 1_000), (3, 1_000_000)].map(|(side, requests)| estimate(side, requests));
        assert!(large.bytes > 1.3 * small.bytes && large.seconds > small.seconds);
        assert!(long.seconds > 500.0 * small.seconds && long.bytes > small.bytes);
    }
}
