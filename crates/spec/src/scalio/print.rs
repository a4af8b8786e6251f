//! From a plan of the room back to the file that says all of it.

use super::file::{CarrierFile, CarrierName, CoresFile, DittoFile, LeedFile, ScalioFile, StoreFile, VerbsFile};
use super::{Carrier, Options, ProtocolName, Scalio};
use crate::blox::file::{FlashFile, IoFile};
use crate::blox::print::{stateless_flash_of, write_io, write_places_and_times};
use crate::design_file::DesignFile;
use crate::file::{ExperimentFile, FaultFile};
use crate::plan::Fault;
use crate::print::written_run;
use crate::quantity::Quantity;

/// The file that says all of `scalio`, save title and seed.
pub(crate) fn file_of(scalio: &Scalio) -> ExperimentFile {
    ExperimentFile {
        design: Some(DesignFile { name: Some(scalio.design), ..DesignFile::default() }),
        store: Some(store_of(scalio)),
        flash: scalio.flash.as_ref().map(|flash| FlashFile {
            victim: None,
            hot_cold: None,
            ..stateless_flash_of(flash)
        }),
        verbs: Some(VerbsFile::of(&scalio.verbs)),
        carrier: scalio.carrier.as_ref().map(carrier_of),
        cores: Some(CoresFile::of(&scalio.cores)),
        scalio: scalio.options.as_ref().map(options_of),
        leed: scalio.leed.as_ref().map(LeedFile::of),
        ditto: scalio.ditto.as_ref().map(DittoFile::of),
        io: Some(io_of(scalio)),
        run: Some(written_run(scalio.io.requests, scalio.io.duration, scalio.run)),
        fault: (!scalio.faults.is_empty()).then(|| scalio.faults.iter().map(fault_of).collect()),
        ..ExperimentFile::default()
    }
}

/// Without a store nothing is said of keys.
fn store_of(scalio: &Scalio) -> StoreFile {
    let file = StoreFile::of(&scalio.store);
    if scalio.design.is_bare_flash() {
        return StoreFile { keys: None, value: None, cached_keys: None, warmed: None, spare: None, ..file };
    }
    file
}

/// Of verbs nothing is said here.
fn carrier_of(carrier: &Carrier) -> CarrierFile {
    match carrier.name {
        CarrierName::Rdma => CarrierFile { name: Some(CarrierName::Rdma), ..CarrierFile::default() },
        CarrierName::Edm => CarrierFile::of(carrier),
    }
}

fn options_of(options: &Options) -> ScalioFile {
    ScalioFile {
        protocol: Some(options.protocol),
        cache: Some(options.cache),
        batching: Some(options.batching),
        slots: Some(options.slots),
        batch: Some(options.batch),
        idle_flush: Some(Quantity(options.idle_flush)),
        leases: (options.protocol == ProtocolName::Paper).then_some(options.lease.is_some()),
        lease: options.lease.map(Quantity),
        retry: Some(Quantity(options.retry)),
        timeout: Some(Quantity(options.timeout)),
        attempts: Some(options.attempts),
        torn_reads: Some(options.torn_reads),
        volatile_cache: Some(options.volatile_cache),
    }
}

/// An NVMe-oF target is asked for reads alone, of which nothing is written but where they are.
fn io_of(scalio: &Scalio) -> IoFile {
    let mut file = IoFile { requests_per_second: scalio.requests_per_second, ..IoFile::default() };
    if scalio.design.is_bare_flash() {
        write_places_and_times(&scalio.io, &mut file);
    } else {
        file.check_history = Some(scalio.check_history);
        write_io(&scalio.io, &mut file);
    }
    file
}

fn fault_of(fault: &Fault) -> FaultFile {
    let (kind, node, _) = fault.kind.parts();
    FaultFile { at: Some(Quantity(fault.at)), kind: Some(kind), node: node.map(|node| node.0), ..FaultFile::default() }
}
