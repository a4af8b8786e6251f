//! The scene of storage networks.

use super::facts::price;
use super::source::SanSource;
use super::{SanRig, SanRigConfig};
use crate::drive::Played;
use crate::run::RunError;
use crate::scene::{Scene, Stage};
use plan::san::San;

impl Scene for San {
    fn play(&self, stage: Stage<'_>) -> Result<Played, RunError> {
        let (seed, limits) = (stage.seed(), stage.limits(self.run));
        let mut rig = SanRig::new(SanRigConfig::of(self, seed, stage.options.wire_check)?)?;
        let mut source = SanSource::new(&self.io.load, seed);
        let mut played = stage.play(&mut rig, source.as_mut(), &limits)?;
        source.measure(&mut played.meter);
        rig.judge_write_order(&mut played.meter);
        rig.judge_pauses(&mut played.meter);
        price(self, &mut played.meter);
        Ok(played)
    }
}
