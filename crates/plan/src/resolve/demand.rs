//! The workload of a point: combinations of keys, sizes, and the rate of a load.

use super::Resolver;
use crate::cost;
use crate::error::Problem;
use crate::file::{ArrivalsName, ClassFile, DistributionFile, RunFile, SizeFile, WorkloadFile};
use crate::load::{MeanCost, asking_nodes, cost_for, load_at, mean_gap_ps};
use crate::plan::{Design, Fabric, PlannedLoad, TraceSource};
use crate::quantity::{Plain, Quantity};
use base::{Bytes, NodeId, Operation, Span};
use workload::{Arrivals, Class, Config, Pattern, SizeDistribution};

/// The size of a cache line, and of the paper's microbenchmarks (EDM, 4.3.1).
const SIZE: Bytes = Bytes::new(64);

/// The largest request: EDM's messages count bytes in 32 bits, and no application requests more at
/// once.
const SIZE_MAX: Bytes = Bytes::new(1 << 30);
/// The longest random gap, in mean gaps: the probability of a longer one is 2e-22.
pub(super) const LONGEST_GAP: f64 = 50.0;

/// The resolved workload of a point.
pub(super) struct Demand {
    pub config: Config,
    pub load: Option<PlannedLoad>,
    pub trace: Option<TraceSource>,
}

