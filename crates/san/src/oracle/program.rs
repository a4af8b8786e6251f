//! The two optimisation problems as matrices for the solver: minimise `objective · x` where `limits
//! - rows x` lies in a product of cones.

use super::{Demand, Method, Optimum, OracleError, UNKNOWNS_MAX};
use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SecondOrderConeT, SolverStatus, SupportedConeT,
    ZeroConeT,
};
use std::collections::BTreeMap;
use topology::{Channel, Graph, VertexId};

/// Solves for one common share of all demands, to be maximised.
pub(super) fn concurrent(graph: &Graph, demands: &[Demand]) -> Result<Optimum, OracleError> {
    let network = Network::new(graph, demands)?;
    let mut program = Program::default();
    let flows = network.flows(&mut program);
    let factor = program.unknown(-1.0);
    network.conserve(&mut program, &flows, |_| factor);
    network.fit(&mut program, &flows);
    program.at_least_zero(flows.unknowns.iter().map(|flow| flow.unknown).chain([factor]));
    let solved = program.solve()?;
    let objective = solved.values[factor];
    Ok(network.optimum(objective, |_| objective, &flows, &solved))
}

/// Solves for a share of each demand; the mean of the inverse shares is minimised.
pub(super) fn degradation(graph: &Graph, demands: &[Demand]) -> Result<Optimum, OracleError> {
    let network = Network::new(graph, demands)?;
    let mut program = Program::default();
    let flows = network.flows(&mut program);
    let weight = 1.0 / demands.len() as f64;
    let shares: Vec<[usize; 2]> = demands.iter().map(|_| [program.unknown(0.0), program.unknown(weight)]).collect();
    network.conserve(&mut program, &flows, |demand| shares[demand][0]);
    network.fit(&mut program, &flows);
    program.at_least_zero(flows.unknowns.iter().map(|flow| flow.unknown));
    program.at_most_one(shares.iter().map(|[share, _]| *share));
    shares.iter().for_each(|[share, inverse]| program.inverse(*share, *inverse));
    let solved = program.solve()?;
    let share = |demand: usize| solved.values[shares[demand][0]];
    let objective = (0..demands.len()).map(|demand| 1.0 / share(demand)).sum::<f64>() * weight;
    Ok(network.optimum(objective, share, &flows, &solved))
}

/// A graph with demands grouped by one of their ends, the root. Rates are in `unit_bps`, so that
/// the solver's numbers are around one.
pub(super) struct Network<'a> {
    pub(super) graph: &'a Graph,
    pub(super) demands: &'a [Demand],
    /// Whether roots are targets, and flows are followed against their direction.
    is_reversed: bool,
    /// By root: the demands and their other ends.
    pub(super) commodities: BTreeMap<VertexId, Vec<(usize, VertexId)>>,
    unit_bps: f64,
}

/// One commodity on one channel.
struct Flow {
    unknown: usize,
    commodity: usize,
    channel: Channel,
    /// In the direction in which the commodity is followed.
    from: VertexId,
    to: VertexId,
}

struct Flows {
    unknowns: Vec<Flow>,
}

