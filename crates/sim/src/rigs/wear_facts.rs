//! What any scene with whole drives tells of their flash: amplification, erases, collection,
//! endurance.

use base::{Bytes, Span};
use hardware::ssd::{DriveReport, Endurance, SolidState};
use record::metric::{self, Meter};

/// Years of a warranty, over which drive writes a day are counted.
const YEARS: f64 = 5.0;
const TERABYTE: f64 = 1e12;

/// Reads the metrics of these drives, of what they report since the warm-up has ended.
pub fn facts_of_drives<'a>(drives: impl Iterator<Item = &'a SolidState>, meter: &mut Meter) {
    let reports: Vec<_> = drives.map(|drive| (drive, drive.report())).collect();
    let Some((first, _)) = reports.first() else { return };
    let amplifications: Vec<f64> = reports.iter().filter_map(|(_, report)| report.write_amplification).collect();
    let amplification = match amplifications.len() {
        0 => 1.0,
        count => amplifications.iter().sum::<f64>() / count as f64,
    };
    let written: u64 = reports.iter().map(|(_, report)| report.host_units).sum();
    let unit = first.config().geometry.unit;
    let endurance = Endurance::of(first.config(), amplification);
    let elapsed = reports.iter().map(|(_, report)| report.elapsed).max().unwrap_or(Span::ZERO);
    let days = elapsed.as_secs_f64() / 86_400.0;
    let capacity = first.capacity().count() as f64 * reports.len() as f64;
    let written_bytes = (unit * written).count() as f64;
    let sum = |of: fn(&DriveReport) -> u64| reports.iter().map(|(_, report)| of(report)).sum::<u64>() as f64;
    let wear = reports.iter().map(|(_, report)| f64::from(report.wear.max)).fold(0.0, f64::max);
    let collection_s: f64 = reports.iter().map(|(_, report)| report.collection_time.as_secs_f64()).sum();
    meter.put(metric::device_write_amplification, amplification);
    meter.count(metric::device_erases, sum(|report| report.erases));
    meter.put(metric::device_wear_erases_max, wear);
    meter.count(metric::device_collection_ms, collection_s * 1e3);
    meter.count(metric::device_forced_collections, sum(|report| report.forced_collections));
    meter.count(metric::device_written_bytes, written_bytes);
    let writes_per_day = if days > 0.0 { written_bytes / capacity / days } else { 0.0 };
    meter.put(metric::device_drive_writes_per_day, writes_per_day);
    meter.put(metric::device_endurance_tbw, endurance.bytes() / TERABYTE);
    meter.put(metric::device_endurance_dwpd_5_years, endurance.drive_writes_per_day(YEARS));
}

/// What flash can take of which hosts see `capacity`, and whose writes are amplified so.
pub fn facts_of_endurance(flash: Bytes, capacity: Bytes, amplification: f64, meter: &mut Meter) {
    let endurance = Endurance::rated(flash, capacity, amplification);
    meter.put(metric::endurance_tbw, endurance.bytes() / TERABYTE);
    meter.put(metric::endurance_dwpd_5_years, endurance.drive_writes_per_day(YEARS));
}
