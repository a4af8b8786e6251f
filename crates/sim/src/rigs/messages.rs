//! The scene of memory messages: EDM, or one of its rivals.

use super::{edm, rivals};
use crate::drive::{Limits, Played, Rig};
use crate::run::RunError;
use crate::scene::{Scene, Stage};
use base::Operation;
use plan::{Design, Messages};
use record::metric;
use workload::{Class, Config, Generator, Pattern};

impl Scene for Messages {
    fn play(&self, stage: Stage<'_>) -> Result<Played, RunError> {
        match &self.design {
            Design::Edm(design) => edm::play(self, design, stage),
            Design::Packet(rival) => rivals::play(self, rival, stage),
        }
    }
}

impl Stage<'_> {
    /// Plays the load of `plan` on `rig`.
    pub(super) fn play_messages(self, plan: &Messages, rig: &mut impl Rig) -> Result<Played, RunError> {
        let mut source = Generator::new(&plan.workload, self.seed());
        let planned_load = plan.load.map(|load| load.busiest_link);
        let limits = Limits { memory: plan.memory.dram, planned_load, ..self.limits(plan.run) };
        let mut played = self.play(rig, &mut source, &limits)?;
        measure_uplinks(&plan.workload, rig, &mut played);
        Ok(played)
    }
}

/// Relates the writes of a run to the time for which the uplinks of those who ask were sending.
fn measure_uplinks(workload: &Config, rig: &impl Rig, played: &mut Played) {
    let Pattern::RoleSplit { compute } = workload.pattern else { return };
    let mut busy = Vec::new();
    rig.link_busy(&mut busy);
    // Uplinks come first, and the nodes that ask are the first ones.
    let sending_us = busy.iter().take(compute as usize).map(|span| span.as_ns_f64()).sum::<f64>() / 1e3;
    let writes = workload.mix.iter().filter(|class| class.operation == Operation::Write);
    let weight = |classes: &mut dyn Iterator<Item = &Class>| classes.map(|class| class.weight).sum::<f64>();
    let share = weight(&mut writes.into_iter()) / weight(&mut workload.mix.iter()) * (1.0 - workload.local_fraction);
    if sending_us > 0.0 {
        played.meter.put(metric::uplink_write_rate, played.offered() as f64 * share / sending_us);
    }
}
