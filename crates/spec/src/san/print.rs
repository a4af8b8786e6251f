//! From a plan of the room back to the file that says all of it.

use super::San;
use super::ends::wire_of;
use super::fabric::fabric_of;
use super::fabric_file::{DrivesFile, PricesFile};
use super::fault::fault_of;
use super::file::{
    CheckFile, GimbalFile, HostEnd, HostFile, QueueName, ReservationFile, RoutingFile, SchedulingFile, TargetFile,
};
use super::io::io_of;
use crate::blox::print::flash_of;
use crate::design_file::DesignFile;
use crate::file::ExperimentFile;
use crate::print::written_run;
use san::egress::{SchedulingConfig, Service};
use san::reserve::ReservationConfig;
use san::target::Admission;

/// The file that says all of `san`, save title and seed.
pub(crate) fn file_of(san: &San) -> ExperimentFile {
    let faults = || san.faults.iter().map(|fault| fault_of(fault, &san.fabric.graph)).collect();
    let end = HostEnd { times: san.ends, host: san.host.clone() };
    let (io, lsm) = io_of(&san.io);
    let (requests, duration) = san.io.limits();
    ExperimentFile {
        design: Some(DesignFile { name: Some(san.design), ..DesignFile::default() }),
        fabric: Some(fabric_of(&san.fabric)),
        drives: Some(DrivesFile::of(&san.drives)),
        flash: san.flash.as_ref().map(flash_of),
        routing: Some(RoutingFile::of(&san.routing)),
        reservation: Some(reservation_of(san.reservation.as_ref())),
        scheduling: Some(scheduling_of(&san.scheduling)),
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

/// Of what is off, nothing but that is written: it decides nothing.
fn reservation_of(config: Option<&ReservationConfig>) -> ReservationFile {
    let off = ReservationFile { on: Some(false), ..ReservationFile::default() };
    config.map_or(off, ReservationFile::of)
}

fn scheduling_of(config: &SchedulingConfig) -> SchedulingFile {
    let SchedulingConfig::StorageDriven(config) = config else {
        return SchedulingFile { policy: Some(QueueName::Fifo), ..SchedulingFile::default() };
    };
    let weights = match &config.service {
        Service::Strict => None,
        Service::WeightedRoundRobin(weights) => Some(weights.clone()),
    };
    SchedulingFile {
        policy: Some(QueueName::StorageDriven),
        queues: Some(config.queues),
        strict: Some(weights.is_none()),
        weights,
        credit_quantum: Some(config.rank.quantum),
        rank_max: Some(config.rank.rank_max),
        unknown_credit: Some(config.rank.unknown_credit),
        read_rank: Some(config.rank.read_rank),
    }
}
