//! Prints a plan as the file of all its values.

use super::Scalio;
use super::file::{CarrierFile, CoresFile, DittoFile, LeedFile, RdmaFile, ScalioFile, StoreFile};
use crate::blox::file::IoFile;
use crate::blox::print::{flash_of, write_io, write_places_and_times};
use crate::file::ExperimentFile;
use crate::print::{fault_of, written_run};

/// The file that says all of `scalio`, save title, seed and design.
pub(crate) fn file_of(scalio: &Scalio) -> ExperimentFile {
    ExperimentFile {
        store: Some(StoreFile::of(&scalio.store)),
        flash: scalio.flash.as_ref().map(flash_of),
        rdma: Some(RdmaFile::of(&scalio.rdma)),
        carrier: scalio.carrier.as_ref().map(CarrierFile::of),
        cores: Some(CoresFile::of(&scalio.cores)),
        scalio: scalio.options.as_ref().map(ScalioFile::of),
        leed: scalio.leed.as_ref().map(LeedFile::of),
        ditto: scalio.ditto.as_ref().map(DittoFile::of),
        io: Some(io_of(scalio)),
        run: Some(written_run(scalio.io.requests, scalio.io.duration, scalio.run)),
        fault: (!scalio.faults.is_empty()).then(|| scalio.faults.iter().map(fault_of).collect()),
        ..ExperimentFile::default()
    }
}

/// The load of an NVMe-oF target is reads alone, so that only addresses and times are written.
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
