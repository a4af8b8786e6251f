//! `rackweave fabric`: what the network of a SAN is made of, what follows from its shape, and what
//! it costs.

use crate::arguments::FabricArguments;
use crate::describe::print_json;
use crate::failure::{Failure, bad_input, print};
use crate::{load, output};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets::NOTHING};
use plan::Point;
use plan::san::{San, Shape};
use san::cost::{StoragePorts, SwitchRule};
use san::oracle::{Demand, Method, OracleError, least_degradation, max_concurrent_flow};
use serde::Serialize;
use topology::{Bill, Graph, VertexId, VertexKind};

/// One network in numbers.
#[derive(Serialize)]
struct Found {
    /// Its place in the sweep; empty without one.
    point: String,
    network: String,
    hosts: usize,
    targets: usize,
    adapters: usize,
    switches: usize,
    /// Ports of the largest adapter and of the largest switch.
    adapter_ports: u32,
    switch_ports: u32,
    cables: u64,
    cable_metres: f64,
    /// Links of the way from a host to a target: the longest and the mean.
    diameter: u32,
    mean_distance: f64,
    /// Bandwidth of a target and its drives through its own links.
    target_gbps: f64,
    bisection_gbps: f64,
    /// Bounds below which no halving can be; the same as above where that is exact.
    bisection_at_least_gbps: f64,
    /// Ports of all storage nodes together: the paper's B / B_p.
    storage_ports: u64,
    cost: FoundCost,
    #[serde(skip_serializing_if = "Option::is_none")]
    optimum: Option<FoundOptimum>,
}

/// US dollars.
#[derive(Serialize)]
struct FoundCost {
    /// For the storage ports alone, as the paper's example counts.
    storage_usd: f64,
    /// The same by the paper's formula, which has a further switch port for each.
    formula_usd: f64,
    /// Everything in the graph, ports for clients and cables included.
    all_usd: f64,
}

/// Every host reads from every target.
#[derive(Serialize)]
struct FoundOptimum {
    /// The demand of each pair: its share of the bandwidth of the target's drives.
    demand_gbps: f64,
    /// Bandwidth of each pair in an equal division.
    alike_gbps: f64,
    /// Their sum.
    total_gbps: f64,
    /// The busiest link's share then.
    busiest_link: f64,
    /// The method of the computation.
    by: &'static str,
    /// Bound of the error, as a share of each pair's bandwidth; 0 if exact.
    gap: f64,
    /// The least mean of demand over rate (Perf_d); `None` of a network too large to solve.
    least_degradation: Option<f64>,
}

/// Prints the networks of an experiment side by side, and draws one.
pub fn fabric(arguments: &FabricArguments) -> Result<(), Failure> {
    let points = load::points(&arguments.source)?;
    let sans = chosen(&points, arguments)?;
    if let Some(path) = &arguments.picture {
        let [(_, san)] = sans[..] else {
            return Err(bad_input("--picture draws one network: choose one with --point or --set"));
        };
        let mut picture = Vec::new();
        topology::picture::write(&san.fabric.graph, &mut picture).expect("memory takes whatever is written");
        output::write(path, picture)?;
    }
    let mut found = Vec::new();
    for (point, san) in sans {
        found.push(examine(load::describe(point), san, arguments.oracle)?);
    }
    if arguments.json { print_json(&found) } else { print(&text(&found)) }
}

fn chosen<'a>(points: &'a [Point], arguments: &FabricArguments) -> Result<Vec<(&'a Point, &'a San)>, Failure> {
    let count = points.len();
    let wanted = match arguments.point {
        None => points,
        Some(number) if (1..=count).contains(&number) => &points[number - 1..number],
        Some(number) => return Err(bad_input(format!("--point {number}: allowed is 1 to {count}"))),
    };
    let network = |point: &'a Point| match point.plan.san() {
        Some(san) => Ok((point, san)),
        None => Err(bad_input(format!("the design {} has no network to choose", point.plan.design().word()))),
    };
    wanted.iter().map(network).collect()
}

