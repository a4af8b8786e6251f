//! How much a drive can be written until its flash is worn.

use super::drive::SolidStateConfig;
use base::Bytes;

/// Erases that flash of a data-centre drive is rated for, where a drive names none. Ours: usual of
/// TLC and MLC.
const RATED_ERASES: u32 = 3_000;

/// Terabytes written (TBW) and drive writes a day (DWPD), as JESD218 counts them: host data until
/// the rated erases are used up.
///
/// `TBW = flash x erases / write amplification`, and `DWPD = TBW / (capacity x 365 x years)`.
/// Assumed are wear that is spread evenly over all blocks, the same load for all of that time, and
/// no limit but erases (no retention, no failing parts). The amplification is that of the run: of
/// another load it is another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Endurance {
    flash: Bytes,
    capacity: Bytes,
    erases: u32,
    amplification: f64,
}

impl Endurance {
    /// That of a drive under a load that amplifies writes so.
    pub fn of(config: &SolidStateConfig, amplification: f64) -> Endurance {
        let capacity = config.geometry.unit * config.logical_units();
        let rated = Endurance::rated(config.geometry.physical_bytes(), capacity, amplification);
        Endurance { erases: config.endurance.unwrap_or(RATED_ERASES), ..rated }
    }
    /// That of so much flash, of which a host sees `capacity`, with rated erases.
    pub fn rated(flash: Bytes, capacity: Bytes, amplification: f64) -> Endurance {
        Endurance { flash, capacity, erases: RATED_ERASES, amplification: amplification.max(1.0) }
    }
    /// Bytes that a host can write.
    pub fn bytes(&self) -> f64 {
        self.flash.count() as f64 * f64::from(self.erases) / self.amplification
    }
    /// Drive writes per day for this many years.
    pub fn drive_writes_per_day(&self, years: f64) -> f64 {
        self.bytes() / (self.capacity.count().max(1) as f64 * 365.0 * years)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endurance_is_flash_times_erases_over_amplification() {
        // 1.1 TB of flash for 1 TB, 3,000 erases, every write thrice: 1,100 TB, or 0.6 drive writes
        // a day.
        let endurance = Endurance::rated(Bytes::new(1_100_000_000_000), Bytes::new(1_000_000_000_000), 3.0);
        assert!((endurance.bytes() / 1.1e15 - 1.0).abs() < 1e-12);
        assert!((endurance.drive_writes_per_day(5.0) - 1_100.0 / 365.0 / 5.0).abs() < 1e-9);
        let worn = Endurance { erases: 1_500, ..endurance };
        assert!((worn.bytes() * 2.0 / endurance.bytes() - 1.0).abs() < 1e-12);
    }
}