impl<'a> Network<'a> {
    /// Groups the demands of a network that is small enough for the solver.
    fn new(graph: &'a Graph, demands: &'a [Demand]) -> Result<Network<'a>, OracleError> {
        let network = Network::grouped(graph, demands)?;
        network.check_size()?;
        Ok(network)
    }

    /// Groups the demands of a network of any size.
    pub(super) fn grouped(graph: &'a Graph, demands: &'a [Demand]) -> Result<Network<'a>, OracleError> {
        let group = |ends: fn(&Demand) -> (VertexId, VertexId)| {
            let mut groups: BTreeMap<VertexId, Vec<(usize, VertexId)>> = BTreeMap::new();
            for (index, demand) in demands.iter().enumerate() {
                let (root, leaf) = ends(demand);
                groups.entry(root).or_default().push((index, leaf));
            }
            groups
        };
        let (forward, backward) = (group(|demand| (demand.from, demand.to)), group(|demand| (demand.to, demand.from)));
        let is_reversed = backward.len() < forward.len();
        let commodities = if is_reversed { backward } else { forward };
        let fastest = graph.links().iter().map(|link| link.rate.as_bps()).max().unwrap_or(1);
        let network = Network { graph, demands, is_reversed, commodities, unit_bps: fastest as f64 };
        network.check_ways()?;
        Ok(network)
    }

    fn check_ways(&self) -> Result<(), OracleError> {
        for (root, leaves) in &self.commodities {
            let distances = self.graph.distances_from(*root);
            if let Some((index, _)) = leaves.iter().find(|(_, leaf)| distances.to(*leaf).is_none()) {
                let [from, to] = [self.demands[*index].from, self.demands[*index].to]
                    .map(|vertex| self.graph.vertex(vertex).name.clone());
                return Err(OracleError::NoWay { index: *index, from, to });
            }
        }
        Ok(())
    }

    fn check_size(&self) -> Result<(), OracleError> {
        let (commodities, channels) = (self.commodities.len(), self.graph.channel_count());
        let unknowns = commodities.saturating_mul(channels).saturating_add(2 * self.demands.len());
        if unknowns > UNKNOWNS_MAX {
            return Err(OracleError::TooLarge { unknowns, commodities, channels });
        }
        Ok(())
    }

    /// Adds an unknown for every commodity on every channel that it may use. Such a channel leaves
    /// its root or a forwarding vertex. It enters a forwarding vertex or one of its leaves, and
    /// never the root.
    fn flows(&self, program: &mut Program) -> Flows {
        let mut unknowns = Vec::new();
        for (commodity, (root, leaves)) in self.commodities.iter().enumerate() {
            let mut is_leaf = vec![false; self.graph.vertices().len()];
            leaves.iter().for_each(|(_, leaf)| is_leaf[leaf.index()] = true);
            let forwards = |vertex: VertexId| self.graph.vertex(vertex).kind.forwards();
            for (channel, from, to) in self.channels() {
                let may_leave = from == *root || forwards(from);
                if may_leave && to != *root && (forwards(to) || is_leaf[to.index()]) {
                    unknowns.push(Flow { unknown: program.unknown(0.0), commodity, channel, from, to });
                }
            }
        }
        Flows { unknowns }
    }

    /// Returns every working channel with its ends, in the direction in which commodities are
    /// followed.
    pub(super) fn channels(&self) -> impl Iterator<Item = (Channel, VertexId, VertexId)> {
        let both = self.graph.working_links().flat_map(|link| [link.forward(), link.backward()]);
        both.map(|channel| {
            let ends = (self.graph.source(channel), self.graph.target(channel));
            if self.is_reversed { (channel, ends.1, ends.0) } else { (channel, ends.0, ends.1) }
        })
    }

    /// Constrains each vertex except the root to forward its inflow, minus the share that its
    /// demands keep, which is an unknown.
    fn conserve(&self, program: &mut Program, flows: &Flows, share: impl Fn(usize) -> usize) {
        let vertices = self.graph.vertices().len();
        let mut rows = vec![Vec::new(); self.commodities.len() * vertices];
        for flow in &flows.unknowns {
            rows[flow.commodity * vertices + flow.to.index()].push((flow.unknown, 1.0));
            rows[flow.commodity * vertices + flow.from.index()].push((flow.unknown, -1.0));
        }
        for (commodity, (root, leaves)) in self.commodities.iter().enumerate() {
            rows[commodity * vertices + root.index()].clear();
            for (demand, leaf) in leaves {
                let rate = self.demands[*demand].rate.as_bps() as f64 / self.unit_bps;
                rows[commodity * vertices + leaf.index()].push((share(*demand), -rate));
            }
        }
        let rows: Vec<_> = rows.into_iter().filter(|row| !row.is_empty()).map(|row| (row, 0.0)).collect();
        program.cone(&rows, ZeroConeT);
    }

    /// Limits the load of each channel to its rate.
    fn fit(&self, program: &mut Program, flows: &Flows) {
        let mut rows = vec![Vec::new(); self.graph.channel_count()];
        flows.unknowns.iter().for_each(|flow| rows[flow.channel.index()].push((flow.unknown, 1.0)));
        let limit = |index: usize| self.graph.links()[index / 2].rate.as_bps() as f64 / self.unit_bps;
        let rows = rows.into_iter().enumerate().map(|(index, row)| (row, limit(index)));
        let rows: Vec<_> = rows.filter(|(row, _)| !row.is_empty()).collect();
        program.cone(&rows, NonnegativeConeT);
    }

    fn optimum(&self, objective: f64, share: impl Fn(usize) -> f64, flows: &Flows, solved: &Solved) -> Optimum {
        let rate = |(index, demand): (usize, &Demand)| demand.rate.as_bps() as f64 * share(index);
        let mut loads_bps = vec![0.0; self.graph.channel_count()];
        for flow in &flows.unknowns {
            loads_bps[flow.channel.index()] += solved.values[flow.unknown].max(0.0) * self.unit_bps;
        }
        let rates_bps = self.demands.iter().enumerate().map(rate).collect();
        Optimum { objective, rates_bps, loads_bps, method: Method::Solved { iterations: solved.iterations } }
    }
}

