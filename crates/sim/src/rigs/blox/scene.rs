//! RackBlox's scene.

use super::BloxRig;
use crate::drive::Played;
use crate::run::RunError;
use crate::scene::{Scene, Stage};
use plan::blox::Blox;
use workload::Source;
use workload::block_trace::Replay;
use workload::storage::Generator;

impl Scene for Blox {
    fn play(&self, stage: Stage<'_>) -> Result<Played, RunError> {
        let (seed, limits) = (stage.seed(), stage.limits(self.run));
        let mut rig = BloxRig::new(self, seed, stage.options.wire_check)?.with_policies(&stage.options.policies.blox);
        let mut source: Box<dyn Source> = match &self.replay {
            Some(replay) => Box::new(Replay::new(replay.config.clone(), (*replay.trace).clone())),
            None => Box::new(Generator::new(&self.io, seed)),
        };
        let mut played = stage.play(&mut rig, source.as_mut(), &limits)?;
        rig.judge_history(&mut played.meter);
        Ok(played)
    }
}
