//! From a plan of the room back to the file that says all of it.

use super::fabric::fabric_of;
use super::fabric_file::{DrivesFile, PricesFile};
use super::fault::fault_of;
use super::file::{CheckFile, GimbalFile, HorizonName, RoutePolicyName, RoutingFile};
use super::{Drives, San};
use crate::design_file::DesignFile;
use crate::file::ExperimentFile;
use crate::print::written_run;
use crate::quantity::{Limit, Plain, Quantity};
use san::cost::Prices;
use san::route::RouteConfig;

/// The file that says all of `san`, save title and seed.
pub(crate) fn file_of(san: &San) -> ExperimentFile {
    let faults = || san.faults.iter().map(|fault| fault_of(fault, &san.fabric.graph)).collect();
    ExperimentFile {
        design: Some(DesignFile { name: Some(san.design), ..DesignFile::default() }),
        fabric: Some(fabric_of(&san.fabric)),
        drives: Some(drives_of(&san.drives)),
        routing: Some(routing_of(&san.routing)),
        gimbal: Some(GimbalFile::of(&san.gimbal)),
        prices: Some(prices_of(&san.prices)),
        check: Some(CheckFile { write_order: Some(san.check_write_order) }),
        run: Some(written_run(None, None, san.run)),
        fault: (!san.faults.is_empty()).then(faults),
        ..ExperimentFile::default()
    }
}

fn drives_of(drives: &Drives) -> DrivesFile {
    DrivesFile {
        per_target: Some(drives.per_target),
        preset: Some(drives.preset),
        state: Some(drives.state),
        capacity: Some(Quantity(drives.capacity)),
    }
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

fn prices_of(prices: &Prices) -> PricesFile {
    PricesFile {
        switched_adapter_ports: Some(prices.switched_adapter_ports),
        switched_adapter: Some(prices.switched_adapter),
        switch_ports: Some(prices.switch_ports),
        switch: Some(prices.switch),
        switchless_adapter_ports: Some(prices.switchless_adapter_ports),
        switchless_adapter: Some(prices.switchless_adapter),
        cable: Some(prices.cable),
        cable_metre: Some(prices.cable_metre),
    }
}
