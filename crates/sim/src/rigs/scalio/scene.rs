//! Scalio's scene.

use super::build;
use crate::drive::Played;
use crate::run::RunError;
use crate::scene::{Scene, Stage};
use plan::scalio::Scalio;
use workload::storage::Generator;

impl Scene for Scalio {
    fn play(&self, stage: Stage<'_>) -> Result<Played, RunError> {
        let (seed, limits) = (stage.seed(), stage.limits(self.run));
        let mut rig = build(self, seed, stage.options.wire_check, stage.options.keep_history)?;
        let mut source = Generator::new(&self.io, seed);
        let mut played = stage.play(&mut rig, &mut source, &limits)?;
        rig.judge(&mut played.meter);
        played.history = rig.take_history();
        Ok(played)
    }
}
