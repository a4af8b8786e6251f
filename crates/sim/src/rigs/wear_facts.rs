//! What any scene with whole drives tells of their flash: amplification, erases, collection,
//! endurance.

use base::{Bytes, Span};
use hardware::ssd::{Endurance, SolidState};
use std::collections::BTreeMap;

/// Years of a warranty, over which drive writes a day are counted.
const YEARS: f64 = 5.0;

/// Puts the facts of these drives into `out`, each with `device_` before its name.
pub fn facts_of_drives<'a>(drives: impl Iterator<Item = &'a SolidState>, out: &mut BTreeMap<String, f64>) {
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
    let facts = [
        ("write_amplification", amplification),
        ("erases", reports.iter().map(|(_, report)| report.erases).sum::<u64>() as f64),
        ("wear_erases_max", reports.iter().map(|(_, report)| f64::from(report.wear.max)).fold(0.0, f64::max)),
        ("collection_ms", reports.iter().map(|(_, report)| report.collection_time.as_secs_f64()).sum::<f64>() * 1e3),
        ("forced_collections", reports.iter().map(|(_, report)| report.forced_collections).sum::<u64>() as f64),
        ("written_bytes", written_bytes),
        ("drive_writes_per_day", if days > 0.0 { written_bytes / capacity / days } else { 0.0 }),
    ];
    out.extend(facts.into_iter().chain(told(&endurance)).map(|(name, value)| (format!("device_{name}"), value)));
}

/// What flash can take of which hosts see `capacity`, and whose writes are amplified so.
pub fn facts_of_endurance(flash: Bytes, capacity: Bytes, amplification: f64, out: &mut BTreeMap<String, f64>) {
    let endurance = Endurance::rated(flash, capacity, amplification);
    out.extend(told(&endurance).map(|(name, value)| (name.to_owned(), value)));
}

fn told(endurance: &Endurance) -> [(&'static str, f64); 2] {
    [("endurance_tbw", endurance.bytes() / 1e12), ("endurance_dwpd_5_years", endurance.drive_writes_per_day(YEARS))]
}
