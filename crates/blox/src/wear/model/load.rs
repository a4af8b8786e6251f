//! How fast the contents of drives wear what they lie on.

use super::{Assignment, WearConfig};
use base::{Seed, Stream};

/// The vSSDs that lie on one drive.
#[derive(Clone, Debug)]
pub(super) struct Load {
    vssds: Vec<VssdLoad>,
}

#[derive(Clone, Debug)]
struct VssdLoad {
    /// Erases of a block a day before drift.
    erases_per_day: f64,
    /// Goes on from here to there.
    drift: [f64; 2],
    draws: Stream,
}

/// How a day lies between two turns of the drift.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    is_turn: bool,
    /// Share of the way that is behind at the end of the day, less half a day.
    behind: f64,
}

/// The contents of all drives, server by server.
pub(super) fn contents(config: &WearConfig) -> Vec<Load> {
    let (servers, ssds) = (u64::from(config.servers), u64::from(config.ssds));
    let places = (0..servers).flat_map(|server| (0..ssds).map(move |ssd| (server, ssd)));
    let content = |(server, ssd)| {
        // The vSSDs that come to this drive, when they are handed out to servers in turn and there
        // to drives in turn.
        let vssds = (0..u64::from(config.vssds)).map(|round| (round * ssds + ssd) * servers + server);
        Load { vssds: vssds.map(|vssd| VssdLoad::new(config, vssd)).collect() }
    };
    places.map(content).collect()
}

impl Load {
    /// A new day begins.
    pub(super) fn on_day(&mut self, config: &WearConfig, step: Step) {
        if step.is_turn {
            self.vssds.iter_mut().for_each(|vssd| vssd.turn(config.drift));
        }
    }
    /// Erases of a block in a day.
    pub(super) fn erases(&self, step: Step) -> f64 {
        self.vssds.iter().map(|vssd| vssd.erases(step)).sum()
    }
}

impl Step {
    pub(super) fn of(config: &WearConfig, day: u32) -> Step {
        let since = (day - 1) % config.drift_days;
        Step { is_turn: since == 0, behind: (f64::from(since) + 0.5) / f64::from(config.drift_days) }
    }
}

impl VssdLoad {
    fn new(config: &WearConfig, vssd: u64) -> VssdLoad {
        let workloads = config.workloads.len() as u64;
        let mut draws = stream(config.seed, vssd, "load");
        // Drawn in any case, so that the spread does not depend on the assignment.
        let drawn = draws.below(workloads);
        let workload = match config.assignment {
            Assignment::InTurn => vssd % workloads,
            Assignment::Drawn => drawn,
        };
        let erases_per_day = config.erases_per_day(&config.workloads[workload as usize]);
        let erases_per_day = erases_per_day * around_one(&mut draws, config.rate_spread);
        let mut draws = stream(config.seed, vssd, "drift");
        VssdLoad { erases_per_day, drift: [1.0, around_one(&mut draws, config.drift)], draws }
    }
    fn turn(&mut self, drift: f64) {
        self.drift = [self.drift[1], around_one(&mut self.draws, drift)];
    }
    fn erases(&self, step: Step) -> f64 {
        let [from, to] = self.drift;
        self.erases_per_day * (from + (to - from) * step.behind)
    }
}

fn stream(seed: Seed, vssd: u64, purpose: &str) -> Stream {
    seed.stream(&format!("wear/vssd/{vssd}/{purpose}"))
}

/// A number between 1 minus `spread` and 1 plus `spread`.
fn around_one(draws: &mut Stream, spread: f64) -> f64 {
    1.0 + spread * (2.0 * draws.unit() - 1.0)
}