impl Resolver<'_> {
    pub(super) fn workload(
        &mut self,
        file: &WorkloadFile,
        run: &RunFile,
        fabric: &Fabric,
        design: Option<&Design>,
    ) -> Option<Demand> {
        if file.arrivals() == ArrivalsName::Trace {
            return self.trace(file, run, fabric);
        }
        let pattern = self.pattern(file, fabric.nodes);
        let mix = self.mix(file);
        let (pattern, mix, design) = (pattern?, mix?, design?);
        // What follows is about all of it together.
        if !self.sound(&["workload", "run", "fabric", "design"]) {
            return None;
        }
        let nodes = fabric.nodes;
        let open = match file.arrivals() {
            ArrivalsName::Closed => None,
            _ => Some(gap_and_load(file, &pattern, &mix, fabric, design)?),
        };
        let (gap, load) = open.unzip();
        let arrivals = file.arrivals_of(file.arrivals(), gap.unwrap_or_default(), Vec::new())?;
        let (requests, duration) = (run.requests, run.duration.map(Plain::plain));
        let local_fraction = file.local_fraction();
        let config = Config { nodes, pattern, mix, local_fraction, arrivals, requests, duration };
        self.horizon(&config);
        self.playable(&config);
        Some(Demand { config, load, trace: None })
    }

    fn trace(&mut self, file: &WorkloadFile, run: &RunFile, fabric: &Fabric) -> Option<Demand> {
        let name = file.file.as_ref()?;
        let inversions = file.inversions();
        let nodes = if self.sound(&["fabric"]) { fabric.nodes } else { u32::MAX };
        let trace = match self.sources.trace(self.files, name, nodes, inversions) {
            Ok(trace) => trace,
            Err(problem) => {
                self.report("workload.file", problem);
                return None;
            }
        };
        if file.digest.as_ref().is_some_and(|digest| *digest != trace.digest) {
            self.conflict("workload.digest", format!("`{name}` has the digest {}: it is another trace", trace.digest));
        }
        if let Some(message) = trace.messages.iter().find(|message| message.bytes > SIZE_MAX) {
            let (at, bytes) = (message.at, message.bytes);
            self.report("workload.file", Problem::out_of_range(format!("{bytes} at {at}"), format!("1B..={SIZE_MAX}")));
        }
        let config = Config {
            nodes: fabric.nodes,
            pattern: Pattern::AllToAll,
            mix: Vec::new(),
            local_fraction: 0.0,
            arrivals: Arrivals::Trace { messages: trace.messages },
            requests: run.requests,
            duration: run.duration.map(Plain::plain),
        };
        self.playable(&config);
        let (file, inverted) = (name.clone(), trace.inverted);
        Some(Demand {
            config,
            load: None,
            trace: Some(TraceSource { file, digest: trace.digest, inversions, inverted }),
        })
    }

    fn pattern(&mut self, file: &WorkloadFile, nodes: u32) -> Option<Pattern> {
        let others = nodes.saturating_sub(1);
        let whole = WorkloadFile { sources: file.sources.or(Some(others)), ..file.clone() };
        let pattern = whole.pattern_of(file.pattern())?;
        if self.sound(&["fabric"]) {
            match pattern {
                Pattern::AllToAll | Pattern::Permutation => {}
                Pattern::RoleSplit { compute } => {
                    self.range("workload.compute", u64::from(compute), 1..=u64::from(others));
                }
                Pattern::Incast { target: NodeId(target), sources } => {
                    self.range("workload.target", u64::from(target), 0..=u64::from(others));
                    self.range("workload.sources", u64::from(sources), 1..=u64::from(others));
                }
            }
        }
        Some(pattern)
    }

    fn mix(&mut self, file: &WorkloadFile) -> Option<Vec<Class>> {
        let Some(classes) = &file.mix else { return self.reads_and_writes(file) };
        let read: Vec<_> = classes.iter().enumerate().map(|(index, class)| self.class(index, class)).collect();
        if classes.iter().all(|class| class.weight == Some(0.0)) {
            self.conflict("workload.mix", "all weights are 0, at least one must be more");
        }
        read.into_iter().collect()
    }

    fn class(&mut self, index: usize, file: &ClassFile) -> Option<Class> {
        let key = format!("workload.mix.{index}.size");
        let size = self.size(&key, file.size.as_ref()?);
        Some(Class { operation: file.operation?.plain(), weight: file.weight(), size: size? })
    }

    fn reads_and_writes(&mut self, file: &WorkloadFile) -> Option<Vec<Class>> {
        let size = match &file.size {
            Some(size) => self.size("workload.size", size)?,
            None => SizeDistribution::Constant { bytes: SIZE },
        };
        let reads = file.read_fraction();
        let shares = [(Operation::Read, reads), (Operation::Write, 1.0 - reads)];
        let classes = shares.into_iter().filter(|(_, weight)| *weight > 0.0);
        Some(classes.map(|(operation, weight)| Class { operation, weight, size: size.clone() }).collect())
    }

    fn size(&mut self, key: &str, file: &SizeFile) -> Option<SizeDistribution> {
        let size = match file {
            SizeFile::Constant(Quantity(bytes)) => SizeDistribution::Constant { bytes: *bytes },
            SizeFile::Distribution(file) => self.distribution(key, file)?,
        };
        let problems = size.problems("size");
        let is_sound = problems.is_empty();
        problems.into_iter().for_each(|problem| self.conflict(key, problem.to_string()));
        if is_sound && size.max_bytes() > SIZE_MAX {
            self.report(key, Problem::out_of_range(size.max_bytes(), format!("1B..={SIZE_MAX}")));
        }
        Some(size)
    }

    fn distribution(&mut self, key: &str, file: &DistributionFile) -> Option<SizeDistribution> {
        let given = [file.profile.is_some(), file.cdf.is_some(), file.table.is_some(), file.points.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            self.conflict(key, "exactly one of `profile`, `cdf`, `table` and `points` says how large requests are");
            return None;
        }
        if let Some(name) = &file.profile {
            return self.profile(key, name);
        }
        if let Some(name) = &file.cdf {
            return self.cdf(key, name, file.unit());
        }
        if let Some(table) = &file.table {
            let entries = table.iter().map(|(Quantity(bytes), weight)| (*bytes, *weight)).collect();
            return Some(SizeDistribution::Table { entries });
        }
        let name = file.name.clone().unwrap_or_else(|| "points".into());
        Some(SizeDistribution::Cdf { name, points: file.points.clone()? })
    }

    fn profile(&mut self, key: &str, name: &str) -> Option<SizeDistribution> {
        let shipped = workload::profile(name);
        if shipped.is_none() {
            let allowed = workload::PROFILES.iter().map(|profile| profile.name.to_string()).collect();
            self.report(&format!("{key}.profile"), Problem::not_allowed(name, allowed));
        }
        shipped
    }

    fn cdf(&mut self, key: &str, name: &str, unit: Bytes) -> Option<SizeDistribution> {
        let read = self.sources.distribution(self.files, name, unit);
        read.map_err(|problem| self.report(&format!("{key}.cdf"), problem)).ok()
    }

    /// Refuses a run that would leave the range of virtual time.
    fn horizon(&mut self, config: &Config) {
        let (gap, longest) = match &config.arrivals {
            Arrivals::Closed { depth, think } => (think.as_ps() as f64 / f64::from(*depth), think.as_ps() as f64),
            Arrivals::Poisson { mean_gap_ps: gap } | Arrivals::Deterministic { gap_ps: gap } => {
                (*gap, gap * LONGEST_GAP)
            }
            Arrivals::OnOff { mean_gap_ps, on, off } => {
                let mean = mean_gap_ps * (1.0 + off.ratio(*on));
                (mean, mean.max(off.as_ps() as f64) * LONGEST_GAP)
            }
            Arrivals::Trace { .. } => return,
        };
        let until_last = match (config.requests, config.duration) {
            (Some(requests), None) => gap * requests as f64 / f64::from(asking_nodes(&config.pattern, config.nodes)),
            _ => 0.0,
        };
        let most = super::HORIZON;
        if until_last.max(longest) > most.as_ps() as f64 {
            let days = until_last.max(longest) / Span::secs(86_400).as_ps() as f64;
            let reason = format!("requests come so slowly that the run could last {days:.0} days; at most {most} fit");
            self.conflict("workload", reason);
        }
    }

    /// What only the generator knows to be impossible, such as an on period too short for a
    /// request.
    fn playable(&mut self, config: &Config) {
        if self.sound(&["workload", "run", "fabric"]) {
            self.impossible("workload", config.problems());
        }
    }
}

/// The mean gap between the requests of an open-loop source, in picoseconds, and the load that it
/// makes.
fn gap_and_load(
    file: &WorkloadFile,
    pattern: &Pattern,
    mix: &[Class],
    fabric: &Fabric,
    design: &Design,
) -> Option<(f64, PlannedLoad)> {
    let (fraction, basis) = (file.load?, file.load_basis());
    let on_the_wire = |operation: Operation, bytes: Bytes| cost::wire_cost(design, operation, bytes);
    let counted = MeanCost::of(mix, cost_for(basis, &on_the_wire)).busiest(pattern, fabric.nodes);
    let carried = MeanCost::of(mix, &on_the_wire).busiest(pattern, fabric.nodes);
    let gap = mean_gap_ps(counted, fraction, fabric.rate);
    let load = PlannedLoad { fraction, basis, busiest_link: load_at(carried, gap, fabric.rate) };
    // A load is the mean over on and off periods: gaps while on are shorter.
    let share_on = match file.arrivals() {
        ArrivalsName::OnOff => file.on?.0.ratio(file.on?.0 + file.off?.0),
        _ => 1.0,
    };
    Some((gap * share_on, load))
}
