//! What drives hold before a run: written untimed, or taken from a snapshot.

use super::Drives;
use crate::rigs::blox::BuildError;
use blox::VssdId;
use hardware::ssd::{KeptFree, SoftwareDefinedFlash, Steady};

impl Drives {
    /// Writes a vSSD's data once, in order.
    pub fn fill(&mut self, vssd: VssdId, pages: u64) -> Result<(), BuildError> {
        self.prepare(vssd, pages, 1.0, || 0).map_err(BuildError::of)
    }

    /// Fills a vSSD and overwrites pages as `next` says, collecting as its server does, until write
    /// amplification is steady. Returns that of each window; nothing where the medium is written in
    /// place.
    pub fn fragment(
        &mut self,
        vssd: VssdId,
        pages: u64,
        kept: KeptFree,
        steady: Steady,
        next: impl FnMut() -> u64,
    ) -> Result<Vec<f64>, BuildError> {
        self.fill(vssd, pages)?;
        if self.config.direct.is_some() {
            return Ok(Vec::new());
        }
        let (flash, region) = self.flash(vssd);
        flash.fragment(region, pages, kept, steady, next).map_err(BuildError::of)
    }

    /// The drive of a vSSD, and its channels there.
    pub fn channels(&self, vssd: VssdId) -> (usize, Vec<u32>) {
        let volume = &self.volumes[self.place(vssd)];
        let flash = &self.drives[volume.drive];
        let dies = flash.dies(volume.region).unwrap_or(&[]);
        (volume.drive, dies.iter().map(|die| flash.geometry().channel_of(*die)).collect())
    }

    /// The vSSDs of a drive, in order.
    pub fn of_drive(&self, drive: usize) -> Vec<VssdId> {
        self.vssds().filter(|vssd| self.volumes[self.place(*vssd)].drive == drive).collect()
    }

    /// The flash of a drive.
    pub fn flash_of(&self, drive: usize) -> &SoftwareDefinedFlash {
        &self.drives[drive]
    }

    /// Saves where a vSSD's data lie.
    pub fn save(&self, vssd: VssdId) -> Result<Vec<u8>, BuildError> {
        let (flash, region) = self.region(vssd);
        let mut state = Vec::new();
        flash.save(region, &mut state).map_err(BuildError::of)?;
        Ok(state)
    }

    /// Takes up what was saved of a vSSD of the same shape.
    pub fn restore(&mut self, vssd: VssdId, state: &[u8]) -> Result<(), BuildError> {
        let (flash, region) = self.flash(vssd);
        flash.restore(region, state).map_err(|error| BuildError(format!("vSSD {}: {error}", vssd.0)))
    }
}
