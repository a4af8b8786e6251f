//! The scene of memory messages: EDM, or one of its rivals.

use super::{edm, rivals};
use crate::drive::{Limits, Played, Rig};
use crate::run::RunError;
use crate::scene::{Scene, Stage};
use plan::{Design, Messages};
use workload::Generator;

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
        let limits = Limits { memory: plan.memory, planned_load, ..self.limits(plan.run) };
        self.play(rig, &mut source, &limits)
    }
}