fn examine(point: String, san: &San, with_optimum: bool) -> Result<Found, Failure> {
    let graph = &*san.fabric.graph;
    let bill = graph.bill();
    let ends = |kind| graph.of_kind(kind).collect::<Vec<_>>();
    let largest = |kind| graph.of_kind(kind).map(|vertex| graph.vertex(vertex).ports).max().unwrap_or(0);
    let bisection = graph.bisection();
    let (diameter, mean_distance) = distances(graph);
    let trunk = u64::from(san.fabric.trunk);
    Ok(Found {
        point,
        network: name_of(san),
        hosts: ends(VertexKind::Host).len(),
        targets: ends(VertexKind::Target).len(),
        adapters: ends(VertexKind::Adapter).len(),
        switches: ends(VertexKind::Switch).len(),
        adapter_ports: largest(VertexKind::Adapter) * san.fabric.trunk,
        switch_ports: largest(VertexKind::Switch) * san.fabric.trunk,
        cables: bill.cable_count() * trunk,
        cable_metres: bill.cable_length().as_mm() as f64 / 1e3 * trunk as f64,
        diameter,
        mean_distance,
        target_gbps: graph.of_kind(VertexKind::Target).map(|target| rate_gbps(graph, target)).fold(0.0, f64::max),
        bisection_gbps: bisection.capacity.as_bps() as f64 / 1e9,
        bisection_at_least_gbps: bisection.at_least.as_bps() as f64 / 1e9,
        storage_ports: StoragePorts::of(graph, san.fabric.trunk).total(),
        cost: cost_of(san, &bill),
        optimum: if with_optimum { Some(optimum(san)?) } else { None },
    })
}

fn name_of(san: &San) -> String {
    let teamed = if san.fabric.trunk > 1 { format!(", {} cables a link", san.fabric.trunk) } else { String::new() };
    match &san.fabric.shape {
        Shape::Config { config } => format!("{}{teamed}", config.kind),
        Shape::Custom { file, .. } => file.clone(),
    }
}

/// Links from hosts to targets: the most, and the mean over all pairs.
fn distances(graph: &Graph) -> (u32, f64) {
    let targets: Vec<VertexId> = graph.of_kind(VertexKind::Target).collect();
    let (mut most, mut sum, mut count) = (0, 0, 0_u64);
    for host in graph.of_kind(VertexKind::Host) {
        let distances = graph.distances_from(host);
        for distance in targets.iter().filter_map(|target| distances.to(*target)) {
            (most, sum, count) = (most.max(distance), sum + u64::from(distance), count + 1);
        }
    }
    (most, sum as f64 / count.max(1) as f64)
}

fn rate_gbps(graph: &Graph, vertex: VertexId) -> f64 {
    graph.hops(vertex).iter().map(|hop| graph.link(hop.channel.link()).rate.as_bps() as f64 / 1e9).sum()
}

fn cost_of(san: &San, bill: &Bill) -> FoundCost {
    let (prices, ports) = (&san.prices, StoragePorts::of(&san.fabric.graph, san.fabric.trunk));
    let by = |rule| prices.of_storage(&ports, rule).total_usd();
    FoundCost {
        storage_usd: by(SwitchRule::StoragePorts),
        formula_usd: by(SwitchRule::StorageAndClientPorts),
        all_usd: prices.of_bill(bill, san.fabric.trunk).total_usd(),
    }
}

