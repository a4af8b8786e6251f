//! Resolves the document of one point to a plan: defaults, ranges that depend on other values, and
//! combinations.

mod background;
mod demand;
mod design;

pub(crate) use design::{BUFFER_MAX, MTU_MAX};

use crate::check::{Completeness, check};
use crate::document::Node;
use crate::error::{PlanError, Problem, Problems};
use crate::file::{ArrivalsName, ExperimentFile, FabricFile, FaultFile, FaultName, RunFile};
use crate::plan::{Design, Fabric, Fault, Messages, Plan, Run, RunLimits, Scene, WarmUp};
use crate::quantity::NodeNumber;
use crate::scene::SceneName;
use crate::soundness::Soundness;
use crate::sources::{Files, Sources};
use crate::warnings::{nothing_expected, warnings};
use base::{Rate, Span, Time};

/// Represents an unknown rack, where no check uses it.
const ANY_FABRIC: Fabric = Fabric { nodes: 2, rate: Rate::gbps(100), propagation: Span::ZERO, transceiver: Span::ZERO };
/// Below a megabit a second one frame takes longer than the drain limit; above 100 terabits a byte
/// takes less than a picosecond.
const RATES: std::ops::RangeInclusive<Rate> = Rate::bps(1_000_000)..=Rate::bps(100_000_000_000_000);
/// Everything that happens in a run happens before this: a fraction of the 213 days that a `Time`
/// holds.
pub(crate) const HORIZON: Span = Span::secs(30 * 86_400);

/// Turns the document of one point into a plan. Reports errors of the schema, and all others that
/// do not follow from them. `problems` and `soundness` have the known errors.
pub(crate) fn resolve(
    mut problems: Problems,
    mut soundness: Soundness,
    mut document: Node,
    schema: &serde_json::Value,
    files: &dyn Files,
    sources: &mut Sources,
) -> Result<Plan, Vec<PlanError>> {
    check(schema, &document, Completeness::Whole, &mut problems);
    problems.retain(|error| !soundness.is_known(error));
    soundness.take_out(&mut document, problems.errors());
    let file: ExperimentFile = match serde_json::from_value(document.to_json()) {
        Ok(file) => file,
        Err(error) => {
            if problems.is_empty() {
                problems.add(document.place, "", Problem::Conflict(error.to_string()));
            }
            return Err(problems.into_errors());
        }
    };
    let mut resolver = Resolver { document: &document, files, sources, problems, soundness, schema };
    let plan = resolver.plan(&file);
    match plan {
        Some(plan) if resolver.problems.is_empty() => Ok(plan),
        _ => Err(resolver.problems.into_errors()),
    }
}

/// Reads the parts of one point. Methods return `None`, or some substitute, after they have
/// reported a problem. Users of another table's values check first that it is sound.
pub(crate) struct Resolver<'a> {
    pub(crate) document: &'a Node,
    pub(crate) files: &'a dyn Files,
    pub(crate) sources: &'a mut Sources,
    pub(crate) problems: Problems,
    pub(crate) soundness: Soundness,
    pub(crate) schema: &'a serde_json::Value,
}

