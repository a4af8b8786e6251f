//! Pages that go from one drive to another (RackBlox, 3.6). Contents are kept by unit: a page that
//! was not moved, or is looked for in the wrong place, reads as something else.

use super::{Drives, Written};
use crate::rigs::blox::BuildError;
use base::Time;
use blox::{Page, Seat, Value, VssdId};
use hardware::ssd::Booked;

impl Drives {
    /// Reads a page that shall go elsewhere.
    pub fn read_to_move(&mut self, now: Time, seat: Seat) -> Result<(Value, Booked), BuildError> {
        let overhead = self.config.overhead[0];
        let value = self.volume(seat.region).contents.get(Page(seat.unit));
        let (flash, region) = self.flash(seat.region);
        let booked = flash.read_to_move(now, region, seat.unit).map_err(BuildError::of)?;
        Ok((value, Booked { end: booked.end + overhead, service: booked.service + overhead, ..booked }))
    }

    /// Writes a page that comes from elsewhere.
    pub fn write_moved(&mut self, now: Time, seat: Seat, value: Value) -> Written {
        let overhead = self.config.overhead[1];
        let (flash, region) = self.flash(seat.region);
        let booked = match flash.write_moved(now, region, seat.unit) {
            Ok(booked) => booked,
            Err(error) if error.is_no_free_block() => return Written::Refused,
            Err(_) => return Written::WornOut,
        };
        self.volume(seat.region).contents.set(Page(seat.unit), value);
        Written::At(booked.program.map_or(now, |program| program.end) + overhead)
    }

    /// Gives up what lies there.
    pub fn trim(&mut self, seat: Seat) {
        let (flash, region) = self.flash(seat.region);
        // A unit beyond the region holds nothing to be given up.
        if flash.trim(region, seat.unit).unwrap_or(false) {
            self.volume(seat.region).contents.set(Page(seat.unit), Value(0));
        }
    }

    /// Two vSSDs have changed places: each region is the other's from now on, and both servers are
    /// told of its blocks anew.
    pub fn exchange(&mut self, one: VssdId, other: VssdId) {
        self.places.swap(one.index(), other.index());
        [one, other].into_iter().for_each(|vssd| self.volume(vssd).reported = (0, 0));
    }
}
