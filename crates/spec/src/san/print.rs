//! From a plan of the room back to the file that says all of it.

use super::San;
use super::ends::ends_of;
use super::fabric::fabric_of;
use super::fabric_file::{DrivesFile, PricesFile};
use super::fault::fault_of;
use super::file::{
    CheckFile, GimbalFile, HorizonName, QueueName, ReservationFile, RoutePolicyName, RoutingFile, SchedulingFile,
};
use super::io::io_of;
use crate::blox::print::stateless_flash_of;
use crate::design_file::DesignFile;
use crate::file::{ExperimentFile, FabricFile};
use crate::print::written_run;
use crate::quantity::{Limit, Plain, Quantity};
use san::egress::{SchedulingConfig, Service};
use san::reserve::{Estimate, OverCommitment, ReservationConfig};
use san::route::RouteConfig;
use san::target::Admission;

/// The file that says all of `san`, save title and seed.
pub(crate) fn file_of(san: &San) -> ExperimentFile {
    let faults = || san.faults.iter().map(|fault| fault_of(fault, &san.fabric.graph)).collect();
    let (host, target, wire) = ends_of(san);
    let (io, lsm) = io_of(&san.io);
    let (requests, duration) = san.io.limits();
    ExperimentFile {
        design: Some(DesignFile { name: Some(san.design), ..DesignFile::default() }),
        fabric: Some(written_fabric(san)),
        drives: Some(DrivesFile::of(&san.drives)),
        flash: san.flash.as_ref().map(stateless_flash_of),
        routing: Some(routing_of(&san.routing)),
        reservation: Some(reservation_of(san.reservation.as_ref())),
        scheduling: Some(scheduling_of(&san.scheduling)),
        gimbal: match &san.target.admission {
            Admission::Gimbal(config) => Some(GimbalFile::of(config)),
            Admission::Fifo { .. } => None,
        },
        host: Some(host),
        target: Some(target),
        wire: Some(wire),
        io,
        lsm,
        prices: Some(PricesFile::of(&san.prices)),
        check: Some(CheckFile { write_order: Some(san.check_write_order) }),
        run: Some(written_run(requests, duration, san.run)),
        fault: (!san.faults.is_empty()).then(faults),
        ..ExperimentFile::default()
    }
}

/// Thresholds of flow control take the place of the queue's length.
fn written_fabric(san: &San) -> FabricFile {
    let fabric = fabric_of(&san.fabric);
    let is_lossless = san.host.stream.is_some_and(|stream| stream.dcqcn().is_some());
    if is_lossless { FabricFile { queue: None, ..fabric } } else { fabric }
}

fn routing_of(config: &RouteConfig) -> RoutingFile {
    RoutingFile {
        policy: Some(RoutePolicyName::of(config.policy)),
        symmetric: Some(config.is_symmetric),
        header: Some(config.has_header),
        ewma_weight: Some(config.ewma_weight),
        ecn_threshold: Some(Limit::written(config.ecn_threshold)),
        mark_answers: Some(config.marks_answers),
        stretch: Some(config.stretch_max),
        stale_after: Some(Quantity(config.stale_after)),
        candidates: Some(config.distance.candidates),
        period: Some(Quantity(config.distance.period)),
        hold: Some(Quantity(config.distance.hold)),
        trigger_gap: Some(Quantity(config.distance.trigger_gap)),
        horizon: Some(HorizonName::of(config.distance.horizon)),
    }
}

/// Of what is off, nothing but that is written: it decides nothing.
fn reservation_of(config: Option<&ReservationConfig>) -> ReservationFile {
    let Some(config) = config else { return ReservationFile { on: Some(false), ..ReservationFile::default() } };
    let estimate = |each: &Estimate| (Quantity(each.bytes_max), Quantity(each.rate));
    let step = |each: &OverCommitment| (of_1024(each.headroom_min), of_1024(each.factor));
    ReservationFile {
        on: Some(true),
        estimates: Some(config.estimates.iter().map(estimate).collect()),
        over_commitment: Some(config.over_commitment.iter().map(step).collect()),
        limit: Some(of_1024(config.limit)),
        conservative: Some(config.is_conservative),
        fills_at_booked: Some(config.fills_at_booked),
        burst: Some(Quantity(config.burst)),
        classes: Some(config.classes),
        lapse: Some(Quantity(config.lapse)),
    }
}

fn of_1024(share: u16) -> f64 {
    f64::from(share) / 1_024.0
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