fn optimum(san: &San) -> Result<FoundOptimum, Failure> {
    let (graph, demands) = (&*san.fabric.graph, san.demands());
    let alike = max_concurrent_flow(graph, &demands).map_err(bad_input)?;
    let least = match least_degradation(graph, &demands) {
        Ok(optimum) => Some(optimum.objective),
        Err(OracleError::TooLarge { .. }) => None,
        Err(error) => return Err(bad_input(error)),
    };
    let demand = demands.first().map_or(0.0, |demand: &Demand| demand.rate.as_bps() as f64 / 1e9);
    let shares = graph.links().iter().zip(alike.loads_bps.chunks(2));
    let busiest = shares.map(|(link, loads)| loads[0].max(loads[1]) / link.rate.as_bps() as f64).fold(0.0, f64::max);
    Ok(FoundOptimum {
        demand_gbps: demand,
        alike_gbps: demand * alike.objective,
        total_gbps: alike.rates_bps.iter().sum::<f64>() / 1e9,
        busiest_link: busiest,
        by: match alike.method {
            Method::Bounds => "two bounds that meet",
            Method::Solved { .. } => "linear program",
            Method::Approximated { .. } => "approximation",
        },
        gap: alike.gap(),
        least_degradation: least,
    })
}

/// Properties below each other, networks side by side.
fn text(found: &[Found]) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let mut row = |name: &str, value: &dyn Fn(&Found) -> String| {
        table.add_row(std::iter::once(name.to_string()).chain(found.iter().map(value)));
    };
    if found.iter().any(|each| !each.point.is_empty()) {
        row("", &|it| it.point.clone());
    }
    row("network", &|it| it.network.clone());
    row("hosts, targets", &|it| format!("{}, {}", it.hosts, it.targets));
    row("adapters", &|it| parts(it.adapters, it.adapter_ports));
    row("switches", &|it| parts(it.switches, it.switch_ports));
    row("cables", &|it| format!("{} ({:.0} m)", it.cables, it.cable_metres));
    row("links from host to target, mean", &|it| format!("{:.2}", it.mean_distance));
    row("  most", &|it| it.diameter.to_string());
    row("a target's links, Gb/s", &|it| format!("{:.0}", it.target_gbps));
    row("bisection, Gb/s", &bisection);
    row("storage ports", &|it| it.storage_ports.to_string());
    row("cost of these, USD", &|it| dollars(it.cost.storage_usd));
    row("  by the paper's formula", &|it| dollars(it.cost.formula_usd));
    row("cost of all parts, USD", &|it| dollars(it.cost.all_usd));
    if found.iter().any(|each| each.optimum.is_some()) {
        let of =
            |it: &Found, value: &dyn Fn(&FoundOptimum) -> String| it.optimum.as_ref().map(value).unwrap_or_default();
        row("all read from all, Gb/s asked by a pair", &|it| of(it, &|it| format!("{:.2}", it.demand_gbps)));
        row("  at best, each alike", &|it| of(it, &|it| format!("{:.2}", it.alike_gbps)));
        row("  all together", &|it| of(it, &|it| format!("{:.0}", it.total_gbps)));
        row("  busiest link", &|it| of(it, &|it| format!("{:.0} %", it.busiest_link * 100.0)));
        row("  found by", &|it| of(it, &|it| it.by.into()));
        row("  more may be possible by, at most", &|it| of(it, &|it| format!("{:.1} %", it.gap * 100.0)));
        row("  least mean of asked over given", &|it| of(it, &|it| degraded(it.least_degradation)));
    }
    for column in 1..=found.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    format!("{}\n", table.trim_fmt())
}

fn parts(count: usize, ports: u32) -> String {
    if count == 0 { "-".into() } else { format!("{count} of {ports} ports") }
}

fn bisection(it: &Found) -> String {
    let (found, least) = (it.bisection_gbps, it.bisection_at_least_gbps);
    if found == least { format!("{found:.0}") } else { format!("{least:.0} to {found:.0}") }
}

fn degraded(least: Option<f64>) -> String {
    least.map_or("too large to solve".into(), |least| format!("{least:.3}"))
}

/// In groups of three digits.
fn dollars(amount: f64) -> String {
    let digits = format!("{amount:.0}");
    let grouped = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group).into_owned());
    grouped.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_grouped_by_thousands() {
        assert_eq!([0.0, 900.0, 52_000.0, 1_234_567.4].map(dollars), ["0", "900", "52,000", "1,234,567"]);
    }
}
