//! Prints a plan as the file of all its values.

use super::San;
use super::ends::wire_of;
use super::fabric::fabric_of;
use super::fabric_file::{DrivesFile, PricesFile};
use super::fault::fault_of;
use super::file::{CheckFile, GimbalFile, HostEnd, HostFile, ReservationFile, RoutingFile, SchedulingFile, TargetFile};
use super::io::io_of;
use crate::blox::print::flash_of;
use crate::file::ExperimentFile;
use crate::print::written_run;
use san::reserve::ReservationConfig;
use san::target::Admission;

/// The file that says all of `san`, save title, seed and design.
pub(crate) fn file_of(san: &San) -> ExperimentFile {
    let faults = || san.faults.iter().map(|fault| fault_of(fault, &san.fabric.graph)).collect();
    let end = HostEnd { times: san.ends, host: san.host.clone() };
    let (io, lsm) = io_of(&san.io);
    let (requests, duration) = san.io.limits();
    ExperimentFile {
        fabric: Some(fabric_of(&san.fabric)),
        drives: Some(drives_of(san)),
        flash: san.flash.as_ref().map(flash_of),
        routing: Some(RoutingFile::of(&san.routing)),
        reservation: Some(reservation_of(san.reservation.as_ref())),
        scheduling: Some(SchedulingFile::of(&san.scheduling)),
        gimbal: match &san.target.admission {
            Admission::Gimbal(config) => Some(GimbalFile::of(config)),
            Admission::Fifo { .. } => None,
        },
        host: Some(HostFile { stack: None, ..HostFile::of(&end) }),
        target: Some(TargetFile::of(&san.target)),
        wire: Some(wire_of(&san.target)),
        io,
        lsm,
        prices: Some(PricesFile::of(&san.prices)),
        check: Some(CheckFile { write_order: Some(san.check_write_order) }),
        run: Some(written_run(requests, duration, san.run)),
        fault: (!san.faults.is_empty()).then(faults),
        ..ExperimentFile::default()
    }
}

/// Drives of a `[flash]` table have its buffer.
fn drives_of(san: &San) -> DrivesFile {
    let drives = DrivesFile::of(&san.drives);
    DrivesFile { buffer: drives.buffer.filter(|_| san.flash.is_none()), ..drives }
}

/// Of what is off, nothing but that is written: it decides nothing.
fn reservation_of(config: Option<&ReservationConfig>) -> ReservationFile {
    let off = ReservationFile { on: Some(false), ..ReservationFile::default() };
    config.map_or(off, ReservationFile::of)
}