impl Resolver<'_> {
    /// Reports nothing of a table in which the schema has refused a key: it may follow from that.
    pub(crate) fn report(&mut self, key: &str, problem: Problem) {
        if self.soundness.is_broken(key) {
            return;
        }
        self.soundness.mark(key);
        self.problems.add(self.document.place_of(key), key, problem);
    }

    /// Whether all of `tables` are without errors, so that checks of others may use their values.
    pub(crate) fn sound(&self, tables: &[&str]) -> bool {
        self.soundness.holds(tables)
    }

    pub(crate) fn conflict(&mut self, key: &str, reason: impl Into<String>) {
        self.report(key, Problem::Conflict(reason.into()));
    }

    pub(crate) fn range(&mut self, key: &str, got: u64, allowed: std::ops::RangeInclusive<u64>) {
        if !allowed.contains(&got) {
            self.report(key, Problem::out_of_range(got, format!("{}..={}", allowed.start(), allowed.end())));
        }
    }

    /// Reports what `workload` finds impossible with a load. The missing end of a run is reported
    /// with `run`.
    pub(crate) fn impossible(&mut self, key: &str, problems: Vec<workload::Problem>) {
        for problem in problems.into_iter().filter(|problem| !matches!(problem, workload::Problem::NoEnd)) {
            self.conflict(key, problem.to_string());
        }
    }

    fn plan(&mut self, file: &ExperimentFile) -> Option<Plan> {
        let design = file.design.as_ref()?.name?;
        self.refuse_what_means_nothing(design);
        self.refuse_idle_keys(design, &[]);
        let seeds = self.seeds(file);
        let (scene, warnings) = match design.scene() {
            SceneName::Messages => {
                let messages = self.messages(file)?;
                if let Some(reason) = nothing_expected(&messages) {
                    self.nothing_measured(reason);
                }
                let warnings = warnings(&messages);
                (Scene::Messages(Box::new(messages)), warnings)
            }
            SceneName::Volumes => {
                let blox = self.blox(file, design)?;
                let warnings = blox.warnings();
                (Scene::Blox(Box::new(blox)), warnings)
            }
            SceneName::Wear => {
                let wear = self.wear(file)?;
                let warnings = wear.warnings();
                (Scene::Wear(Box::new(wear)), warnings)
            }
            SceneName::San => {
                let san = self.san(file, design)?;
                let warnings = san.warnings();
                (Scene::San(Box::new(san)), warnings)
            }
            SceneName::Devices => {
                let sdirect = self.sdirect(file, design)?;
                let warnings = sdirect.warnings();
                (Scene::SDirect(Box::new(sdirect)), warnings)
            }
            SceneName::KeyValue => {
                let scalio = self.scalio(file, design)?;
                let warnings = scalio.warnings();
                (Scene::Scalio(Box::new(scalio)), warnings)
            }
        };
        let files = file.files.clone().filter(|_| !self.sources.is_empty());
        let (title, seed, series) = (file.title.clone()?, *seeds.first()?, self.series(file));
        let mut plan = Plan { title, seed, seeds, files, scene, series, warnings };
        let warning = self.check_series(&plan);
        plan.warnings.extend(warning);
        Some(plan)
    }

    fn nothing_measured(&mut self, reason: String) {
        let key = ["run.warm_up", "run.warm_up_requests"].into_iter().find(|key| self.document.at(key).is_some());
        self.conflict(key.unwrap_or("run"), format!("{reason}: nothing is measured"));
    }

    /// The seeds of a file, at least one.
    fn seeds(&mut self, file: &ExperimentFile) -> Vec<u64> {
        let Some(seeds) = file.seeds.clone() else { return vec![file.seed()] };
        let is_twice = |(place, seed): &(usize, &u64)| seeds[..*place].contains(seed);
        if let Some((_, seed)) = seeds.iter().enumerate().find(is_twice) {
            self.conflict("seeds", format!("{seed} is listed twice"));
        }
        seeds
    }

    /// Reads all parts even if one is wrong, so that every error is reported at once.
    fn messages(&mut self, file: &ExperimentFile) -> Option<Messages> {
        let fabric = file.fabric.as_ref().and_then(FabricFile::rack).unwrap_or(ANY_FABRIC);
        let memory = file.memory.clone().unwrap_or_default().resolve();
        let design = self.design_on(file.design.as_ref()?, &fabric);
        let background = file.background.as_ref().map(|file| self.background(file, &fabric));
        let run_file = file.run.clone().unwrap_or_default();
        let workload = file.workload.as_ref();
        let demand = workload.and_then(|file| self.workload(file, &run_file, &fabric, design.as_ref()));
        let is_trace = workload.is_none_or(|file| file.arrivals == Some(ArrivalsName::Trace));
        let run = self.run(&run_file, is_trace || self.soundness.is_broken("workload"));
        let faults = self.faults(file.fault.as_deref().unwrap_or_default(), &fabric, design.as_ref());
        if !self.problems.is_empty() {
            return None;
        }
        let (demand, design) = (demand?, design?);
        let (workload, load, trace) = (demand.config, demand.load, demand.trace);
        Some(Messages { fabric, design, memory, workload, load, trace, background, run, faults })
    }

    pub(crate) fn rate(&mut self, key: &str, rate: Rate) {
        if !RATES.contains(&rate) {
            self.report(key, Problem::out_of_range(rate, format!("{}..={}", RATES.start(), RATES.end())));
        }
    }

    pub(crate) fn at_most(&mut self, key: &str, span: Span, most: Span) {
        if span > most {
            self.report(key, Problem::out_of_range(span, format!("up to {most}")));
        }
    }

    pub(crate) fn run(&mut self, file: &RunFile, is_trace: bool) -> Run {
        if file.requests.is_none() && file.duration.is_none() && !is_trace {
            let why = "a run ends after `requests` or after `duration`, one of them must be given";
            self.report("run", Problem::missing("run.requests", why));
        }
        let RunLimits { requests, duration, run } = file.resolve();
        match (run.warm_up, requests, duration) {
            (WarmUp::Requests(count), Some(requests), _) if count >= requests => {
                self.nothing_measured(format!("the warm-up of {count} requests is as long as the run of {requests}"));
            }
            (WarmUp::Time(span), _, Some(duration)) if span >= duration => {
                self.nothing_measured(format!("the warm-up of {span} is as long as the run of {duration}"));
            }
            _ => {}
        }
        run
    }

    fn faults(&mut self, files: &[FaultFile], fabric: &Fabric, design: Option<&Design>) -> Vec<Fault> {
        if !files.is_empty() && matches!(design, Some(Design::Packet(_))) {
            self.conflict("fault", "faults are modelled for design edm only");
        }
        let redundant = matches!(design, Some(Design::Edm(edm)) if edm.redundant);
        self.rack_faults(files, ("fabric", fabric.nodes), |resolver, key, file| {
            if file.switch() > 0 && !redundant && resolver.sound(&["design"]) {
                let reason = "there is a switch 1 only with design.edm.redundant = true";
                resolver.conflict(&format!("{key}.switch"), reason);
            }
            match file.kind? {
                FaultName::LinkUp | FaultName::SwitchUp | FaultName::NodeUp => {
                    Some("nothing comes back in a rack of messages")
                }
                _ => None,
            }
        })
    }

    /// The faults of a rack whose `table` says how many nodes it has, in order of time. `check`
    /// returns why a fault cannot be.
    pub(crate) fn rack_faults(
        &mut self,
        files: &[FaultFile],
        (table, nodes): (&str, u32),
        check: impl Fn(&mut Self, &str, &FaultFile) -> Option<&'static str>,
    ) -> Vec<Fault> {
        let mut faults: Vec<Fault> = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let key = format!("fault.{index}");
            if let Some(NodeNumber(node)) = file.node.filter(|_| self.sound(&[table])) {
                self.range(&format!("{key}.node"), u64::from(node), 0..=u64::from(nodes.saturating_sub(1)));
            }
            let refusal = check(self, &key, file);
            faults.extend(self.rack_fault(&key, file, refusal));
        }
        faults.sort_by_key(|fault| fault.at);
        faults
    }

    fn rack_fault(&mut self, key: &str, file: &FaultFile, refusal: Option<&str>) -> Option<Fault> {
        let name = file.kind?;
        // A missing node was reported.
        let kind = FaultFile { node: file.node.or(Some(NodeNumber(0))), ..file.clone() }.rack_kind(name);
        let only_in_san = || format!("{} is valid only with the designs san and san-plain", name.word());
        let reason = refusal.map(str::to_owned).or_else(|| kind.is_none().then(only_in_san));
        if let Some(reason) = reason {
            self.conflict(&format!("{key}.kind"), reason);
            return None;
        }
        let at = file.at?.0;
        self.at_most(&format!("{key}.at"), at.saturating_since(Time::ZERO), HORIZON);
        Some(Fault { at, kind: kind? })
    }
}
