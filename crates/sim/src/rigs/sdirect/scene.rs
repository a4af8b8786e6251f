//! S-Direct's scene.

use super::SDirectRig;
use crate::drive::Played;
use crate::run::RunError;
use crate::scene::{Scene, Stage};
use plan::sdirect::SDirect;
use workload::storage::Generator;

impl Scene for SDirect {
    fn play(&self, stage: Stage<'_>) -> Result<Played, RunError> {
        let (seed, limits) = (stage.seed(), stage.limits(self.run));
        let mut rig = SDirectRig::new(self, seed, stage.options.wire_check)?;
        let mut source = Generator::new(&self.io, seed);
        stage.play(&mut rig, &mut source, &limits)
    }
}