/// A row: unknowns with their coefficients.
type Row = Vec<(usize, f64)>;

#[derive(Default)]
struct Program {
    objective: Vec<f64>,
    /// Row, column and value of each nonzero entry.
    entries: (Vec<usize>, Vec<usize>, Vec<f64>),
    limits: Vec<f64>,
    cones: Vec<SupportedConeT<f64>>,
}

struct Solved {
    values: Vec<f64>,
    iterations: u32,
}

impl Program {
    /// Adds an unknown with its cost.
    fn unknown(&mut self, price: f64) -> usize {
        self.objective.push(price);
        self.objective.len() - 1
    }

    /// Constrains `limit - row x` of all rows together to a cone.
    fn cone(&mut self, rows: &[(Row, f64)], cone: impl Fn(usize) -> SupportedConeT<f64>) {
        for (row, limit) in rows {
            for (unknown, factor) in row {
                self.entries.0.push(self.limits.len());
                self.entries.1.push(*unknown);
                self.entries.2.push(*factor);
            }
            self.limits.push(*limit);
        }
        self.cones.push(cone(rows.len()));
    }

    fn at_least_zero(&mut self, unknowns: impl Iterator<Item = usize>) {
        let rows: Vec<_> = unknowns.map(|unknown| (vec![(unknown, -1.0)], 0.0)).collect();
        self.cone(&rows, NonnegativeConeT);
    }

    fn at_most_one(&mut self, unknowns: impl Iterator<Item = usize>) {
        let rows: Vec<_> = unknowns.map(|unknown| (vec![(unknown, 1.0)], 1.0)).collect();
        self.cone(&rows, NonnegativeConeT);
    }

    /// Constrains `inverse >= 1 / share`, both positive.
    fn inverse(&mut self, share: usize, inverse: usize) {
        let sum = (vec![(inverse, -1.0), (share, -1.0)], 0.0);
        let difference = (vec![(inverse, -1.0), (share, 1.0)], 0.0);
        self.cone(&[sum, difference, (Vec::new(), 2.0)], SecondOrderConeT);
    }

    fn solve(self) -> Result<Solved, OracleError> {
        let unknowns = self.objective.len();
        let (rows, columns, values) = self.entries;
        let rows = CscMatrix::new_from_triplets(self.limits.len(), unknowns, rows, columns, values);
        let nothing = CscMatrix::zeros((unknowns, unknowns));
        let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
        let solver = DefaultSolver::new(&nothing, &self.objective, &rows, &self.limits, &self.cones, settings);
        let mut solver = solver.map_err(|error| OracleError::Unsolved { status: error.to_string() })?;
        solver.solve();
        let solution = &solver.solution;
        match solution.status {
            SolverStatus::Solved | SolverStatus::AlmostSolved => {
                Ok(Solved { values: solution.x.clone(), iterations: solution.iterations })
            }
            status => Err(OracleError::Unsolved { status: format!("{status:?}") }),
        }
    }
}
