//! Moves units between regions on behalf of the owner, not of a request: operations that wait for
//! it count the time as collection.

use super::{RegionId, SdfError, SoftwareDefinedFlash, WriteBooked};
use crate::ssd::array::{Booked, FlashOperation, Purpose};
use crate::ssd::volume::Found;
use base::Time;

impl SoftwareDefinedFlash {
    /// Reads a unit that shall go elsewhere.
    pub fn read_to_move(&mut self, now: Time, id: RegionId, unit: u64) -> Result<Booked, SdfError> {
        let (bytes, without_flash) = (self.geometry().unit, self.without_flash);
        let (array, region) = self.parts(id)?;
        region.check_unit(unit)?;
        let Found::InFlash(at) = region.volume.find(unit) else {
            return Ok(Booked::without_flash(now, without_flash));
        };
        let operation = FlashOperation::Read { page: at.page, bytes, retries: 0 };
        Ok(array.submit(now, operation, Purpose::Collection))
    }
    /// Writes a unit that comes from elsewhere. Fails as [`write`](SoftwareDefinedFlash::write)
    /// does.
    pub fn write_moved(&mut self, now: Time, id: RegionId, unit: u64) -> Result<WriteBooked, SdfError> {
        let (array, region) = self.parts(id)?;
        let written = region.volume.layer.write(unit)?;
        let book = |page| array.submit(now, FlashOperation::Program { page }, Purpose::Collection);
        Ok(WriteBooked { at: written.at, program: written.program.map(book) })
    }
}
