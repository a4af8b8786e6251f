//! What a plan's scene does in a run: it builds its rig, plays it and judges the result.

use crate::drive::{Limits, Observer, Played, Rig, WarmUp, play};
use crate::run::{RunError, RunOptions};
use base::{Seed, Span};
use hardware::DramConfig;
use plan::Plan;
use record::metric;
use record::{RunIdentity, Sink};
use workload::Source;

/// A scene of plans. Each is implemented in the folder of its rig.
pub(crate) trait Scene {
    /// Builds the rig, plays it and adds the verdicts of its judges to the metrics.
    fn play(&self, stage: Stage<'_>) -> Result<Played, RunError>;
}

/// The inputs that every scene is played with.
pub(crate) struct Stage<'a> {
    /// The plan of the run.
    pub(crate) plan: &'a Plan,
    /// Options beside the plan.
    pub(crate) options: &'a RunOptions,
    /// Where rows go.
    pub(crate) sink: &'a mut dyn Sink,
    /// Sees the progress and can stop the run.
    pub(crate) observer: &'a mut dyn Observer,
    /// The warm-up that a first run has found.
    pub(crate) warm_up_found: Option<Span>,
}

impl Stage<'_> {
    /// The seed of the run.
    pub(crate) fn seed(&self) -> Seed {
        Seed(self.plan.seed)
    }

    /// Limits without a memory of the nodes and without a planned load.
    pub(crate) fn limits(&self, run: plan::Run) -> Limits {
        Limits {
            warm_up: warm_up(run),
            drain: run.drain_limit,
            memory: DramConfig { latency: Span::ZERO, bandwidth: None },
            planned_load: None,
            first_fault: self.plan.first_fault(),
            spans: self.options.spans,
            series: self.plan.series,
        }
    }

    /// The identity of the run, for its summary.
    pub(crate) fn identity(&self) -> RunIdentity {
        RunIdentity {
            version: self.options.version.clone(),
            plan_hash: self.plan.hash(),
            design: self.plan.design().word(),
            seed: self.plan.seed,
            labels: self.options.labels.clone(),
        }
    }

    /// Plays `source` on `rig`.
    pub(crate) fn play(self, rig: &mut impl Rig, source: &mut dyn Source, limits: &Limits) -> Result<Played, RunError> {
        let identity = self.identity();
        let Stage { sink, observer, warm_up_found, .. } = self;
        let mut played = play(rig, source, sink, identity, limits, observer)?;
        if let Some(span) = warm_up_found {
            played.meter.put(metric::warm_up_us, span.as_ns_f64() / 1e3);
        }
        Ok(played)
    }
}

fn warm_up(run: plan::Run) -> WarmUp {
    match run.warm_up {
        plan::WarmUp::Time(span) => WarmUp::Time(span),
        plan::WarmUp::Requests(count) => WarmUp::Requests(count),
        // A first run without a warm-up finds it.
        plan::WarmUp::Auto => WarmUp::Time(Span::ZERO),
    }
}
